//! Static shared memory of a CTA.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Storage behind [`shared_array!`](crate::shared_array).
///
/// `cuda_builder`'s text pass moves statics of section `.gpu.shared` to the shared address space, where every CTA has its
/// own copy, uninitialised at its start.
#[repr(transparent)]
pub struct SharedCell<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: the cell only hands out a raw pointer (`get`); every access through it is the user's `unsafe` and their duty
// to order by barriers.
unsafe impl<T> Sync for SharedCell<T> {}

impl<T> SharedCell<T> {
    /// Uninitialised storage, the only kind that shared memory has.
    pub const fn uninit() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// The storage.
    #[inline(always)]
    pub const fn get(&self) -> *mut T {
        self.0.get().cast()
    }
}

/// `shared_array![T; N]`: pointer to the first of `N` uninitialised `T` in the CTA's shared memory.
///
/// Every expansion is one array: a second call in the same function is a second array, and a function that is called twice
/// sees the same one both times. Duties of the user: write before reading; a barrier between one thread's write and
/// another's access.
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $len:expr) => {{
        #[cfg_attr(target_arch = "nvptx64", used, unsafe(link_section = ".gpu.shared"))]
        static SHARED: $crate::shared::SharedCell<[$element; $len]> = $crate::shared::SharedCell::uninit();
        SHARED.get().cast::<$element>()
    }};
}
