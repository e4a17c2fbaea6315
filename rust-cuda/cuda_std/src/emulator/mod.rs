//! Kernels on the CPU: a grid of CTAs, each a set of coroutines, one per thread.
//!
//! The very kernel functions run; what the hardware would do with their collectives and memory, this room does, and it
//! reports what the hardware would leave undefined: see [`FaultKind`]. CTAs spread over rayon's threads.
//!
//! ```
//! use cuda_std::emulator::{Launch, MathFlags, Memory, Space, Use, access};
//! use cuda_std::prelude::*;
//!
//! #[kernel]
//! pub unsafe fn double(x: *mut u32, len: usize) {
//!     let i = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize;
//!     if i < len {
//!         let x = x.wrapping_add(i);
//!         access(Space::Global, Use::Read, x.cast(), 4);
//!         access(Space::Global, Use::Write, x.cast(), 4);
//!         // SAFETY: `access` ends the thread where the address is not one of the launch's buffers.
//!         unsafe { *x *= 2 };
//!     }
//! }
//!
//! let mut data = [1_u32, 2, 3];
//! let mut memory = Memory::new();
//! let x = memory.writable("x", &mut data);
//! let launch = Launch { ctas: 1, threads: 32, dynamic_shared: 0, math: MathFlags::PRECISE };
//! // SAFETY: the kernel checks every access.
//! launch.run(&memory, || unsafe { double(x.as_mut_ptr(), 3) }).unwrap();
//! assert_eq!(data, [2, 4, 6]);
//! ```

mod collective;
mod cta;
mod fault;
pub(crate) mod lane;
mod memory;
pub(crate) mod shared;

pub(crate) use collective::Collective;
pub use fault::{Fault, FaultKind};
pub use memory::{Address, Memory, Space, Use, access};

use core::panic::Location;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// A grid, and how its device build computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// CTAs of the grid, x.
    pub ctas: u32,
    /// Threads per CTA, x; 1 to 1024.
    pub threads: u32,
    /// Bytes of dynamic shared memory per CTA.
    pub dynamic_shared: usize,
    /// The device build's math flags, for kernels that ask with [`math_flags`].
    pub math: MathFlags,
}

/// The math flags of a device build: those of `cuda_builder` that decide bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MathFlags {
    /// Subnormal f32 are flushed.
    pub ftz: bool,
    /// f32 division and reciprocal are approximate.
    pub fast_div: bool,
}

impl MathFlags {
    /// Neither.
    pub const PRECISE: Self = Self { ftz: false, fast_div: false };
    /// Both.
    pub const FAST: Self = Self { ftz: true, fast_div: true };
}

/// Most threads of a CTA on any GPU.
const MAX_THREADS: u32 = 1024;

impl Launch {
    /// Runs `kernel` once per thread.
    ///
    /// # Errors
    /// The first [`Fault`], of the lowest CTA that has one.
    ///
    /// # Panics
    /// If `threads` is 0 or above 1024.
    pub fn run(&self, memory: &Memory<'_>, kernel: impl Fn() + Sync) -> Result<(), Fault> {
        self.check_threads();
        let fault = (0..self.ctas).into_par_iter().find_map_first(|index| cta::run(self, memory, index, &kernel).err());
        fault.map_or(Ok(()), Err)
    }

    /// Runs `kernel` once per thread of CTA `index` alone, for grids that are too large to run.
    ///
    /// # Errors
    /// Its first [`Fault`].
    ///
    /// # Panics
    /// If `threads` is 0 or above 1024, or the grid has no such CTA.
    pub fn run_cta(&self, index: u32, memory: &Memory<'_>, kernel: impl Fn() + Sync) -> Result<(), Fault> {
        self.check_threads();
        assert!(index < self.ctas, "a grid of {} CTAs has no CTA {index}", self.ctas);
        cta::run(self, memory, index, &kernel)
    }

    fn check_threads(&self) {
        assert!(
            (1..=MAX_THREADS).contains(&self.threads),
            "a CTA has 1 to {MAX_THREADS} threads, not {}",
            self.threads
        );
    }
}

/// The math flags of the launch that the calling thread is part of.
///
/// # Panics
/// Outside a launch.
pub fn math_flags() -> MathFlags {
    lane::with(|cta, _| cta.launch.math)
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Request {
    /// The barrier of the CTA.
    Barrier { at: &'static Location<'static> },
    /// The lanes of `mask`.
    Warp { collective: Collective, mask: u32, value: u32, at: &'static Location<'static> },
}
