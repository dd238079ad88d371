//! Code without unwind tables is not read on aarch64: its innermost function has the return address in a
//! register, which nobody outside knows of a thread that sleeps. The walk goes on by the frame pointer
//! where that is known.

use super::{Kept, StackPlace};
use crate::memory::ReadableMemory;
use lockstead_unwind::Register;

/// How a function is left: never known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {}

impl Leaving {
    /// Returns `None`: no code is read.
    pub(crate) fn of(_: &dyn ReadableMemory, _: u64) -> Option<Leaving> {
        None
    }

    /// Returns where the return address lies.
    pub(crate) fn returns_by(&self) -> StackPlace {
        match *self {}
    }

    /// Returns what becomes of each register that functions leave as they found it.
    pub(crate) fn kept(&self) -> std::iter::Empty<(Register, Kept)> {
        match *self {}
    }
}

/// Says that it cannot be told whether the code at a function leads to an address.
pub(crate) fn reaches(_: &dyn ReadableMemory, _: u64, _: u64) -> Option<bool> {
    None
}
