//! What is known of a lock: its record, and its statistics once there are any.

use crate::handing::Handing;
use crate::histogram::Histogram;
use crate::shares::Shares;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// What kind of synchronisation object a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Not known: seen only at its release.
    Unknown = 0,
    /// A mutex, POSIX or C11.
    Mutex = 1,
    /// A reader-writer lock.
    RwLock = 2,
    /// A spin lock.
    Spin = 3,
    /// A semaphore.
    Semaphore = 4,
    /// A condition variable.
    Condition = 5,
    /// A barrier.
    Barrier = 6,
}

impl Kind {
    /// The kind with this number; unknown for a number of no kind.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Kind {
        match raw {
            1 => Kind::Mutex,
            2 => Kind::RwLock,
            3 => Kind::Spin,
            4 => Kind::Semaphore,
            5 => Kind::Condition,
            6 => Kind::Barrier,
            _ => Kind::Unknown,
        }
    }
}

/// Whose statistics a record carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Life {
    /// Not in use.
    Unused = 0,
    /// The lock at this address, alive as far as is known.
    Live = 1,
    /// The address of a lock that was destroyed; its statistics have moved.
    Destroyed = 2,
    /// The statistics of one destroyed lock.
    Grave = 3,
    /// The statistics of all further destroyed locks of one class.
    MassGrave = 4,
    /// As [`Destroyed`](Life::Destroyed), but nobody has destroyed it: its
    /// memory went.
    Gone = 5,
}

/// Attributes of a lock that change what its waiters wait for, and its type as
/// a report names it. The meaning of a bit depends on the kind.
pub mod attribute {
    /// A mutex that its owner may lock again.
    pub const RECURSIVE: u16 = 1;
    /// A mutex that reports misuse.
    pub const ERRORCHECK: u16 = 2;
    /// A mutex that spins a little first.
    pub const ADAPTIVE: u16 = 4;
    /// A mutex that survives its owner.
    pub const ROBUST: u16 = 8;
    /// Priority inheritance.
    pub const INHERIT: u16 = 16;
    /// Priority ceiling.
    pub const PROTECT: u16 = 32;
    /// Shared between processes.
    pub const SHARED: u16 = 64;
    /// A reader-writer lock whose new readers wait for waiting writers.
    pub const WRITERS_FIRST: u16 = 128;
    /// Initialised by the C11 function.
    pub const C11: u16 = 256;
    /// A condition variable whose deadlines are times of `CLOCK_MONOTONIC`.
    pub const MONOTONIC: u16 = 512;
    /// The program has said that others than the one who acquired it give it back.
    pub const HAND_OFF: u16 = 1024;
    /// A semaphore that began with one token.
    pub const BINARY: u16 = 2048;
    /// A semaphore that was given back by the thread that had taken it.
    pub const GIVEN_BACK: u16 = 4096;
    /// Its attributes have been read from it.
    pub const KNOWN: u16 = 1 << 15;
}

/// The record of a lock: one cache line, found by address.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct LockRecord {
    /// Address of the lock, never zero in a record that is in use, and never
    /// changed: the record of an address stays its record.
    pub address: AtomicU64,
    /// Raised whenever a lock at the address begins or ends a life.
    pub generation: AtomicU32,
    /// [`Kind`] in bits 0..8, [`Life`] in bits 8..16, attributes above.
    pub shape: AtomicU32,
    /// Stack of the initialisation; 0 for a static initialiser.
    pub init_stack: AtomicU32,
    /// Stack of the first acquisition seen.
    pub first_stack: AtomicU32,
    /// The how-manieth lock of its class (same initialisation or, failing
    /// that, first acquisition), from 1.
    pub serial: AtomicU32,
    /// Index of the statistics, 0 as long as there are none.
    pub extension: AtomicU32,
    /// Acquisitions counted so far; threads keep some for themselves, see
    /// [`CacheLine`](crate::thread::CacheLine).
    pub acquisitions: AtomicU64,
    /// Of a mass grave: the number of locks buried in it.
    pub buried: AtomicU32,
    /// Index of the module in which a static lock lies plus one, else 0.
    pub module: AtomicU32,
    /// How long it was held before there were statistics, in units of
    /// `2^HELD_SHIFT` nanoseconds.
    pub held_before: AtomicU32,
    /// How often a thread released it that did not hold it: it serves as a
    /// signal, and whoever holds it is not whom its waiters wait for.
    pub handed_on: AtomicU32,
    /// Not zero: there are edges of this life in the ledger.
    pub ordered: AtomicU32,
    /// For the library that checks, of a lock on a stack: what tells whether its
    /// frame is still there.
    pub frame: AtomicU32,
}

const _: () = assert!(size_of::<LockRecord>() == 64);

/// See [`LockRecord::held_before`].
pub const HELD_SHIFT: u32 = 6;

impl LockRecord {
    /// Kind, life and attributes.
    #[must_use]
    pub fn shape(&self) -> (Kind, Life, u16) {
        let shape = self.shape.load(Relaxed);
        let life = match (shape >> 8) as u8 {
            1 => Life::Live,
            2 => Life::Destroyed,
            3 => Life::Grave,
            4 => Life::MassGrave,
            5 => Life::Gone,
            _ => Life::Unused,
        };
        (Kind::from_raw(shape as u8), life, (shape >> 16) as u16)
    }

    /// Tells whether the lock is a semaphore that serves as a mutex, as far as was seen.
    #[must_use]
    pub fn serves_as_mutex(&self) -> bool {
        let (kind, life, attributes) = self.shape();
        kind == Kind::Semaphore
            && matches!(life, Life::Live)
            && attributes & (attribute::BINARY | attribute::SHARED) == attribute::BINARY
            && self.handed_on.load(Relaxed) == 0
    }

    /// Writes kind, life and attributes.
    pub fn set_shape(&self, kind: Kind, life: Life, attributes: u16) {
        self.shape.store(kind as u32 | (life as u32) << 8 | u32::from(attributes) << 16, Relaxed);
    }
}

/// The statistics of a lock that was waited for, or held for a while.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Extension {
    /// Index of the lock's record.
    pub lock: AtomicU64,
    /// Acquisitions that found the lock taken.
    pub contended: AtomicU64,
    /// Waits that gave up at a deadline.
    pub timed_out: AtomicU64,
    /// Trylocks that found the lock taken.
    pub refused: AtomicU64,
    /// Times of waiting.
    pub wait: Histogram,
    /// Times of holding; each that was timed counts for [`Flags::weight`] of its like.
    ///
    /// [`Flags::weight`]: crate::publish::Flags::weight
    pub hold: Histogram,
    /// How many holds were timed.
    pub timed: AtomicU64,
    /// The part of the total of `hold` that stands for holds which were not.
    pub scaled: AtomicU64,
    /// Holds whose beginning is known to the coarse clock only.
    pub coarse: AtomicU64,
    /// The sum of their times, as estimated.
    pub coarse_total: AtomicU64,
    /// Where it was waited.
    pub waited_at: Shares,
    /// Where it was acquired by those that held it.
    pub held_at: Shares,
    /// Of a condition: whether it serves as a lock.
    pub handing: Handing,
}

impl Extension {
    /// How often what it is about was acquired, and how often after waiting, if it is a
    /// condition that serves as a lock.
    #[must_use]
    pub fn as_lock(&self) -> Option<(u64, u64)> {
        let handing = &self.handing;
        handing.is_lock().then(|| (handing.signals.load(Relaxed), handing.after_wait.load(Relaxed)))
    }
}
