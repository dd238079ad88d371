//! What an emulated run did that others could see.

/// Why a run ended. Nothing that it did before is in doubt for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The exception would go on to the next frame.
    Resumed,
    /// The exception would be caught, or the program ended by it.
    Stopped,
    /// It would sleep until somebody wakes it.
    Blocked,
    /// Whether it jumps, or where to, depends on what is not known.
    UnknownJump,
    /// Where it writes depends on what is not known.
    UnknownStore,
    /// It uses memory that is not there.
    NoMemory,
    /// It reached bytes that are no instruction, or none that is emulated.
    BadCode,
    /// It took too long.
    Bound,
}

/// The way in which one instruction changed memory as one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It put a value there, whatever was there before.
    Exchange,
    /// It put a value there if `expected` was there.
    CompareExchange {
        /// The value that it compared with.
        expected: Option<u64>,
        /// The value that it puts there.
        new: Option<u64>,
    },
    /// It computed the new value from the old one.
    Update,
}

/// One step that others could see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A locked instruction changed memory, or tried to.
    Locked {
        /// The address of the number.
        address: u64,
        /// The bytes of the number.
        size: usize,
        /// The kind of the change.
        change: Change,
        /// The value that was there before.
        before: Option<u64>,
        /// The value that is there afterwards.
        after: Option<u64>,
    },
    /// A call of a function that is known to release the lock at an address.
    Releases(u64),
    /// The same, of a thread's share of the lock at an address.
    ReleasesShared(u64),
    /// A call of a function that is known to acquire the lock at an address, or to try.
    Acquires(u64),
    /// A call that wakes threads which sleep on the word at an address.
    Wakes(u64),
    /// A call that would sleep on the word at an address.
    Sleeps(u64),
}
