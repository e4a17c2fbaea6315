//! Shared memory of one CTA: arrays in an arena, and for every byte who touched it since when.

use super::cta::Cta;
use super::lane::Lane;
use super::{FaultKind, Space, Use};
use crate::warp::WARP_SIZE;
use std::string::ToString;
use std::vec::Vec;

/// The arrays of one CTA.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    arrays: Vec<Array>,
}

#[derive(Debug)]
struct Array {
    /// Address of the static that stands for the array; `None`: dynamic shared memory.
    key: Option<usize>,
    /// 16-byte units, so that any access of the array's elements is aligned as on a GPU.
    storage: Vec<u128>,
    len: usize,
    shadow: Vec<Shadow>,
}

/// History of one byte.
#[derive(Debug, Clone, Copy, Default)]
struct Shadow {
    written: Option<Touch>,
    read: Option<Touch>,
    atomic: Option<Touch>,
}

/// Who touched it last, and when.
#[derive(Debug, Clone, Copy)]
struct Touch {
    who: Who,
    warp: u32,
    /// Barriers of the CTA and of the warp before it.
    cta_epoch: u32,
    warp_epoch: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Thread(u32),
    /// Several threads of one warp.
    Warp,
    /// Threads of several warps.
    Cta,
}

impl Touch {
    fn now(cta: &Cta<'_>, lane: &Lane) -> Self {
        let warp = lane.thread / WARP_SIZE;
        Self {
            who: Who::Thread(lane.thread),
            warp,
            cta_epoch: cta.epoch.get(),
            warp_epoch: cta.warp_epochs[warp as usize].get(),
        }
    }

    /// Whether a barrier, or being the same thread, orders this touch before `now`.
    fn is_before(self, now: Self) -> bool {
        let same_warp = self.who != Who::Cta && self.warp == now.warp;
        self.who == now.who || self.cta_epoch < now.cta_epoch || same_warp && self.warp_epoch < now.warp_epoch
    }

    /// Both touches as one.
    fn joined(self, now: Self) -> Self {
        if self.is_before(now) {
            now
        } else if self.who != Who::Cta && self.warp == now.warp {
            Self { who: Who::Warp, ..now }
        } else {
            Self { who: Who::Cta, ..now }
        }
    }

    fn thread(self) -> Option<u32> {
        match self.who {
            Who::Thread(thread) => Some(thread),
            Who::Warp | Who::Cta => None,
        }
    }
}

impl Shared {
    /// Address of the array that the static at `key` stands for, made at its first use in the CTA.
    pub(crate) fn array(&mut self, key: Option<usize>, bytes: usize) -> *mut u8 {
        // The size too: a static without bytes may have the address of the next one.
        let index = self.arrays.iter().position(|array| (array.key, array.len) == (key, bytes)).unwrap_or_else(|| {
            let storage = std::vec![0; bytes.div_ceil(size_of::<u128>())];
            self.arrays.push(Array { key, storage, len: bytes, shadow: std::vec![Shadow::default(); bytes] });
            self.arrays.len() - 1
        });
        self.arrays[index].storage.as_mut_ptr().cast()
    }

    /// Checks one access and remembers it.
    pub(crate) fn check(
        &mut self,
        cta: &Cta<'_>,
        lane: &Lane,
        access: Use,
        address: usize,
        bytes: usize,
    ) -> Result<(), FaultKind> {
        let start = |array: &Array| array.storage.as_ptr().addr();
        let holds = |array: &Array| {
            address.checked_sub(start(array)).is_some_and(|offset| bytes <= array.len && offset <= array.len - bytes)
        };
        let Some(array) = self.arrays.iter_mut().find(|array| holds(array)) else {
            let offset = |array: &&Array| address as i64 - start(array) as i64;
            let nearest = self.arrays.iter().min_by_key(|array| offset(array).unsigned_abs());
            return Err(FaultKind::OutOfRange {
                space: Space::Shared,
                access,
                bytes,
                nearest: nearest.map_or("no array", |_| "a shared array").to_string(),
                offset: nearest.as_ref().map_or(address as i64, offset),
                len: nearest.map_or(0, |array| array.len),
            });
        };
        let first = address - array.storage.as_ptr().addr();
        let now = Touch::now(cta, lane);
        for (index, shadow) in array.shadow[first..first + bytes].iter_mut().enumerate() {
            let race = |touch: Option<Touch>, other| match touch {
                Some(touch) if !touch.is_before(now) => {
                    Err(FaultKind::Race { offset: first + index, access, other, thread: touch.thread() })
                }
                _ => Ok(()),
            };
            if access != Use::Write && shadow.written.is_none() {
                return Err(FaultKind::Uninitialised { offset: first + index, bytes });
            }
            race(shadow.written, Use::Write)?;
            if access != Use::Read {
                race(shadow.read, Use::Read)?;
            }
            if access != Use::Atomic {
                race(shadow.atomic, Use::Atomic)?;
            }
            let joined = |touch: Option<Touch>| Some(touch.map_or(now, |touch| touch.joined(now)));
            match access {
                Use::Read => shadow.read = joined(shadow.read),
                Use::Write => shadow.written = Some(now),
                Use::Atomic => shadow.atomic = joined(shadow.atomic),
            }
        }
        Ok(())
    }
}
