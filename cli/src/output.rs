//! The file to write: beside its final place until it is complete.

use crate::error::Error;
use crate::interrupt;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// An output under way. Dropped before [`Output::commit`], it leaves nothing.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// `path` with links followed: where the file is renamed to.
    place: PathBuf,
    /// Removes itself when dropped.
    file: NamedTempFile,
}

/// Refuses an output that is the input, under whatever name.
///
/// # Errors
/// [`Error::SameFile`], [`Error::NotRegular`], [`Error::Write`].
pub fn refuse_same_file(input: &Path, output: &Path) -> Result<(), Error> {
    // `is_same_file` opens both, and opening a pipe would wait for its other end.
    if existing(output)?.is_none() {
        return Ok(());
    }
    match same_file::is_same_file(input, output) {
        Ok(true) => Err(Error::SameFile { input: input.to_owned(), output: output.to_owned() }),
        Ok(false) => Ok(()),
        Err(source) => Err(Error::Write { path: output.to_owned(), source }),
    }
}

/// What is at `path` and may be replaced: a file or nothing. Renaming a file to the name of a device would replace the
/// device.
fn existing(path: &Path) -> Result<Option<fs::Metadata>, Error> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(_) => Err(Error::NotRegular { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Write { path: path.to_owned(), source }),
    }
}

impl Output {
    /// Creates a file of `bytes` zeros in the folder of `path`.
    ///
    /// # Errors
    /// [`Error::NotRegular`] where `path` is something else than a file, [`Error::Write`].
    pub fn create(path: &Path, bytes: u64) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Write { path: path.to_owned(), source };
        let existing = existing(path)?;
        let place = if existing.is_some() { fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
        let folder = match place.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut unfinished = interrupt::unfinished();
        let file = new_file(folder).map_err(failed)?;
        *unfinished = Some(file.path().to_owned());
        drop(unfinished);
        if let Some(existing) = existing {
            file.as_file().set_permissions(existing.permissions()).map_err(failed)?;
        }
        file.as_file().set_len(bytes).map_err(failed)?;
        Ok(Self { path: path.to_owned(), place, file })
    }

    /// Writes `bytes` from position `at` on.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut file = self.file.as_file();
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.write_all(bytes))
            .map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Makes the bytes durable.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn sync(&self) -> Result<(), Error> {
        self.file.as_file().sync_all().map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`Error::Write`]; then nothing is left and an earlier file of that name is as it was.
    pub fn commit(self) -> Result<(), Error> {
        let mut unfinished = interrupt::unfinished();
        self.file.persist(&self.place).map_err(|error| Error::Write { path: self.path, source: error.error })?;
        *unfinished = None;
        Ok(())
    }
}

/// A new file of a name that nothing has, with the permissions that any new file gets, and not only the owner's.
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.prefix(".quant-fp8.").suffix(".partial").tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_is_at_the_final_place_before_commit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, b"old").unwrap();
        let mut output = Output::create(&path, 6).unwrap();
        output.write_at(3, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()).len(), 2);
        output.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\0\0\0new");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn a_dropped_output_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut output = Output::create(&path, 6).unwrap();
        output.write_at(0, b"abc").unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        drop(output);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_rename_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let output = Output::create(&path, 0).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(output.commit(), Err(Error::Write { .. })));
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn only_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Output::create(folder.path(), 0), Err(Error::NotRegular { .. })));
        assert!(matches!(Output::create(Path::new("/dev/null"), 0), Err(Error::NotRegular { .. })));
        assert!(matches!(Output::create(&folder.path().join("missing/out"), 0), Err(Error::Write { .. })));
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_any_new_file_or_of_the_replaced_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let (plain, new, old) = (folder.path().join("plain"), folder.path().join("new"), folder.path().join("old"));
        fs::write(&plain, b"").unwrap();
        Output::create(&new, 0).unwrap().commit().unwrap();
        assert_eq!(mode(&new), mode(&plain));
        fs::write(&old, b"").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
        Output::create(&old, 0).unwrap().commit().unwrap();
        assert_eq!(mode(&old), 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_its_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("elsewhere")).unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("elsewhere/file"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Output::create(&link, 1).unwrap().commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"\0");
    }
}
