//! What tasks of one class wait for and others give: tokens, and meetings.
//!
//! # Role
//! A queue, a semaphore or a condition is a count of tokens: who gives adds some, who takes
//! sleeps while there are none. A barrier is a count of those that have come. Waiting and waking cost
//! what they cost natively: system calls, and the scheduler's part.

use crate::engine::calls::at;
use crate::engine::task::Activity;
use crate::engine::words::{Sim, U32};
use crate::engine::world::SimWorld;
use lockstead_core::{Platform, WaitBounds};

/// Tokens that are there, and tasks that wait for some.
#[repr(C)]
pub(crate) struct Tokens {
    there: U32,
    waiting: U32,
}

impl Tokens {
    /// Places a count that begins with so many.
    pub(crate) fn place(w: &mut SimWorld, start: u32) -> &'static Self {
        let tokens = w.arena.place(Tokens { there: U32::ZERO, waiting: U32::ZERO });
        tokens.there.set(start);
        tokens
    }

    /// Takes so many, one after the other; sleeps while there are none.
    pub(crate) fn take(&self, many: u32) {
        for _ in 0..many {
            loop {
                let seen = self.there.read();
                if seen == 0 {
                    at(Activity::Kernel, || {
                        self.waiting.update(|waiting| waiting + 1);
                        Sim::wait32(&self.there, 0, &WaitBounds::FOREVER);
                        self.waiting.update(|waiting| waiting - 1);
                    });
                } else if self.there.replace(seen, seen - 1).is_ok() {
                    break;
                }
            }
        }
    }

    /// Gives so many, and wakes as many that wait.
    pub(crate) fn give(&self, many: u32) {
        self.there.update(|there| there + many);
        if self.waiting.read() != 0 {
            at(Activity::Kernel, || Sim::wake(Sim::address32(&self.there), many));
        }
    }
}

/// The count of those that have come to a barrier.
#[repr(C)]
pub(crate) struct Meeting {
    here: U32,
    turn: U32,
}

impl Meeting {
    pub(crate) fn place(w: &mut SimWorld) -> &'static Self {
        w.arena.place(Meeting { here: U32::ZERO, turn: U32::ZERO })
    }

    /// Waits until so many have come.
    pub(crate) fn meet(&self, parties: u32) {
        let turn = self.turn.read();
        if self.here.update(|here| here + 1) + 1 == parties {
            self.here.write(0);
            self.turn.update(|turn| turn.wrapping_add(1));
            at(Activity::Kernel, || Sim::wake(Sim::address32(&self.turn), u32::MAX));
            return;
        }
        while self.turn.read() == turn {
            at(Activity::Kernel, || Sim::wait32(&self.turn, turn, &WaitBounds::FOREVER));
        }
    }
}
