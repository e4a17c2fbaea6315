//! One cubin out of a library that holds many.

use crate::staging;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The cubin to find.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// What it was compiled for, such as `sm_90a`.
    pub architecture: &'static str,
    /// How the names of its kernels begin. It has at least one kernel of each.
    pub kernels: &'static [&'static str],
    /// Its name in the folder of cubins.
    pub to: &'static str,
}

/// Why a cubin could not be taken out of a library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// cuobjdump does not start, or fails.
    #[error("`{}` failed: {detail}; it needs glibc and a folder mounted without noexec", tool.display())]
    Tool {
        /// The program.
        tool: PathBuf,
        /// What came back.
        detail: String,
    },
    /// The library defines the kernels not in one cubin.
    #[error(
        "{actual} of {cubins} cubins for {architecture} define kernels {kernels:?}, expected one; \
         the library's contents changed, see SOURCES in xtask/src/reference.rs"
    )]
    Count {
        /// What the cubins are for.
        architecture: &'static str,
        /// How the kernels' names begin.
        kernels: &'static [&'static str],
        /// Cubins of the library for that architecture.
        cubins: usize,
        /// Those that define the kernels.
        actual: usize,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] staging::Error),
}

/// Puts the cubin of `library` that is `wanted` into the folder `into`.
///
/// # Errors
/// [`Error`].
pub fn extract(cuobjdump: &Path, library: &Path, wanted: &Wanted, into: &Path) -> Result<(), Error> {
    let cubins = into.join("cubins");
    fs::create_dir(&cubins).map_err(staging::Error::io("create", &cubins))?;
    let fail = |detail| Error::Tool { tool: cuobjdump.to_owned(), detail };
    // It writes one file per cubin into its working folder, and names each on stdout.
    let output = Command::new(cuobjdump)
        .args(["-arch", wanted.architecture, "-xelf", "all"])
        .arg(library)
        .current_dir(&cubins)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| fail(e.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(fail(format!("{}, {}", output.status, said.trim_end())));
    }
    let found = find(&cubins, wanted)?;
    let to = into.join(wanted.to);
    fs::rename(&found, &to).map_err(staging::Error::io("create", &to))?;
    fs::remove_dir_all(&cubins).map_err(staging::Error::io("remove", &cubins))?;
    Ok(())
}

/// The cubin in `folder` that is wanted. Their numbers mean nothing: they change from one version to the next.
fn find(folder: &Path, wanted: &Wanted) -> Result<PathBuf, Error> {
    let suffix = format!(".{}.cubin", wanted.architecture);
    let (mut cubins, mut found) = (0, Vec::new());
    for entry in fs::read_dir(folder).map_err(staging::Error::io("list", folder))? {
        let path = entry.map_err(staging::Error::io("list", folder))?.path();
        if !path.to_string_lossy().ends_with(&suffix) {
            continue;
        }
        cubins += 1;
        let image = fs::read(&path).map_err(staging::Error::io("read", &path))?;
        if wanted.kernels.iter().all(|kernel| names_one(&image, kernel)) {
            found.push(path);
        }
    }
    match found.as_slice() {
        [_] => Ok(found.remove(0)),
        _ => Err(Error::Count {
            architecture: wanted.architecture,
            kernels: wanted.kernels,
            cubins,
            actual: found.len(),
        }),
    }
}

/// Whether an ELF image has a symbol whose name begins like that: its tables of names end each with a zero byte.
fn names_one(image: &[u8], start: &str) -> bool {
    image.split(|&byte| byte == 0).any(|name| name.starts_with(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    const WANTED: Wanted = Wanted { architecture: "sm_90a", kernels: &["_Z4warpI", "_Z3ctaI"], to: "kernels.cubin" };

    /// A `cuobjdump` that writes the given files, each with its names, for a library of any content.
    fn extract_from(files: &[(&str, &[&str])]) -> (tempfile::TempDir, Result<(), Error>) {
        let dir = tempfile::tempdir().unwrap();
        let mut text = "#!/bin/sh\n[ \"$1 $2 $3 $4\" = '-arch sm_90a -xelf all' ] || exit 3\n".to_owned();
        for (file, names) in files {
            text += &format!("printf '\\177ELF\\0.text.{0}\\0{0}\\0' >{file}\n", names.join("\\0"));
        }
        let tool = dir.path().join("cuobjdump");
        script::write(&tool, &text);
        let into = dir.path().join("into");
        fs::create_dir(&into).unwrap();
        let result = extract(&tool, Path::new("library.so"), &WANTED, &into);
        (dir, result)
    }

    #[test]
    fn the_cubin_with_all_kernels_is_found_by_their_names() {
        let (dir, result) = extract_from(&[
            ("l.1.sm_90a.cubin", &["_Z5otherv"]),
            ("l.2.sm_90a.cubin", &["_Z4warpIfEvv"]),
            ("l.3.sm_90a.cubin", &["_Z4warpIfEvv", "_Z3ctaIfEvv"]),
            ("l.4.sm_90.cubin", &["_Z4warpIfEvv", "_Z3ctaIfEvv"]),
            ("l.5.sm_90a.cubin", &["_ZN1a4warpIfEvv_Z4warpI", "_Z3ctaIfEvv"]),
        ]);
        result.unwrap();
        let into = dir.path().join("into");
        assert!(names_one(&fs::read(into.join(WANTED.to)).unwrap(), "_Z3ctaIfEvv"));
        assert_eq!(fs::read_dir(into).unwrap().count(), 1, "only the cubin stays");
    }

    #[test]
    fn no_cubin_or_two_are_an_error() {
        let both: &[&str] = &["_Z4warpIfEvv", "_Z3ctaIfEvv"];
        let none = [("l.1.sm_90a.cubin", &["_Z4warpIfEvv"] as &[&str])];
        let two = [("l.1.sm_90a.cubin", both), ("l.2.sm_90a.cubin", both), ("l.3.sm_80.cubin", both)];
        for (files, expected) in [(&none[..], (1, 0)), (&two[..], (2, 2)), (&[][..], (0, 0))] {
            let error = extract_from(files).1.unwrap_err();
            assert!(
                matches!(error, Error::Count { cubins, actual, .. } if (cubins, actual) == expected),
                "{error}, expected {expected:?}"
            );
        }
    }

    #[test]
    fn a_cuobjdump_that_fails_or_is_missing_is_an_error() {
        for tool in ["/bin/false", "/nowhere/cuobjdump"] {
            let into = tempfile::tempdir().unwrap();
            let error = extract(Path::new(tool), Path::new("library.so"), &WANTED, into.path()).unwrap_err();
            assert!(matches!(error, Error::Tool { .. }), "{error}");
        }
    }
}
