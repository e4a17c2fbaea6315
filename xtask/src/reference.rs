//! `cargo xtask reference`: the reference's own kernels, in `target/reference` of the workspace.
//!
//! SGLang's and vLLM's wheels hold libraries with GPU code for many chips; of each library the one cubin that defines the
//! kernels is kept. They are others' programs, fetched to compare with and never part of this repository.

mod cubin;

use crate::staging::{self, Staging};
use crate::wheels::{Requirements, pip, wheel};
use crate::workspace;
use cubin::Wanted;
use std::fs;
use std::path::Path;

/// Where the cubins go, relative to the workspace. `tests/gpu/sglang.rs` and the benchmarks read them there.
const FOLDER: &str = "target/reference";

/// Pinned versions and hashes; what pip reads.
const REQUIREMENTS: Requirements = Requirements(include_str!("../requirements-reference.txt"));

/// What takes GPU code out of a library.
const CUOBJDUMP: wheel::Member =
    wheel::Member { wheel: "nvidia_cuda_cuobjdump-", path: "nvidia/cu13/bin/cuobjdump", to: "cuobjdump", mode: 0o755 };

const LICENCES: &[wheel::Member] = &[
    wheel::Member { wheel: "sglang_kernel-", path: "licenses/LICENSE", to: "licenses/sglang-kernel.txt", mode: 0o644 },
    wheel::Member { wheel: "sgl_kernel-", path: "licenses/LICENSE", to: "licenses/sgl-kernel.txt", mode: 0o644 },
    wheel::Member { wheel: "vllm-", path: "licenses/LICENSE", to: "licenses/vllm.txt", mode: 0o644 },
];

/// How the mangled names of SGLang's kernels begin: the warp kernel and the CTA kernel.
const SGLANG: &[&str] = &["_Z26per_token_quant_fp8_kernelI", "_Z38per_token_quant_fp8_small_batch_kernelI"];

/// The same of its per-tensor kernels. The wheel that has the others compiles them at run time; the last one that holds them
/// is of the project's former name.
const SGLANG_PER_TENSOR: &[&str] = &["_Z24per_tensor_absmax_kernelI", "_Z27per_tensor_quant_fp8_kernelI"];

/// How the mangled name of vLLM's kernel begins.
const VLLM: &[&str] = &["_ZN4vllm49dynamic_per_token_scaled_fp8_quant_kernel_stridedI"];

/// One cubin: the library of which wheel it is in, and what it is.
struct Source {
    library: wheel::Member,
    wanted: Wanted,
}

/// SGLang's library for compute capability 9.0 computes in fast math, that for all others in precise math; both hold code
/// for sm_90a.
const SOURCES: &[Source] = &[
    Source {
        library: library("sglang_kernel-", "sgl_kernel/sm90/common_ops.abi3.so"),
        wanted: Wanted { architecture: "sm_90a", kernels: SGLANG, to: "sglang.fast.cubin" },
    },
    Source {
        library: library("sglang_kernel-", "sgl_kernel/sm100/common_ops.abi3.so"),
        wanted: Wanted { architecture: "sm_90a", kernels: SGLANG, to: "sglang.precise.cubin" },
    },
    Source {
        library: library("sgl_kernel-", "sgl_kernel/sm90/common_ops.abi3.so"),
        wanted: Wanted { architecture: "sm_90a", kernels: SGLANG_PER_TENSOR, to: "sglang_per_tensor.fast.cubin" },
    },
    Source {
        library: library("sgl_kernel-", "sgl_kernel/sm100/common_ops.abi3.so"),
        wanted: Wanted { architecture: "sm_90a", kernels: SGLANG_PER_TENSOR, to: "sglang_per_tensor.precise.cubin" },
    },
    Source {
        library: library("vllm-", "vllm/_C_stable_libtorch.abi3.so"),
        wanted: Wanted { architecture: "sm_90", kernels: VLLM, to: "vllm.cubin" },
    },
];

const fn library(wheel: &'static str, path: &'static str) -> wheel::Member {
    wheel::Member { wheel, path, to: "library.so", mode: 0o644 }
}

/// Why the reference could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The wheels are pinned for Linux on x86_64 only.
    #[error(
        "the reference's wheels are pinned for Linux on x86_64, and this is {os} on {arch}; \
         run this task there and copy {FOLDER}, or point PTQ_REFERENCE at it"
    )]
    Platform {
        /// Operating system of this build.
        os: &'static str,
        /// Architecture of this build.
        arch: &'static str,
    },
    /// The wheels could not be downloaded.
    #[error(transparent)]
    Pip(#[from] pip::Error),
    /// A wheel does not hold what it should.
    #[error(transparent)]
    Wheel(#[from] wheel::Error),
    /// A library does not hold the kernels.
    #[error(transparent)]
    Cubin(#[from] cubin::Error),
    /// The folder could not be written.
    #[error(transparent)]
    Staging(#[from] staging::Error),
}

/// Fetches the reference unless it is there already.
///
/// # Errors
/// [`Error`]; `target/reference` is then as it was.
pub fn run() -> Result<(), Error> {
    let folder = workspace::root().join(FOLDER);
    if is_there(&folder) {
        println!("{}: up to date", folder.display());
    } else {
        fetch(&folder)?;
        println!("{}: fetched", folder.display());
    }
    for pin in REQUIREMENTS.pins() {
        println!("  {pin}");
    }
    Ok(())
}

fn is_there(folder: &Path) -> bool {
    REQUIREMENTS.signed(folder, SOURCES.iter().map(|source| source.wanted.to))
}

fn fetch(folder: &Path) -> Result<(), Error> {
    use std::env::consts::{ARCH, OS};
    if (OS, ARCH) != ("linux", "x86_64") {
        return Err(Error::Platform { os: OS, arch: ARCH });
    }
    let staging = Staging::beside(folder)?;
    let work = staging.path().join("work");
    let wheels = work.join("wheels");
    pip::download(REQUIREMENTS.0, &wheels)?;
    wheel::unpack(&wheels, &CUOBJDUMP, &work)?;
    for licence in LICENCES {
        wheel::unpack(&wheels, licence, staging.path())?;
    }
    for Source { library, wanted } in SOURCES {
        wheel::unpack(&wheels, library, &work)?;
        cubin::extract(&work.join(CUOBJDUMP.to), &work.join(library.to), wanted, staging.path())?;
    }
    fs::remove_dir_all(&work).map_err(staging::Error::io("remove", &work))?;
    REQUIREMENTS.sign(staging.path())?;
    Ok(staging.publish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_is_pinned_once_with_one_hash() {
        let names: Vec<_> = REQUIREMENTS.pins().map(|pin| pin.split_once("==").unwrap().0).collect();
        assert_eq!(names, ["nvidia-cuda-cuobjdump", "sgl-kernel", "sglang-kernel", "vllm"]);
        assert_eq!(REQUIREMENTS.0.matches("--hash=sha256:").count(), names.len());
    }

    #[test]
    fn the_reference_is_there_once_every_cubin_is() {
        let dir = tempfile::tempdir().unwrap();
        REQUIREMENTS.sign(dir.path()).unwrap();
        for Source { wanted, .. } in SOURCES {
            assert!(!is_there(dir.path()), "without {}", wanted.to);
            fs::write(dir.path().join(wanted.to), "").unwrap();
        }
        assert!(is_there(dir.path()));
    }
}
