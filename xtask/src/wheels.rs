//! Folders made from files of pinned wheels.

pub mod pip;
pub mod wheel;

use crate::staging;
use std::fs;
use std::path::Path;

/// A requirements file: pinned packages with their hashes, as pip reads them.
#[derive(Debug, Clone, Copy)]
pub struct Requirements(pub &'static str);

/// Says from which pins a folder was made. Inside the folder that appears by rename, so it is never there without the
/// rest.
const VERSION: &str = "VERSION";

impl Requirements {
    /// `package==version` of every requirement.
    pub fn pins(self) -> impl Iterator<Item = &'static str> {
        self.0.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let first = line.split_whitespace().next()?;
            first.contains("==").then_some(first)
        })
    }

    /// Writes into `folder` that it was made from these pins.
    ///
    /// # Errors
    /// [`staging::Error::Io`].
    pub fn sign(self, folder: &Path) -> Result<(), staging::Error> {
        let version = folder.join(VERSION);
        fs::write(&version, self.stamp()).map_err(staging::Error::io("write", &version))
    }

    /// Whether `folder` was made from these pins and still has `files`, paths relative to it.
    pub fn signed(self, folder: &Path, mut files: impl Iterator<Item = &'static str>) -> bool {
        fs::read_to_string(folder.join(VERSION)).is_ok_and(|version| version == self.stamp())
            && files.all(|file| folder.join(file).is_file())
    }

    /// Contents of [`VERSION`]: the pins, one a line, then the architecture.
    fn stamp(self) -> String {
        let mut stamp = String::new();
        for line in self.pins().chain([std::env::consts::ARCH]) {
            stamp.push_str(line);
            stamp.push('\n');
        }
        stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIREMENTS: Requirements =
        Requirements("# a comment, b==9\na==1 \\\n    --hash=sha256:00\nb==2 \\\n    --hash=sha256:11\n");

    #[test]
    fn pins_are_without_hashes_and_comments() {
        assert_eq!(REQUIREMENTS.pins().collect::<Vec<_>>(), ["a==1", "b==2"]);
    }

    #[test]
    fn a_folder_of_other_pins_or_without_a_file_is_not_signed() {
        let dir = tempfile::tempdir().unwrap();
        let signed = |requirements: Requirements| requirements.signed(dir.path(), ["file"].into_iter());
        assert!(!signed(REQUIREMENTS));
        REQUIREMENTS.sign(dir.path()).unwrap();
        assert!(!signed(REQUIREMENTS));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(signed(REQUIREMENTS));
        assert!(!signed(Requirements("a==1\nb==3\n")));
    }
}
