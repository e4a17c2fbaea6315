//! Global memory: the buffers that a launch may touch.

use super::{FaultKind, lane};
use core::fmt;
use core::marker::PhantomData;
use std::string::{String, ToString};
use std::vec::Vec;

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// The buffers of the launch.
    Global,
    /// The arrays of the CTA.
    Shared,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes at once, and so orders itself among others of its kind.
    Atomic,
}

/// Checks an access of the calling thread: to be called right before it, with the bytes of one instruction.
///
/// A faulty one ends the thread, and the launch returns the [`super::Fault`]: this function does not return then.
///
/// # Panics
/// Outside a launch.
pub fn access(space: Space, access: Use, address: *const u8, bytes: usize) {
    let remainder = address.addr() % bytes;
    let fault = lane::with(|cta, lane| {
        let range = match space {
            Space::Global => cta.memory.check(access, address.addr(), bytes),
            Space::Shared => cta.shared.borrow_mut().check(cta, lane, access, address.addr(), bytes),
        };
        range.err().or((remainder != 0).then_some(FaultKind::Misaligned { space, access, bytes, remainder }))
    });
    if let Some(fault) = fault {
        lane::fail(fault);
    }
}

/// The buffers of a launch, borrowed for as long as it may touch them.
#[derive(Debug, Default)]
pub struct Memory<'a> {
    buffers: Vec<Buffer>,
    borrowed: PhantomData<&'a mut [u8]>,
}

#[derive(Debug)]
struct Buffer {
    name: String,
    start: usize,
    len: usize,
    writable: bool,
}

/// Address of a buffer, to pass to a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Address(*mut u8);

// SAFETY: an address alone touches nothing; every dereference is somebody's `unsafe`.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    /// As a pointer to read from.
    pub fn as_ptr<T>(self) -> *const T {
        self.0.cast()
    }

    /// As a pointer to write through.
    pub fn as_mut_ptr<T>(self) -> *mut T {
        self.0.cast()
    }
}

impl<'a> Memory<'a> {
    /// No buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers an input. Writes to it are faults.
    pub fn read_only<T: Copy>(&mut self, name: &str, buffer: &'a [T]) -> Address {
        self.register(name, buffer.as_ptr().cast_mut().cast(), size_of_val(buffer), false)
    }

    /// Registers an output.
    pub fn writable<T: Copy>(&mut self, name: &str, buffer: &'a mut [T]) -> Address {
        self.register(name, buffer.as_mut_ptr().cast(), size_of_val(buffer), true)
    }

    fn register(&mut self, name: &str, start: *mut u8, len: usize, writable: bool) -> Address {
        self.buffers.push(Buffer { name: name.to_string(), start: start.addr(), len, writable });
        Address(start)
    }

    fn check(&self, access: Use, address: usize, bytes: usize) -> Result<(), FaultKind> {
        let offset = |buffer: &Buffer| address as i64 - buffer.start as i64;
        let holds =
            |b: &&Buffer| address >= b.start && address - b.start <= b.len && bytes <= b.len - (address - b.start);
        match self.buffers.iter().find(holds) {
            Some(buffer) if access != Use::Read && !buffer.writable => {
                Err(FaultKind::ReadOnly { buffer: buffer.name.clone(), offset: offset(buffer) })
            }
            Some(_) => Ok(()),
            None => {
                let distance = |b: &&Buffer| {
                    let offset = offset(b);
                    if offset < 0 { offset.unsigned_abs() } else { (offset as u64).saturating_sub(b.len as u64) }
                };
                let nearest = self.buffers.iter().min_by_key(distance);
                Err(FaultKind::OutOfRange {
                    space: Space::Global,
                    access,
                    bytes,
                    nearest: nearest.map_or_else(|| "no buffer".to_string(), |b| b.name.clone()),
                    offset: nearest.map_or(address as i64, offset),
                    len: nearest.map_or(0, |b| b.len),
                })
            }
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
        })
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic access",
        })
    }
}
