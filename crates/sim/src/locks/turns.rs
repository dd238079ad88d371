//! Locks that only spin, as textbooks have them: by ticket, by trying, and as a queue.
//!
//! # Role
//! They are there to be compared with: none of them sleeps, so all stand still while a holder, or the
//! one whose turn it is, has lost its processor. [`ClhMutex`](super::clh) is the other queue.
//!
//! # Source
//! Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors"
//! (1991), which compares all three; the back-off is Anderson's (1990).

use super::plain::PlainLock;
use crate::engine::calls::{at, chance, pause};
use crate::engine::task::Activity;
use crate::engine::words::{QueueLock, Sim, TicketLock, U32};
use lockstead_core::Platform;

impl PlainLock for TicketLock {
    fn lock(&self) {
        TicketLock::lock(self);
    }
    fn unlock(&self) {
        TicketLock::unlock(self);
    }
}

impl PlainLock for QueueLock {
    fn lock(&self) {
        QueueLock::lock(self);
    }
    fn unlock(&self) {
        QueueLock::unlock(self);
    }
}

/// A word that is tried when it looks free. Who fails stays away for a time that doubles.
#[repr(transparent)]
pub(super) struct BackOffMutex(U32);

/// The turns of the first back-off and of the longest, of which a random part is waited. Chosen: no
/// source has numbers that fit each machine.
const TURNS: (u32, u32) = (4, 1024);

impl BackOffMutex {
    pub(super) const fn new() -> Self {
        BackOffMutex(U32::ZERO)
    }
}

impl PlainLock for BackOffMutex {
    fn lock(&self) {
        if self.0.replace(0, 1).is_ok() {
            return;
        }
        at(Activity::SpinLock, || {
            let mut most = TURNS.0;
            loop {
                // Its own loop reads its own copy, and has no end of its own.
                while self.0.read() != 0 {
                    pause();
                }
                if self.0.replace(0, 1).is_ok() {
                    return;
                }
                Sim::relax_for(1 + (chance() * f64::from(most)) as u32);
                most = (most * 2).min(TURNS.1);
            }
        });
    }

    fn unlock(&self) {
        self.0.write(0);
    }
}
