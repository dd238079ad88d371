//! Names the reasons why a frame cannot be left.

use gimli::Register;

/// Why a frame cannot be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The table says that nobody called.
    Bottom,
    /// The step needs this register, whose value nobody knows.
    Unknown(Register),
    /// There is no memory that may be read at this address.
    Unreadable(u64),
    /// The table uses what stacks have no use for.
    Unsupported,
    /// The table contradicts itself, or ends too early.
    Damaged,
}
