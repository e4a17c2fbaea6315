//! libNVVM, loaded at build time.

use crate::{Arch, CudaBuilderError, Toolchain, ir};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

/// How f32 arithmetic is compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MathFlags {
    pub(crate) ftz: bool,
    pub(crate) fast_div: bool,
    pub(crate) fast_sqrt: bool,
    pub(crate) fma_contraction: bool,
}

impl MathFlags {
    fn options(self) -> [String; 4] {
        [
            format!("-ftz={}", u8::from(self.ftz)),
            format!("-prec-div={}", u8::from(!self.fast_div)),
            format!("-prec-sqrt={}", u8::from(!self.fast_sqrt)),
            format!("-fma={}", u8::from(self.fma_contraction)),
        ]
    }
}

type Program = *mut c_void;

/// The functions used; signatures from nvvm.h of CUDA 13.
struct Nvvm {
    create_program: unsafe extern "C" fn(*mut Program) -> c_int,
    destroy_program: unsafe extern "C" fn(*mut Program) -> c_int,
    add_module: unsafe extern "C" fn(Program, *const c_char, usize, *const c_char) -> c_int,
    verify: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    result_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    result: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    log_size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    log: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    llvm_version: unsafe extern "C" fn(*const c_char, *mut c_int) -> c_int,
    /// Keeps the functions valid.
    _library: Library,
}

impl Nvvm {
    fn load(path: &Path) -> Result<Self, CudaBuilderError> {
        let fault = |e: libloading::Error| CudaBuilderError::Tool {
            tool: "libNVVM",
            log: format!("{}: {e}; libNVVM of CUDA 13.5 or newer is needed", path.display()),
        };
        // SAFETY: NVIDIA's library; its initialisers have no precondition.
        let library = unsafe { Library::new(path) }.map_err(fault)?;
        macro_rules! symbol {
            ($name:literal) => {{
                // SAFETY: the field's type is the function's signature in nvvm.h.
                *unsafe { library.get($name) }.map_err(fault)?
            }};
        }
        Ok(Self {
            create_program: symbol!(b"nvvmCreateProgram"),
            destroy_program: symbol!(b"nvvmDestroyProgram"),
            add_module: symbol!(b"nvvmAddModuleToProgram"),
            verify: symbol!(b"nvvmVerifyProgram"),
            compile: symbol!(b"nvvmCompileProgram"),
            result_size: symbol!(b"nvvmGetCompiledResultSize"),
            result: symbol!(b"nvvmGetCompiledResult"),
            log_size: symbol!(b"nvvmGetProgramLogSize"),
            log: symbol!(b"nvvmGetProgramLog"),
            llvm_version: symbol!(b"nvvmLLVMVersion"),
            _library: library,
        })
    }
}

/// Major version of the LLVM whose IR the library reads for current targets.
pub(crate) fn llvm_version(libnvvm: &Path) -> Result<u32, CudaBuilderError> {
    let nvvm = Nvvm::load(libnvvm)?;
    let mut major = 0;
    // SAFETY: a C string, and room for one int.
    let code = unsafe { (nvvm.llvm_version)(c"compute_100".as_ptr(), &raw mut major) };
    check("nvvmLLVMVersion", code)?;
    Ok(u32::try_from(major).unwrap_or(0))
}

/// Compiles NVVM IR to PTX.
pub(crate) fn compile(
    toolchain: &Toolchain,
    module: &str,
    arch: Arch,
    math: MathFlags,
) -> Result<String, CudaBuilderError> {
    let nvvm = Nvvm::load(&toolchain.libnvvm)?;
    let mut program = ptr::null_mut();
    // SAFETY: room for one handle.
    check("nvvmCreateProgram", unsafe { (nvvm.create_program)(&raw mut program) })?;
    let result = compile_in(&nvvm, program, module, arch, math);
    // SAFETY: the handle of above, destroyed once.
    check("nvvmDestroyProgram", unsafe { (nvvm.destroy_program)(&raw mut program) })?;
    result
}

fn compile_in(
    nvvm: &Nvvm,
    program: Program,
    module: &str,
    arch: Arch,
    math: MathFlags,
) -> Result<String, CudaBuilderError> {
    // SAFETY: a live program; a buffer and its length; a C string. libNVVM copies the buffer.
    let code = unsafe { (nvvm.add_module)(program, module.as_ptr().cast(), module.len(), c"kernels".as_ptr()) };
    check("nvvmAddModuleToProgram", code)?;

    let mut options = vec![format!("-arch={}", arch.nvvm_arch())];
    options.extend(math.options());
    let options: Vec<CString> = options.into_iter().map(|o| CString::new(o).expect("options hold no NUL")).collect();
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let count = pointers.len() as c_int;
    for step in [nvvm.verify, nvvm.compile] {
        // SAFETY: a live program, and `count` C strings that outlive the call.
        if unsafe { step(program, count, pointers.as_ptr()) } != 0 {
            // SAFETY: a live program.
            let log = unsafe { text(program, nvvm.log_size, nvvm.log) }?;
            return Err(rejected(module, log));
        }
    }
    // SAFETY: a live, compiled program.
    unsafe { text(program, nvvm.result_size, nvvm.result) }
}

/// The error of a rejected module, with the kernels that hold what was rejected.
fn rejected(module: &str, log: String) -> CudaBuilderError {
    match ir::intrinsic_users(module, &log).first() {
        Some((kernel, intrinsic)) => CudaBuilderError::Ir {
            symbol: kernel.clone(),
            fault: format!("libNVVM has no `{intrinsic}`; write it without, or through `asm!`\n{log}"),
        },
        None => CudaBuilderError::Tool { tool: "libNVVM", log },
    }
}

/// # Safety
/// `program` is live, and the functions belong together.
unsafe fn text(
    program: Program,
    size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
) -> Result<String, CudaBuilderError> {
    let mut len = 0;
    // SAFETY: a live program, and room for one size.
    check("libNVVM", unsafe { size(program, &raw mut len) })?;
    // One more than asked for: the text ends in NUL even where the library wrote none.
    let mut bytes = vec![0_u8; len + 1];
    // SAFETY: a live program, and room for `len` bytes.
    check("libNVVM", unsafe { get(program, bytes.as_mut_ptr().cast()) })?;
    let text = CStr::from_bytes_until_nul(&bytes).expect("the last byte is NUL");
    Ok(text.to_string_lossy().into_owned())
}

fn check(function: &str, code: c_int) -> Result<(), CudaBuilderError> {
    if code == 0 {
        Ok(())
    } else {
        Err(CudaBuilderError::Tool { tool: "libNVVM", log: format!("{function} returned {code}") })
    }
}
