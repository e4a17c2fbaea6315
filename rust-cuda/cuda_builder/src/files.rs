//! Reading, and writing so that no reader ever sees half a file.

use crate::CudaBuilderError;
use std::fs;
use std::path::Path;

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, CudaBuilderError> {
    fs::read_to_string(path).map_err(|e| CudaBuilderError::io(path, e))
}

/// Writes beside `path`, then renames.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), CudaBuilderError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| CudaBuilderError::io(folder, e))?;
    }
    let mut beside = path.as_os_str().to_os_string();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = Path::new(&beside);
    fs::write(beside, bytes).map_err(|e| CudaBuilderError::io(beside, e))?;
    fs::rename(beside, path).map_err(|e| CudaBuilderError::io(path, e))
}
