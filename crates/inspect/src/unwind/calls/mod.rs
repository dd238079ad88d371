//! Reads the call in front of an address: whether there is one, and where it leads.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{called_before, is_jump, jump_at, link, taken_off_stack};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{called_before, link};

/// Whether a call leads to the function that it is said to have called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    Confirmed,
    Open,
    Contradicted,
}

/// Where a call leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Called {
    /// It calls the function at this address.
    At(u64),
    /// It calls what a register or memory says.
    Somewhere,
}
