//! Folders that appear whole or not at all: built beside the destination, then renamed over it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A folder being filled. Dropping it without [`Staging::publish`] removes it and leaves the destination as it was.
pub struct Staging {
    destination: PathBuf,
    partial: PathBuf,
    retired: PathBuf,
    published: bool,
    /// Holds the lock on `partial` that keeps a second run out.
    _lock: File,
}

/// Why a folder could not be staged or published.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The destination is `/`, empty or ends in `..`.
    #[error("`{}` names no folder to create; pass a path that ends in a name", destination.display())]
    NoName {
        /// The destination as given.
        destination: PathBuf,
    },
    /// Another run is filling the same folder.
    #[error("another run is filling `{}`; wait for it to end, then try again", partial.display())]
    Busy {
        /// The folder it fills.
        partial: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} `{}`; check the permissions and the free space there", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// Wraps an I/O error with what was tried on which path; for `map_err`.
    pub fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl Staging {
    /// An empty folder beside `destination`, cleared of what an interrupted run left.
    ///
    /// # Errors
    /// [`Error::NoName`], [`Error::Busy`], [`Error::Io`].
    pub fn beside(destination: &Path) -> Result<Self, Error> {
        let no_name = || Error::NoName { destination: destination.to_owned() };
        let parent = destination.parent().ok_or_else(no_name)?;
        let name = destination.file_name().ok_or_else(no_name)?;
        let sibling = |suffix: &str| {
            let mut name = name.to_owned();
            name.push(suffix);
            parent.join(name)
        };
        let (partial, retired) = (sibling(".partial"), sibling(".retired"));
        fs::create_dir_all(&partial).map_err(Error::io("create", &partial))?;
        let lock = File::open(&partial).map_err(Error::io("open", &partial))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy { partial }),
            Err(TryLockError::Error(source)) => return Err(Error::Io { action: "lock", path: partial, source }),
        }
        let staging = Self { destination: destination.to_owned(), partial, retired, published: false, _lock: lock };
        if !staging.destination.exists() && staging.retired.exists() {
            // An earlier run stopped between the two renames of `publish`.
            fs::rename(&staging.retired, &staging.destination).map_err(Error::io("restore", &staging.destination))?;
        }
        remove(&staging.retired)?;
        for entry in fs::read_dir(&staging.partial).map_err(Error::io("list", &staging.partial))? {
            remove(&entry.map_err(Error::io("list", &staging.partial))?.path())?;
        }
        Ok(staging)
    }

    /// The folder to fill.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Puts the folder in the destination's place; an old one is removed afterwards.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(mut self) -> Result<(), Error> {
        match fs::rename(&self.destination, &self.retired) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("move away", &self.destination)(e));
            }
            _ => {}
        }
        if let Err(e) = fs::rename(&self.partial, &self.destination) {
            // Best effort: the error that matters is the one at hand.
            let _ = fs::rename(&self.retired, &self.destination);
            return Err(Error::io("create", &self.destination)(e));
        }
        self.published = true;
        remove(&self.retired)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.published {
            // Best effort: the next run clears what stays.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Removes a file or a folder, if it is there.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    };
    removed.map_err(Error::io("remove", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn publish_replaces_the_destination_and_leaves_nothing_beside() {
        let parent = tempfile::tempdir().unwrap();
        let destination = parent.path().join("made");
        fs::create_dir(&destination).unwrap();
        fs::write(destination.join("old"), "old").unwrap();
        let staging = Staging::beside(&destination).unwrap();
        fs::write(staging.path().join("new"), "new").unwrap();
        assert_eq!(names(&destination), ["old"], "untouched until published");
        staging.publish().unwrap();
        assert_eq!(names(&destination), ["new"]);
        assert_eq!(names(parent.path()), ["made"]);
    }

    #[test]
    fn a_dropped_staging_keeps_the_destination() {
        let parent = tempfile::tempdir().unwrap();
        let destination = parent.path().join("made");
        fs::create_dir(&destination).unwrap();
        let staging = Staging::beside(&destination).unwrap();
        fs::write(staging.path().join("new"), "new").unwrap();
        drop(staging);
        assert_eq!(names(parent.path()), ["made"]);
        assert!(names(&destination).is_empty());
    }

    #[test]
    fn leftovers_of_an_interrupted_run_are_cleared() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir_all(parent.path().join("made.partial/half")).unwrap();
        fs::create_dir(parent.path().join("made")).unwrap();
        fs::create_dir_all(parent.path().join("made.retired/old")).unwrap();
        let staging = Staging::beside(&parent.path().join("made")).unwrap();
        assert!(names(staging.path()).is_empty());
        staging.publish().unwrap();
        assert_eq!(names(parent.path()), ["made"]);
    }

    #[test]
    fn a_destination_moved_away_by_an_interrupted_run_comes_back() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir_all(parent.path().join("made.retired/old")).unwrap();
        drop(Staging::beside(&parent.path().join("made")).unwrap());
        assert_eq!(names(&parent.path().join("made")), ["old"]);
        assert_eq!(names(parent.path()), ["made"]);
    }

    #[test]
    fn a_second_run_is_kept_out() {
        let parent = tempfile::tempdir().unwrap();
        let destination = parent.path().join("made");
        let first = Staging::beside(&destination).unwrap();
        fs::write(first.path().join("half"), "half").unwrap();
        assert!(matches!(Staging::beside(&destination), Err(Error::Busy { .. })));
        assert_eq!(names(first.path()), ["half"], "the first run's files stay");
    }

    #[test]
    fn a_destination_without_a_name_is_refused() {
        for path in ["/", "", "a/.."] {
            assert!(matches!(Staging::beside(Path::new(path)), Err(Error::NoName { .. })), "{path:?}");
        }
    }
}
