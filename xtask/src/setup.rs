//! `cargo xtask setup`: libNVVM, ptxas and nvdisasm from NVIDIA's wheels, in `target/toolchain` of the workspace.

use crate::staging::{self, Staging};
use crate::wheels::{Requirements, pip, wheel};
use crate::workspace;
use cuda_builder::Toolchain;
use cuda_builder::toolchain::{NVIDIA_FOLDER, NVIDIA_VARIABLE};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pinned versions and hashes; what pip reads.
const REQUIREMENTS: Requirements = Requirements(include_str!("../requirements.txt"));

/// What is taken out of which wheel. Each stands alone: none opens another file of its wheel.
const FILES: &[wheel::Member] = &[
    wheel::Member { wheel: "nvidia_nvvm-", path: "nvidia/cu13/lib/libnvvm.so.4", to: LIBNVVM, mode: 0o644 },
    wheel::Member { wheel: "nvidia_nvvm-", path: "licenses/License.txt", to: "licenses/nvidia-nvvm.txt", mode: 0o644 },
    wheel::Member { wheel: "nvidia_cuda_nvcc-", path: "nvidia/cu13/bin/ptxas", to: PTXAS, mode: 0o755 },
    wheel::Member {
        wheel: "nvidia_cuda_nvcc-",
        path: "licenses/License.txt",
        to: "licenses/nvidia-cuda-nvcc.txt",
        mode: 0o644,
    },
    wheel::Member { wheel: "nvidia_cuda_nvdisasm-", path: "nvidia/cu13/bin/nvdisasm", to: NVDISASM, mode: 0o755 },
    wheel::Member {
        wheel: "nvidia_cuda_nvdisasm-",
        path: "licenses/License.txt",
        to: "licenses/nvidia-cuda-nvdisasm.txt",
        mode: 0o644,
    },
];

const LIBNVVM: &str = "lib/libnvvm.so.4";
const PTXAS: &str = "bin/ptxas";
const NVDISASM: &str = "bin/nvdisasm";

/// Why the toolchain could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// NVIDIA publishes the wheels for Linux on x86_64 and aarch64 only.
    #[error(
        "the toolchain wheels exist for Linux on x86_64 and aarch64, and this is {os} on {arch}; \
         point {NVIDIA_VARIABLE} at a folder with {LIBNVVM} and {PTXAS}, or use a CUDA install"
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
    /// The folder could not be written.
    #[error(transparent)]
    Staging(#[from] staging::Error),
    /// An unpacked program does not start here.
    #[error("`{}` does not run here: {detail}; it needs glibc and a folder mounted without noexec", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// What came back.
        detail: String,
    },
}

/// Fetches and unpacks the pinned toolchain unless it is there already, and says what a device build then uses.
///
/// # Errors
/// [`Error`]; `target/toolchain` is then as it was.
pub fn run() -> Result<(), Error> {
    let root = workspace::root();
    let toolchain = root.join(NVIDIA_FOLDER);
    if is_installed(&toolchain) {
        println!("{}: up to date", toolchain.display());
    } else {
        install(&toolchain)?;
        println!("{}: installed", toolchain.display());
    }
    for pin in REQUIREMENTS.pins() {
        println!("  {pin}");
    }
    match Toolchain::find(Some(&root)) {
        Ok(found) => println!(
            "A device build uses\n  rustc    {}\n  libNVVM  {}\n  ptxas    {}",
            found.rustc.rustc.display(),
            found.libnvvm.display(),
            found.ptxas.display()
        ),
        // Not this command's to mend, so no failure: it did what it is for.
        Err(error) => println!("Still missing for a device build: {error}"),
    }
    Ok(())
}

fn install(toolchain: &Path) -> Result<(), Error> {
    use std::env::consts::{ARCH, OS};
    if !matches!((OS, ARCH), ("linux", "x86_64" | "aarch64")) {
        return Err(Error::Platform { os: OS, arch: ARCH });
    }
    let staging = Staging::beside(toolchain)?;
    let wheels = staging.path().join("wheels");
    pip::download(REQUIREMENTS.0, &wheels)?;
    for member in FILES {
        wheel::unpack(&wheels, member, staging.path())?;
    }
    fs::remove_dir_all(&wheels).map_err(staging::Error::io("remove", &wheels))?;
    for program in [PTXAS, NVDISASM] {
        check_runs(&staging.path().join(program))?;
    }
    REQUIREMENTS.sign(staging.path())?;
    Ok(staging.publish()?)
}

fn is_installed(toolchain: &Path) -> bool {
    REQUIREMENTS.signed(toolchain, FILES.iter().map(|member| member.to))
}

fn check_runs(path: &Path) -> Result<(), Error> {
    let fail = |detail| Error::Program { path: path.to_owned(), detail };
    let output = Command::new(path).arg("--version").output().map_err(|e: io::Error| fail(e.to_string()))?;
    if output.status.success() { Ok(()) } else { Err(fail(output.status.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pins_name_every_package() {
        let packages: Vec<_> = REQUIREMENTS.pins().map(|pin| pin.split_once("==").unwrap().0).collect();
        assert_eq!(packages, ["nvidia-nvvm", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm"]);
    }

    #[test]
    fn a_toolchain_without_one_of_its_files_is_not_installed() {
        let dir = tempfile::tempdir().unwrap();
        REQUIREMENTS.sign(dir.path()).unwrap();
        for member in FILES {
            assert!(!is_installed(dir.path()), "without {}", member.to);
            let path = dir.path().join(member.to);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert!(is_installed(dir.path()));
    }

    #[test]
    fn a_program_that_does_not_run_is_an_error() {
        assert!(matches!(check_runs(Path::new("/nowhere/ptxas")), Err(Error::Program { .. })));
        assert!(check_runs(Path::new("/bin/true")).is_ok());
        assert!(matches!(check_runs(Path::new("/bin/false")), Err(Error::Program { .. })));
    }
}
