//! The algorithm: one row by one group of threads.
//!
//! A group is a warp or a CTA. Its threads take the row's vectors in turn, agree on the absmax, and each quantizes what
//! it took.

use crate::arch::mem;
use crate::math;
use crate::vector::Vector;
use ptq_spec::per_token_extended::Bounds;

/// What a row's scale is.
pub trait Scale: Copy {
    /// The scale of a row with that absmax.
    fn of(self, absmax: f32) -> f32;
}

/// A scale without bounds.
#[derive(Clone, Copy)]
pub struct Unbounded;

impl Scale for Unbounded {
    #[inline(always)]
    fn of(self, absmax: f32) -> f32 {
        math::scale(absmax)
    }
}

impl Scale for Bounds {
    #[inline(always)]
    fn of(self, absmax: f32) -> f32 {
        math::bounded_scale(absmax, self.upper, self.min_scale)
    }
}

/// One row of the input and of both outputs.
#[derive(Clone, Copy)]
pub struct Row {
    x: *const u8,
    q: *mut u8,
    s: *mut f32,
    vectors: u64,
    guard: bool,
}

/// What one thread of a group of `threads` is: number `index`.
#[derive(Clone, Copy)]
pub struct Member {
    /// Number of the thread in its group.
    pub index: u32,
    /// Threads of the group.
    pub threads: u32,
}

/// A kernel's arguments: `x[rows, hidden]`, `q[rows, hidden]`, `s[rows]`.
#[derive(Clone, Copy)]
pub struct Arguments {
    /// Input elements.
    pub x: *const u8,
    /// E4M3 codes.
    pub q: *mut u8,
    /// Scales.
    pub s: *mut f32,
    /// Elements per row.
    pub hidden: u64,
    /// Whether a zero scale gives a zero inverse; else an infinite one.
    pub guard: bool,
}

/// The same with rows apart from each other.
#[derive(Clone, Copy)]
pub struct Strided {
    /// All but what follows.
    pub plain: Arguments,
    /// Elements from the start of one row of `x` to the next.
    pub x_stride: u64,
    /// The same for `q`.
    pub q_stride: u64,
}

/// The rows of a call.
pub trait Rows: Copy {
    /// Row `index`, of vectors `V`, of an input with `element_bytes` per element.
    ///
    /// # Safety
    /// `index` is below the number of rows.
    unsafe fn row<V: Vector>(self, index: u64, element_bytes: usize) -> Row;
}

impl Rows for Arguments {
    #[inline(always)]
    unsafe fn row<V: Vector>(self, index: u64, element_bytes: usize) -> Row {
        let first = index as usize * self.hidden as usize;
        Row {
            // SAFETY: the row lies within x; 64-bit offsets do not wrap.
            x: unsafe { self.x.add(first * element_bytes) },
            // SAFETY: the row lies within q.
            q: unsafe { self.q.add(first) },
            // SAFETY: s has one scale per row.
            s: unsafe { self.s.add(index as usize) },
            vectors: self.hidden / V::ELEMENTS as u64,
            guard: self.guard,
        }
    }
}

impl Rows for Strided {
    #[inline(always)]
    unsafe fn row<V: Vector>(self, index: u64, element_bytes: usize) -> Row {
        let Self { plain, x_stride, q_stride } = self;
        let x_offset = index as usize * x_stride as usize * element_bytes;
        let q_offset = index as usize * q_stride as usize;
        Row {
            // SAFETY: the row lies within x; 64-bit offsets do not wrap.
            x: unsafe { plain.x.add(x_offset) },
            // SAFETY: the row lies within q.
            q: unsafe { plain.q.add(q_offset) },
            // SAFETY: s has one scale per row.
            s: unsafe { plain.s.add(index as usize) },
            vectors: plain.hidden / V::ELEMENTS as u64,
            guard: plain.guard,
        }
    }
}

impl Row {
    /// Stores the row's scale (one thread) and returns its inverse.
    ///
    /// # Safety
    /// The row is this group's alone.
    #[inline(always)]
    unsafe fn finish(self, scale: f32, member: Member) -> f32 {
        if member.index == 0 {
            // SAFETY: s has a scale for this row, and only this thread writes it.
            unsafe { mem::store_f32(self.s, scale) };
        }
        math::inverse(scale, self.guard)
    }
}

/// Quantizes a row that the group holds in registers, `N` vectors a thread: read once.
///
/// `reduce` is the group's maximum, valid in every thread.
///
/// # Safety
/// - The row has at most `N * member.threads` vectors, aligned for `V`, and is this group's alone.
/// - All threads of the group reach this call, converged, with their own `member.index`.
#[inline(always)]
pub unsafe fn held<V: Vector, const N: usize>(
    row: Row,
    member: Member,
    scale: impl Scale,
    reduce: impl FnOnce(f32) -> f32,
) {
    // A row that fits in registers has far fewer than 2^32 vectors.
    let vectors = row.vectors as u32;
    let mut held = [V::ZERO; N];
    let mut index = member.index;
    for vector in &mut held {
        if index < vectors {
            // SAFETY: index < vectors.
            *vector = unsafe { V::load(row.x, u64::from(index)) };
        }
        index += member.threads;
    }

    let absmax = held.iter().fold(0, |absmax, vector| vector.absmax(absmax));
    let absmax = reduce(V::absmax_value(absmax));
    // SAFETY: the row is this group's alone.
    let inverse = unsafe { row.finish(scale.of(absmax), member) };

    let mut index = member.index;
    for vector in &held {
        if index < vectors {
            // SAFETY: index < vectors, and no other thread has this index.
            unsafe { vector.store_codes(inverse, row.q, u64::from(index)) };
        }
        index += member.threads;
    }
}

/// Quantizes a row of any length: read twice.
///
/// # Safety
/// As [`held`], without its bound on the vectors.
#[inline(always)]
pub unsafe fn two_pass<V: Vector>(row: Row, member: Member, scale: impl Scale, reduce: impl FnOnce(f32) -> f32) {
    let (first, step) = (u64::from(member.index), u64::from(member.threads));
    let mut absmax = 0;
    let mut index = first;
    while index < row.vectors {
        // SAFETY: index < vectors.
        absmax = unsafe { V::load(row.x, index) }.absmax(absmax);
        index += step;
    }

    let absmax = reduce(V::absmax_value(absmax));
    // SAFETY: the row is this group's alone.
    let inverse = unsafe { row.finish(scale.of(absmax), member) };

    let mut index = first;
    while index < row.vectors {
        // SAFETY: index < vectors.
        let vector = unsafe { V::load(row.x, index) };
        // SAFETY: index < vectors, and no other thread has this index.
        unsafe { vector.store_codes(inverse, row.q, index) };
        index += step;
    }
}
