//! Words of simulated memory, without what an access to them costs (`atomics`), and what lies
//! in it that is made of them.
//!
//! They lie in memory as native ones do, so what shares a line natively shares it here.

use std::cell::UnsafeCell;

/// The simulated machine, a platform for the locks of the core (`platform.rs`).
#[derive(Clone, Copy, Debug)]
pub struct Sim;

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $value:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name(UnsafeCell<$value>);

        impl $name {
            /// A word that holds zero.
            #[expect(clippy::declare_interior_mutable_const, reason = "each use is a new one")]
            pub(crate) const ZERO: Self = $name(UnsafeCell::new(0));

            /// Returns where the word lies.
            pub(crate) fn address(&self) -> usize {
                self.0.get().expose_provenance()
            }

            /// Returns the value, at no cost.
            pub(crate) fn get(&self) -> $value {
                // SAFETY: by STRAND-TURN, which the engine keeps, nobody else uses the word now.
                unsafe { self.0.get().read() }
            }

            /// Sets the value, at no cost.
            pub(crate) fn set(&self, value: $value) {
                // SAFETY: by STRAND-TURN, which the engine keeps, nobody else uses the word now.
                unsafe { self.0.get().write(value) }
            }
        }
    };
}

word! {
    /// A simulated 32-bit atomic.
    U32, u32
}
word! {
    /// A simulated 64-bit atomic.
    U64, u64
}

/// A task's place in a queue of spinners.
pub(crate) struct QueueNode {
    pub(crate) next: U64,
    pub(crate) locked: U32,
}

impl QueueNode {
    pub(crate) const fn new() -> Self {
        QueueNode { next: U64::ZERO, locked: U32::ZERO }
    }
}

/// A lock of the kernel that takes turns by number (`locks::spin` has how). The real one has both
/// numbers in the halves of one word.
#[repr(C)]
pub(crate) struct TicketLock {
    pub(crate) next: U32,
    pub(crate) turn: U32,
}

impl TicketLock {
    pub(crate) const fn new() -> Self {
        TicketLock { next: U32::ZERO, turn: U32::ZERO }
    }
}

/// A lock that is a queue (`locks::spin` has how): its word names the last one's task, from 1. A task has a
/// place in one queue of the program's, and in one of the `KERNEL`'s.
#[repr(transparent)]
pub(crate) struct QueueLock<const KERNEL: bool = false>(pub(crate) U64);

impl<const KERNEL: bool> QueueLock<KERNEL> {
    pub(crate) const fn new() -> Self {
        QueueLock(U64::ZERO)
    }
}

/// A bucket of the kernel for those who sleep on a word (`futex` has how), which has a cache line.
#[repr(C)]
pub(crate) struct Bucket {
    /// The number of those who sleep there or are about to.
    pub(crate) waiters: U32,
    /// The lock of kernels before 4.2, and that since.
    pub(crate) turns: TicketLock,
    pub(crate) line: QueueLock<true>,
    /// The ends of the queue.
    pub(crate) queue: U32,
}

impl Bucket {
    pub(crate) const fn new() -> Self {
        Bucket {
            waiters: U32::ZERO,
            turns: TicketLock::new(),
            line: QueueLock::new(),
            queue: U32::ZERO,
        }
    }
}
