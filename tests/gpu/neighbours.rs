//! Kernels to put before and after a call: one that writes its input and one that reads everything of it, each in a form that
//! overlaps its neighbours and in one that does not.

use crate::Outcome;
use crate::graph::check;
use per_token_quant_fp8::cust::module::Module;
use per_token_quant_fp8::cust::sys::{CUfunction, CUresult, CUstream};
use std::error::Error;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// Words of memory on the device: the address, and how many.
pub type Words = (u64, u64);

/// Every bit set: as codes and as scales NaNs, which no input gives.
const POISON: u32 = u32::MAX;

/// Few, so that they leave room for a kernel that starts early.
const CTAS: c_uint = 64;
const THREADS: c_uint = 256;

/// How a neighbour is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// It has `griddepcontrol`, lets the next one start at once, and is launched so that it may start early itself.
    Overlapping,
    /// It has none of it and is launched in the ordinary way.
    Plain,
}

/// The kernels of one order.
pub struct Neighbours {
    order: Order,
    _module: Module,
    produce: CUfunction,
    consume: CUfunction,
}

/// `CUlaunchConfig` of cuda.h.
#[repr(C)]
struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: CUstream,
    attributes: *mut Attribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute` of cuda.h; in its 64 bytes of value an int.
#[repr(C)]
struct Attribute {
    id: u64,
    value: [c_int; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`; the upper half of `id` is padding.
const EARLY: Attribute = Attribute { id: 6, value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] };

// The trampoline of `cuda_driver_shim`; `cust_raw` does not know it.
unsafe extern "C" {
    fn cuLaunchKernelEx(
        config: *const Config,
        function: CUfunction,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> CUresult;
}

impl Neighbours {
    /// Loads them into the current context, of a device of compute capability 9.0 or later.
    pub fn load(order: Order) -> Result<Self, Box<dyn Error>> {
        let module = Module::from_ptx(ptx(order), &[])?;
        let produce = module.get_function("produce")?.to_raw();
        let consume = module.get_function("consume")?.to_raw();
        Ok(Self { order, _module: module, produce, consume })
    }

    /// Enqueues: wait for `nanoseconds` or so, copy `from` to `x`, poison `q` and `s`.
    ///
    /// # Safety
    /// The memory exists until the kernel is done, nobody else uses it but in the order of `stream`, which is one of the
    /// context; `from` has as many words as `x`.
    pub unsafe fn produce(
        &self,
        x: Words,
        from: u64,
        q: Words,
        s: Words,
        nanoseconds: u32,
        stream: CUstream,
    ) -> Outcome {
        let (mut x, mut q, mut s) = (x, q, s);
        let (mut from, mut nanoseconds) = (from, nanoseconds);
        let mut arguments: [*mut c_void; 8] = [
            (&raw mut x.0).cast(),
            (&raw mut x.1).cast(),
            (&raw mut from).cast(),
            (&raw mut q.0).cast(),
            (&raw mut q.1).cast(),
            (&raw mut s.0).cast(),
            (&raw mut s.1).cast(),
            (&raw mut nanoseconds).cast(),
        ];
        // SAFETY: as the caller promises; the arguments are the kernel's.
        unsafe { self.launch(self.produce, &mut arguments, stream) }
    }

    /// Enqueues: count in `differences` how many words of `x`, `q` and `s` are not those that are expected.
    ///
    /// # Safety
    /// As [`Neighbours::produce`], for the three addresses of what is expected too; `differences` is one word.
    pub unsafe fn consume(&self, found: [Words; 3], expected: [u64; 3], differences: u64, stream: CUstream) -> Outcome {
        let ([mut x, mut q, mut s], mut expected, mut differences) = (found, expected, differences);
        let [want_x, want_q, want_s] = &mut expected;
        let mut arguments: [*mut c_void; 10] = [
            (&raw mut x.0).cast(),
            (&raw mut x.1).cast(),
            ptr::from_mut(want_x).cast(),
            (&raw mut q.0).cast(),
            (&raw mut q.1).cast(),
            ptr::from_mut(want_q).cast(),
            (&raw mut s.0).cast(),
            (&raw mut s.1).cast(),
            ptr::from_mut(want_s).cast(),
            (&raw mut differences).cast(),
        ];
        // SAFETY: as the caller promises; the arguments are the kernel's.
        unsafe { self.launch(self.consume, &mut arguments, stream) }
    }

    /// # Safety
    /// `arguments` are those of `function`, and the kernel may run in `stream`.
    unsafe fn launch(&self, function: CUfunction, arguments: &mut [*mut c_void], stream: CUstream) -> Outcome {
        let mut attribute = EARLY;
        let config = Config {
            grid: [CTAS, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
            stream,
            attributes: &mut attribute,
            attribute_count: c_uint::from(self.order == Order::Overlapping),
        };
        // SAFETY: as the caller promises; `config` and its attribute outlive the call.
        check(unsafe { cuLaunchKernelEx(&config, function, arguments.as_mut_ptr(), ptr::null_mut()) })
    }
}

/// Both kernels.
fn ptx(order: Order) -> String {
    let order = match order {
        Order::Overlapping => "griddepcontrol.launch_dependents;\n    griddepcontrol.wait;",
        Order::Plain => "",
    };
    let registers = format!(
        ".reg .pred %there, %differs;
    .reg .b32 %index, %threads, %cta, %word, %want, %pause;
    .reg .b64 %first, %step, %i, %count, %offset, %from, %to;
    {order}
    mov.u32 %index, %tid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %cta, %ctaid.x;
    mad.lo.u32 %index, %cta, %threads, %index;
    cvt.u64.u32 %first, %index;
    mov.u32 %cta, %nctaid.x;
    mul.wide.u32 %step, %cta, %threads;"
    );
    let copy = each("x", "x_words", "from", "ld.global.u32 %word, [%from];\n    st.global.u32 [%to], %word;");
    let poison = |to: &str| each(to, &format!("{to}_words"), to, &format!("st.global.u32 [%to], {POISON};"));
    let compare = |of: &str| {
        let body = "ld.global.u32 %word, [%to];
    ld.global.u32 %want, [%from];
    setp.ne.u32 %differs, %word, %want;
    @%differs red.global.add.u32 [%out], 1;";
        each(of, &format!("{of}_words"), &format!("want_{of}"), body)
    };
    format!(
        ".version 7.8
.target sm_90
.address_size 64
.visible .entry produce(
    .param .u64 x, .param .u64 x_words, .param .u64 from,
    .param .u64 q, .param .u64 q_words, .param .u64 s, .param .u64 s_words,
    .param .u32 pause)
{{
    {registers}
    ld.param.u32 %pause, [pause];
    setp.ne.u32 %there, %pause, 0;
    @%there nanosleep.u32 %pause;
    {copy}
    {}
    {}
    ret;
}}
.visible .entry consume(
    .param .u64 x, .param .u64 x_words, .param .u64 want_x,
    .param .u64 q, .param .u64 q_words, .param .u64 want_q,
    .param .u64 s, .param .u64 s_words, .param .u64 want_s,
    .param .u64 differences)
{{
    .reg .b64 %out;
    {registers}
    ld.param.u64 %out, [differences];
    {}
    {}
    {}
    ret;
}}
",
        poison("q"),
        poison("s"),
        compare("x"),
        compare("q"),
        compare("s")
    )
}

/// A loop over the words of the parameter `to`, with the words of `from` beside them, shared by all threads of the grid.
fn each(to: &str, count: &str, from: &str, body: &str) -> String {
    format!(
        "ld.param.u64 %count, [{count}];
    mov.u64 %i, %first;
next_{to}:
    setp.lt.u64 %there, %i, %count;
    @!%there bra end_{to};
    shl.b64 %offset, %i, 2;
    ld.param.u64 %to, [{to}];
    add.u64 %to, %to, %offset;
    ld.param.u64 %from, [{from}];
    add.u64 %from, %from, %offset;
    {body}
    add.u64 %i, %i, %step;
    bra next_{to};
end_{to}:"
    )
}
