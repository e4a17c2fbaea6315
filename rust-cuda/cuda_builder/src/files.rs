//! Reading, and writing so that no reader ever sees half a file.

use crate::CudaBuilderError;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, CudaBuilderError> {
    fs::read_to_string(path).map_err(|e| CudaBuilderError::io(path, e))
}

/// Part of a file's name that no other build takes, of this process or another.
pub(crate) fn unique() -> String {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    format!("{}.{}", std::process::id(), TAKEN.fetch_add(1, Ordering::Relaxed))
}

/// Writes beside `path`, then renames.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CudaBuilderError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| CudaBuilderError::io(folder, e))?;
    }
    let mut beside = path.as_os_str().to_os_string();
    beside.push(format!(".{}.tmp", unique()));
    let beside = Path::new(&beside);
    fs::write(beside, bytes).map_err(|e| CudaBuilderError::io(beside, e))?;
    fs::rename(beside, path).map_err(|e| CudaBuilderError::io(path, e))
}
