//! Live handles.
//!
//! A handle is a number in a pointer's clothes: it is looked up and never dereferenced. Numbers are not used again, so a
//! handle that was destroyed, or never given out, is told from every live one. They lie where no address of a program can
//! (neither x86_64 nor aarch64 have user addresses above 2^56), so that no stray pointer is taken for a handle.

use crate::failure::Failure;
use crate::quantizer::PtqQuantizer;
use per_token_quant_fp8::Executor;
use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock};

/// Where the numbers start.
const FIRST: usize = 0x5054_5100_0000_0001;

static LIVE: RwLock<Live> = RwLock::new(Live { given: 0, executors: None });

struct Live {
    /// Handles given out so far.
    given: usize,
    executors: Option<HashMap<usize, Arc<Executor>>>,
}

/// A handle for `executor`.
pub(crate) fn insert(executor: Executor) -> *mut PtqQuantizer {
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    let number = FIRST + live.given;
    live.given += 1;
    live.executors.get_or_insert_default().insert(number, Arc::new(executor));
    ptr::without_provenance_mut(number)
}

/// The executor of a handle. It stays while the call lasts, even if another thread destroys the handle.
pub(crate) fn get(handle: *const PtqQuantizer) -> Result<Arc<Executor>, Failure> {
    check_null(handle)?;
    let live = LIVE.read().unwrap_or_else(PoisonError::into_inner);
    let found = live.executors.as_ref().and_then(|executors| executors.get(&handle.addr()));
    found.cloned().ok_or(Failure::Handle { actual: handle.addr() })
}

/// Takes the handle out of use.
pub(crate) fn remove(handle: *const PtqQuantizer) -> Result<(), Failure> {
    check_null(handle)?;
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    let found = live.executors.as_mut().and_then(|executors| executors.remove(&handle.addr()));
    found.map(|_| ()).ok_or(Failure::Handle { actual: handle.addr() })
}

fn check_null(handle: *const PtqQuantizer) -> Result<(), Failure> {
    if handle.is_null() {
        return Err(Failure::Null {
            name: "quantizer",
            expected: "a handle",
            advice: "pass what ptq_quantizer_create gave, and look at the status that it returned",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use per_token_quant_fp8::Backend;
    use std::collections::HashSet;
    use std::thread;

    #[test]
    fn no_handle_is_given_out_twice_and_none_outlives_its_removal() {
        let work = || {
            let each = (0..200).map(|_| {
                let handle = insert(Executor::new(Some(Backend::Cpu)).unwrap());
                let held = get(handle).unwrap();
                remove(handle).unwrap();
                assert_eq!(held.backend(), Backend::Cpu, "what is held stays");
                assert!(matches!(get(handle), Err(Failure::Handle { .. })));
                assert!(matches!(remove(handle), Err(Failure::Handle { .. })));
                handle.addr()
            });
            each.collect::<Vec<_>>()
        };
        let given: Vec<_> = thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(work));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
    }
}
