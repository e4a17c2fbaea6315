//! Loads each module once per context. A cubin is loaded whole; of PTX an entry at a time is compiled, when it is first asked
//! for: a call needs one of dozens, and each takes the driver's compiler some 20 ms.

use crate::driver::{self, Context, DriverError};
use crate::image::Identity;
use crate::selection::Candidate;
use crate::{Artifact, Backend, Error, cubin, ptx};
use cust::sys::{CUfunc_st, CUfunction, CUmodule};
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The kernels of an artifact, loaded. They are never unloaded: one may be in flight at any time, and their context's end
/// frees them.
#[derive(Debug)]
pub(crate) struct Module {
    code: Code,
    artifact: &'static Artifact,
    backend: Backend,
    /// In the order of [`ptq_spec::Kernel::entries`]; null until first asked for.
    functions: Box<[AtomicPtr<CUfunc_st>]>,
}

/// What functions come from.
#[derive(Debug)]
enum Code {
    /// A cubin, loaded.
    Cubin(CUmodule),
    /// PTX, checked. Locked while an entry is compiled, so that others who want it wait.
    Ptx(Mutex<Vec<u8>>),
}

// SAFETY: the handle is a number to the driver, whose functions may be called on any thread; no field is changed but
// through atomics.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// A kernel of a [`Module`], which lives as long as the module's context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function(CUfunction);

// SAFETY: the handle is a number to the driver, whose functions may be called on any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    pub fn raw(self) -> CUfunction {
        self.0
    }
}

/// Which module: images are static, so that where they lie stands for the contents.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    context: Context,
    backend: Backend,
    image: Identity,
}

/// One module: locked while it is loaded, so that others who want it wait, and empty again if that fails.
type Slot = Arc<Mutex<Option<&'static Module>>>;

static SLOTS: Mutex<Option<HashMap<Key, Slot>>> = Mutex::new(None);

/// A panic of another thread leaves nothing half-done behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The module of the first candidate; of the second if the driver does not understand the first.
///
/// `context` is the current one.
pub(crate) fn load(context: Context, first: Candidate, second: Option<Candidate>) -> Result<&'static Module, Error> {
    match (once(context, first), second) {
        (Err(Error::Load { stem, backend, code, .. }), Some(second)) if not_understood(code) => {
            tracing::warn!(%stem, %backend, %code, instead = %second.backend, "the driver does not load an artifact");
            once(context, second)
        }
        (loaded, _) => loaded,
    }
}

fn not_understood(code: DriverError) -> bool {
    [DriverError::INVALID_IMAGE, DriverError::NO_BINARY_FOR_GPU].contains(&code)
}

fn once(context: Context, candidate: Candidate) -> Result<&'static Module, Error> {
    let key = Key { context, backend: candidate.backend, image: candidate.image().identity() };
    let slot = lock(&SLOTS).get_or_insert_default().entry(key).or_default().clone();
    let mut slot = lock(&slot);
    if let Some(module) = *slot {
        return Ok(module);
    }
    let module: &'static Module = Box::leak(Box::new(Module::load(candidate)?));
    *slot = Some(module);
    Ok(module)
}

impl Module {
    fn load(candidate: Candidate) -> Result<Self, Error> {
        let Candidate { backend, artifact } = candidate;
        let start = Instant::now();
        let image = image(candidate)?;
        let functions = artifact.kernel.entries().iter().map(|_| AtomicPtr::new(ptr::null_mut())).collect();
        if backend == Backend::Jit {
            return Ok(Self { code: Code::Ptx(Mutex::new(image)), artifact, backend, functions });
        }
        // SAFETY: `image` returns a whole cubin for this backend.
        let handle = unsafe { hand_over(&image, artifact, backend) }?;
        tracing::debug!(stem = %artifact.stem(), %backend, elapsed = ?start.elapsed(), "loaded a module");
        Ok(Self { code: Code::Cubin(handle), artifact, backend, functions })
    }

    pub fn artifact(&self) -> &'static Artifact {
        self.artifact
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The entry of that name, which is one of the artifact's operation. The module's context is current.
    pub fn function(&self, entry: &'static str) -> Result<Function, Error> {
        let missing = |code| Error::NoEntry { stem: self.artifact.stem().to_string(), entry, code };
        let entries = self.artifact.kernel.entries();
        let index = entries.iter().position(|&name| name == entry).ok_or_else(|| missing(DriverError::NOT_FOUND))?;
        let known = || {
            let known = self.functions[index].load(Ordering::Acquire);
            (!known.is_null()).then_some(Function(known))
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        let name = CString::new(entry).map_err(|_| missing(DriverError::NOT_FOUND))?;
        let compiling;
        let module = match &self.code {
            Code::Cubin(module) => *module,
            Code::Ptx(text) => {
                compiling = lock(text);
                if let Some(known) = known() {
                    return Ok(known);
                }
                self.compile(&compiling, entry)?
            }
        };
        // SAFETY: `module` is loaded and never unloaded, and its context is current, hence exists.
        let function = unsafe { driver::module_function(module, &name) }.map_err(|code| match code {
            DriverError::NOT_FOUND => missing(code),
            // The driver loads a kernel when it is first asked for, and may fail at that: out of memory above all.
            _ => {
                Error::Load { stem: self.artifact.stem().to_string(), backend: self.backend, code, log: String::new() }
            }
        })?;
        // Threads that race here, which those of PTX do not, store the same handle.
        self.functions[index].store(function, Ordering::Release);
        Ok(Function(function))
    }

    /// A module of one entry.
    fn compile(&self, text: &[u8], entry: &str) -> Result<CUmodule, Error> {
        let start = Instant::now();
        let mut image = ptx::alone(text, entry);
        image.push(0);
        // SAFETY: a part of what `image` checked, PTX without a NUL, and the NUL that ends it.
        let module = unsafe { hand_over(&image, self.artifact, self.backend) }?;
        tracing::debug!(
            stem = %self.artifact.stem(), backend = %self.backend, entry, elapsed = ?start.elapsed(), "loaded a module"
        );
        Ok(module)
    }
}

/// Has the driver load an image into the current context.
///
/// # Safety
/// As [`driver::load_module`].
unsafe fn hand_over(image: &[u8], artifact: &Artifact, backend: Backend) -> Result<CUmodule, Error> {
    // SAFETY: as the caller promises.
    let loaded = unsafe { driver::load_module(image) };
    loaded.map_err(|(code, log)| Error::Load { stem: artifact.stem().to_string(), backend, code, log })
}

/// The directive that every PTX has.
const VERSION: &[u8] = b".version";

/// The bytes of an image, in memory of their own: PTX without a NUL, or a cubin, aligned as the allocator aligns.
fn image(candidate: Candidate) -> Result<Vec<u8>, Error> {
    let Candidate { backend, artifact } = candidate;
    let malformed = |reason| artifact.malformed(reason);
    let image = candidate.image().bytes().map_err(malformed)?.into_owned();
    if backend == Backend::Aot {
        cubin::check(&image).map_err(malformed)?;
        return Ok(image);
    }
    // The driver tells images apart by their first bytes, and reads those of other kinds without knowing their length.
    let has_version = image.windows(VERSION.len()).any(|window| window == VERSION);
    if !has_version || image.starts_with(b"\x7F") {
        return Err(malformed("it is not PTX text"));
    }
    if image.contains(&0) {
        return Err(malformed("its PTX contains a NUL byte"));
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;
    use ptq_spec::{Element, Kernel, MathMode, TARGETS};

    fn candidate(backend: Backend, ptx: &'static str, cubin: &'static [u8]) -> Candidate {
        of(backend, Image::Plain(ptx.as_bytes()), Image::Plain(cubin))
    }

    fn of(backend: Backend, ptx: Image, cubin: Image) -> Candidate {
        let (kernel, target, math) = (Kernel::PerToken, &TARGETS[0], MathMode::Precise);
        let artifact = Artifact { kernel, target, math, element: Element::F32, ptx, cubin };
        Candidate { backend, artifact: Box::leak(Box::new(artifact)) }
    }

    fn reason(candidate: Candidate) -> &'static str {
        match image(candidate) {
            Err(Error::MalformedArtifact { stem, reason }) => {
                assert_eq!(stem, "per_token.f32.sm_80.precise");
                reason
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ptx_is_taken_as_it_is() {
        assert_eq!(image(candidate(Backend::Jit, ".version 7.0", &[])).unwrap(), b".version 7.0");
    }

    #[test]
    fn images_that_would_mislead_the_driver_are_refused() {
        assert!(reason(candidate(Backend::Jit, "", &[])).contains("not PTX"));
        assert!(reason(candidate(Backend::Jit, "\x7FELF .version", &[])).contains("not PTX"));
        assert!(reason(candidate(Backend::Jit, ".version\0", &[])).contains("NUL"));
        assert!(reason(candidate(Backend::Aot, "", b"\x7FELF")).contains("ELF"));
    }

    #[test]
    fn damaged_compression_is_an_error_of_either_backend() {
        let damaged = Image::Lzip { bytes: b"LZIP\x01\x0C", len: 100 };
        for backend in [Backend::Aot, Backend::Jit] {
            assert!(reason(of(backend, damaged, damaged)).contains("compressed"), "{backend}");
        }
    }

    #[test]
    fn only_images_that_are_not_understood_have_a_second_choice() {
        assert!(not_understood(DriverError(200)) && not_understood(DriverError(209)));
        assert!(!not_understood(DriverError(2)), "out of memory is no reason to try again");
    }
}
