//! Shared memory of a CTA.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Storage behind [`shared_array!`](crate::shared_array).
///
/// `cuda_builder`'s text pass moves statics of section `.gpu.shared` to the shared address space, where every CTA has its
/// own copy, uninitialised at its start. On the host the static only stands for the array; each CTA of the emulator has
/// its own.
#[repr(transparent)]
pub struct SharedCell<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: the cell only hands out a raw pointer (`get`); every access through it is the user's `unsafe` and their duty
// to order by barriers.
unsafe impl<T> Sync for SharedCell<T> {}

impl<T> SharedCell<T> {
    /// Uninitialised storage, the only kind that shared memory has.
    #[allow(clippy::new_without_default, reason = "only statics are made")]
    pub const fn uninit() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// The storage.
    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    pub fn get(&self) -> *mut T {
        self.0.get().cast()
    }

    /// The storage of the CTA that calls.
    ///
    /// # Panics
    /// Outside a launch of the emulator.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn get(&self) -> *mut T {
        let key = Some(self.0.get().addr());
        crate::emulator::lane::with(|cta, _| cta.shared.borrow_mut().array(key, size_of::<T>())).cast()
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

/// Stands for the dynamic shared memory of a launch; `cuda_builder`'s text pass gives it its size.
#[cfg(target_arch = "nvptx64")]
#[used]
#[unsafe(link_section = ".gpu.shared.dynamic")]
static DYNAMIC: SharedCell<[u128; 0]> = SharedCell::uninit();

/// Pointer to the launch's dynamic shared memory: as many bytes as the launch asked for, aligned to 16, uninitialised.
///
/// All calls of a CTA give the same memory. Duties of the user: as for [`shared_array!`](crate::shared_array), and to stay
/// within the launch's bytes.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub fn dynamic_shared_mem<T>() -> *mut T {
    DYNAMIC.get().cast()
}

/// Pointer to the launch's dynamic shared memory: as many bytes as the launch asked for, aligned to 16, uninitialised.
///
/// All calls of a CTA give the same memory.
///
/// # Panics
/// Outside a launch of the emulator.
#[cfg(not(target_arch = "nvptx64"))]
pub fn dynamic_shared_mem<T>() -> *mut T {
    crate::emulator::lane::with(|cta, _| cta.shared.borrow_mut().array(None, cta.launch.dynamic_shared)).cast()
}
