//! Spin locks of the kernel: the ticket lock, the reader-writer lock of before 2014, and
//! the queue of Mellor-Crummey and Scott.

use crate::engine::atomics::{U32, U64};
use crate::engine::calls::{at, me, pause};
use crate::engine::world::{Place, with};

/// Takes turns by number: the next number in the high half, the one whose turn it is in
/// the low half.
#[repr(transparent)]
pub(crate) struct TicketLock(U32);

const TICKET: u32 = 1 << 16;

impl TicketLock {
    pub(crate) const fn new() -> Self {
        TicketLock(U32::ZERO)
    }

    pub(crate) fn lock(&self) {
        at(Place::SpinLock, || {
            let mine = self.0.update(|word| word.wrapping_add(TICKET));
            let ticket = mine >> 16;
            if mine & 0xffff == ticket {
                return;
            }
            while self.0.read() & 0xffff != ticket {
                pause();
            }
        });
    }

    pub(crate) fn unlock(&self) {
        // The processor of that time wrote the low half alone; nobody else changes it. A
        // ticket drawn while the write is on its way must not be lost, so it is an exchange.
        self.0.update(|word| (word & !0xffff) | (word.wrapping_add(1) & 0xffff));
    }
}

/// As many readers as come, or one writer, by a count that starts at a bias.
#[repr(transparent)]
pub(crate) struct RwSpinLock(U32);

/// What a writer takes; the word counts downwards from there, but starts at 0 here.
const WRITER: u32 = 1 << 24;

impl RwSpinLock {
    pub(crate) const fn new() -> Self {
        RwSpinLock(U32::ZERO)
    }

    pub(crate) fn read_lock(&self) {
        while self.0.update(|word| word.wrapping_add(1)) >= WRITER {
            at(Place::ReadLock, || {
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
            at(Place::WriteLock, || {
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

/// A task's place in a queue of spinners.
pub(crate) struct QueueNode {
    pub(super) next: U64,
    pub(super) locked: U32,
}

impl QueueNode {
    pub(crate) const fn new() -> Self {
        QueueNode { next: U64::ZERO, locked: U32::ZERO }
    }
}

/// The queue: its word names the last one's task, from 1.
#[repr(transparent)]
pub(crate) struct QueueLock(U64);

fn node(number: u64) -> &'static QueueNode {
    with(|w| w.nodes[number as usize - 1])
}

impl QueueLock {
    pub(crate) const fn new() -> Self {
        QueueLock(U64::ZERO)
    }

    pub(crate) fn lock(&self) {
        at(Place::SpinQueue, || {
            let mine = me() as u64 + 1;
            let node_ = node(mine);
            node_.locked.write(0);
            node_.next.write(0);
            let before = self.0.update(|_| mine);
            if before == 0 {
                return;
            }
            node(before).next.write(mine);
            while node_.locked.read() == 0 {
                pause();
            }
        });
    }

    pub(crate) fn unlock(&self) {
        at(Place::SpinQueue, || {
            let mine = me() as u64 + 1;
            let mut next = node(mine).next.read();
            if next == 0 {
                if self.0.replace(mine, 0).is_ok() {
                    return;
                }
                loop {
                    next = node(mine).next.read();
                    if next != 0 {
                        break;
                    }
                    pause();
                }
            }
            node(next).locked.write(1);
        });
    }
}
