//! The mutex of today's C libraries: a word that one sleeps on.
//!
//! # Role
//! Programs use it that use no other. 0 is free, 1 held, 2 held while a task may sleep. No task
//! spins. After Drepper, "Futexes are tricky" (2004).

use crate::engine::calls::at;
use crate::engine::task::Activity;
use crate::engine::words::Sim;
use crate::engine::words::U32;
use lockstead_core::{Platform, WaitBounds};

/// A mutex whose waiters sleep on its word.
#[repr(transparent)]
pub(crate) struct FutexMutex(U32);

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

impl FutexMutex {
    pub(crate) const fn new() -> Self {
        FutexMutex(U32::ZERO)
    }

    pub(crate) fn lock(&self) {
        if self.0.replace(FREE, HELD).is_err() {
            at(Activity::SlowPath, || {
                while self.0.update(|_| WAITED_FOR) != FREE {
                    Sim::wait32(&self.0, WAITED_FOR, &WaitBounds::FOREVER);
                }
            });
        }
    }

    pub(crate) fn unlock(&self) {
        if self.0.update(|_| FREE) == WAITED_FOR {
            at(Activity::SlowPath, || Sim::wake(Sim::address32(&self.0), 1));
        }
    }
}
