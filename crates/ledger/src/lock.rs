//! What is known of a lock: its record, and its statistics once there are any.

use crate::handing::Handing;
use crate::histogram::Histogram;
use crate::roles::Roles;
use crate::shares::Shares;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What kind of synchronisation object a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// The kind is not known: the lock was seen only at its release.
    Unknown = 0,
    /// A mutex, POSIX or C11.
    Mutex = 1,
    /// A reader-writer lock of POSIX.
    RwLock = 2,
    /// A spin lock of POSIX.
    Spin = 3,
    /// A semaphore, named or not.
    Semaphore = 4,
    /// A condition variable, POSIX or C11.
    Condition = 5,
    /// A barrier of POSIX.
    Barrier = 6,
    /// A lock or an event of another library, whose waiters sleep on a futex word.
    Futex = 7,
    /// A mutex of another library than glibc, which tells of it itself.
    ToldMutex = 8,
    /// A reader-writer lock of another library, which tells of it itself.
    ToldRwLock = 9,
    /// A semaphore of another library, which tells of it itself.
    ToldSemaphore = 10,
    /// A condition variable of another library, which tells of it itself.
    ToldCondition = 11,
    /// What another library does once: threads wait until the one that has the turn is done.
    ToldOnce = 12,
}

impl ObjectKind {
    /// Returns the kind with this number; unknown for a number of no kind.
    #[must_use]
    pub const fn from_raw(raw: u8) -> ObjectKind {
        match raw {
            1 => ObjectKind::Mutex,
            2 => ObjectKind::RwLock,
            3 => ObjectKind::Spin,
            4 => ObjectKind::Semaphore,
            5 => ObjectKind::Condition,
            6 => ObjectKind::Barrier,
            7 => ObjectKind::Futex,
            8 => ObjectKind::ToldMutex,
            9 => ObjectKind::ToldRwLock,
            10 => ObjectKind::ToldSemaphore,
            11 => ObjectKind::ToldCondition,
            12 => ObjectKind::ToldOnce,
            _ => ObjectKind::Unknown,
        }
    }
}

impl ObjectKind {
    /// Tells whether its own library tells of the lock: its words are not those of glibc's.
    #[must_use]
    pub const fn is_told(self) -> bool {
        matches!(
            self,
            ObjectKind::ToldMutex
                | ObjectKind::ToldRwLock
                | ObjectKind::ToldSemaphore
                | ObjectKind::ToldCondition
                | ObjectKind::ToldOnce
        )
    }

    /// Returns what kind of lock it is, whoever tells of it.
    #[must_use]
    pub const fn plain(self) -> ObjectKind {
        match self {
            ObjectKind::ToldMutex => ObjectKind::Mutex,
            ObjectKind::ToldRwLock => ObjectKind::RwLock,
            ObjectKind::ToldSemaphore => ObjectKind::Semaphore,
            ObjectKind::ToldCondition => ObjectKind::Condition,
            other => other,
        }
    }
}

/// The life whose statistics a record carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RecordLife {
    /// The record is not in use.
    Unused = 0,
    /// The lock at this address lives, as far as is known.
    Live = 1,
    /// The lock at this address was destroyed; its statistics have moved.
    Destroyed = 2,
    /// The record keeps the statistics of one destroyed lock.
    Grave = 3,
    /// The record keeps the statistics of all further destroyed locks of one class.
    MassGrave = 4,
    /// The lock at this address ended without being destroyed: its memory went.
    Gone = 5,
}

/// Attributes of a lock that change what its waiters wait for, and its type as a report names
/// it. The meaning of a bit depends on the kind.
pub mod attribute {
    /// A mutex that its owner may lock again.
    pub const RECURSIVE: u16 = 1;
    /// A mutex that reports misuse.
    pub const ERRORCHECK: u16 = 2;
    /// A mutex that spins a little first.
    pub const ADAPTIVE: u16 = 4;
    /// A mutex that survives its owner.
    pub const ROBUST: u16 = 8;
    /// The owner inherits the priority of its waiters.
    pub const INHERIT: u16 = 16;
    /// The owner has a priority ceiling.
    pub const PROTECT: u16 = 32;
    /// Several processes share the lock.
    pub const SHARED: u16 = 64;
    /// A reader-writer lock whose new readers wait for waiting writers.
    pub const WRITERS_FIRST: u16 = 128;
    /// The C11 function initialised the lock.
    pub const C11: u16 = 256;
    /// A condition variable whose deadlines are times of `CLOCK_MONOTONIC`.
    pub const MONOTONIC: u16 = 512;
    /// The program has said that other threads than the one that acquired it give it back.
    pub const HAND_OFF: u16 = 1024;
    /// A semaphore that began with one token.
    pub const BINARY: u16 = 2048;
    /// The thread that took a semaphore gave it back.
    pub const GIVEN_BACK: u16 = 4096;
    /// The first word of a lock that its library tells of names the owner, by a slot of
    /// lockstead's table.
    pub const SLOT: u16 = 1 << 13;
    /// The library of a lock tells of each acquisition and release, and not only of waits.
    pub const FOLLOWED: u16 = 1 << 14;
    /// The address of a [`Futex`](super::ObjectKind::Futex) was found beside the word that a thread
    /// slept on, as parking_lot leaves it there; it is not the word's.
    pub const BESIDE: u16 = 1 << 12;
    /// A [`Futex`](super::ObjectKind::Futex) is a mutex of a C library that the program has inside
    /// it, by the memory around the word.
    pub const C_LIBRARY: u16 = 1 << 11;
    /// A [`ToldMutex`](super::ObjectKind::ToldMutex) whose word names its owner also while that does not
    /// have it: bit 31 is set then.
    pub const BIASED: u16 = 1 << 11;
    /// The library has read the attributes from the lock.
    pub const KNOWN: u16 = 1 << 15;
}

/// The record of a lock: one cache line, found by address.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct LockRecord {
    /// The address of the lock, never zero in a record that is in use, and never changed: the
    /// record of an address stays its record.
    pub address: AtomicU64,
    /// The number that is raised whenever a lock at the address begins or ends a life; of a grave,
    /// that of the life which lies there.
    pub generation: AtomicU32,
    /// The [`ObjectKind`] in bits 0..8, the [`RecordLife`] in bits 8..16, the attributes above.
    pub shape: AtomicU32,
    /// The stack of the initialisation; 0 for a static initialiser.
    pub init_stack: AtomicU32,
    /// The stack of the first acquisition seen.
    pub first_stack: AtomicU32,
    /// The number of the lock in its class (same initialisation or, failing that, first
    /// acquisition), from 1.
    pub serial: AtomicU32,
    /// The index of the statistics, 0 as long as there are none.
    pub extension: AtomicU32,
    /// The acquisitions counted so far. Threads keep some for themselves, see
    /// [`CacheLine`](crate::thread::CacheLine).
    pub acquisitions: AtomicU64,
    /// The number of locks buried in a mass grave.
    pub buried: AtomicU32,
    /// The index of the module in which a static lock lies plus one, else 0.
    pub module: AtomicU32,
    /// How long the lock was held before there were statistics, in units of `2^HELD_SHIFT`
    /// nanoseconds.
    pub held_before: AtomicU32,
    /// How often a thread released the lock that did not hold it. Such a lock serves as a
    /// signal: its waiters do not wait for the thread that has it.
    pub handed_on: AtomicU32,
    /// The word that is not zero when the ledger has edges of this life.
    pub ordered: AtomicU32,
    /// What tells whether the frame of a lock on a stack is still there. The library that
    /// checks keeps it.
    pub frame: AtomicU32,
}

const _: () = assert!(size_of::<LockRecord>() == 64);

/// The binary logarithm of the unit of [`LockRecord::held_before`] in nanoseconds.
pub const HELD_SHIFT: u32 = 6;

/// The number of futex words of a process that have records of their own. Others share one for
/// each stack that leads to their waits.
pub const FUTEX_WORDS: u32 = 4096;
/// The address of the record that words share: this, where no memory of a program is, and the
/// id of the stack.
pub const SHARED_WORDS: u64 = 1 << 63;

impl LockRecord {
    /// Tells whether the record is that of all further futex words of one place.
    #[must_use]
    pub fn is_of_many_words(&self) -> bool {
        self.address.load(Relaxed) & SHARED_WORDS != 0
    }

    /// Returns kind, life and attributes.
    #[must_use]
    pub fn shape(&self) -> (ObjectKind, RecordLife, u16) {
        let shape = self.shape.load(Relaxed);
        let life = match (shape >> 8) as u8 {
            1 => RecordLife::Live,
            2 => RecordLife::Destroyed,
            3 => RecordLife::Grave,
            4 => RecordLife::MassGrave,
            5 => RecordLife::Gone,
            _ => RecordLife::Unused,
        };
        (ObjectKind::from_raw(shape as u8), life, (shape >> 16) as u16)
    }

    /// Tells whether the lock is a semaphore that serves as a mutex, as far as was seen.
    #[must_use]
    pub fn serves_as_mutex(&self) -> bool {
        let (kind, life, attributes) = self.shape();
        kind == ObjectKind::Semaphore
            && matches!(life, RecordLife::Live)
            && attributes & (attribute::BINARY | attribute::SHARED) == attribute::BINARY
            && self.handed_on.load(Relaxed) == 0
    }

    /// Writes kind, life and attributes.
    pub fn set_shape(&self, kind: ObjectKind, life: RecordLife, attributes: u16) {
        self.shape.store(kind as u32 | (life as u32) << 8 | u32::from(attributes) << 16, Relaxed);
    }
}

/// The statistics of a lock that threads waited for, or held for a while.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Extension {
    /// The index of the lock's record.
    pub lock: AtomicU64,
    /// Acquisitions that found the lock taken.
    pub contended: AtomicU64,
    /// Waits that gave up at a deadline.
    pub timed_out: AtomicU64,
    /// Trylocks that found the lock taken.
    pub refused: AtomicU64,
    /// The number of threads that wait for it now, beside what each wait writes anyway. Only kept in
    /// a run that is recorded, and too high while a thread that has left its wait by `longjmp` has
    /// not called anything since.
    pub waiters: AtomicU32,
    /// The times of waiting, in nanoseconds.
    pub wait: Histogram,
    /// The times of holding, in nanoseconds. Each that was timed counts for [`Flags::weight`]
    /// of its like.
    ///
    /// [`Flags::weight`]: crate::publish::Flags::weight
    pub hold: Histogram,
    /// The number of holds that were timed.
    pub timed: AtomicU64,
    /// The part of the total of `hold` that stands for holds that were not timed.
    pub scaled: AtomicU64,
    /// The number of holds whose beginning only the coarse clock knows.
    pub coarse: AtomicU64,
    /// The sum of the times of `coarse` holds, as estimated, in nanoseconds.
    pub coarse_total: AtomicU64,
    /// The stacks of calls that waited for the lock.
    pub waited_at: Shares,
    /// The stacks of the acquisitions by threads that held it.
    pub held_at: Shares,
    /// What each kind of threads has done with it.
    pub roles: Roles,
    /// What tells whether a condition serves as a lock.
    pub handing: Handing,
    /// The name that the program has given the lock, as far as there is room; zeroes: none.
    pub name: [AtomicU64; NAME_WORDS],
}

/// The number of words of a name.
pub const NAME_WORDS: usize = 6;

impl Extension {
    /// Notes the name that the program has given the lock.
    pub fn note_name(&self, name: &[u8]) {
        // A character of several bytes may be cut; the reader takes what is whole.
        let mut bytes = name.iter().copied().chain(core::iter::repeat(0));
        for word in &self.name {
            let mut part = [0; 8];
            part.fill_with(|| bytes.next().unwrap_or(0));
            word.store(u64::from_le_bytes(part), Relaxed);
        }
    }

    /// Returns the bytes of the name, with zeroes behind them.
    #[must_use]
    pub fn name_bytes(&self) -> [u8; NAME_WORDS * 8] {
        let mut bytes = [0; NAME_WORDS * 8];
        for (part, word) in bytes.chunks_mut(8).zip(&self.name) {
            part.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        bytes
    }

    /// Returns how often a condition that serves as a lock was acquired, and how often after
    /// waiting. Returns `None` for anything else.
    #[must_use]
    pub fn as_lock(&self) -> Option<(u64, u64)> {
        let handing = &self.handing;
        handing.is_lock().then(|| (handing.signals.load(Relaxed), handing.after_wait.load(Relaxed)))
    }
}
