//! Makes artifacts small enough to be embedded.

use crate::ArtifactsError;
use lzma_rust2::{LzipOptions, LzipWriter};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How hard the compressor tries, up to 9. Build scripts are compiled without optimization; there, 9 MB take 2 s at this
/// level and become 1.19 MB, and 27 s at level 6, for 0.98 MB.
const LEVEL: u32 = 3;

/// How far apart a repetition may be: anywhere in most artifacts.
const DICTIONARY_BYTES: u32 = 512 << 10;

/// Name of an artifact's file, compressed.
pub(crate) fn name(file: &str) -> String {
    format!("{file}.lz")
}

/// Writes each of `files` of the folder `from` into the folder `to`, under its [`name`], and returns how many bytes each
/// was. On all processors: it is most of what the library's build script does.
pub(crate) fn compress(files: &[String], from: &Path, to: &Path) -> Result<BTreeMap<String, usize>, ArtifactsError> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (source, target) = (from.join(file), to.join(name(file)));
            let image = fs::read(&source).map_err(|e| ArtifactsError::io(&source, e))?;
            let member = lzip(&image).map_err(|e| ArtifactsError::io(&source, e))?;
            fs::write(&target, member).map_err(|e| ArtifactsError::io(&target, e))?;
            done.push((file.clone(), image.len()));
        }
        Ok(done)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let parts = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let parts = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        parts.collect::<Result<Vec<Vec<_>>, ArtifactsError>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// One member of the lzip format.
fn lzip(image: &[u8]) -> io::Result<Vec<u8>> {
    let mut options = LzipOptions::with_preset(LEVEL);
    options.lzma_options.dict_size = DICTIONARY_BYTES;
    let mut writer = LzipWriter::new(Vec::new(), options);
    writer.write_all(image)?;
    writer.finish()
}
