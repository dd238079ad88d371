//! What semaphores are used for: whether one serves as a mutex.
//!
//! # Role
//! The library that checks notes who takes and who gives each token; the command
//! concludes which semaphores could be mutexes. A [`SemaphoreUsage`] is what all semaphores of
//! one origin came to: those that were initialised by the same calls with a like value.
//! It stays when they are gone, so that nothing is lost of semaphores that live
//! shortly. A [`Token`] is the state of one that lives.
//!
//! # Protocol
//! A thread notes that it took the token after the real call, and erases that before the
//! real call that gives it back. So if a semaphore serves as a mutex, each taker finds that
//! nobody has the token, and each giver that it has it itself. Whatever else is found shows
//! that it does not serve as one, and no race can make it seem so.

use crate::lock::LockRecord;
use crate::shares::Shares;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Why a semaphore is not a mutex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u32)]
pub enum Reason {
    /// The semaphore begins with no token.
    BeginsTaken = 0,
    /// It begins with more than one token.
    BeginsAbove = 1,
    /// It was given by a thread that had not taken it, while somebody else had.
    GivenByAnother = 2,
    /// It was given while there was a token: there were two.
    RisesAbove = 3,
    /// It was taken while somebody had it.
    TakenTwice = 4,
    /// It was taken or given in a signal handler.
    InHandler = 5,
    /// Several processes can use it.
    Shared = 6,
    /// It was destroyed while somebody had it.
    DestroyedTaken = 7,
}

/// The number of reasons there are.
pub const REASONS: usize = 8;

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; REASONS] = [
        Reason::BeginsTaken,
        Reason::BeginsAbove,
        Reason::GivenByAnother,
        Reason::RisesAbove,
        Reason::TakenTwice,
        Reason::InHandler,
        Reason::Shared,
        Reason::DestroyedTaken,
    ];

    /// Returns the reason with this number; `None` for a number of no reason.
    #[must_use]
    pub fn from_raw(raw: u32) -> Option<Reason> {
        Reason::ALL.get(raw as usize).copied()
    }

    /// Returns its bit among the marks of a semaphore.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The thread that took a token, and the stack of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taker {
    /// The thread, as [`Taker::number_of`] has it; 0 in an [`Act`] without one.
    pub thread: u32,
    /// Id of the stack.
    pub stack: u32,
}

impl Taker {
    /// The number of a thread without a record: it may be any thread.
    pub const UNKNOWN: u32 = (1 << 24) - 1;

    /// Returns what stands for the thread with this [serial
    /// number](crate::thread::ThreadRecord::serial): 24 bits of it, neither 0 nor
    /// [`Taker::UNKNOWN`].
    #[must_use]
    pub const fn number_of(serial: u32) -> u32 {
        match serial & Taker::UNKNOWN {
            0 | Taker::UNKNOWN => 1,
            number => number,
        }
    }

    /// Packs it with 8 bits of the generation of the semaphore, so that what is left of an
    /// earlier one is nobody's.
    pub(crate) fn pack(self, generation: u32) -> u64 {
        u64::from(self.thread | generation << 24) | u64::from(self.stack) << 32
    }

    pub(crate) fn unpack(word: u64, generation: u32) -> Option<Taker> {
        let (first, stack) = (word as u32, (word >> 32) as u32);
        let thread = first & Taker::UNKNOWN;
        (thread != 0 && first >> 24 == generation & 0xff).then_some(Taker { thread, stack })
    }
}

/// How a semaphore was made, as far as it tells origins apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UsageOrigin {
    /// Id of the stack of the initialisation, or of the first use if that was not
    /// seen.
    pub stack: u32,
    /// The value that it was initialised with; `None` if that was not seen.
    pub value: Option<u32>,
    /// Which processes can use it.
    pub sharing: Sharing,
}

/// Which processes can use a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Sharing {
    /// The process that made it.
    Private = 0,
    /// All processes that have its memory.
    Memory = 1,
    /// All processes that know its name.
    Named = 2,
}

/// The class of values of semaphores whose initialisation was not seen.
const UNSEEN: u32 = u32::MAX;

impl UsageOrigin {
    /// Returns the class of the value, by which origins differ: none, one, several, not seen.
    fn class(self) -> u32 {
        self.value.map_or(UNSEEN, |value| value.min(2))
    }
}

/// The number of acts that a usage remembers.
pub const ACTS: usize = 16;

/// Something that was done to a semaphore and shows that it is no mutex. The first
/// time counts, for each reason and stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Act {
    /// The reason that the act shows.
    pub reason: Reason,
    /// The stack of the call.
    pub stack: u32,
    /// The thread that did it, as [`Taker::number_of`] has it.
    pub thread: u32,
    /// The kernel's number of that thread.
    pub tid: u32,
    /// The thread that had the token then.
    pub other: Taker,
    /// The kernel's number of the thread that had the token; 0 if it is not known.
    pub other_tid: u32,
    /// A count or a signal, as the reason has it.
    pub number: u32,
}

/// An [`Act`] as it lies in the ledger.
#[repr(C)]
#[derive(Debug)]
pub struct ActRecord {
    /// The call site, and the reason plus one in the top byte; 0: the record is not in use.
    key: AtomicU64,
    other: AtomicU64,
    /// How often the act was done.
    pub count: AtomicU64,
    ready: AtomicU32,
    reason: AtomicU32,
    stack: AtomicU32,
    thread: AtomicU32,
    tid: AtomicU32,
    other_tid: AtomicU32,
    number: AtomicU32,
    spare: AtomicU32,
}

impl ActRecord {
    fn write(&self, act: &Act) {
        self.other.store(act.other.pack(0), Relaxed);
        for (word, value) in [
            (&self.reason, act.reason as u32),
            (&self.stack, act.stack),
            (&self.thread, act.thread),
            (&self.tid, act.tid),
            (&self.other_tid, act.other_tid),
            (&self.number, act.number),
        ] {
            word.store(value, Relaxed);
        }
        // ord: LED-9 (release): publishes the record.
        self.ready.store(1, Release);
    }

    /// Returns the act; `None` if there is none, or if it is not complete yet.
    #[must_use]
    pub fn read(&self) -> Option<Act> {
        // ord: LED-9 (acquire): what was stored before is seen.
        if self.ready.load(Acquire) == 0 {
            return None;
        }
        let other = self.other.load(Relaxed);
        Some(Act {
            reason: Reason::from_raw(self.reason.load(Relaxed))?,
            stack: self.stack.load(Relaxed),
            thread: self.thread.load(Relaxed),
            tid: self.tid.load(Relaxed),
            other: Taker { thread: other as u32, stack: (other >> 32) as u32 },
            other_tid: self.other_tid.load(Relaxed),
            number: self.number.load(Relaxed),
        })
    }
}

/// What the semaphores of one origin came to.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct SemaphoreUsage {
    /// The index of the next one with the same stack; 0: there is none.
    pub(crate) next: AtomicU32,
    /// The word that is not zero when all that tells its origin is there.
    pub(crate) ready: AtomicU32,
    stack: AtomicU32,
    /// The class of its values, see [`UsageOrigin`].
    class: AtomicU32,
    sharing: AtomicU32,
    /// The largest value of an initialisation.
    most: AtomicU32,
    /// The smallest value of an initialisation, as the difference from the largest number.
    least: AtomicU32,
    spare: AtomicU32,
    /// The [module](crate::lock::LockRecord::module) of the first semaphore.
    pub module: AtomicU32,
    /// The number of the first semaphore in its class.
    pub serial: AtomicU32,
    /// The address of the first semaphore.
    pub address: AtomicU64,
    /// The number of semaphores of the origin.
    pub lives: AtomicU64,
    /// The number of semaphores that lay elsewhere than the first one.
    pub elsewhere: AtomicU64,
    /// The number of semaphores whose token somebody had when they ended or were initialised
    /// anew.
    pub left: AtomicU64,
    /// The serial number of the first thread that took a token.
    pub first_thread: AtomicU32,
    /// The word that is not zero when other threads took a token too.
    pub several: AtomicU32,
    /// The highest count that was seen.
    pub highest: AtomicU32,
    /// The stack of a call that asked for the count.
    pub read_stack: AtomicU32,
    /// How often the program asked for the count.
    pub reads: AtomicU64,
    /// How often a token was taken.
    pub taken: AtomicU64,
    /// How often a token was given.
    pub given: AtomicU64,
    /// The number of attempts that found no token.
    pub refused: AtomicU64,
    /// How often a thread waited and got a token.
    pub contended: AtomicU64,
    /// The sum of these waits, in nanoseconds.
    pub waited: AtomicU64,
    /// The longest of these waits, in nanoseconds.
    pub longest: AtomicU64,
    /// The number of waits that gave up at a deadline.
    pub timed_out: AtomicU64,
    /// The number of waits that a signal handler ended.
    pub interrupted: AtomicU64,
    /// The number of calls whose thread is not known.
    pub unjudged: AtomicU64,
    /// The number of acts that found no room among those below.
    pub more_acts: AtomicU64,
    /// The number of semaphores of which each reason is true.
    pub shown: [AtomicU64; REASONS],
    /// The stacks of the calls that took a token.
    pub taken_at: Shares,
    /// The stacks of the calls that gave one.
    pub given_at: Shares,
    acts: [ActRecord; ACTS],
}

const _: () = assert!(size_of::<SemaphoreUsage>() == 1408);

impl SemaphoreUsage {
    /// Fills in the origin and the index of the usage after this one. Only the thread
    /// that claimed the record calls this, before others can find it.
    pub(crate) fn write(&self, origin: UsageOrigin, next: u32) {
        for (word, value) in [
            (&self.stack, origin.stack),
            (&self.class, origin.class()),
            (&self.sharing, origin.sharing as u32),
            (&self.next, next),
        ] {
            word.store(value, Relaxed);
        }
    }

    /// Tells whether its semaphores come from this origin.
    pub(crate) fn is_of(&self, origin: UsageOrigin) -> bool {
        self.stack.load(Relaxed) == origin.stack
            && self.class.load(Relaxed) == origin.class()
            && self.sharing.load(Relaxed) == origin.sharing as u32
    }

    /// Returns the origin, with the smallest value. Returns `None` if the record is not
    /// complete, or no semaphore came from there yet.
    #[must_use]
    pub fn origin(&self) -> Option<UsageOrigin> {
        // ord: LED-9 (acquire): what was stored before is seen.
        if self.ready.load(Acquire) == 0 || self.lives.load(Relaxed) == 0 {
            return None;
        }
        let class = self.class.load(Relaxed);
        Some(UsageOrigin {
            stack: self.stack.load(Relaxed),
            value: (class != UNSEEN).then(|| u32::MAX - self.least.load(Relaxed)),
            sharing: match self.sharing.load(Relaxed) {
                0 => Sharing::Private,
                1 => Sharing::Memory,
                _ => Sharing::Named,
            },
        })
    }

    /// Notes that a semaphore of this origin begins its life.
    pub(crate) fn one_more(&self, record: &LockRecord, origin: UsageOrigin) {
        self.lives.fetch_add(1, Relaxed);
        self.most.fetch_max(origin.value.unwrap_or(0), Relaxed);
        self.least.fetch_max(u32::MAX - origin.value.unwrap_or(0), Relaxed);
        let address = record.address.load(Relaxed);
        match self.address.compare_exchange(0, address, Relaxed, Relaxed) {
            Ok(_) => {
                self.module.store(record.module.load(Relaxed), Relaxed);
                self.serial.store(record.serial.load(Relaxed), Relaxed);
            }
            Err(first) if first == address => {}
            Err(_) => {
                self.elsewhere.fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns the largest value of an initialisation.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.most.load(Relaxed)
    }

    /// Notes an act, which counts for its semaphore if `is_new` for it.
    pub(crate) fn act(
        &self,
        reason: Reason,
        site: u64,
        is_new: bool,
        details: impl FnOnce() -> Act,
    ) {
        if is_new {
            self.shown[reason as usize].fetch_add(1, Relaxed);
        }
        // Addresses of a program have 47 bits.
        let key = site | u64::from(reason as u32 + 1) << 56;
        let mine = |record: &&ActRecord| {
            let found = record.key.load(Relaxed);
            found == key
                || found == 0
                    && match record.key.compare_exchange(0, key, Relaxed, Relaxed) {
                        Ok(_) => true,
                        Err(other) => other == key,
                    }
        };
        match self.acts.iter().find(mine) {
            None => self.more_acts.fetch_add(1, Relaxed),
            Some(record) => {
                if record.count.fetch_add(1, Relaxed) == 0 {
                    record.write(&details());
                }
                0
            }
        };
    }

    /// Returns the acts that are complete, with how often each was done.
    pub fn acts(&self) -> impl Iterator<Item = (Act, u64)> + '_ {
        self.acts.iter().filter_map(|record| Some((record.read()?, record.count.load(Relaxed))))
    }
}

/// The state of one semaphore while it lives. There is one for each lock record, at the
/// same index; that of any other lock stays empty.
///
/// Each word says of which generation of the lock it speaks. So nobody needs to empty a
/// word when a life begins: readers take what an earlier life has left for nothing.
#[repr(C)]
#[derive(Debug)]
pub struct Token {
    /// The [`Taker`] of the token; 0: nobody has it.
    pub(crate) taker: AtomicU64,
    /// The generation of the lock's record in bits 0..32, the index of the [`SemaphoreUsage`]
    /// above.
    life: AtomicU64,
    /// The [`Reason`]s that were found, by their bits, and the lower bits of the
    /// generation above them.
    pub(crate) marks: AtomicU32,
    spare: AtomicU32,
}

const _: () = assert!(size_of::<Token>() == 24);

impl Token {
    /// Returns the index of the usage, if the state is of this generation.
    pub(crate) fn usage(&self, generation: u32) -> Option<u32> {
        let life = self.life.load(Relaxed);
        (life as u32 == generation && life >> 32 != 0).then_some((life >> 32) as u32)
    }

    /// Begins a life, which belongs to `usage`. Returns false if another thread has begun it,
    /// and the usage that the life before belonged to if somebody still had the token.
    pub(crate) fn begin(&self, generation: u32, usage: u32) -> (bool, Option<u32>) {
        let before = self.life.load(Relaxed);
        let life = u64::from(generation) | u64::from(usage) << 32;
        if before as u32 == generation && before >> 32 != 0
            || self.life.compare_exchange(before, life, Relaxed, Relaxed).is_err()
        {
            return (false, None);
        }
        let left = Taker::unpack(self.taker.load(Relaxed), before as u32).is_some();
        (true, (left && before >> 32 != 0).then_some((before >> 32) as u32))
    }
}
