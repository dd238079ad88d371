//! The mutex of Rust's standard library on Linux.
//!
//! # Role
//! The word of [`futex`](super::futex), and some turns of spinning, but only while nobody sleeps: once
//! somebody does, a newcomer goes to sleep without a turn. Who was woken spins again.
//!
//! # Source
//! The algorithm of `std::sync::Mutex` from Rust 1.62 on, as its announcement describes it; a hundred
//! turns.

use super::plain::PlainLock;
use crate::engine::calls::at;
use crate::engine::task::Activity;
use crate::engine::words::{Sim, U32};
use lockstead_core::{Platform, WaitBounds};

/// A mutex whose waiters spin a little and sleep.
#[repr(transparent)]
pub(super) struct StdMutex(U32);

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

/// The turns of a spinner.
const TURNS: u32 = 100;

impl StdMutex {
    pub(super) const fn new() -> Self {
        StdMutex(U32::ZERO)
    }

    /// Spins while the mutex is held and nobody sleeps. Returns what it saw last.
    fn spin(&self) -> u32 {
        for _ in 0..TURNS {
            let seen = self.0.read();
            if seen != HELD {
                return seen;
            }
            Sim::relax();
        }
        self.0.read()
    }

    fn wait(&self) {
        let mut seen = self.spin();
        if seen == FREE {
            match self.0.replace(FREE, HELD) {
                Ok(_) => return,
                Err(found) => seen = found,
            }
        }
        loop {
            // It cannot know whether others sleep, so it says that they do.
            if seen != WAITED_FOR && self.0.update(|_| WAITED_FOR) == FREE {
                return;
            }
            Sim::wait32(&self.0, WAITED_FOR, &WaitBounds::FOREVER);
            seen = self.spin();
        }
    }
}

impl PlainLock for StdMutex {
    fn lock(&self) {
        if self.0.replace(FREE, HELD).is_err() {
            at(Activity::SlowPath, || self.wait());
        }
    }

    fn unlock(&self) {
        if self.0.update(|_| FREE) == WAITED_FOR {
            at(Activity::SlowPath, || Sim::wake(Sim::address32(&self.0), 1));
        }
    }
}
