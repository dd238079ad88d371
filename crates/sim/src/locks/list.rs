//! The locks of wait lists, by their time.
//!
//! # Role
//! Until 2008 a spin lock of the kernel on x86 was a byte: a processor that finds it free takes it, in no
//! order, so that the processor that has just released it is ahead of all others. Since then
//! they take turns.

use crate::engine::calls::{at, pause};
use crate::engine::task::Activity;
use crate::engine::words::{TicketLock, U32};

/// The lock of a wait list.
#[repr(C)]
pub(super) enum ListLock {
    /// A lock that is taken in no order.
    Byte(ByteLock),
    /// A lock that is taken in turn.
    Ticket(TicketLock),
}

impl ListLock {
    pub(super) const fn byte() -> Self {
        ListLock::Byte(ByteLock(U32::ZERO))
    }

    pub(super) const fn ticket() -> Self {
        ListLock::Ticket(TicketLock::new())
    }

    pub(super) fn lock(&self) {
        match self {
            ListLock::Byte(lock) => lock.lock(),
            ListLock::Ticket(lock) => lock.lock(),
        }
    }

    pub(super) fn unlock(&self) {
        match self {
            ListLock::Byte(lock) => lock.0.write(0),
            ListLock::Ticket(lock) => lock.unlock(),
        }
    }
}

/// A byte that is 0 when it is free.
#[repr(transparent)]
pub(super) struct ByteLock(U32);

impl ByteLock {
    fn lock(&self) {
        at(Activity::SpinLock, || {
            while self.0.replace(0, 1).is_err() {
                while self.0.read() != 0 {
                    pause();
                }
            }
        });
    }
}
