//! Buffers of many calls of one shape, so that no launch finds its operands in the L2 cache.

use crate::gpu::BoxError;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::{MathMode, RawArgs};
use ptq_cpu::Params;
use ptq_suite::{Case, Tensor};

/// Bytes that all slots together have at least: several times the L2 cache of any device.
const TOTAL_BYTES: usize = 300 << 20;

/// Every operand starts at a multiple of this, as an allocation of its own would.
const ALIGNMENT: usize = 256;

/// The operands of `count` calls, all with the same input.
pub struct Slots {
    x: Arena,
    q: Arena,
    s: Arena,
    first: RawArgs,
    /// Calls.
    pub count: usize,
}

/// One operand of every slot.
struct Arena {
    buffer: DeviceBuffer<u8>,
    stride: usize,
}

impl Arena {
    fn new(bytes: usize, count: usize) -> Result<Self, BoxError> {
        let stride = bytes.next_multiple_of(ALIGNMENT);
        Ok(Self { buffer: DeviceBuffer::zeroed(stride * count)?, stride })
    }

    fn address(&self, slot: usize) -> u64 {
        self.buffer.as_device_ptr().as_raw() + (slot * self.stride) as u64
    }

    fn read(&self, bytes: usize) -> Result<Vec<u8>, BoxError> {
        let mut read = vec![0; bytes];
        self.buffer.index(..bytes).copy_to(&mut read)?;
        Ok(read)
    }
}

impl Slots {
    pub fn new(case: &Case) -> Result<Self, BoxError> {
        let x: &[u8] = match &*case.x {
            Tensor::F16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::Bf16(x) => bytemuck::cast_slice(x.operand()),
            Tensor::F32(x) => bytemuck::cast_slice(x.operand()),
        };
        let count = TOTAL_BYTES.div_ceil(case.bytes() as usize);
        let rows = case.shape.rows() as usize;
        let mut arena = Arena::new(x.len(), count)?;
        let mut slot = x.to_vec();
        slot.resize(arena.stride, 0);
        // One copy: small shapes have hundreds of thousands of slots.
        arena.buffer.copy_from(&slot.repeat(count))?;
        let q = Arena::new(rows * case.shape.hidden() as usize, count)?;
        let s = Arena::new(rows * size_of::<f32>(), count)?;
        let first = RawArgs {
            options: case.params.options,
            ..RawArgs::new(case.x.element(), arena.address(0), q.address(0), s.address(0), case.shape)
        };
        Ok(Self { x: arena, q, s, first, count })
    }

    /// The call of one slot.
    pub fn args(&self, slot: usize) -> RawArgs {
        RawArgs { x: self.x.address(slot), q: self.q.address(slot), s: self.s.address(slot), ..self.first }
    }

    /// Overwrites every output with bytes that no input gives.
    pub fn poison(&mut self) -> Result<(), BoxError> {
        // As a code a NaN, and as a scale a negative number.
        self.q.buffer.set_8(0xFF)?;
        self.s.buffer.set_8(0xFF)?;
        Ok(())
    }

    /// Whether the first slot holds the bytes that the CPU gives in that mode.
    pub fn output_is(&self, case: &Case, math: MathMode) -> Result<bool, BoxError> {
        let params = Params { math, ..case.params };
        let rows = case.shape.rows() as usize;
        let mut q = vec![0; rows * case.shape.hidden() as usize];
        let mut s = vec![0.0_f32; rows];
        match &*case.x {
            Tensor::F16(x) => ptq_cpu::quantize(x.operand(), &mut q, &mut s, case.shape, params),
            Tensor::Bf16(x) => ptq_cpu::quantize(x.operand(), &mut q, &mut s, case.shape, params),
            Tensor::F32(x) => ptq_cpu::quantize(x.operand(), &mut q, &mut s, case.shape, params),
        }?;
        let scales: &[u8] = bytemuck::cast_slice(&s);
        Ok(self.q.read(q.len())? == q && self.s.read(scales.len())? == scales)
    }
}
