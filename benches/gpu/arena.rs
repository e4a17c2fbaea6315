//! One operand of many calls, in one allocation.

use crate::gpu::BoxError;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};

/// Every operand starts at a multiple of this, as an allocation of its own would.
const ALIGNMENT: usize = 256;

/// Bytes that are read back at once.
const CHUNK: usize = 32 << 20;

/// `count` operands of `len` bytes.
pub struct Arena {
    buffer: DeviceBuffer<u8>,
    len: usize,
    stride: usize,
    count: usize,
}

impl Arena {
    /// Spread evenly over `span` bytes, or more where they need more.
    pub fn new(len: usize, count: usize, span: usize) -> Result<Self, BoxError> {
        let stride = len.max(span.div_ceil(count)).next_multiple_of(ALIGNMENT);
        Ok(Self { buffer: DeviceBuffer::zeroed(stride * count)?, len, stride, count })
    }

    /// Device address of one operand.
    pub fn address(&self, slot: usize) -> u64 {
        self.buffer.as_device_ptr().as_raw() + (slot * self.stride) as u64
    }

    /// Fills every operand with `block`, over and over. One upload; the device does the rest.
    pub fn fill(&mut self, block: &[u8]) -> Result<(), BoxError> {
        let first = block.len().min(self.len);
        self.buffer.index(..first).copy_from(&block[..first])?;
        self.double(first, self.len)?;
        self.double(self.stride, self.stride * self.count)
    }

    /// Repeats the first `filled` bytes up to `end`.
    fn double(&mut self, mut filled: usize, end: usize) -> Result<(), BoxError> {
        while filled < end {
            let more = filled.min(end - filled);
            self.buffer.index(filled..filled + more).copy_from(&self.buffer.index(..more))?;
            filled += more;
        }
        Ok(())
    }

    /// Overwrites everything with one byte.
    pub fn set(&mut self, byte: u8) -> Result<(), BoxError> {
        Ok(self.buffer.set_8(byte)?)
    }

    /// Where one operand is not `block` over and over, if anywhere.
    pub fn difference(&self, slot: usize, block: &[u8]) -> Result<Option<usize>, BoxError> {
        // A chunk is whole blocks.
        let chunk = block.len() * (CHUNK / block.len()).max(1);
        let mut read = vec![0; chunk.min(self.len)];
        for start in (0..self.len).step_by(chunk) {
            let read = &mut read[..chunk.min(self.len - start)];
            let first = slot * self.stride + start;
            self.buffer.index(first..first + read.len()).copy_to(read)?;
            for (i, read) in read.chunks(block.len()).enumerate() {
                if let Some(at) = difference(read, block) {
                    return Ok(Some(start + i * block.len() + at));
                }
            }
        }
        Ok(None)
    }
}

/// Where `read` is not the beginning of `block`, if anywhere.
fn difference(read: &[u8], block: &[u8]) -> Option<usize> {
    // The comparison of whole slices is the fast one.
    if read == &block[..read.len()] { None } else { read.iter().zip(block).position(|(read, block)| read != block) }
}
