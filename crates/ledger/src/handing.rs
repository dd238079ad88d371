//! Whether a condition serves, with a mutex and a flag, as a lock.
//!
//! # Role
//! Programs make locks of their own: a thread that wants one waits on a condition as long
//! as a flag is set; a thread that gives it back clears the flag and signals. CPython's
//! global lock is one. Waiting for such a lock is waiting, and not being idle. The library
//! counts what tells these conditions from those of queues, and the reader concludes
//! ([`Handing::is_lock`]).
//!
//! # The pattern
//! A thread that uses such a lock enters the mutex twice each time: to take the lock, where it may
//! have to wait, and to give it back, where it may signal. So
//!
//! 1. of a thread's own acquisitions of the mutex every other one is for taking: from a wait
//!    to its next signal, and from a signal to its next wait, there is an odd number of
//!    them, from a signal to its next an even number, and never none. A queue has one
//!    section for each thing that is put or got: a thread that puts signals at each, one that gets
//!    waits at each, and with one condition for both sides the wait and the signal are in
//!    the same one;
//! 2. a thread that has waited signals itself, sooner or later;
//! 3. from the end of a thread's wait to its signal no other thread signals: nobody else
//!    had the lock;
//! 4. a thread that has given the lock back takes it again without anybody else's signal.
//!    Threads that hand work to each other and wait for the answer keep all the rules above,
//!    but there each has to wait for the other one's signal.
//!
//! # What it may get wrong
//! Calls that cannot be judged, because the thread's count of the mutex has been given up
//! in between, count for nothing. The rules may be broken now and then: by a signal at the
//! end of the program, by one after the mutex was given back, which comes late. What is
//! broken more often than [`Handing::is_lock`] allows is no lock.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The least number of signals after a wait from which anything is concluded.
const LEAST: u64 = 4;
/// One call in so many may break the first rule.
const BROKEN: u64 = 32;
/// One signal after a wait in so many may break the third.
const OVERLAPPING: u64 = 16;

/// The counts that a condition's waits and signals came to.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Handing {
    /// The mutex of the first wait; before that, what was held at a signal.
    pub mutex: AtomicU64,
    /// The number of signals and broadcasts.
    pub signals: AtomicU64,
    /// The number of signals by threads that had waited since their last one.
    pub after_wait: AtomicU64,
    /// The number of `after_wait` signals that keep the first rule.
    pub taken: AtomicU64,
    /// The number of waits by threads that had waited, had entered the mutex since and had
    /// not signalled.
    pub ungiven: AtomicU64,
    /// The number of signals that break the third rule.
    pub overlapping: AtomicU64,
    /// The number of signals that show what the fourth rule wants.
    pub again: AtomicU64,
    /// The number of calls that were judged by the first rule.
    pub judged: AtomicU64,
    /// The number of judged calls that broke the first rule, and of waits with another mutex.
    pub broken: AtomicU64,
    /// Nanoseconds of waits that threads counted as waiting, because the condition was known
    /// to be a lock by then.
    pub counted: AtomicU64,
    /// Serial number of the thread that signalled last.
    pub last: AtomicU32,
    spare: AtomicU32,
}

impl Handing {
    /// Returns the counts of a condition that was not used yet.
    #[must_use]
    pub const fn new() -> Handing {
        Handing {
            mutex: AtomicU64::new(0),
            signals: AtomicU64::new(0),
            after_wait: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            ungiven: AtomicU64::new(0),
            overlapping: AtomicU64::new(0),
            again: AtomicU64::new(0),
            judged: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            last: AtomicU32::new(0),
            spare: AtomicU32::new(0),
        }
    }

    /// Tells whether the waits for the condition were waits for a lock.
    #[must_use]
    pub fn is_lock(&self) -> bool {
        let [taken, ungiven, overlapping, again, judged, broken] = [
            &self.taken,
            &self.ungiven,
            &self.overlapping,
            &self.again,
            &self.judged,
            &self.broken,
        ]
        .map(|count| count.load(Relaxed));
        taken >= LEAST
            && again != 0
            && ungiven <= taken
            && overlapping <= taken / OVERLAPPING
            && broken <= judged / BROKEN
    }

    /// Counts a call that keeps the first rule, or breaks it.
    pub fn judge(&self, is_kept: bool) {
        self.judged.fetch_add(1, Relaxed);
        self.broken.fetch_add(u64::from(!is_kept), Relaxed);
    }

    /// Takes over all of `other`, which is empty afterwards.
    pub fn absorb(&self, other: &Handing) {
        for (mine, theirs) in [
            (&self.signals, &other.signals),
            (&self.after_wait, &other.after_wait),
            (&self.taken, &other.taken),
            (&self.ungiven, &other.ungiven),
            (&self.overlapping, &other.overlapping),
            (&self.again, &other.again),
            (&self.judged, &other.judged),
            (&self.broken, &other.broken),
            (&self.counted, &other.counted),
        ] {
            mine.fetch_add(theirs.swap(0, Relaxed), Relaxed);
        }
        let mutex = other.mutex.swap(0, Relaxed);
        let _ = self.mutex.compare_exchange(0, mutex, Relaxed, Relaxed);
    }
}
