//! The algorithm: one row by one group of threads.
//!
//! A group is a warp or a CTA. Its threads take the row's vectors in turn, agree on the absmax, and each quantizes what
//! it took.

use crate::arch::mem;
use crate::math;
use crate::vector::{Held, Vector};
use ptq_spec::per_token::{Caching, flags};
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

/// What one thread of a group of `threads` is: number `index`.
#[derive(Clone, Copy)]
pub struct Member {
    /// Number of the thread in its group.
    pub index: u32,
    /// Threads of the group.
    pub threads: u32,
}

/// The threads that work on one row.
pub trait Group: Copy {
    /// What can be done for [`Self::reduce_max`] while loads, if any were issued before, are under way.
    ///
    /// # Safety
    /// All threads of the group reach this call, converged, and once.
    unsafe fn loading(self);

    /// The group's maximum of a number that is neither negative nor NaN. Valid in: every thread.
    ///
    /// # Safety
    /// All threads of the group reach this call, converged, and once, after [`Self::loading`].
    unsafe fn reduce_max(self, value: f32) -> f32;
}

/// One row of the input and of both outputs, as one member of its group finds it.
#[derive(Clone, Copy)]
pub struct Row {
    /// The member's first vector.
    x: *const u8,
    /// The codes of that.
    q: *mut u8,
    s: *mut f32,
    /// Vectors of the row.
    vectors: u64,
    guard: bool,
    caching: Caching,
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
    /// Bits of [`ptq_spec::per_token::flags`].
    pub flags: u32,
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

/// How long rows may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// They fit in registers, and so have far fewer than 2^32 bytes.
    Held,
    /// Any.
    Any,
}

/// The rows of a call.
pub trait Rows: Copy {
    /// Row `index`, of vectors `V`, for `member`, of an input with `element_bytes` per element. Where there is no such row, its
    /// addresses are good for nothing.
    fn row<V: Vector>(self, index: u32, length: Length, member: Member, element_bytes: usize) -> Row;
}

impl Arguments {
    /// Row `index`, where rows of `x` and of `q` start so many bytes apart.
    #[inline(always)]
    fn row_at<V: Vector>(self, index: u32, x_step: u64, q_step: u64, member: Member, element_bytes: usize) -> Row {
        // The member's part first: 32 bits hold it. `index` may be beyond the last row, so that the product may wrap.
        let first = member.index as usize * V::ELEMENTS;
        let x = self.x.wrapping_add(first * element_bytes);
        let q = self.q.wrapping_add(first);
        Row {
            x: x.wrapping_add((index as usize).wrapping_mul(x_step as usize)),
            q: q.wrapping_add((index as usize).wrapping_mul(q_step as usize)),
            s: self.s.wrapping_add(index as usize),
            vectors: self.hidden / V::ELEMENTS as u64,
            guard: self.flags & flags::GUARD != 0,
            caching: if self.flags & flags::NO_ALLOCATE != 0 { Caching::NoAllocate } else { Caching::Ordinary },
        }
    }
}

impl Rows for Arguments {
    #[inline(always)]
    fn row<V: Vector>(self, index: u32, length: Length, member: Member, element_bytes: usize) -> Row {
        // A product of two factors of 32 bits takes one instruction, of 64 bits several.
        let step = |bytes: u64| if length == Length::Held { u64::from(bytes as u32) } else { bytes };
        let (x_step, q_step) = (step(self.hidden * element_bytes as u64), step(self.hidden));
        self.row_at::<V>(index, x_step, q_step, member, element_bytes)
    }
}

impl Rows for Strided {
    #[inline(always)]
    fn row<V: Vector>(self, index: u32, _: Length, member: Member, element_bytes: usize) -> Row {
        let Self { plain, x_stride, q_stride } = self;
        plain.row_at::<V>(index, x_stride * element_bytes as u64, q_stride, member, element_bytes)
    }
}

impl Row {
    /// Stores the row's scale (one thread), if the row exists, and returns its inverse.
    ///
    /// # Safety
    /// The row is this group's alone, if it exists.
    #[inline(always)]
    unsafe fn finish(self, exists: bool, scale: f32, member: Member) -> f32 {
        if member.index == 0 && exists {
            // SAFETY: s has a scale for this row, and only this thread writes it.
            unsafe { mem::store_f32(self.s, scale) };
        }
        math::inverse(scale, self.guard)
    }
}

/// Quantizes a row that the group holds in registers, `N` vectors a thread: read once. Touches no memory unless it `exists`.
///
/// # Safety
/// - The row has at most `N * member.threads` vectors, aligned for `V`, and is this group's alone, if it exists.
/// - All threads of the group reach this call, converged, with the row of their own `member`.
#[inline(always)]
pub unsafe fn held<V: Held, const N: usize>(
    row: Row,
    exists: bool,
    member: Member,
    scale: impl Scale,
    group: impl Group,
) {
    // A row that fits in registers has far fewer than 2^32 vectors.
    let vectors = if exists { row.vectors as u32 } else { 0 };
    let mut held = [V::ZERO; N];
    let mut index = member.index;
    for vector in &mut held {
        // SAFETY: loaded if index < vectors; `row.x` is vector `member.index`.
        *vector = unsafe { V::load_if(index < vectors, row.x, u64::from(index - member.index), row.caching) };
        index += member.threads;
    }
    // SAFETY: the caller's duties.
    unsafe { group.loading() };

    let absmax = held.iter().fold(0, |absmax, vector| vector.absmax(absmax));
    // SAFETY: the caller's duties.
    let absmax = unsafe { group.reduce_max(V::absmax_value(absmax)) };
    // SAFETY: the row is this group's alone.
    let inverse = unsafe { row.finish(exists, scale.of(absmax), member) };

    let mut index = member.index;
    for vector in &held {
        // SAFETY: stored if index < vectors, which no other thread has; `row.q` has the codes of vector `member.index`.
        unsafe { vector.store_codes_if(index < vectors, inverse, row.q, u64::from(index - member.index)) };
        index += member.threads;
    }
}

/// Quantizes a row of any length: read twice.
///
/// # Safety
/// As [`held`], without its bound on the vectors; the row exists, and is that of the group's first member: vectors count from
/// the row's start here.
#[inline(always)]
pub unsafe fn two_pass<V: Vector>(row: Row, member: Member, scale: impl Scale, group: impl Group) {
    // SAFETY: the caller's duties.
    unsafe { group.loading() };
    let (first, step) = (u64::from(member.index), u64::from(member.threads));
    let mut absmax = 0;
    let mut index = first;
    while index < row.vectors {
        // SAFETY: index < vectors.
        absmax = unsafe { V::load(row.x, index) }.absmax(absmax);
        index += step;
    }

    // SAFETY: the caller's duties.
    let absmax = unsafe { group.reduce_max(V::absmax_value(absmax)) };
    // SAFETY: the row is this group's alone.
    let inverse = unsafe { row.finish(true, scale.of(absmax), member) };

    let mut index = first;
    while index < row.vectors {
        // SAFETY: index < vectors.
        let vector = unsafe { V::load(row.x, index) };
        // SAFETY: index < vectors, and no other thread has this index.
        unsafe { vector.store_codes(inverse, row.q, index) };
        index += step;
    }
}
