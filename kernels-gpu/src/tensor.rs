//! The algorithm of one scale for a whole tensor, in two kernels: the absmax, then the codes.
//!
//! All threads of a grid take the tensor's vectors in turn. The elements after the last whole vector, fewer than a vector has,
//! are one each of the grid's first threads.

use crate::arch::mem;
use crate::element::Element;
use crate::math;
use crate::vector::{Single, Vector};

/// What one thread of the grid is: number `index` of `threads`.
#[derive(Clone, Copy)]
pub struct Worker {
    /// Number of the thread in the grid.
    pub index: u64,
    /// Threads of the grid, at least a warp's.
    pub threads: u64,
}

/// A kernel's arguments: `x` and `q` of as many elements, one scale.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// Input elements.
    pub x: *const u8,
    /// E4M3 codes.
    pub q: *mut u8,
    /// The scale.
    pub s: *mut f32,
    /// Elements.
    pub elements: u64,
    /// Whether a zero scale gives a zero inverse; else an infinite one.
    pub guard: bool,
}

impl Arguments {
    /// Whole vectors.
    #[inline(always)]
    fn vectors<V: Vector>(self) -> u64 {
        self.elements / V::ELEMENTS as u64
    }

    /// The worker's element after the last whole vector, if it has one.
    #[inline(always)]
    fn left_over<V: Vector>(self, worker: Worker) -> Option<u64> {
        let index = self.vectors::<V>() * V::ELEMENTS as u64 + worker.index;
        (V::ELEMENTS > 1 && index < self.elements).then_some(index)
    }
}

/// The largest magnitude among the worker's elements; a NaN never raises it.
///
/// # Safety
/// `x` has `elements` elements of type `T`, readable, which nothing writes while the kernel runs, and is aligned for `V`.
#[inline(always)]
pub unsafe fn absmax<T: Element, V: Vector>(arguments: Arguments, worker: Worker) -> f32 {
    let vectors = arguments.vectors::<V>();
    let mut absmax = 0;
    let mut index = worker.index;
    while index < vectors {
        // SAFETY: index < vectors.
        absmax = unsafe { V::load(arguments.x, index) }.absmax(absmax);
        index += worker.threads;
    }
    if let Some(index) = arguments.left_over::<V>(worker) {
        // SAFETY: index < elements; whoever is aligned for a vector is for an element.
        absmax = unsafe { Single::<T>::load(arguments.x, index) }.absmax(absmax);
    }
    T::absmax_value(absmax)
}

/// Raises the tensor's scale to that of a part with this absmax.
///
/// # Safety
/// `s` is writable and aligned, holds neither a NaN nor a negative number, and until the kernel's end is touched by calls of
/// this function alone.
#[inline(always)]
pub unsafe fn raise_scale(arguments: Arguments, absmax: f32) {
    // The scale of the largest part is the largest scale: the division keeps the order. So do the bits, which are compared.
    // SAFETY: the caller's duties.
    unsafe { mem::raise_u32(arguments.s.cast(), math::scale(absmax).to_bits()) }
}

/// Quantizes the worker's elements.
///
/// From the end of the tensor to its start: after the pass that took the absmax, its end is what the cache still holds.
///
/// # Safety
/// - As [`absmax`]; `s` is readable, and nothing writes it while the kernel runs.
/// - `q` has `elements` bytes, writable, which nobody else touches, and is aligned for `V`.
/// - Every thread of the grid calls this, with a number of its own.
#[inline(always)]
pub unsafe fn quantize<T: Element, V: Vector>(arguments: Arguments, worker: Worker) {
    // SAFETY: the caller's duties.
    let scale = unsafe { mem::load_scale(arguments.s) };
    let inverse = math::inverse(scale, arguments.guard);
    if let Some(index) = arguments.left_over::<V>(worker) {
        // SAFETY: index < elements; whoever is aligned for a vector is for an element.
        let element = unsafe { Single::<T>::load(arguments.x, index) };
        // SAFETY: index < elements, it is in no whole vector, and no other thread has it.
        unsafe { element.store_codes(inverse, arguments.q, index) };
    }
    let vectors = arguments.vectors::<V>();
    let from_end = |index| vectors - 1 - index;
    let mut index = worker.index;
    // Two loads in flight: none moves before the store of the other.
    while index + worker.threads < vectors {
        let (first, second) = (from_end(index), from_end(index + worker.threads));
        // SAFETY: first < vectors.
        let at_first = unsafe { V::load(arguments.x, first) };
        // SAFETY: second < vectors.
        let at_second = unsafe { V::load(arguments.x, second) };
        // SAFETY: first < vectors, and no other thread has it.
        unsafe { at_first.store_codes(inverse, arguments.q, first) };
        // SAFETY: second < vectors, and no other thread has it.
        unsafe { at_second.store_codes(inverse, arguments.q, second) };
        index += 2 * worker.threads;
    }
    if index < vectors {
        let last = from_end(index);
        // SAFETY: last < vectors.
        let at_last = unsafe { V::load(arguments.x, last) };
        // SAFETY: last < vectors, and no other thread has it.
        unsafe { at_last.store_codes(inverse, arguments.q, last) };
    }
}
