//! Collectives of one CTA.

use crate::arch::mem;
use crate::row::Group;
use cuda_std::prelude::*;

/// All threads of the CTA. Barriers: two, of which the first, in [`Group::loading`], hides behind the
/// loads of a row that is held.
#[derive(Clone, Copy)]
pub struct Cta(*mut u32);

impl Cta {
    /// The calling thread's.
    ///
    /// # Safety
    /// - All threads of the CTA, which is one-dimensional, reach this call, and reduce once: nothing resets the number again.
    /// - Nobody reduces before [`Group::loading`].
    #[inline(always)]
    pub unsafe fn new() -> Self {
        let number = shared_array![u32; 1];
        if thread::thread_idx_x() == 0 {
            // SAFETY: one thread writes, and nobody else touches the number before the barrier in `loading`.
            unsafe { mem::store_shared(number, 0) };
        }
        Self(number)
    }
}

impl Group for Cta {
    #[inline(always)]
    unsafe fn loading(self) {
        thread::sync_threads();
    }

    /// Numbers that are not negative order like their bits.
    #[inline(always)]
    unsafe fn reduce_max(self, value: f32) -> f32 {
        // SAFETY: written before the barrier in `loading`; until the next only this call touches it.
        unsafe { mem::raise_shared(self.0, value.to_bits()) };
        thread::sync_threads();
        // SAFETY: nobody writes after this barrier.
        f32::from_bits(unsafe { mem::load_shared(self.0) })
    }
}
