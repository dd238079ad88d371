//! Spin locks of the kernel: the ticket lock, the reader-writer lock of before 2014, and
//! the queue of Mellor-Crummey and Scott.

use crate::engine::calls::{at, me, pause};
use crate::engine::task::Activity;
use crate::engine::words::{QueueLock, QueueNode, TicketLock, U32};
use crate::engine::world::with;

impl TicketLock {
    pub(crate) fn lock(&self) {
        at(Activity::SpinLock, || {
            let ticket = self.next.update(|next| next.wrapping_add(1));
            while self.turn.read() != ticket {
                pause();
            }
        });
    }

    pub(crate) fn unlock(&self) {
        // A plain store: nobody else changes it.
        self.turn.write(self.turn.read().wrapping_add(1));
    }
}

/// A lock for as many readers as come, or one writer, by a count that starts at a bias.
#[repr(transparent)]
pub(crate) struct RwSpinLock(U32);

/// The amount that a writer takes; the word counts downwards from there, but starts at 0 here.
const WRITER: u32 = 1 << 24;

impl RwSpinLock {
    pub(crate) const fn new() -> Self {
        RwSpinLock(U32::ZERO)
    }

    pub(crate) fn read_lock(&self) {
        while self.0.update(|word| word.wrapping_add(1)) >= WRITER {
            at(Activity::ReadLock, || {
                self.0.update(|word| word.wrapping_sub(1));
                while self.0.read() >= WRITER {
                    pause();
                }
            });
        }
    }

    pub(crate) fn read_unlock(&self) {
        self.0.update(|word| word.wrapping_sub(1));
    }

    pub(crate) fn write_lock(&self) {
        while self.0.update(|word| word.wrapping_add(WRITER)) != 0 {
            at(Activity::WriteLock, || {
                self.0.update(|word| word.wrapping_sub(WRITER));
                while self.0.read() != 0 {
                    pause();
                }
            });
        }
    }

    pub(crate) fn write_unlock(&self) {
        self.0.update(|word| word.wrapping_sub(WRITER));
    }
}

impl<const KERNEL: bool> QueueLock<KERNEL> {
    fn node(number: u64) -> &'static QueueNode {
        with(|w| if KERNEL { &w.kernel_nodes } else { &w.nodes }[number as usize - 1])
    }

    pub(crate) fn lock(&self) {
        at(Activity::SpinQueue, || {
            let mine = me() as u64 + 1;
            let node_ = Self::node(mine);
            node_.locked.write(0);
            node_.next.write(0);
            let before = self.0.update(|_| mine);
            if before == 0 {
                return;
            }
            Self::node(before).next.write(mine);
            while node_.locked.read() == 0 {
                pause();
            }
        });
    }

    pub(crate) fn unlock(&self) {
        at(Activity::SpinQueue, || {
            let mine = me() as u64 + 1;
            let mut next = Self::node(mine).next.read();
            if next == 0 {
                if self.0.replace(mine, 0).is_ok() {
                    return;
                }
                loop {
                    next = Self::node(mine).next.read();
                    if next != 0 {
                        break;
                    }
                    pause();
                }
            }
            Self::node(next).locked.write(1);
        });
    }
}
