//! Single files out of wheels, which are zip archives.

use crate::staging;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zip::ZipArchive;
use zip::result::ZipError;

/// One file to take out of a wheel.
#[derive(Debug)]
pub struct Member {
    /// How the wheel's file name begins.
    pub wheel: &'static str,
    /// How the file's path in the wheel ends, at a path separator: licences lie below a folder named after the version.
    pub path: &'static str,
    /// Where it goes, relative to the folder it is unpacked in.
    pub to: &'static str,
    /// Its permissions; wheels do not carry them reliably.
    pub mode: u32,
}

/// Why a file could not be taken out of a wheel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such wheel was downloaded.
    #[error("pip left no file `{wheel}*.whl`; check the requirements files in xtask/")]
    NoWheel {
        /// How its name begins.
        wheel: &'static str,
    },
    /// The wheel holds the file not once.
    #[error("`{}` holds {actual} files `{path}`, expected one; the wheel's layout changed, see the members in xtask/src/setup.rs and xtask/src/reference.rs", wheel.display())]
    Member {
        /// The wheel.
        wheel: PathBuf,
        /// The path looked for.
        path: &'static str,
        /// How many files match.
        actual: usize,
    },
    /// The wheel is no readable zip archive.
    #[error("cannot read `{}`", wheel.display())]
    Zip {
        /// The wheel.
        wheel: PathBuf,
        /// The reason.
        source: ZipError,
    },
    /// The file could not be written.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// Unpacks `member` of the wheel found in `wheels` below `root`.
///
/// # Errors
/// [`Error`].
pub fn unpack(wheels: &Path, member: &Member, root: &Path) -> Result<(), Error> {
    let wheel = find(wheels, member.wheel)?;
    let zip_error = |source| Error::Zip { wheel: wheel.clone(), source };
    let file = File::open(&wheel).map_err(staging::Error::io("open", &wheel))?;
    let mut archive = ZipArchive::new(file).map_err(zip_error)?;
    let mut names = Vec::new();
    for name in archive.file_names() {
        let name = name.map_err(zip_error)?;
        if Path::new(&*name).ends_with(member.path) {
            names.push(name.into_owned());
        }
    }
    let [name] = names.as_slice() else {
        return Err(Error::Member { wheel, path: member.path, actual: names.len() });
    };
    let mut from = archive.by_name(name).map_err(zip_error)?;
    let to = root.join(member.to);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(staging::Error::io("create", folder))?;
    }
    let mut out = File::create(&to).map_err(staging::Error::io("create", &to))?;
    io::copy(&mut from, &mut out).map_err(staging::Error::io("unpack", &to))?;
    out.set_permissions(fs::Permissions::from_mode(member.mode))
        .map_err(staging::Error::io("set permissions of", &to))?;
    Ok(())
}

fn find(wheels: &Path, prefix: &'static str) -> Result<PathBuf, Error> {
    for entry in fs::read_dir(wheels).map_err(staging::Error::io("list", wheels))? {
        let path = entry.map_err(staging::Error::io("list", wheels))?.path();
        let is_it = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix));
        if is_it && path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    Err(Error::NoWheel { wheel: prefix })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    const MEMBER: Member = Member { wheel: "tool-", path: "bin/tool", to: "bin/tool", mode: 0o755 };

    fn wheels(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tool-1.txt"), "no wheel").unwrap();
        let mut zip = ZipWriter::new(File::create(dir.path().join("tool-1-py3-none-any.whl")).unwrap());
        for file in files {
            zip.start_file(*file, SimpleFileOptions::default()).unwrap();
            zip.write_all(file.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        dir
    }

    #[test]
    fn one_file_is_unpacked_with_its_mode() {
        let dir = wheels(&["a/bin/tool", "a/bin/mytool", "a/bin/tool/more"]);
        let root = tempfile::tempdir().unwrap();
        unpack(dir.path(), &MEMBER, root.path()).unwrap();
        let tool = root.path().join("bin/tool");
        assert_eq!(fs::read_to_string(&tool).unwrap(), "a/bin/tool");
        assert_eq!(fs::metadata(&tool).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_missing_or_doubled_file_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        for (files, expected) in [(&["a/bin/other"][..], 0), (&["a/bin/tool", "b/bin/tool"][..], 2)] {
            let error = unpack(wheels(files).path(), &MEMBER, root.path()).unwrap_err();
            assert!(matches!(error, Error::Member { actual, .. } if actual == expected), "{error}");
        }
    }

    #[test]
    fn a_missing_or_broken_wheel_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(unpack(empty.path(), &MEMBER, root.path()), Err(Error::NoWheel { .. })));
        fs::write(empty.path().join("tool-1.whl"), "not a zip").unwrap();
        assert!(matches!(unpack(empty.path(), &MEMBER, root.path()), Err(Error::Zip { .. })));
    }
}
