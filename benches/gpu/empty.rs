//! A kernel that does nothing: what a launch costs before any work.

use crate::gpu::BoxError;
use per_token_quant_fp8::cust::function::Function;
use per_token_quant_fp8::cust::launch;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::stream::Stream;
use per_token_quant_fp8::spec::per_token::LANES_PER_WARP;

const PTX: &str = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry empty()\n{\n    ret;\n}\n";

/// Its module, in the current context.
pub struct Empty(Module);

/// The kernel.
pub struct Kernel<'m>(Function<'m>);

impl Empty {
    pub fn load() -> Result<Self, BoxError> {
        Ok(Self(Module::from_ptx(PTX, &[])?))
    }

    pub fn kernel(&self) -> Result<Kernel<'_>, BoxError> {
        Ok(Kernel(self.0.get_function("empty")?))
    }
}

impl Kernel<'_> {
    /// Launches one CTA of one warp.
    pub fn launch(&self, stream: &Stream) -> Result<(), BoxError> {
        let Self(function) = self;
        // SAFETY: the kernel has no parameters and touches no memory.
        Ok(unsafe { launch!(function<<<1, LANES_PER_WARP, 0, stream>>>()) }?)
    }
}
