//! What a kernel did wrong, and where.

use super::{Space, Use};
use core::fmt;
use core::panic::Location;
use std::string::String;

/// A fault, with the thread that showed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("block {block}, warp {warp}, lane {lane}: {kind}")]
pub struct Fault {
    /// Index of the CTA in its grid.
    pub block: u32,
    /// Index of the warp in its CTA.
    pub warp: u32,
    /// Index of the lane in its warp.
    pub lane: u32,
    /// What happened.
    pub kind: FaultKind,
}

/// Everything that the hardware leaves undefined and the emulator reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Threads of a CTA wait at a barrier that others do not reach.
    DivergentBarrier {
        /// Where the thread waits.
        at: &'static Location<'static>,
        /// Threads that wait there.
        waiting: u32,
        /// Threads of the CTA.
        threads: u32,
    },
    /// A warp operation names lanes that do not take part in it.
    MissingLanes {
        /// Where the thread waits.
        at: &'static Location<'static>,
        /// Lanes it waits for.
        mask: u32,
        /// Those of them that returned, wait elsewhere or do not exist.
        missing: u32,
    },
    /// A warp operation whose caller is not in its own mask.
    NotInMask {
        /// Where.
        at: &'static Location<'static>,
        /// The mask.
        mask: u32,
    },
    /// A shuffle reads from a lane that does not take part.
    ShuffleSource {
        /// Where.
        at: &'static Location<'static>,
        /// The lane read from.
        source: u32,
        /// Lanes that take part.
        mask: u32,
    },
    /// A shuffle's width is not a power of two up to 32.
    ShuffleWidth {
        /// Where.
        at: &'static Location<'static>,
        /// The width.
        width: u32,
    },
    /// An access outside every buffer or shared array.
    OutOfRange {
        /// Memory.
        space: Space,
        /// Read or write.
        access: Use,
        /// Bytes accessed.
        bytes: usize,
        /// Name of the nearest buffer.
        nearest: String,
        /// Bytes from that buffer's start.
        offset: i64,
        /// Bytes of that buffer.
        len: usize,
    },
    /// An access whose address is not a multiple of its size.
    Misaligned {
        /// Memory.
        space: Space,
        /// Read or write.
        access: Use,
        /// Bytes accessed.
        bytes: usize,
        /// Address modulo those bytes.
        remainder: usize,
    },
    /// A write to an input.
    ReadOnly {
        /// Name of the buffer.
        buffer: String,
        /// Bytes from its start.
        offset: i64,
    },
    /// A read of shared memory that nobody has written.
    Uninitialised {
        /// Bytes from the start of the array.
        offset: usize,
        /// Bytes accessed.
        bytes: usize,
    },
    /// Two threads touch one place in shared memory, one of them writes, and no barrier lies between.
    Race {
        /// Bytes from the start of the array.
        offset: usize,
        /// This thread's access.
        access: Use,
        /// The other's.
        other: Use,
        /// Index of the other thread in its CTA; `None`: several.
        thread: Option<u32>,
    },
    /// The kernel panicked.
    Panicked {
        /// Its message.
        message: String,
    },
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DivergentBarrier { at, waiting, threads } => {
                write!(f, "divergent barrier: {waiting} of {threads} threads wait at {at}, the others do not come")
            }
            Self::MissingLanes { at, mask, missing } => {
                write!(f, "warp operation at {at} waits for lanes {mask:#010x}; {missing:#010x} of them do not come")
            }
            Self::NotInMask { at, mask } => {
                write!(f, "warp operation at {at}: the caller is not in its mask {mask:#010x}")
            }
            Self::ShuffleSource { at, source, mask } => {
                write!(f, "shuffle at {at} reads from lane {source}, which is not among the lanes {mask:#010x}")
            }
            Self::ShuffleWidth { at, width } => {
                write!(f, "shuffle at {at}: width {width}, expected a power of two up to 32")
            }
            Self::OutOfRange { space, access, bytes, nearest, offset, len } => write!(
                f,
                "{access} of {bytes} bytes outside {space} memory: at byte {offset} of `{nearest}`, which has {len} bytes"
            ),
            Self::Misaligned { space, access, bytes, remainder } => write!(
                f,
                "misaligned {access} of {bytes} bytes of {space} memory: the address is {remainder} bytes past a multiple"
            ),
            Self::ReadOnly { buffer, offset } => write!(f, "write to byte {offset} of `{buffer}`, which is read-only"),
            Self::Uninitialised { offset, bytes } => {
                write!(f, "read of {bytes} bytes at byte {offset} of a shared array that nobody has written")
            }
            Self::Race { offset, access, other, thread } => {
                write!(
                    f,
                    "race: {access} of byte {offset} of a shared array, and without a barrier between them a {other} by "
                )?;
                match thread {
                    Some(thread) => write!(f, "thread {thread}"),
                    None => f.write_str("several threads"),
                }
            }
            Self::Panicked { message } => write!(f, "panicked: {message}"),
        }
    }
}
