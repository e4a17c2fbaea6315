//! An operand between guards.

use std::ops::Range;

/// Elements of guard on each side: a multiple of every vector width in bytes, so that an operand's offset alone decides
/// its alignment in a buffer that is itself aligned.
const GUARD: usize = 64;

/// An operand with guard elements before and after it.
///
/// An implementation that copies takes [`whole`](Self::whole) along, works on the part of it that
/// [`range`](Self::range) names, and brings all of it back.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer<T> {
    whole: Vec<T>,
    range: Range<usize>,
}

impl<T: Copy> Buffer<T> {
    /// `operand`, moved by `offset` elements, between guards of `guard`.
    pub(crate) fn new(operand: impl ExactSizeIterator<Item = T>, offset: usize, guard: T) -> Self {
        let range = GUARD + offset..GUARD + offset + operand.len();
        let mut whole = Vec::with_capacity(range.end + GUARD);
        whole.resize(range.start, guard);
        whole.extend(operand);
        assert_eq!(whole.len(), range.end, "an iterator of another length than it says");
        whole.resize(range.end + GUARD, guard);
        Self { whole, range }
    }

    /// Elements by which the operand was moved.
    pub(crate) fn offset(&self) -> usize {
        self.range.start - GUARD
    }

    /// Guards and operand.
    pub fn whole(&self) -> &[T] {
        &self.whole
    }

    /// Guards and operand.
    pub fn whole_mut(&mut self) -> &mut [T] {
        &mut self.whole
    }

    /// Where in [`whole`](Self::whole) the operand lies.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The operand alone.
    pub fn operand(&self) -> &[T] {
        &self.whole[self.range()]
    }

    /// The operand alone.
    pub fn operand_mut(&mut self) -> &mut [T] {
        let range = self.range();
        &mut self.whole[range]
    }
}
