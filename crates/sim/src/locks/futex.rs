//! The mutex of today's C libraries: a word that one sleeps on.
//!
//! # Role
//! Programs use it that use no other. 0 is free, 1 held, 2 held while a task may sleep. No task
//! spins. After Drepper, "Futexes are tricky" (2004); that a waiter which finds 2 sleeps without an
//! exchange is glibc's.

use super::plain::PlainLock;
use crate::engine::calls::at;
use crate::engine::task::Activity;
use crate::engine::words::Sim;
use crate::engine::words::U32;
use lockstead_core::{Platform, WaitBounds};

/// A mutex whose waiters sleep on its word.
#[repr(transparent)]
pub(super) struct FutexMutex(U32);

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

impl FutexMutex {
    pub(super) const fn new() -> Self {
        FutexMutex(U32::ZERO)
    }

    pub(super) fn looks_free(&self) -> bool {
        self.0.read() == FREE
    }

    pub(super) fn try_lock(&self) -> bool {
        self.0.replace(FREE, HELD).is_ok()
    }
}

impl PlainLock for FutexMutex {
    fn lock(&self) {
        if self.try_lock() {
            return;
        }
        at(Activity::SlowPath, || {
            let mut sleeps = self.0.read() == WAITED_FOR;
            while sleeps || self.0.update(|_| WAITED_FOR) != FREE {
                sleeps = false;
                Sim::wait32(&self.0, WAITED_FOR, &WaitBounds::FOREVER);
            }
        });
    }

    fn unlock(&self) {
        if self.0.update(|_| FREE) == WAITED_FOR {
            at(Activity::SlowPath, || Sim::wake(Sim::address32(&self.0), 1));
        }
    }
}
