//! Signals: an interrupted run takes its unfinished output with it.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Signals that end the process. SIGXCPU is that of a limit on its time.
const ENDING: [i32; 5] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU];

static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The file to remove on a signal. While the guard is held, a signal waits: hold it across every change of that file's
/// name.
pub fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    // A path is whole whatever panicked.
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the [`ENDING`] signals remove the unfinished file before they end the process as they always do. SIGXFSZ no
/// longer ends it: a write beyond the limit on a file's size fails as any other. Once they do, another call changes nothing.
///
/// A signal that the process was started with as ignored stays ignored (`nohup`, background jobs of a shell script).
///
/// # Errors
/// When the handlers or their thread cannot be set up.
pub fn watch() -> io::Result<()> {
    static WATCHED: Mutex<bool> = Mutex::new(false);
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if *watched {
        return Ok(());
    }
    let ignored = ignored_signals();
    let wanted = ENDING.into_iter().chain([SIGXFSZ]).filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever().filter(|signal| ENDING.contains(signal)) {
            // Never released: nothing may be created or renamed any more.
            let path = unfinished();
            if let Some(path) = path.as_ref() {
                // There is nobody left to tell of a failure.
                let _ = fs::remove_file(path);
            }
            let _ = emulate_default_handler(signal);
        }
    })?;
    *watched = true;
    Ok(())
}

/// Bit n-1 is set where signal n is ignored. Only Linux tells (proc(5), SigIgn); elsewhere none counts as ignored.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runtime of Rust programs ignores SIGPIPE and nothing else.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_mask_of_ignored_signals_is_read() {
        assert_eq!(ignored_signals() >> (signal_hook::consts::SIGPIPE - 1) & 1, 1);
        assert_eq!(ignored_signals() >> (signal_hook::consts::SIGSEGV - 1) & 1, 0);
    }
}
