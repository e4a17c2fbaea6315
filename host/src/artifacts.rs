//! The table of compiled kernels: handed over by whoever links the crate, or read from a folder.

use crate::{Error, Image};
use ptq_spec::{ArtifactStem, Element, Kernel, MathMode, Target, artifact_stem, every_artifact};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The kernels of one operation on one element type, compiled for one target in one math mode.
#[derive(Debug, Clone, Copy)]
pub struct Artifact {
    /// The operation.
    pub kernel: Kernel,
    /// Compiled for it.
    pub target: &'static Target,
    /// Compiled in it.
    pub math: MathMode,
    /// Element type of the input.
    pub element: Element,
    /// PTX text, in UTF-8; empty where there is none.
    pub ptx: Image,
    /// Cubin; empty where there is none.
    pub cubin: Image,
}

/// A table of artifacts, at most one for each operation, target, math mode and element type.
#[derive(Debug, Clone, Copy)]
pub struct Artifacts(pub(crate) &'static [Artifact]);

impl Artifact {
    /// Its name: the file name without extension, `per_token.bf16.sm_90.fast`.
    pub fn stem(&self) -> ArtifactStem {
        artifact_stem(self.kernel, self.element, self.target, self.math)
    }

    /// Whether its kernels may start before the grids before them in the stream are complete, because they wait for those
    /// themselves: `griddepcontrol`, which compute capability 9.0 has (PTX ISA).
    pub fn orders_grids(&self) -> bool {
        self.kernel.orders_grids(self.target)
    }

    /// The PTX, decompressed.
    ///
    /// # Errors
    /// [`Error::MalformedArtifact`] where it does not decompress or is no text.
    pub fn ptx_text(&self) -> Result<Cow<'static, str>, Error> {
        let no_text = |_| self.malformed("its PTX is not UTF-8");
        match self.ptx.bytes().map_err(|reason| self.malformed(reason))? {
            Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(no_text),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|error| no_text(error.utf8_error())),
        }
    }

    /// The cubin, decompressed.
    ///
    /// # Errors
    /// [`Error::MalformedArtifact`] where it does not decompress.
    pub fn cubin_bytes(&self) -> Result<Cow<'static, [u8]>, Error> {
        self.cubin.bytes().map_err(|reason| self.malformed(reason))
    }

    pub(crate) fn malformed(&self, reason: &'static str) -> Error {
        Error::MalformedArtifact { stem: self.stem().to_string(), reason }
    }
}

impl Artifacts {
    /// A table of compiled kernels.
    ///
    /// # Safety
    /// Every PTX and cubin is what `cargo xtask kernels` builds from kernels of the contract: the runtime launches their
    /// entries with the arguments that `ptq_spec::per_token::Entry` and `ptq_spec::per_tensor::Entry` list.
    pub const unsafe fn new(table: &'static [Artifact]) -> Self {
        Self(table)
    }

    /// The artifacts.
    pub const fn as_slice(self) -> &'static [Artifact] {
        self.0
    }

    /// Bytes that all the images take, as a program carries them.
    pub fn embedded_bytes(self) -> usize {
        self.0.iter().map(|artifact| artifact.ptx.stored().len() + artifact.cubin.stored().len()).sum()
    }

    /// The artifact for that operation, element type, target and math mode.
    pub fn find(self, kernel: Kernel, element: Element, target: &Target, math: MathMode) -> Option<&'static Artifact> {
        self.0.iter().find(|a| a.kernel == kernel && a.element == element && a.target == target && a.math == math)
    }

    /// Reads `STEM.ptx` and `STEM.cubin` of every operation, target, math mode and element type from a folder, `STEM` as
    /// [`artifact_stem`] spells it. Either file of a pair may be missing, and so may a pair.
    ///
    /// A folder is read once in a process and its contents are kept until the process ends: loaded modules refer to them.
    ///
    /// # Safety
    /// As [`Artifacts::new`], for the files in the folder.
    ///
    /// # Errors
    /// [`Error::ReadArtifact`] for a file that exists and cannot be read, or PTX that is not UTF-8;
    /// [`Error::NoArtifactFiles`] for a folder without any of the files.
    pub unsafe fn from_dir(dir: &Path) -> Result<Self, Error> {
        static FOLDERS: Mutex<Option<HashMap<PathBuf, Artifacts>>> = Mutex::new(None);
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folders = folders.get_or_insert_default();
        if let Some(&known) = folders.get(dir) {
            return Ok(known);
        }
        let read = read_dir(dir)?;
        folders.insert(dir.to_owned(), read);
        Ok(read)
    }
}

fn read_dir(dir: &Path) -> Result<Artifacts, Error> {
    // Bytes first, and nothing is kept of a folder that does not read to its end.
    let mut read = Vec::new();
    for (kernel, target, math, element) in every_artifact() {
        let stem = artifact_stem(kernel, element, target, math);
        let ptx_path = dir.join(format!("{stem}.ptx"));
        let ptx = read_optional(&ptx_path)?;
        let ptx = ptx.map(|bytes| String::from_utf8(bytes).map_err(|e| unreadable(&ptx_path, &e))).transpose()?;
        let cubin = read_optional(&dir.join(format!("{stem}.cubin")))?;
        if ptx.is_some() || cubin.is_some() {
            read.push((kernel, target, math, element, ptx.unwrap_or_default(), cubin.unwrap_or_default()));
        }
    }
    if read.is_empty() {
        return Err(Error::NoArtifactFiles { dir: dir.to_owned() });
    }
    let table: Vec<Artifact> = read
        .into_iter()
        .map(|(kernel, target, math, element, ptx, cubin)| Artifact {
            kernel,
            target,
            math,
            element,
            ptx: Image::Plain(ptx.into_bytes().leak()),
            cubin: Image::Plain(cubin.leak()),
        })
        .collect();
    Ok(Artifacts(table.leak()))
}

fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unreadable(path, &e)),
    }
}

fn unreadable(path: &Path, reason: &dyn std::error::Error) -> Error {
    Error::ReadArtifact { path: path.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptq_spec::TARGETS;
    use std::fs;

    fn from_dir(dir: &Path) -> Result<Artifacts, Error> {
        // SAFETY: nothing of it is loaded.
        unsafe { Artifacts::from_dir(dir) }
    }

    /// A folder of this test that is gone afterwards.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ptq-host-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn grids_order_themselves_from_9_0_on() {
        for (target, kernel) in TARGETS.iter().flat_map(|target| Kernel::ALL.map(|kernel| (target, kernel))) {
            let (math, element) = (MathMode::Precise, Element::F32);
            let artifact = Artifact { kernel, target, math, element, ptx: Image::NONE, cubin: Image::NONE };
            let able = ["sm_90", "sm_100f", "sm_120"].contains(&target.name);
            let orders = matches!(kernel, Kernel::PerTokenProgrammatic | Kernel::PerTokenExtended);
            assert_eq!(artifact.orders_grids(), able && orders, "{kernel} {target}");
        }
    }

    #[test]
    fn folder_gives_what_it_holds() {
        let dir = Folder::new("holds");
        fs::write(dir.0.join("per_token.bf16.sm_90.fast.ptx"), ".version 7.8").unwrap();
        fs::write(dir.0.join("per_token.f32.sm_80.precise.cubin"), [1, 2, 3]).unwrap();
        let artifacts = from_dir(&dir.0).unwrap();
        let sm_80 = Target::by_name("sm_80").unwrap();
        let sm_90 = Target::by_name("sm_90").unwrap();
        assert_eq!(artifacts.0.len(), 2);
        let bf16 = artifacts.find(Kernel::PerToken, Element::Bf16, sm_90, MathMode::Fast).unwrap();
        assert_eq!((bf16.ptx, bf16.cubin), (Image::Plain(b".version 7.8"), Image::NONE));
        assert_eq!(bf16.stem().to_string(), "per_token.bf16.sm_90.fast");
        let f32 = artifacts.find(Kernel::PerToken, Element::F32, sm_80, MathMode::Precise).unwrap();
        assert_eq!((f32.ptx, f32.cubin), (Image::NONE, Image::Plain(&[1, 2, 3])));
        assert!(artifacts.find(Kernel::PerToken, Element::Bf16, sm_90, MathMode::Precise).is_none());
        // The same memory the second time.
        assert!(std::ptr::eq(from_dir(&dir.0).unwrap().0, artifacts.0));
    }

    #[test]
    fn folder_without_artifacts_is_an_error() {
        let dir = Folder::new("empty");
        assert_eq!(from_dir(&dir.0).unwrap_err(), Error::NoArtifactFiles { dir: dir.0.clone() });
        let missing = dir.0.join("missing");
        assert_eq!(from_dir(&missing).unwrap_err(), Error::NoArtifactFiles { dir: missing });
    }

    #[test]
    fn ptx_that_is_no_text_is_an_error() {
        let dir = Folder::new("text");
        let path = dir.0.join("per_token.f16.sm_89.precise.ptx");
        fs::write(&path, [0xFF]).unwrap();
        assert!(matches!(from_dir(&dir.0).unwrap_err(), Error::ReadArtifact { path: p, .. } if p == path));
    }
}
