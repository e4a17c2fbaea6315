//! Status codes.

use std::ffi::{CStr, c_char};

/// What a call came to. Unless it is PTQ_STATUS_DRIVER or PTQ_STATUS_INTERNAL, nothing was written or enqueued by a call
/// that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum PtqStatus {
    /// Done, or enqueued.
    Ok = 0,
    /// A pointer is null that must not be.
    NullPointer = 1,
    /// A handle is not alive: it was destroyed, or never created.
    InvalidHandle = 2,
    /// `struct_size` is not the size of the struct in this library's header.
    StructSize = 3,
    /// A field has a value that it cannot have.
    InvalidValue = 4,
    /// The numbers of rows and of elements do not make up a call, or an operand would not fit the address space.
    Shape = 5,
    /// An address is not a multiple of its element's size.
    Misaligned = 6,
    /// Two operands share memory.
    Overlap = 7,
    /// This library cannot do what was asked for.
    Unsupported = 8,
    /// There is no CUDA driver.
    NoDriver = 9,
    /// The driver shows no device.
    NoDevice = 10,
    /// No CUDA context is current on the calling thread.
    NoContext = 11,
    /// Another CUDA context is current than when the handle was created.
    ContextMismatch = 12,
    /// An operand is not in memory of the handle's device and context.
    WrongMemory = 13,
    /// An environment variable (PTQ_BACKEND, PTQ_TARGET, PTQ_ARTIFACTS) has a value that cannot be followed.
    Environment = 14,
    /// No kernel could be loaded for the device.
    Load = 15,
    /// The CUDA driver reported an error, perhaps of an earlier kernel; a part of the call may be enqueued.
    Driver = 16,
    /// A defect of this library.
    Internal = 17,
}

impl PtqStatus {
    const ALL: [Self; 18] = [
        Self::Ok,
        Self::NullPointer,
        Self::InvalidHandle,
        Self::StructSize,
        Self::InvalidValue,
        Self::Shape,
        Self::Misaligned,
        Self::Overlap,
        Self::Unsupported,
        Self::NoDriver,
        Self::NoDevice,
        Self::NoContext,
        Self::ContextMismatch,
        Self::WrongMemory,
        Self::Environment,
        Self::Load,
        Self::Driver,
        Self::Internal,
    ];

    const fn message(self) -> &'static CStr {
        match self {
            Self::Ok => c"success",
            Self::NullPointer => c"a pointer is null that must not be",
            Self::InvalidHandle => c"the handle is not alive",
            Self::StructSize => c"struct_size is not the size of the struct in this library's header",
            Self::InvalidValue => c"a field has a value that it cannot have",
            Self::Shape => c"the shape is not one that can be quantized",
            Self::Misaligned => c"an address is not a multiple of its element's size",
            Self::Overlap => c"two operands share memory",
            Self::Unsupported => c"this library does not support what was asked for",
            Self::NoDriver => c"there is no CUDA driver",
            Self::NoDevice => c"there is no CUDA device",
            Self::NoContext => c"no CUDA context is current on this thread",
            Self::ContextMismatch => c"another CUDA context is current than when the handle was created",
            Self::WrongMemory => c"an operand is not in memory of the handle's device and context",
            Self::Environment => c"an environment variable has a value that cannot be followed",
            Self::Load => c"no kernel could be loaded for the device",
            Self::Driver => c"the CUDA driver reported an error",
            Self::Internal => c"a defect of the library",
        }
    }
}

/// What a status means, in general: a static string. Any number may be asked about. ptq_last_error_message() tells what
/// happened.
#[unsafe(no_mangle)]
pub extern "C" fn ptq_status_message(status: i32) -> *const c_char {
    let known = PtqStatus::ALL.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"no status of this library", PtqStatus::message).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_words_of_its_own_and_others_are_said_to_be_none() {
        for (number, status) in PtqStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, number);
            assert!(PtqStatus::ALL[..number].iter().all(|other| other.message() != status.message()), "{status:?}");
        }
        for unknown in [-1, PtqStatus::ALL.len() as i32, i32::MIN, i32::MAX] {
            // SAFETY: the function returns static strings.
            let words = unsafe { CStr::from_ptr(ptq_status_message(unknown)) };
            assert_eq!(words, c"no status of this library");
        }
    }
}
