//! Modules that are loaded while the device has no memory left: an error, and once there is memory, the right bits.
//!
//! A program of its own, because it takes all memory of the device for some seconds, and nobody else's test would pass
//! meanwhile. Without a driver or a device the test is reported as ignored, with the reason; with `PTQ_REQUIRE_GPU=1` it
//! fails.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use per_token_quant_fp8::cpu::{self, Params};
use per_token_quant_fp8::cust::context::Context;
use per_token_quant_fp8::cust::device::Device;
use per_token_quant_fp8::cust::memory::{CopyDestination, DeviceBuffer};
use per_token_quant_fp8::cust::stream::{Stream, StreamFlags};
use per_token_quant_fp8::cust::sys::{self, CUresult};
use per_token_quant_fp8::{
    ARTIFACTS, Artifact, Artifacts, Backend, Element, Error, Image, Kernel, MathMode, Quantizer, RawArgs, Shape,
    Target, probe,
};
use ptq_suite::random_rows;
use std::error;
use std::process::ExitCode;

/// The driver may keep memory in reserve in which some modules fit, and no more than this.
const MOST_MODULES: usize = 256;
const ROWS: usize = 65;
const HIDDEN: usize = 1368;
/// Bytes of the outputs before: as a code and as a scale a NaN, which no input gives.
const POISON: u8 = 0xFF;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let required = std::env::var("PTQ_REQUIRE_GPU").is_ok_and(|v| !["", "0"].contains(&v.as_str()));
    let trial = Trial::ignorable_test("loading_out_of_memory", move || match probe() {
        Ok(driver) => Ok(out_of_memory(driver.devices[0].ordinal as u32)?),
        Err(Error::NoDriver { .. }) if !required => Ok(Completion::ignored_with("no CUDA driver")),
        Err(Error::NoDevice { .. }) if !required => Ok(Completion::ignored_with("no CUDA device")),
        Err(reason) => Err(Failed::from(reason)),
    });
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

fn out_of_memory(ordinal: u32) -> Result<Completion, Box<dyn error::Error>> {
    if std::env::var_os("PTQ_ARTIFACTS").is_some_and(|dir| !dir.is_empty()) {
        return Ok(Completion::ignored_with("PTQ_ARTIFACTS replaces the artifacts that this test makes"));
    }
    let _context = Context::new(Device::get_device(ordinal)?)?;
    let call = Call::new()?;
    let embedded = Quantizer::new(ARTIFACTS)?.with_math(MathMode::Precise)?.with_backend(Backend::Auto);
    call.check(&embedded)?;
    let target = embedded.choose(&call.args(1 << 20, 2 << 20)?)?.ok_or("there are rows")?.target;
    let fresh = || Quantizer::new(copied(target))?.with_math(MathMode::Precise).map(|q| q.with_backend(Backend::Auto));
    let memory = Memory::take_all()?;
    println!("took {} bytes in {} blocks", memory.bytes, memory.blocks.len());

    // Each has images of its own, so that each loads a module of its own.
    let (mut loaded, mut refused) = (0, None);
    for _ in 0..MOST_MODULES {
        let quantizer = fresh()?;
        match quantizer.load(Kernel::PerToken, Element::F32) {
            Ok(()) => loaded += 1,
            Err(error) => {
                refused = Some((quantizer, driver_code(error)?));
                break;
            }
        }
    }
    let Some((quantizer, code)) = refused else {
        return Ok(Completion::ignored_with(format!("the driver loads {loaded} modules into a device that is full")));
    };
    println!("after {loaded} modules that fit, one came back with code {code}");
    // The error does not become another one, or a success that is none.
    if let Err(error) = quantizer.load(Kernel::PerToken, Element::F32) {
        driver_code(error)?;
    }
    drop(memory);

    quantizer.load(Kernel::PerToken, Element::F32)?;
    call.check(&quantizer)?;
    // And what was loaded before, or never, is as good.
    call.check(&embedded)?;
    call.check(&fresh()?)?;
    Ok(Completion::Completed)
}

/// The driver's code in an error of loading, which is that of memory unless the driver has another word for it; any other
/// error fails the test.
fn driver_code(error: Error) -> Result<u32, Box<dyn error::Error>> {
    println!("{error}");
    match error {
        Error::Load { code, .. } | Error::Driver { code, .. } => Ok(code.0),
        error => Err(format!("expected what the driver says, got {error:?}").into()),
    }
}

fn copy(artifact: &Artifact) -> Result<Artifact, Error> {
    let ptx = Image::Plain(artifact.ptx_text()?.into_owned().into_bytes().leak());
    Ok(Artifact { ptx, cubin: Image::Plain(artifact.cubin_bytes()?.into_owned().leak()), ..*artifact })
}

/// The embedded artifact of this test's calls, at an address that nobody has loaded yet.
fn copied(target: &Target) -> Artifacts {
    let ours = (Kernel::PerToken, target, Element::F32, MathMode::Precise);
    let of_this_test = |a: &&Artifact| (a.kernel, a.target, a.element, a.math) == ours;
    let table: Result<Vec<_>, Error> = ARTIFACTS.as_slice().iter().filter(of_this_test).map(copy).collect();
    let table = table.unwrap_or_else(|error| panic!("{error}"));
    // SAFETY: the images are copies of embedded ones.
    unsafe { Artifacts::new(table.leak()) }
}

/// All device memory that the driver gives out, in blocks.
struct Memory {
    blocks: Vec<sys::CUdeviceptr>,
    bytes: usize,
}

impl Memory {
    /// From large blocks to small ones, until not even the smallest is to be had.
    fn take_all() -> Result<Self, Box<dyn error::Error>> {
        const LARGEST: usize = 1 << 30;
        const SMALLEST: usize = 512;
        let mut memory = Self { blocks: Vec::new(), bytes: 0 };
        let mut size = LARGEST;
        while size >= SMALLEST {
            let mut block = 0;
            // SAFETY: one address is written; the context is current.
            match unsafe { sys::cuMemAlloc_v2(&mut block, size) } {
                CUresult::CUDA_SUCCESS => {
                    memory.blocks.push(block);
                    memory.bytes += size;
                }
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => size /= 2,
                code => return Err(format!("cuMemAlloc of {size} bytes: {code:?}").into()),
            }
        }
        Ok(memory)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for &block in &self.blocks {
            // SAFETY: the block was allocated by `take_all`, is freed once, and nothing uses it.
            let _ = unsafe { sys::cuMemFree_v2(block) };
        }
    }
}

/// One call, its memory allocated before there is none.
struct Call {
    x: DeviceBuffer<f32>,
    input: Vec<f32>,
    stream: Stream,
}

impl Call {
    fn new() -> Result<Self, Box<dyn error::Error>> {
        let mut input = vec![0.0; ROWS * HIDDEN];
        random_rows(&mut input, HIDDEN, 11);
        Ok(Self { x: DeviceBuffer::from_slice(&input)?, input, stream: Stream::new(StreamFlags::DEFAULT, None)? })
    }

    fn args(&self, q: u64, s: u64) -> Result<RawArgs, Error> {
        let shape = Shape::new(ROWS as u64, HIDDEN as u64)?;
        let x = self.x.as_device_ptr().as_raw();
        Ok(RawArgs::new(Element::F32, x, q, s, shape))
    }

    /// Quantizes into poisoned buffers, and compares every byte with the CPU's.
    fn check(&self, quantizer: &Quantizer) -> Result<(), Box<dyn error::Error>> {
        let (mut q, mut s) = (vec![POISON; ROWS * HIDDEN], vec![f32::from_bits(u32::MAX); ROWS]);
        let (device_q, device_s) = (DeviceBuffer::from_slice(&q)?, DeviceBuffer::from_slice(&s)?);
        let args = self.args(device_q.as_device_ptr().as_raw(), device_s.as_device_ptr().as_raw())?;
        // SAFETY: the buffers have the size of the shape and live until the stream is done, below.
        unsafe { quantizer.quantize_raw(args, self.stream.as_inner()) }?;
        self.stream.synchronize()?;
        device_q.copy_to(&mut q)?;
        device_s.copy_to(&mut s)?;
        let (mut want_q, mut want_s) = (vec![0; q.len()], vec![0.0; s.len()]);
        let params = Params { math: quantizer.math(), options: args.options, sm_count: quantizer.sm_count() };
        cpu::quantize(&self.input, &mut want_q, &mut want_s, args.shape, params)?;
        let same_scales = s.iter().zip(&want_s).all(|(a, b)| a.to_bits() == b.to_bits());
        if q == want_q && same_scales {
            Ok(())
        } else {
            Err("other bytes than the CPU's after memory came back".into())
        }
    }
}
