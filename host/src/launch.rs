//! The launch: the only file that hands a kernel to the driver.

use crate::Error;
use crate::driver::{self, Code};
use crate::modules::Function;
use crate::tensor_policy::TensorPass;
use cust::sys::{CUfunction, CUstream};
use ptq_spec::per_token::MAX_GRID;
use ptq_spec::per_token_extended::Bounds;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr;

// The symbol is a trampoline of `cuda_driver_shim`; `driver.rs` tells why it is declared here and not taken from cust.
unsafe extern "C" {
    fn cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Code;
    fn cuLaunchKernelEx(
        config: *const LaunchConfig,
        function: CUfunction,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Code;
}

/// `CUlaunchConfig` of cuda.h, since CUDA 11.8.
#[repr(C)]
struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: CUstream,
    attributes: *mut LaunchAttribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute` of cuda.h: the number of an attribute, and a union of 64 bytes at 8.
#[repr(C)]
struct LaunchAttribute {
    id: c_uint,
    value: AttributeValue,
}

/// `CUlaunchAttributeValue` of cuda.h, of an attribute that is one int.
#[repr(C, align(8))]
struct AttributeValue {
    int: c_int,
    rest: [u8; 60],
}

const _: () = {
    assert!(size_of::<LaunchAttribute>() == 72 && offset_of!(LaunchAttribute, value) == 8);
    assert!(size_of::<LaunchConfig>() == 56 && offset_of!(LaunchConfig, stream) == 32);
};

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`, allowed: the kernel may start when every CTA of the kernel
    /// before it in the stream has said so or ended.
    const PROGRAMMATIC: Self = Self { id: 6, value: AttributeValue { int: 1, rest: [0; 60] } };
}

/// Everything that a launch needs, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch {
    pub function: Function,
    /// Device address of `x[rows, hidden]`.
    pub x: u64,
    /// Device address of `q[rows, hidden]`.
    pub q: u64,
    /// Device address of `s[rows]`.
    pub s: u64,
    pub rows: u64,
    pub hidden: u64,
    pub element_bytes: u64,
    /// Bits of [`ptq_spec::per_token::flags`].
    pub flags: u32,
    /// Elements from the start of one row of `x` to the next.
    pub x_stride: u64,
    /// The same for `q`.
    pub q_stride: u64,
    /// What entries of the extended operation take besides; `None`: `function` is one of the plain operation.
    pub extension: Option<Extension>,
    /// Threads per CTA.
    pub threads: u32,
    pub rows_per_cta: u32,
    /// Most CTAs of one grid, at least one.
    pub grid_limit: u32,
    /// Whether the grids may start before what is before them in the stream is complete; `function` waits for it.
    pub programmatic: bool,
}

/// What the extended operation adds to a launch besides strides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extension {
    pub bounds: Bounds,
    /// Device address of a u32 that counts the rows to quantize; 0: none.
    pub device_rows: u64,
}

/// Most arguments of an entry.
const MAX_ARGUMENTS: usize = 12;

/// Consecutive rows that one grid works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub first_row: u64,
    pub rows: u64,
    pub ctas: u32,
}

impl Extension {
    /// Nothing.
    const NONE: Self = Self { bounds: Bounds::NONE, device_rows: 0 };
}

impl Launch {
    /// How many grids there are, without going through them: of rows that no memory holds there may be billions.
    pub fn grids(&self) -> u64 {
        grids(self.rows, self.rows_per_cta, self.grid_limit)
    }

    /// The grids, which together work on every row once.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + use<> {
        chunks(self.rows, self.rows_per_cta, self.grid_limit)
    }

    /// Enqueues the kernel; on an error some of the grids may be enqueued.
    ///
    /// # Safety
    /// - The current context is that of `function`, and `stream` is null or a stream of it.
    /// - The addresses are as the fields say, and nothing else writes `x` or the count, or touches `q` and `s`, until
    ///   the kernel is done.
    /// - `function` is an entry of the extended operation if there is an `extension`, else of the plain one.
    /// - The plan of `function`, `threads` and `rows_per_cta` fits the operands ([`crate::Plan::check_call`]).
    pub unsafe fn enqueue(&self, stream: CUstream) -> Result<(), Error> {
        for chunk in self.chunks() {
            let first = chunk.first_row;
            // The order and the types of `ptq_spec::per_token::Entry`.
            let mut x = self.x + first * self.x_stride * self.element_bytes;
            let mut q = self.q + first * self.q_stride;
            let mut s = self.s + first * size_of::<f32>() as u64;
            let mut rows = chunk.rows;
            // The kernels count them in 32 bits; see `MAX_GRID`.
            debug_assert!(rows <= u64::from(u32::MAX), "{rows} rows in a grid");
            let mut hidden = self.hidden;
            let mut flags = self.flags;
            // Those of `ptq_spec::for_each_per_token_extended_entry` go on; the plain entries read the first six alone.
            let mut x_stride = self.x_stride;
            let mut q_stride = self.q_stride;
            let Extension { bounds, mut device_rows } = self.extension.unwrap_or(Extension::NONE);
            let Bounds { mut upper, mut min_scale } = bounds;
            let mut first_row = first;
            let mut arguments: [*mut c_void; MAX_ARGUMENTS] = [
                (&raw mut x).cast(),
                (&raw mut q).cast(),
                (&raw mut s).cast(),
                (&raw mut rows).cast(),
                (&raw mut hidden).cast(),
                (&raw mut flags).cast(),
                (&raw mut x_stride).cast(),
                (&raw mut q_stride).cast(),
                (&raw mut upper).cast(),
                (&raw mut min_scale).cast(),
                (&raw mut first_row).cast(),
                (&raw mut device_rows).cast(),
            ];
            let arguments = arguments.as_mut_ptr();
            // SAFETY: as the caller promises; `arguments` points to the values that an entry takes, at least.
            unsafe { launch(self.function, chunk.ctas, self.threads, self.programmatic, stream, arguments) }?;
        }
        Ok(())
    }
}

/// Everything that a per-tensor call needs, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorLaunch {
    /// The kernel that takes the absmax; `None`: the scale is given.
    pub absmax: Option<(Function, TensorPass)>,
    /// The kernel that quantizes.
    pub quantize: (Function, TensorPass),
    /// Device address of `x[elements]`.
    pub x: u64,
    /// Device address of `q[elements]`.
    pub q: u64,
    /// Device address of the scale.
    pub s: u64,
    pub elements: u64,
    pub guard: bool,
}

impl TensorLaunch {
    /// Enqueues the kernels; on an error some of them may be enqueued.
    ///
    /// # Safety
    /// - The current context is that of the functions, and `stream` is null or a stream of it.
    /// - The addresses are as the fields say, and nothing else writes `x` or `s` or touches `q` until the kernels are done.
    /// - The entries suit the addresses ([`ptq_spec::per_tensor::Entry::suits`]).
    pub unsafe fn enqueue(&self, stream: CUstream) -> Result<(), Error> {
        if self.absmax.is_some() {
            // The kernel's CTAs raise the scale, from zero.
            // SAFETY: `s` is the address of a scale, which nobody else touches, as the caller promises.
            unsafe { driver::set_zero(self.s, stream) }?;
        }
        for (function, pass) in self.absmax.into_iter().chain([self.quantize]) {
            // The order and the types of `ptq_spec::per_tensor::Entry`.
            let (mut x, mut q, mut s, mut elements) = (self.x, self.q, self.s, self.elements);
            let mut guard = u32::from(self.guard);
            let mut arguments: [*mut c_void; 5] = [
                (&raw mut x).cast(),
                (&raw mut q).cast(),
                (&raw mut s).cast(),
                (&raw mut elements).cast(),
                (&raw mut guard).cast(),
            ];
            // SAFETY: as the caller promises; `arguments` points to the five values that every entry takes.
            unsafe { launch(function, pass.ctas, pass.threads, false, stream, arguments.as_mut_ptr()) }?;
        }
        Ok(())
    }
}

/// Enqueues one grid.
///
/// # Safety
/// - The current context is that of `function`, and `stream` is null or a stream of it.
/// - `arguments` points to pointers to the values that the kernel takes, and what they name is the kernel's until it is
///   done.
unsafe fn launch(
    function: Function,
    ctas: u32,
    threads: u32,
    programmatic: bool,
    stream: CUstream,
    arguments: *mut *mut c_void,
) -> Result<(), Error> {
    let function = function.raw();
    if !programmatic {
        // SAFETY: as the caller promises; the driver copies the values before it returns.
        let code =
            unsafe { cuLaunchKernel(function, ctas, 1, 1, threads, 1, 1, 0, stream, arguments, ptr::null_mut()) };
        return driver::check("cuLaunchKernel", code);
    }
    let mut attribute = LaunchAttribute::PROGRAMMATIC;
    let config = LaunchConfig {
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        shared_bytes: 0,
        stream,
        attributes: &mut attribute,
        attribute_count: 1,
    };
    // Every driver that runs such kernels has this function: both came with CUDA 11.8.
    // SAFETY: as above; `config` and the one attribute that it names outlive the call.
    let code = unsafe { cuLaunchKernelEx(&config, function, arguments, ptr::null_mut()) };
    driver::check("cuLaunchKernelEx", code)
}

/// Rows of every grid but the last.
fn rows_per_grid(rows_per_cta: u32, grid_limit: u32) -> u64 {
    // Both are at least 1, and have 32 bits, so that the product fits.
    u64::from(rows_per_cta.max(1)) * u64::from(grid_limit.clamp(1, MAX_GRID))
}

/// How many grids [`chunks`] gives.
fn grids(rows: u64, rows_per_cta: u32, grid_limit: u32) -> u64 {
    rows.div_ceil(rows_per_grid(rows_per_cta, grid_limit))
}

/// Splits `rows` into grids of at most `grid_limit` CTAs of `rows_per_cta` rows.
fn chunks(rows: u64, rows_per_cta: u32, grid_limit: u32) -> impl Iterator<Item = Chunk> {
    let grids = grids(rows, rows_per_cta, grid_limit);
    let rows_per_grid = rows_per_grid(rows_per_cta, grid_limit);
    let rows_per_cta = u64::from(rows_per_cta.max(1));
    (0..grids).map(move |i| {
        let first_row = i * rows_per_grid;
        let rows = rows_per_grid.min(rows - first_row);
        // At most `grid_limit`, which is 32 bits wide.
        Chunk { first_row, rows, ctas: rows.div_ceil(rows_per_cta) as u32 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_grid_where_it_fits() {
        let all = |rows, per_cta, limit| chunks(rows, per_cta, limit).collect::<Vec<_>>();
        assert_eq!(all(0, 8, MAX_GRID), []);
        assert_eq!(all(1, 8, MAX_GRID), [Chunk { first_row: 0, rows: 1, ctas: 1 }]);
        assert_eq!(all(7807, 8, MAX_GRID), [Chunk { first_row: 0, rows: 7807, ctas: 976 }]);
        let most = u64::from(MAX_GRID);
        assert_eq!(all(most, 1, MAX_GRID), [Chunk { first_row: 0, rows: most, ctas: MAX_GRID }]);
    }

    #[test]
    fn more_rows_than_a_grid_has_ctas() {
        let most = u64::from(MAX_GRID);
        let split: Vec<_> = chunks(most + 1, 1, MAX_GRID).collect();
        assert_eq!(
            split,
            [Chunk { first_row: 0, rows: most, ctas: MAX_GRID }, Chunk { first_row: most, rows: 1, ctas: 1 }]
        );
        let split: Vec<_> = chunks(most * 8 + 9, 8, MAX_GRID).collect();
        assert_eq!(
            split,
            [Chunk { first_row: 0, rows: most * 8, ctas: MAX_GRID }, Chunk { first_row: most * 8, rows: 9, ctas: 2 }]
        );
    }

    #[test]
    fn grids_beyond_counting_are_told_at_once() {
        assert_eq!(grids(1 << 57, 1, 1), 1 << 57);
        assert_eq!(grids(u64::MAX, u32::MAX, u32::MAX), u64::MAX.div_ceil(u64::from(u32::MAX) * u64::from(MAX_GRID)));
    }

    #[test]
    fn every_row_is_in_exactly_one_grid() {
        for rows in 0..60 {
            for per_cta in [1, 2, 4, 8] {
                for limit in [1, 2, 3, 5, 100] {
                    let mut next = 0;
                    for chunk in chunks(rows, per_cta, limit) {
                        assert_eq!(chunk.first_row, next);
                        assert!(chunk.rows > 0 && chunk.ctas > 0 && chunk.ctas <= limit);
                        let held = u64::from(chunk.ctas * per_cta);
                        assert!(held >= chunk.rows && held < chunk.rows + u64::from(per_cta));
                        next += chunk.rows;
                    }
                    assert_eq!(next, rows);
                    assert_eq!(grids(rows, per_cta, limit), chunks(rows, per_cta, limit).count() as u64);
                }
            }
        }
    }
}
