//! No GPU: the same names, so that kernel crates compile on the host.

macro_rules! gpu_only {
    ($($(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        $(#[$attribute])*
        pub(crate) fn $name($(_: $type),*) $(-> $result)? {
            panic!(concat!("cuda_std: `", stringify!($name), "` runs on a GPU only"))
        }
    )*};
}
gpu_only! {
    thread_idx_x() -> u32;
    block_dim_x() -> u32;
    block_idx_x() -> u32;
    grid_dim_x() -> u32;
    lane_id() -> u32;
    sync_threads();
}

/// # Safety
/// None here: it panics.
pub(crate) unsafe fn shuffle_xor(_mask: u32, _value: u32, _delta: u32, _segment: u32) -> u32 {
    panic!("cuda_std: `warp_shuffle_xor` runs on a GPU only")
}

/// # Safety
/// None here: it panics.
pub(crate) unsafe fn reduce_max_u32(_mask: u32, _value: u32) -> u32 {
    panic!("cuda_std: `warp_reduce_max_u32` runs on a GPU only")
}

/// # Safety
/// None here: it panics.
pub(crate) unsafe fn reduce_max_f32(_mask: u32, _value: f32) -> f32 {
    panic!("cuda_std: `warp_reduce_max_f32` runs on a GPU only")
}
