//! The same kernel, launched through the driver alone: what a launch cannot be cheaper than.

use crate::BoxError;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::cust::sys::{self, CUfunction, CUresult};
use per_token_quant_fp8::{ARTIFACTS, Kernel, Options, Quantizer, RawArgs};
use std::ffi::c_void;
use std::ptr;

/// The kernel of one call.
pub struct Raw {
    function: CUfunction,
    ctas: u32,
    threads: u32,
    flags: u32,
    /// Holds the function.
    _module: Module,
}

// SAFETY: the handle is a number to the driver, whose functions may be called on any thread.
unsafe impl Sync for Raw {}

impl Raw {
    /// Loads the kernel that the quantizer takes for this call, which is one grid.
    pub fn new(quantizer: &Quantizer, args: &RawArgs) -> Result<Self, BoxError> {
        let choice = quantizer.choose(args)?.ok_or("there are rows")?;
        let artifact =
            ARTIFACTS.find(Kernel::PerToken, args.element, choice.target, choice.math).ok_or("it was chosen")?;
        let module = Module::from_cubin(artifact.cubin_bytes()?, &[])?;
        let function = module.get_function(choice.plan.entry.name)?.to_raw();
        Ok(Self {
            function,
            ctas: choice.ctas,
            threads: choice.plan.threads,
            flags: choice.plan.caching.flag(),
            _module: module,
        })
    }

    /// Launches it.
    ///
    /// # Safety
    /// `args` have the element, the shape and the alignment of those of [`Raw::new`] and name memory as
    /// [`Quantizer::quantize_raw`] wants it.
    pub unsafe fn launch(&self, args: &RawArgs, stream: &Stream) -> Result<(), BoxError> {
        let (mut x, mut q, mut s) = (args.x, args.q, args.s);
        let (mut rows, mut hidden) = (args.shape.rows(), args.shape.hidden());
        // No row of the input has scale zero.
        debug_assert_eq!(args.options, Options::default());
        let mut flags = self.flags;
        let mut arguments: [*mut c_void; 6] = [
            (&raw mut x).cast(),
            (&raw mut q).cast(),
            (&raw mut s).cast(),
            (&raw mut rows).cast(),
            (&raw mut hidden).cast(),
            (&raw mut flags).cast(),
        ];
        // SAFETY: these are the arguments that `spec::per_token::Entry` lists, which the driver copies before it returns; the
        // caller answers for the memory.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.function,
                self.ctas,
                1,
                1,
                self.threads,
                1,
                1,
                0,
                stream.as_inner(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("cuLaunchKernel: {code:?}").into()) }
    }
}
