//! Who holds a lock that others wait for, at one moment.
//!
//! # Role
//! Asked while a program runs, often, about a lock that threads wait for just then. The lock's own
//! word is asked first where it names its owner; else the held stacks of the threads. No thread is
//! stopped, so the answer is true of a moment, and the caller asks again where that matters.
//!
//! # What is not known
//! Readers of a lock that only counts them, where no held stack has them; owners of locks that are
//! bare futex words. And of a mutex that is changing hands the word may say *taken* and name nobody.

use super::words::WordOwners;
use crate::arch::SPIN_FREE;
use crate::glibc::{MUTEX_OWNER, READERS_SHIFT, RWLOCK_WRITER, WRITE_PHASE};
use crate::memory::{ProcessMemory, ReadableMemory};
use crate::slots::WordOwner;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind, Waiting};
use lockstead_ledger::thread::state;
use std::sync::atomic::Ordering::Relaxed;

/// The bits of a word shared with the kernel that are the owner's number.
const NUMBER: u32 = 0x3fff_ffff;
/// The bits of a mutex with a priority ceiling that say whether it is taken; the ceiling is above.
const BELOW_CEILING: u32 = 0x0007_ffff;
/// The bytes of a lock from its beginning to the end of the word that names whoever has it alone.
const TO_OWNER: usize = MUTEX_OWNER as usize + 4;
const TO_WRITER: usize = RWLOCK_WRITER as usize + 4;
/// How often a word is read that says *taken* and names nobody.
const TRIES: usize = 3;

/// A thread that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The kernel's number, in the process's own namespace.
    pub tid: u32,
    /// The index of its record; `None` if it has none.
    pub thread: Option<u32>,
    /// Id of the stack of the acquisition; 0 where it is not known.
    pub stack: u32,
}

/// The state of a lock: which threads hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grip {
    /// Nobody holds the lock.
    Free,
    /// These threads; several if they read.
    Held(Vec<Holder>),
    /// The lock is held, or may be, and nothing tells by whom.
    Unknown,
}

/// Tells whether it is known of a lock of this kind who holds it.
#[must_use]
pub fn is_known_of(kind: ObjectKind) -> bool {
    matches!(kind.plain(), ObjectKind::Mutex | ObjectKind::RwLock | ObjectKind::Spin)
}

/// Tells whether a wait of this kind is one for what another thread holds.
#[must_use]
pub fn is_for_holder(how: WaitKind) -> bool {
    matches!(how.kind(), WaitKind::MUTEX | WaitKind::WRITE | WaitKind::READ | WaitKind::SPIN)
}

/// Returns who holds the lock that is waited for. `words` are the owners whom words of the process
/// `pid` name.
#[must_use]
pub fn grip(waiting: &Waiting, ledger: &Ledger<'_>, words: &WordOwners, pid: u32) -> Grip {
    let address = waiting.target;
    let Some(lock) = ledger.find_lock(address).and_then(|index| ledger.lock(index)) else {
        return Grip::Unknown;
    };
    let (kind, _, attributes) = lock.shape();
    let memory = ProcessMemory::new(pid);
    match kind {
        ObjectKind::Mutex => mutex(ledger, &memory, address, attributes),
        ObjectKind::RwLock => noted(ledger, address).unwrap_or_else(|| {
            let Some([readers, .., writer]) = words_of::<{ TO_WRITER / 4 }>(&memory, address)
            else {
                return Grip::Unknown;
            };
            match writer {
                0 if readers & WRITE_PHASE == 0 && readers >> READERS_SHIFT != 0 => Grip::Unknown,
                0 => Grip::Free,
                tid => held_by(ledger, tid, address),
            }
        }),
        ObjectKind::Spin => {
            noted(ledger, address).unwrap_or_else(|| match words_of::<1>(&memory, address) {
                Some([SPIN_FREE]) => Grip::Free,
                _ => Grip::Unknown,
            })
        }
        ObjectKind::ToldMutex | ObjectKind::ToldRwLock => {
            if let Some(held) = noted(ledger, address) {
                return held;
            }
            if attributes & attribute::FOLLOWED != 0 {
                return Grip::Free;
            }
            match words.owner_in_word(waiting, ledger, pid) {
                Some(WordOwner::Thread(tid)) => held_by(ledger, tid, address),
                Some(WordOwner::None) => Grip::Free,
                Some(WordOwner::Ended | WordOwner::Lost) | None => Grip::Unknown,
            }
        }
        _ => Grip::Unknown,
    }
}

fn mutex(ledger: &Ledger<'_>, memory: &ProcessMemory, address: u64, attributes: u16) -> Grip {
    match mutex_owner(memory, address, attributes) {
        Some(0) => Grip::Free,
        Some(tid) => held_by(ledger, tid, address),
        None => Grip::Unknown,
    }
}

/// Returns the number of the thread that glibc's mutex names as its owner, 0 if it is free; `None`
/// if it cannot be read, or says *taken* and names nobody.
pub(super) fn mutex_owner(memory: &ProcessMemory, address: u64, attributes: u16) -> Option<u32> {
    for _ in 0..TRIES {
        let [word, _, owner] = words_of::<{ TO_OWNER / 4 }>(memory, address)?;
        let by_kernel = attributes & (attribute::INHERIT | attribute::ROBUST) != 0;
        let (taken, owner) = match (by_kernel, attributes & attribute::PROTECT != 0) {
            (true, _) => (word & NUMBER, word & NUMBER),
            (false, true) => (word & BELOW_CEILING, owner),
            (false, false) => (word, owner),
        };
        match (taken, owner) {
            (0, _) => return Some(0),
            (_, 0) => {}
            (_, tid) => return Some(tid),
        }
    }
    None
}

/// Returns the thread of this number as the holder.
fn held_by(ledger: &Ledger<'_>, tid: u32, address: u64) -> Grip {
    let found = ledger.threads().enumerate().find(|(_, thread)| {
        thread.record.tid.load(Relaxed) == tid && thread.record.state.load(Relaxed) == state::LIVE
    });
    let stack = found.as_ref().and_then(|(_, thread)| thread.stack().find(address));
    let thread = found.map(|(index, _)| index as u32);
    Grip::Held(vec![Holder { tid, thread, stack: stack.map_or(0, |(_, holding)| holding.stack) }])
}

/// Returns the threads whose held stacks have the lock; `None` if there is none.
fn noted(ledger: &Ledger<'_>, address: u64) -> Option<Grip> {
    let holders = ledger.threads().enumerate().filter_map(|(index, thread)| {
        let (_, holding) = thread.stack().find(address)?;
        let is_live = thread.record.state.load(Relaxed) == state::LIVE;
        (is_live && !holding.flags.has(Flags::LENT)).then(|| Holder {
            tid: thread.record.tid.load(Relaxed),
            thread: Some(index as u32),
            stack: holding.stack,
        })
    });
    let holders: Vec<Holder> = holders.collect();
    (!holders.is_empty()).then_some(Grip::Held(holders))
}

fn words_of<const N: usize>(memory: &dyn ReadableMemory, address: u64) -> Option<[u32; N]> {
    let mut bytes = [0; TO_WRITER];
    let bytes = &mut bytes[..4 * N];
    (memory.read(address, bytes).ok()? == bytes.len()).then(|| {
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        }
        words
    })
}
