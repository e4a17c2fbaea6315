//! The only room that knows instructions, and the only one that reads the target (`cfg(ptq_arch)`).
//!
//! Each file is one idea with one body per kind of target; the bodies give the same bits for what their functions are defined for. The host's bodies stand for the
//! instructions in plain Rust.

pub mod mem;

#[cfg(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120")))]
#[path = "grid_griddepcontrol.rs"]
mod grid;
#[cfg(not(all(feature = "programmatic", any(ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120"))))]
#[path = "grid_in_order.rs"]
mod grid;

/// The first thing in every kernel: lets the next grid of the stream start, and waits for the grids before this one.
///
/// Where both grids allow it they overlap ("programmatic dependent launch"); where not, this does nothing, and without the
/// feature `programmatic` it is nothing: on an H200 a grid with it starts a CTA every 1.22 ns, which is 1.17 times the launch
/// of 7807 rows of 1076 bf16 without it, and costs nothing where CTAs are few. No thread reads or writes global memory, nor
/// ends, before it has been here: this grid is then complete only after those before it, so that one which waits for this
/// grid has waited for them too.
#[inline(always)]
pub fn order_grids() {
    grid::launch_dependents();
    grid::wait();
}

#[cfg(any(ptq_arch = "sm_89", ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120"))]
#[path = "e4m3_cvt.rs"]
mod e4m3;
#[cfg(not(any(ptq_arch = "sm_89", ptq_arch = "sm_90", ptq_arch = "sm_100f", ptq_arch = "sm_120")))]
#[path = "e4m3_integer.rs"]
mod e4m3;
pub use e4m3::{e4m3, e4m3x4};

#[cfg(target_arch = "nvptx64")]
mod half;
#[cfg(not(target_arch = "nvptx64"))]
#[path = "half_host.rs"]
mod half;
pub use half::{max_bf16x2, max_f16x2, widen_f16};

#[cfg(ptq_arch = "sm_100f")]
#[path = "reduce_redux_f32.rs"]
mod reduce;
#[cfg(ptq_arch = "sm_90")]
#[path = "reduce_redux_u32.rs"]
mod reduce;
#[cfg(not(any(ptq_arch = "sm_90", ptq_arch = "sm_100f")))]
#[path = "reduce_shuffle.rs"]
mod reduce;
pub use reduce::reduce_max;
