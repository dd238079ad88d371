//! Describes one call of the program: what it is about, and what came of it.
//!
//! # Role
//! The words that the interposed functions, the records and the rules share. An interposed
//! function makes a [`LockCall`]; [`record`](crate::record) and [`rules`](crate::rules) judge it
//! by its [`CallOutcome`].

use crate::site::CallSite;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::known::KnownLock;
use lockstead_ledger::lock::ObjectKind;
use lockstead_ledger::publish::{Flags, WaitKind};

/// Tells what a lock is; asked only when the lock is new.
pub trait Nature {
    /// Returns the kind and the attributes of the lock.
    fn nature(&self) -> (ObjectKind, u16);
}

impl Nature for (ObjectKind, u16) {
    fn nature(&self) -> (ObjectKind, u16) {
        *self
    }
}

impl<F: Fn() -> (ObjectKind, u16)> Nature for F {
    fn nature(&self) -> (ObjectKind, u16) {
        self()
    }
}

/// A lock and a stack by their numbers in the ledger; 0 where the ledger was
/// full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallPlace {
    /// The index of the lock's record.
    pub lock: u32,
    /// The id of the stack that leads to the call.
    pub stack: u32,
}

impl CallPlace {
    /// Returns the numbers that a thread knows of a lock and a call.
    #[must_use]
    pub fn of(known: &KnownLock) -> CallPlace {
        CallPlace { lock: known.lock.load(Relaxed), stack: known.stack.load(Relaxed) }
    }
}

/// A call that acquires a lock, or waits for something.
#[derive(Clone, Copy, Debug)]
pub struct LockCall<'a, N> {
    /// The address of what is acquired or waited for; of a join the `pthread_t`.
    pub target: u64,
    /// The kind and the attributes of what is acquired.
    pub nature: N,
    /// How the call waits if it has to.
    pub how: WaitKind,
    /// The mode: [`Flags::READ`], or no flags.
    pub mode: Flags,
    /// The end of a timed wait in nanoseconds of the clock that `how` says; 0: none.
    pub deadline: u64,
    /// The mutex that is given back meanwhile, or zero.
    pub companion: u64,
    /// The place where in the program the call comes from.
    pub site: &'a CallSite,
}

/// What the real function's answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallOutcome {
    /// The caller holds the lock now.
    Acquired,
    /// It does not, for the deadline has passed.
    TimedOut,
    /// It does not, for the lock is taken.
    Refused,
    /// It does not, for a handler has interrupted the wait.
    Interrupted,
    /// It does not, and nobody ever will: who held it has ended, and nobody has made it whole.
    Ruined,
    /// It does not, for another reason.
    Failed,
}

impl CallOutcome {
    /// Returns the meaning of a POSIX function's answer.
    #[must_use]
    pub const fn of_posix(answer: c_int) -> CallOutcome {
        match answer {
            // A robust mutex whose owner has died is the caller's all the same.
            0 | libc::EOWNERDEAD => CallOutcome::Acquired,
            libc::ETIMEDOUT => CallOutcome::TimedOut,
            libc::EBUSY => CallOutcome::Refused,
            libc::ENOTRECOVERABLE => CallOutcome::Ruined,
            _ => CallOutcome::Failed,
        }
    }
}
