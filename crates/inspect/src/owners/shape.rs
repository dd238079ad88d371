//! What it looks like when a lock of one kind is released.
//!
//! # Role
//! A lock without an owner in its word is known by the one step by which it is released, and by
//! what stands in its word meanwhile.

use super::event::{Change, Event};
use crate::waits::modes::{HoldMode, WaitMode};

/// The kinds of locks whose release is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockShape {
    /// Rust's `std::sync::Mutex`: 0 free, 1 held, 2 held and waited for.
    RustMutex,
    /// Rust's `std::sync::RwLock`: readers in the lower 30 bits, all of them set for a writer; two
    /// bits for those who wait. Writers sleep on the word behind it.
    RustRwLock,
    /// The state of Rust's `std::sync::Once`: 1 while the initialiser runs.
    RustOnce,
    /// The `Mutex` of parking_lot, a byte: bit 0 held, bit 1 waited for.
    ParkingMutex,
    /// The `RwLock` of parking_lot, 8 bytes: bits for those who wait, for an upgradable reader and a
    /// writer, and readers from bit 4 on.
    ParkingRwLock,
    /// A semaphore of C++20 as libstdc++ has it, all of whose units are taken: a number of units.
    /// Whoever puts one back wakes the sleepers if there was none before.
    Semaphore,
    /// The `Once` of parking_lot, a byte: bit 0 done, bit 1 poisoned, bit 2 while the initialiser
    /// runs, bit 3 waited for.
    ParkingOnce,
    /// A lock that only calls of known functions release.
    Called,
    /// The same, of which its word says that several threads may share it now.
    CalledShared,
    /// A lock of the crate lockstead that names its owner: nobody needs to look for that one.
    Own,
    /// A reader-writer lock of the crate lockstead that its word says readers hold: their number in
    /// the low 20 bits, with bit 20.
    OwnRead,
}

impl LockShape {
    /// Returns what a lock is called that was used as one of this kind, in a program without names;
    /// `None` where its kind does not tell.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            LockShape::RustMutex => Some("lock like Rust's std::sync::Mutex"),
            LockShape::RustRwLock => Some("lock like Rust's std::sync::RwLock"),
            LockShape::RustOnce => Some("once like Rust's std::sync::Once"),
            LockShape::ParkingMutex => Some("lock like parking_lot's Mutex"),
            LockShape::ParkingRwLock => Some("lock like parking_lot's RwLock"),
            LockShape::Semaphore => Some("semaphore like C++20's"),
            LockShape::ParkingOnce => Some("once like parking_lot's Once"),
            LockShape::Called | LockShape::CalledShared => None,
            LockShape::Own | LockShape::OwnRead => None,
        }
    }
}

/// A lock that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AwaitedLock {
    /// The address of the lock.
    pub address: u64,
    /// The kind that it is.
    pub shape: LockShape,
}

/// What a run did first to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It released a lock that it held so.
    Released(HoldMode),
    /// It made of a lock that it held so one that it holds in another way.
    Changed(HoldMode),
    /// It acquired it, tried to, or did something else to it.
    Taken,
}

impl Touch {
    /// Returns how the lock was held before, if it was.
    #[must_use]
    pub fn mode(self) -> Option<HoldMode> {
        match self {
            Touch::Released(mode) | Touch::Changed(mode) => Some(mode),
            Touch::Taken => None,
        }
    }

    /// Tells whether it is a release.
    #[must_use]
    pub fn is_release(self) -> bool {
        matches!(self, Touch::Released(_))
    }
}

/// All readers of Rust's `RwLock`: so many stand for a writer.
pub(super) const RUST_READERS: u64 = (1 << 30) - 1;
const OWN_READERS: u64 = 1 << 20;
/// The bits of a `RwLock` of parking_lot, and its readers.
pub(super) const PARKING_WRITER: u64 = 8;
pub(super) const PARKING_UPGRADABLE: u64 = 4;
pub(super) const PARKING_READER: u64 = 16;
/// The bits of a `Once` of parking_lot: its initialiser runs, and threads wait for that.
pub(super) const PARKING_RUNS: u64 = 4;
pub(super) const PARKING_WAITED: u64 = 8;

impl AwaitedLock {
    /// Returns what an event does to this lock, if anything.
    #[must_use]
    pub fn touch(&self, event: &Event) -> Option<Touch> {
        let (address, change, before, after) = match *event {
            Event::Releases(address) => {
                let released = match self.shape {
                    LockShape::CalledShared => Touch::Released(HoldMode::Shared),
                    _ => Touch::Released(HoldMode::Alone),
                };
                return (address == self.address).then_some(released);
            }
            Event::ReleasesShared(address) => {
                return (address == self.address).then_some(Touch::Released(HoldMode::Shared));
            }
            Event::Acquires(address) => return (address == self.address).then_some(Touch::Taken),
            Event::Locked { address, size, change, before, after } if self.size() == size => {
                (address, change, before, after)
            }
            // Whoever finds no unit there only looks, and sleeps.
            Event::Sleeps(address) if self.shape == LockShape::Semaphore => {
                return (address == self.address).then_some(Touch::Taken);
            }
            Event::Locked { .. } | Event::Sleeps(_) | Event::Wakes(_) => return None,
        };
        if address != self.address {
            return None;
        }
        let (expected, new) = match change {
            Change::CompareExchange { expected, new } => (expected, new),
            Change::Exchange | Change::Update => (before, after),
        };
        Some(expected.zip(new).map_or(Touch::Taken, |(old, new)| self.step(change, old, new)))
    }

    fn step(&self, change: Change, old: u64, new: u64) -> Touch {
        let less = old.wrapping_sub(new);
        match self.shape {
            LockShape::RustMutex if change != Change::Update && new == 0 && old <= 2 => {
                Touch::Released(HoldMode::Alone)
            }
            LockShape::RustOnce
                if change == Change::Exchange && old & 3 == 1 && matches!(new, 0 | 2 | 3) =>
            {
                Touch::Released(HoldMode::Alone)
            }
            LockShape::RustRwLock => match less & 0xffff_ffff {
                1 => Touch::Released(HoldMode::Shared),
                RUST_READERS => Touch::Released(HoldMode::Alone),
                _ => Touch::Taken,
            },
            LockShape::ParkingMutex if old & 1 == 1 && new & 1 == 0 => {
                Touch::Released(HoldMode::Alone)
            }
            // The second of two releases in one run, by subtraction.
            LockShape::ParkingMutex if (old, new) == (0, 0xff) => Touch::Released(HoldMode::Alone),
            LockShape::ParkingRwLock => {
                const UPGRADABLE: u64 = PARKING_READER + PARKING_UPGRADABLE;
                // Who reads upgradably becomes the writer.
                const UPGRADES: u64 = UPGRADABLE - PARKING_WRITER;
                match less {
                    PARKING_READER => Touch::Released(HoldMode::Shared),
                    UPGRADABLE => Touch::Released(HoldMode::Upgradable),
                    UPGRADES | PARKING_UPGRADABLE => Touch::Changed(HoldMode::Upgradable),
                    PARKING_WRITER if change == Change::Update => Touch::Released(HoldMode::Alone),
                    _ if old & PARKING_WRITER != 0 && new & PARKING_WRITER == 0 => {
                        Touch::Released(HoldMode::Alone)
                    }
                    _ => Touch::Taken,
                }
            }
            LockShape::ParkingOnce
                if change == Change::Exchange
                    && old & PARKING_RUNS != 0
                    && matches!(new, 1 | 2) =>
            {
                Touch::Released(HoldMode::Alone)
            }
            LockShape::OwnRead if own_readers(old) == own_readers(new) + 1 => {
                Touch::Released(HoldMode::Shared)
            }
            LockShape::Semaphore if change == Change::Update && new == old + 1 => {
                Touch::Released(HoldMode::Alone)
            }
            _ => Touch::Taken,
        }
    }

    /// Tells whether a run puts a unit into a semaphore and wakes then those who sleep on the number.
    /// Of other locks every release is one.
    #[must_use]
    pub fn gives_back(&self, events: &[Event]) -> bool {
        let releases = |event: &Event| self.touch(event).and_then(Touch::mode).is_some();
        let released = events.iter().position(releases);
        let wakes = |at: usize| events[at..].contains(&Event::Wakes(self.address));
        released.is_some_and(|at| self.shape != LockShape::Semaphore || wakes(at))
    }

    /// Tells whether a run of a thread that waited for a unit of a semaphore takes the one that is
    /// there. One that waited for another kind of number does not.
    #[must_use]
    pub fn takes_unit(&self, events: &[Event]) -> bool {
        let touch = events.iter().find(|event| self.touch(event).is_some());
        touch.is_some_and(|event| match event {
            Event::Locked { change: Change::CompareExchange { expected, new }, .. } => {
                (*expected, *new) == (Some(1), Some(0))
            }
            _ => false,
        })
    }

    /// Returns the bytes of the number by which the lock is released; 0 if only calls release it.
    fn size(&self) -> usize {
        match self.shape {
            LockShape::RustMutex
            | LockShape::RustRwLock
            | LockShape::RustOnce
            | LockShape::Semaphore => 4,
            LockShape::ParkingMutex | LockShape::ParkingOnce => 1,
            LockShape::ParkingRwLock | LockShape::Own | LockShape::OwnRead => 8,
            LockShape::Called | LockShape::CalledShared => 0,
        }
    }

    /// Returns what the run did first to this lock. Of a thread that shares it in two ways, the one
    /// counts that keeps more others away.
    #[must_use]
    pub fn first_touch(&self, events: &[Event]) -> Option<Touch> {
        let mut touches = events.iter().filter_map(|event| self.touch(event));
        let first = touches.next()?;
        let mut held = touches.take_while(|touch| touch.mode().is_some());
        let right = held.find(|touch| touch.mode() == Some(HoldMode::Upgradable));
        Some(right.filter(|_| first == Touch::Released(HoldMode::Shared)).unwrap_or(first))
    }

    /// Tells whether the lock's word, which is this, may be held in this way: who reads upgradably
    /// leaves a bit in it.
    #[must_use]
    pub fn allows(&self, mode: HoldMode, word: u64) -> bool {
        let is_named = self.shape == LockShape::ParkingRwLock && mode == HoldMode::Upgradable;
        !is_named || word & PARKING_UPGRADABLE != 0
    }

    /// Returns the bytes of the lock's number, and what stands there when nobody has it.
    #[must_use]
    pub fn free(&self) -> (usize, u64) {
        (self.size(), u64::from(self.shape == LockShape::Semaphore))
    }

    /// Returns the bytes of the lock's number, and what stands there when only a thread that was
    /// waiting for it in this way has it.
    #[must_use]
    pub fn taken(&self, mode: WaitMode) -> (usize, u64) {
        let held = match (self.shape, mode.is_shared()) {
            (LockShape::ParkingRwLock, _) if mode == WaitMode::Upgradable => {
                PARKING_READER | PARKING_UPGRADABLE
            }
            (LockShape::RustRwLock, false) => RUST_READERS,
            (LockShape::ParkingRwLock, false) => PARKING_WRITER,
            (LockShape::ParkingRwLock, true) => PARKING_READER,
            (LockShape::OwnRead, true) => OWN_READERS | 1,
            (LockShape::Own | LockShape::OwnRead | LockShape::ParkingOnce, _)
            | (LockShape::RustOnce | LockShape::Semaphore, _)
            | (LockShape::Called | LockShape::CalledShared, _) => 0,
            (LockShape::RustMutex | LockShape::ParkingMutex | LockShape::RustRwLock, _) => 1,
        };
        (self.size(), held)
    }
}

/// Returns the number of readers in the word of a reader-writer lock of the crate lockstead.
fn own_readers(word: u64) -> u64 {
    if word & OWN_READERS != 0 { word & (OWN_READERS - 1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(size: usize, change: Change, before: u64, after: u64) -> Event {
        let (before, after) = (Some(before), Some(after));
        Event::Locked { address: 0x40, size, change, before, after }
    }

    fn compared(size: usize, expected: u64, new: u64) -> Event {
        let change = Change::CompareExchange { expected: Some(expected), new: Some(new) };
        locked(size, change, 0xff, 0xff)
    }

    fn touch(shape: LockShape, event: &Event) -> Option<Touch> {
        AwaitedLock { address: 0x40, shape }.touch(event)
    }

    #[test]
    fn a_release_is_a_step_of_its_own_kind() {
        use Change::{Exchange, Update};
        use HoldMode::{Alone, Shared, Upgradable};
        use LockShape::{
            OwnRead, ParkingMutex, ParkingOnce, ParkingRwLock, RustMutex, RustOnce, RustRwLock,
            Semaphore,
        };
        use Touch::Taken;
        for (shape, event, what) in [
            (RustMutex, locked(4, Exchange, 2, 0), Some(Touch::Released(Alone))),
            (RustMutex, locked(4, Exchange, 2, 2), Some(Taken)),
            (RustMutex, compared(4, 0, 1), Some(Taken)),
            (RustMutex, locked(8, Update, 2, 1), None),
            (RustMutex, locked(4, Update, 2, 1), Some(Taken)),
            (
                RustRwLock,
                locked(4, Update, 0xc000_0002, 0xc000_0001),
                Some(Touch::Released(Shared)),
            ),
            (RustRwLock, locked(4, Update, 0xbfff_ffff, 0x8000_0000), Some(Touch::Released(Alone))),
            (RustRwLock, compared(4, 1, 2), Some(Taken)),
            (RustRwLock, compared(4, 0x8000_0001, 0xc000_0001), Some(Taken)),
            (RustOnce, locked(4, Exchange, 5, 2), Some(Touch::Released(Alone))),
            (Semaphore, locked(4, Update, 0, 1), Some(Touch::Released(Alone))),
            (Semaphore, compared(4, 1, 0), Some(Taken)),
            (Semaphore, locked(4, Exchange, 0, 1), Some(Taken)),
            (Semaphore, Event::Sleeps(0x40), Some(Taken)),
            (RustMutex, Event::Sleeps(0x40), None),
            (Semaphore, Event::Wakes(0x40), None),
            (ParkingMutex, compared(1, 1, 0), Some(Touch::Released(Alone))),
            (ParkingMutex, compared(1, 0, 1), Some(Taken)),
            (ParkingMutex, compared(1, 1, 3), Some(Taken)),
            (ParkingRwLock, locked(8, Update, 0x23, 0x13), Some(Touch::Released(Shared))),
            (ParkingRwLock, locked(8, Update, 0x35, 0x21), Some(Touch::Released(Upgradable))),
            (ParkingRwLock, locked(8, Update, 0x34, 0x28), Some(Touch::Changed(Upgradable))),
            (ParkingRwLock, locked(8, Update, 0x35, 0x31), Some(Touch::Changed(Upgradable))),
            (ParkingRwLock, compared(8, 0x14, 8), Some(Touch::Changed(Upgradable))),
            (ParkingRwLock, locked(8, Update, 8, 0x14), Some(Touch::Released(Alone))),
            (ParkingRwLock, compared(8, 0x10, 0x24), Some(Taken)),
            (ParkingRwLock, compared(8, 8, 0), Some(Touch::Released(Alone))),
            (
                ParkingRwLock,
                locked(8, Update, 0, 0_u64.wrapping_sub(8)),
                Some(Touch::Released(Alone)),
            ),
            (ParkingRwLock, compared(8, 8, 0x10), Some(Touch::Released(Alone))),
            (ParkingRwLock, compared(8, 0x10, 0x20), Some(Taken)),
            (ParkingRwLock, compared(8, 0x10, 0x12), Some(Taken)),
            (ParkingMutex, locked(1, Update, 3, 2), Some(Touch::Released(Alone))),
            (ParkingMutex, locked(1, Update, 0, 0xff), Some(Touch::Released(Alone))),
            (ParkingOnce, locked(1, Exchange, 12, 2), Some(Touch::Released(Alone))),
            (ParkingOnce, locked(1, Exchange, 4, 1), Some(Touch::Released(Alone))),
            (ParkingOnce, compared(1, 0, 4), Some(Taken)),
            (OwnRead, compared(8, 0x3_0010_0002, 0x3_0010_0001), Some(Touch::Released(Shared))),
            (OwnRead, compared(8, 0x3_0010_0001, 0), Some(Touch::Released(Shared))),
            (OwnRead, compared(8, 0x3_0050_0001, 3), Some(Touch::Released(Shared))),
            (OwnRead, compared(8, 0x0010_0001, 0x0010_0002), Some(Taken)),
            (OwnRead, compared(8, 3, 0), Some(Taken)),
        ] {
            assert_eq!(touch(shape, &event), what, "{shape:?} {event:?}");
        }
        assert_eq!(touch(LockShape::Called, &Event::Releases(0x40)), Some(Touch::Released(Alone)));
        assert_eq!(touch(LockShape::Called, &Event::Releases(0x44)), None);
        assert_eq!(
            touch(LockShape::Called, &Event::ReleasesShared(0x40)),
            Some(Touch::Released(Shared))
        );
        assert_eq!(touch(RustMutex, &Event::Acquires(0x40)), Some(Taken));
        assert_eq!(touch(LockShape::Called, &locked(4, Exchange, 2, 0)), None);
    }

    #[test]
    fn a_semaphore_is_told_from_other_numbers_by_what_both_sides_do() {
        let semaphore = AwaitedLock { address: 0x40, shape: LockShape::Semaphore };
        let (more, wakes) = (locked(4, Change::Update, 0, 1), Event::Wakes(0x40));
        assert!(semaphore.gives_back(&[more, wakes]));
        assert!(!semaphore.gives_back(&[wakes, more]), "it wakes for something else");
        assert!(!semaphore.gives_back(&[more, Event::Wakes(0x44)]));
        let mutex = AwaitedLock { address: 0x40, shape: LockShape::RustMutex };
        assert!(mutex.gives_back(&[locked(4, Change::Exchange, 2, 0)]), "free or not, it is one");
        assert!(semaphore.takes_unit(&[Event::Wakes(0x44), compared(4, 1, 0), more]));
        assert!(!semaphore.takes_unit(&[more, compared(4, 1, 0)]));
        assert!(!semaphore.takes_unit(&[Event::Sleeps(0x40)]), "a condition, say");
    }
}
