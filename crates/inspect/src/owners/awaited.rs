//! Locks that threads wait for, and what it looks like when one is released.
//!
//! # Role
//! A lock without an owner in its word is known by how it is used: the word that its waiters sleep
//! on, the value that they compare it with, and the one step by which it is released. Where the
//! functions on the waiter's stack have names, these say which lock it is. Else each kind that fits
//! the word is a candidate, and only a release of that very kind confirms it.

use super::event::{Change, Event};
use crate::futexes::{FutexRole, FutexUse};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};

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
    /// The `RwLock` of parking_lot, 8 bytes: bits for those who wait, for a writer, and readers
    /// from bit 4 on.
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
    /// It released a lock that it had alone.
    Released,
    /// It released a lock that it had with others.
    ReleasedShared,
    /// It acquired it, tried to, or did something else to it.
    Taken,
}

impl Touch {
    /// Tells whether it is a release.
    #[must_use]
    pub fn is_release(self) -> bool {
        self != Touch::Taken
    }
}

const RUST_READERS: u64 = (1 << 30) - 1;
const RUST_READERS_WAIT: u32 = 1 << 30;
const RUST_WRITERS_WAIT: u32 = 1 << 31;
const OWN_READERS: u64 = 1 << 20;
/// How a sleep says that it is for a reader-writer lock of the crate lockstead, to read.
const OWN_TO_READ: u64 = 1;
const PARKING_WRITER: u64 = 8;
const PARKING_UPGRADABLE: u64 = 4;
const PARKING_READER: u64 = 16;
/// The bits of a `Once` of parking_lot: its initialiser runs, and threads wait for that.
const PARKING_RUNS: u64 = 4;
const PARKING_WAITED: u64 = 8;
/// Bytes from the data of a thread that parking_lot has parked to the word that it sleeps on.
const PARKED_KEY: u64 = 32;
const PARKED_TOKEN: u64 = 8;

impl AwaitedLock {
    /// Returns what an event does to this lock, if anything.
    #[must_use]
    pub fn touch(&self, event: &Event) -> Option<Touch> {
        let (address, change, before, after) = match *event {
            Event::Releases(address) => {
                let released = match self.shape {
                    LockShape::CalledShared => Touch::ReleasedShared,
                    _ => Touch::Released,
                };
                return (address == self.address).then_some(released);
            }
            Event::ReleasesShared(address) => {
                return (address == self.address).then_some(Touch::ReleasedShared);
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
                Touch::Released
            }
            LockShape::RustOnce
                if change == Change::Exchange && old & 3 == 1 && matches!(new, 0 | 2 | 3) =>
            {
                Touch::Released
            }
            LockShape::RustRwLock => match less & 0xffff_ffff {
                1 => Touch::ReleasedShared,
                RUST_READERS => Touch::Released,
                _ => Touch::Taken,
            },
            LockShape::ParkingMutex if old & 1 == 1 && new & 1 == 0 => Touch::Released,
            // The second of two releases in one run, by subtraction.
            LockShape::ParkingMutex if (old, new) == (0, 0xff) => Touch::Released,
            LockShape::ParkingRwLock => {
                const UPGRADABLE: u64 = PARKING_READER + PARKING_UPGRADABLE;
                match less {
                    PARKING_READER | UPGRADABLE => Touch::ReleasedShared,
                    PARKING_WRITER if change == Change::Update => Touch::Released,
                    _ if old & PARKING_WRITER != 0 && new & PARKING_WRITER == 0 => Touch::Released,
                    _ => Touch::Taken,
                }
            }
            LockShape::ParkingOnce
                if change == Change::Exchange
                    && old & PARKING_RUNS != 0
                    && matches!(new, 1 | 2) =>
            {
                Touch::Released
            }
            LockShape::OwnRead if own_readers(old) == own_readers(new) + 1 => Touch::ReleasedShared,
            LockShape::Semaphore if change == Change::Update && new == old + 1 => Touch::Released,
            _ => Touch::Taken,
        }
    }

    /// Tells whether a run puts a unit into a semaphore and wakes then those who sleep on the number.
    /// Of other locks every release is one.
    #[must_use]
    pub fn gives_back(&self, events: &[Event]) -> bool {
        let releases = |event: &Event| self.touch(event).is_some_and(Touch::is_release);
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

    /// Returns what the run did first to this lock.
    #[must_use]
    pub fn first_touch(&self, events: &[Event]) -> Option<Touch> {
        events.iter().find_map(|event| self.touch(event))
    }

    /// Returns the bytes of the lock's number, and what stands there when nobody has it.
    #[must_use]
    pub fn free(&self) -> (usize, u64) {
        (self.size(), u64::from(self.shape == LockShape::Semaphore))
    }

    /// Returns the bytes of the lock's number, and what stands there when only a thread that was
    /// waiting for it has it, alone or to share it.
    #[must_use]
    pub fn taken(&self, shared: bool) -> (usize, u64) {
        let held = match (self.shape, shared) {
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

/// Returns what the functions on a stack say, unless they say only how the thread sleeps, and
/// nothing of what for: any lock can be built on a wait for a number.
#[must_use]
pub fn telling(known: Option<&'static FutexUse>) -> Option<&'static FutexUse> {
    known.filter(|known| match known.family {
        "parking_lot" | "abseil" => true,
        _ => known.role != FutexRole::Unknown && known.name != "C++20 atomic wait",
    })
}

/// Returns what a thread may wait for, by its wait and by what the functions on its stack say. What
/// they say decides; without it, whatever fits the memory around the word.
#[must_use]
pub fn candidates(
    wait: &FutexWait,
    known: Option<&FutexUse>,
    memory: &dyn ReadableMemory,
) -> Vec<AwaitedLock> {
    if !matches!(wait.operation, FutexWaitKind::Wait { .. }) {
        return Vec::new();
    }
    let Some(known) = known else { return by_memory(wait, memory) };
    let parked = known.family == "parking_lot";
    let shapes: &[LockShape] = match (known.family, known.role) {
        ("C++20", _) if known.name.contains("semaphore") => &[LockShape::Semaphore],
        (_, FutexRole::Event) => &[],
        ("Rust std", FutexRole::Once) => &[LockShape::RustOnce],
        ("Rust std", _) if known.name.contains("RwLock") => &[LockShape::RustRwLock],
        ("Rust std", _) => &[LockShape::RustMutex],
        ("parking_lot", FutexRole::Unknown) => {
            &[LockShape::ParkingMutex, LockShape::ParkingRwLock, LockShape::ParkingOnce]
        }
        ("parking_lot", FutexRole::Once) => &[LockShape::ParkingOnce],
        _ if parked && known.name.contains("RwLock") => &[LockShape::ParkingRwLock],
        _ if parked => &[LockShape::ParkingMutex],
        _ => &[LockShape::Called],
    };
    let Some(address) = known.key(wait, memory) else { return Vec::new() };
    shapes.iter().map(|&shape| AwaitedLock { address, shape }).collect()
}

fn by_memory(wait: &FutexWait, memory: &dyn ReadableMemory) -> Vec<AwaitedLock> {
    let word = wait.address;
    let number = |address: u64| {
        let mut bytes = [0; 4];
        (memory.read(address, &mut bytes).ok()? == 4).then(|| u32::from_ne_bytes(bytes))
    };
    let mut found = Vec::new();
    let mut add = |address, shape| found.push(AwaitedLock { address, shape });
    if wait.expected == 2 {
        add(word, LockShape::RustMutex);
    }
    if wait.expected == 0 && number(word) == Some(0) {
        add(word, LockShape::Semaphore);
    }
    if wait.expected == 5 {
        add(word, LockShape::RustOnce);
    }
    let is_held = |state: u32| u64::from(state) & RUST_READERS != 0;
    if wait.expected & RUST_READERS_WAIT != 0 && is_held(wait.expected) {
        add(word, LockShape::RustRwLock);
    }
    if let Some(before) = word.checked_sub(4)
        && number(before).is_some_and(|state| state & RUST_WRITERS_WAIT != 0 && is_held(state))
    {
        add(before, LockShape::RustRwLock);
    }
    if wait.expected == 1
        && let Some(key) = word.checked_sub(PARKED_KEY).and_then(|at| memory.read_u64(at))
    {
        let mut byte = [0];
        if memory.read(key, &mut byte).is_ok() {
            let state = u64::from(byte[0]);
            if state == 3 {
                add(key, LockShape::ParkingMutex);
            } else if state == PARKING_RUNS | PARKING_WAITED {
                add(key, LockShape::ParkingOnce);
            }
        }
        let key = key & !1;
        // A condition's word would be a pointer.
        if memory.read_u64(key).is_some_and(|state| {
            state & 3 != 0
                && (state & PARKING_WRITER != 0 || state >= PARKING_READER)
                && state >> 32 == 0
        }) {
            add(key, LockShape::ParkingRwLock);
        }
    }
    add(word, LockShape::Called);
    found
}

/// Tells whether memory alone says that the thread waits for a lock: a thread that parking_lot has
/// parked has the lock's address beside its word, and a lock is no condition: of that the word would
/// be a pointer.
#[must_use]
pub fn is_lock_by_memory(locks: &[AwaitedLock], memory: &dyn ReadableMemory) -> bool {
    locks.iter().any(|lock| match lock.shape {
        LockShape::ParkingRwLock => true,
        LockShape::ParkingMutex | LockShape::ParkingOnce => {
            let word = memory.read_u64(lock.address).filter(|_| lock.address % 8 == 0);
            word.and_then(|word| memory.read_u64(word)).is_none()
        }
        _ => false,
    })
}

/// Tells whether the waiter wants to share the lock with others.
#[must_use]
pub fn is_shared(
    wait: &FutexWait,
    known: Option<&FutexUse>,
    lock: &AwaitedLock,
    memory: &dyn ReadableMemory,
) -> bool {
    match (known, lock.shape) {
        (Some(known), _) if known.role.is_lock() => known.role == FutexRole::Shared,
        (_, LockShape::RustRwLock) => wait.address == lock.address,
        (_, LockShape::ParkingRwLock) => {
            let token = wait.address.checked_sub(PARKED_TOKEN);
            token.and_then(|at| memory.read_u64(at)) == Some(PARKING_READER)
        }
        (_, LockShape::OwnRead) => wait.other & 3 == OWN_TO_READ,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

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
        use LockShape::{
            OwnRead, ParkingMutex, ParkingOnce, ParkingRwLock, RustMutex, RustOnce, RustRwLock,
            Semaphore,
        };
        use Touch::{Released, ReleasedShared, Taken};
        for (shape, event, what) in [
            (RustMutex, locked(4, Exchange, 2, 0), Some(Released)),
            (RustMutex, locked(4, Exchange, 2, 2), Some(Taken)),
            (RustMutex, compared(4, 0, 1), Some(Taken)),
            (RustMutex, locked(8, Update, 2, 1), None),
            (RustMutex, locked(4, Update, 2, 1), Some(Taken)),
            (RustRwLock, locked(4, Update, 0xc000_0002, 0xc000_0001), Some(ReleasedShared)),
            (RustRwLock, locked(4, Update, 0xbfff_ffff, 0x8000_0000), Some(Released)),
            (RustRwLock, compared(4, 1, 2), Some(Taken)),
            (RustRwLock, compared(4, 0x8000_0001, 0xc000_0001), Some(Taken)),
            (RustOnce, locked(4, Exchange, 5, 2), Some(Released)),
            (Semaphore, locked(4, Update, 0, 1), Some(Released)),
            (Semaphore, compared(4, 1, 0), Some(Taken)),
            (Semaphore, locked(4, Exchange, 0, 1), Some(Taken)),
            (Semaphore, Event::Sleeps(0x40), Some(Taken)),
            (RustMutex, Event::Sleeps(0x40), None),
            (Semaphore, Event::Wakes(0x40), None),
            (ParkingMutex, compared(1, 1, 0), Some(Released)),
            (ParkingMutex, compared(1, 0, 1), Some(Taken)),
            (ParkingMutex, compared(1, 1, 3), Some(Taken)),
            (ParkingRwLock, locked(8, Update, 0x23, 0x13), Some(ReleasedShared)),
            (ParkingRwLock, compared(8, 8, 0), Some(Released)),
            (ParkingRwLock, locked(8, Update, 0, 0_u64.wrapping_sub(8)), Some(Released)),
            (ParkingRwLock, compared(8, 8, 0x10), Some(Released)),
            (ParkingRwLock, compared(8, 0x10, 0x20), Some(Taken)),
            (ParkingRwLock, compared(8, 0x10, 0x12), Some(Taken)),
            (ParkingMutex, locked(1, Update, 3, 2), Some(Released)),
            (ParkingMutex, locked(1, Update, 0, 0xff), Some(Released)),
            (ParkingOnce, locked(1, Exchange, 12, 2), Some(Released)),
            (ParkingOnce, locked(1, Exchange, 4, 1), Some(Released)),
            (ParkingOnce, compared(1, 0, 4), Some(Taken)),
            (OwnRead, compared(8, 0x3_0010_0002, 0x3_0010_0001), Some(ReleasedShared)),
            (OwnRead, compared(8, 0x3_0010_0001, 0), Some(ReleasedShared)),
            (OwnRead, compared(8, 0x3_0050_0001, 3), Some(ReleasedShared)),
            (OwnRead, compared(8, 0x0010_0001, 0x0010_0002), Some(Taken)),
            (OwnRead, compared(8, 3, 0), Some(Taken)),
        ] {
            assert_eq!(touch(shape, &event), what, "{shape:?} {event:?}");
        }
        assert_eq!(touch(LockShape::Called, &Event::Releases(0x40)), Some(Released));
        assert_eq!(touch(LockShape::Called, &Event::Releases(0x44)), None);
        assert_eq!(touch(LockShape::Called, &Event::ReleasesShared(0x40)), Some(ReleasedShared));
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

    #[test]
    fn the_word_and_its_neighbours_tell_what_may_be_waited_for() {
        let wait = |address, expected| FutexWait {
            address,
            expected,
            operation: FutexWaitKind::Wait { bits: !0 },
            private: true,
            limit: WaitLimit::None,
            other: 0,
        };
        let mut bytes = vec![0; 256];
        bytes[0x40..0x44].copy_from_slice(&0x8000_0001_u32.to_ne_bytes());
        bytes[0x80..0x88].copy_from_slice(&0x10f0_u64.to_ne_bytes());
        bytes[0xf0] = 3;
        let memory = SavedMemory::new(0x1000, bytes);
        let found = |address, expected| {
            let found = candidates(&wait(address, expected), None, &memory);
            found.iter().map(|lock| (lock.address, lock.shape)).collect::<Vec<_>>()
        };
        use LockShape::{Called, ParkingMutex, RustMutex, RustRwLock, Semaphore};
        assert_eq!(found(0x1010, 0), [(0x1010, Semaphore), (0x1010, Called)]);
        assert_eq!(found(0x1040, 0), [(0x1040, Called)], "it has units");
        assert_eq!(found(0x1010, 2), [(0x1010, RustMutex), (0x1010, Called)]);
        assert_eq!(found(0x1044, 7), [(0x1040, RustRwLock), (0x1044, Called)]);
        assert_eq!(found(0x1010, 0x4000_0001), [(0x1010, RustRwLock), (0x1010, Called)]);
        assert_eq!(found(0x10a0, 1), [(0x10f0, ParkingMutex), (0x10a0, Called)]);
        assert_eq!(found(0, 1), [(0, Called)]);
    }
}
