//! Files to read, mapped into memory.

use crate::container::Container;
use crate::error::Error;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A mapped file.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    map: Mmap,
}

impl Input {
    /// Opens and maps a regular file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::NotRegular`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Read { path: path.to_owned(), source };
        // Before opening: opening a pipe waits for its writer.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(Error::NotRegular { path: path.to_owned() });
        }
        let file = File::open(path).map_err(failed)?;
        // SAFETY: the map is read-only and this program never writes to the file: `quantize` refuses an output that is
        // its input (`output::refuse_same_file`) and replaces files by rename, which leaves the mapped one as it is.
        // That no other process changes the file meanwhile cannot be checked; it is the duty of whoever runs the
        // program, as for every mapped file. One that is cut short then ends the program with SIGBUS; one that is
        // rewritten in place gives a mixture of old and new values.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Self { path: path.to_owned(), map })
    }

    /// Where the file is, as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as a safetensors container.
    ///
    /// # Errors
    /// [`Error::NotSafetensors`].
    pub fn container(&self) -> Result<Container<'_>, Error> {
        Container::parse(&self.map).map_err(|reason| Error::NotSafetensors { path: self.path.clone(), reason })
    }
}
