//! Describes one call of the program: what it is about, and what came of it.
//!
//! # Role
//! The words that the interposed functions, the records and the rules share. An interposed
//! function makes a [`Call`]; [`record`](crate::record) and [`rules`](crate::rules) judge it
//! by its [`Outcome`].

use crate::site::Site;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::known::Known;
use lockstead_ledger::lock::Kind;
use lockstead_ledger::publish::{Flags, How};

/// Tells what a lock is; asked only when the lock is new.
pub trait Nature {
    /// Returns the kind and the attributes of the lock.
    fn nature(&self) -> (Kind, u16);
}

impl Nature for (Kind, u16) {
    fn nature(&self) -> (Kind, u16) {
        *self
    }
}

impl<F: Fn() -> (Kind, u16)> Nature for F {
    fn nature(&self) -> (Kind, u16) {
        self()
    }
}

/// A lock and a stack by their numbers in the ledger; 0 where the ledger was
/// full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The index of the lock's record.
    pub lock: u32,
    /// The id of the stack that leads to the call.
    pub stack: u32,
}

impl Place {
    /// Returns the numbers that a thread knows of a lock and a call.
    #[must_use]
    pub fn of(known: &Known) -> Place {
        Place { lock: known.lock.load(Relaxed), stack: known.stack.load(Relaxed) }
    }
}

/// A call that acquires a lock, or waits for something.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a, N> {
    /// The address of what is acquired or waited for; of a join the `pthread_t`.
    pub target: u64,
    /// The kind and the attributes of what is acquired.
    pub nature: N,
    /// How the call waits if it has to.
    pub how: How,
    /// The mode: [`Flags::READ`], or no flags.
    pub mode: Flags,
    /// The end of a timed wait in nanoseconds of the clock that `how` says; 0: none.
    pub deadline: u64,
    /// The mutex that is given back meanwhile, or zero.
    pub companion: u64,
    /// Where in the program the call comes from.
    pub site: &'a Site,
}

/// What the real function's answer means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The caller holds the lock now.
    Acquired,
    /// It does not, for the deadline has passed.
    TimedOut,
    /// It does not, for the lock is taken.
    Refused,
    /// It does not, for a handler has interrupted the wait.
    Interrupted,
    /// It does not, for another reason.
    Failed,
}

impl Outcome {
    /// Returns the meaning of a POSIX function's answer.
    #[must_use]
    pub const fn of_posix(answer: c_int) -> Outcome {
        match answer {
            // A robust mutex whose owner has died is the caller's all the same.
            0 | libc::EOWNERDEAD => Outcome::Acquired,
            libc::ETIMEDOUT => Outcome::TimedOut,
            libc::EBUSY => Outcome::Refused,
            _ => Outcome::Failed,
        }
    }
}
