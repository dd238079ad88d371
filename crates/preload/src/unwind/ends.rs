//! Says where a walk starts, and why it ends.

use lockstead_unwind::Stop;

/// The start of a walk: the caller of an interposed function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkStart {
    /// The address to which the interposed function returns.
    pub pc: u64,
    /// The stack pointer after it has returned.
    pub sp: u64,
    /// The value of the frame pointer at the call.
    pub bp: u64,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// The walk came to the outermost function of the thread.
    Bottom,
    /// The place for return addresses was used up; there are more frames.
    Full,
    /// Nothing describes the frame of the last address, and the frame pointer points at no
    /// plausible one.
    Uncharted,
    /// The rule of the last frame reads a word outside the stack, or leads
    /// downwards. So ends a stack that was overwritten, and one that the caller
    /// did not name.
    OffStack,
    /// The rule of the last frame needs a register or an operation that is not
    /// followed.
    Unknown,
    /// The unwind tables of the last frame's module cannot be parsed.
    Damaged,
}

impl From<Stop> for WalkEnd {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Bottom => Self::Bottom,
            Stop::Unreadable(_) => Self::OffStack,
            Stop::Unknown(_) | Stop::Unsupported => Self::Unknown,
            Stop::Damaged => Self::Damaged,
        }
    }
}
