//! Locks that threads wait for.
//!
//! # Role
//! A lock without an owner in its word is known by how it is used: the word that its waiters sleep
//! on, the value that they compare it with, and the one step by which it is [released](super::shape).
//! Where the functions on the waiter's stack have names, these say which lock it is. Else each kind
//! that fits the word is a candidate, and only a release of that very kind confirms it.

use super::shape::{
    AwaitedLock, LockShape, PARKING_READER, PARKING_RUNS, PARKING_UPGRADABLE, PARKING_WAITED,
    PARKING_WRITER, RUST_READERS,
};
use crate::futexes::{FutexRole, FutexUse};
use crate::memory::ReadableMemory;
use crate::proc::futex::{FutexWait, FutexWaitKind};
use crate::waits::modes::WaitMode;

const RUST_READERS_WAIT: u32 = 1 << 30;
const RUST_WRITERS_WAIT: u32 = 1 << 31;
/// How a sleep says that it is for a reader-writer lock of the crate lockstead, to read.
const OWN_TO_READ: u64 = 1;
/// Bytes from the data of a thread that parking_lot has parked to the word that it sleeps on.
const PARKED_KEY: u64 = 32;
const PARKED_TOKEN: u64 = 8;

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

/// Returns how the waiter wants the lock; `None` where that is not known.
#[must_use]
pub fn wait_mode(
    wait: &FutexWait,
    known: Option<&FutexUse>,
    lock: &AwaitedLock,
    memory: &dyn ReadableMemory,
) -> Option<WaitMode> {
    let shares = |shares| if shares { WaitMode::Shared } else { WaitMode::Alone };
    let named = known.filter(|known| known.role.is_lock());
    Some(match (named.map(|known| known.role == FutexRole::Shared), lock.shape) {
        // One function parks for all, so that names tell less.
        (_, LockShape::ParkingRwLock) => parked_mode(wait, lock, memory)?,
        (Some(named), _) => shares(named),
        (None, LockShape::RustRwLock) => shares(wait.address == lock.address),
        (None, LockShape::OwnRead) => shares(wait.other & 3 == OWN_TO_READ),
        (None, _) => WaitMode::Alone,
    })
}

/// Returns how a thread that parking_lot has parked wants a reader-writer lock: beside its word stand
/// what it would add to the lock's, and the queue that it is in, which is another one for who has
/// closed the lock.
fn parked_mode(
    wait: &FutexWait,
    lock: &AwaitedLock,
    memory: &dyn ReadableMemory,
) -> Option<WaitMode> {
    const UPGRADABLE: u64 = PARKING_READER | PARKING_UPGRADABLE;
    let beside = |before: u64| wait.address.checked_sub(before).and_then(|at| memory.read_u64(at));
    match (beside(PARKED_TOKEN)?, beside(PARKED_KEY)?.checked_sub(lock.address)?) {
        (PARKING_WRITER, 0) => Some(WaitMode::Alone),
        (UPGRADABLE, 0) => Some(WaitMode::Upgradable),
        (PARKING_READER, 0) => Some(WaitMode::Shared),
        (PARKING_WRITER, 1) => Some(WaitMode::Closing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;
    use crate::proc::futex::WaitLimit;

    #[test]
    fn a_parked_thread_says_how_it_wants_the_lock() {
        let lock = AwaitedLock { address: 0x1800, shape: LockShape::ParkingRwLock };
        let mode = |key: u64, token: u64| {
            let mut bytes = vec![0; 0x1000];
            bytes[0x100..0x108].copy_from_slice(&key.to_ne_bytes());
            bytes[0x118..0x120].copy_from_slice(&token.to_ne_bytes());
            let memory = SavedMemory::new(0x1000, bytes);
            wait_mode(&waits_at(0x1120, 1), None, &lock, &memory)
        };
        assert_eq!(mode(0x1800, 8), Some(WaitMode::Alone));
        assert_eq!(mode(0x1800, 20), Some(WaitMode::Upgradable));
        assert_eq!(mode(0x1800, 16), Some(WaitMode::Shared));
        assert_eq!(mode(0x1801, 8), Some(WaitMode::Closing));
        assert_eq!(mode(0x1801, 16), None, "no such wait");
        assert_eq!(mode(0x1800, 7), None);
        assert_eq!(mode(0x1840, 8), None, "it waits for another lock");
    }

    fn waits_at(address: u64, expected: u32) -> FutexWait {
        FutexWait {
            address,
            expected,
            operation: FutexWaitKind::Wait { bits: !0 },
            private: true,
            limit: WaitLimit::None,
            other: 0,
        }
    }

    #[test]
    fn the_word_and_its_neighbours_tell_what_may_be_waited_for() {
        let mut bytes = vec![0; 256];
        bytes[0x40..0x44].copy_from_slice(&0x8000_0001_u32.to_ne_bytes());
        bytes[0x80..0x88].copy_from_slice(&0x10f0_u64.to_ne_bytes());
        bytes[0xf0] = 3;
        let memory = SavedMemory::new(0x1000, bytes);
        let found = |address, expected| {
            let found = candidates(&waits_at(address, expected), None, &memory);
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
