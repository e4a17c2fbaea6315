//! The way in and out of every exported function that can fail.

use crate::PtqStatus;
use crate::failure::Failure;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// What the last call of this thread said; empty after a success.
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs the body of an exported function: keeps its error for [`ptq_last_error_message`], and lets no panic pass.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> PtqStatus {
    // What a panic leaves half done is dropped here or under a lock that does not mind.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<String>().cloned();
        let words = words.or_else(|| payload.downcast_ref::<&str>().map(|&words| words.to_owned()));
        Err(Failure::Panic(words.unwrap_or_default()))
    });
    match result {
        Ok(()) => {
            keep(String::new());
            PtqStatus::Ok
        }
        Err(failure) => {
            keep(failure.to_string());
            failure.status()
        }
    }
}

fn keep(message: String) {
    let mut bytes = message.into_bytes();
    bytes.retain(|&byte| byte != 0);
    let message = CString::new(bytes).unwrap_or_default();
    // While a thread ends, its variables may be gone, and then nobody can ask.
    let _ = LAST_ERROR.try_with(|last| last.replace(message));
}

/// What the last call on this thread said that returned a status: operand, expected and actual value, what to do. Empty if
/// it succeeded. Belongs to the library and is valid until the next such call on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn ptq_last_error_message() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: a string that stays until the next call on this thread.
        unsafe { CStr::from_ptr(ptq_last_error_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn panics_become_a_status_and_the_next_success_clears_the_message() {
        assert_eq!(guarded(|| panic!("{} things", 2)), PtqStatus::Internal);
        assert!(last().contains("2 things"), "{}", last());
        assert_eq!(guarded(|| panic!("plainly")), PtqStatus::Internal);
        assert!(last().contains("plainly"), "{}", last());
        assert_eq!(guarded(|| Ok(())), PtqStatus::Ok);
        assert_eq!(last(), "");
    }

    #[test]
    fn each_thread_has_its_own_message() {
        assert_eq!(guarded(|| Err(Failure::Handle { actual: 0x1234 })), PtqStatus::InvalidHandle);
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        assert!(last().contains("0x1234"), "{}", last());
    }
}
