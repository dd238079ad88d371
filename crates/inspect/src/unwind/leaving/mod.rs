//! Says how code without unwind tables is left: by what its instructions do until it returns.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{Leaving, reaches};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{Leaving, reaches};

/// The register that an offset counts from, as it is at the program counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackBase {
    StackPointer,
    FramePointer,
}

/// A place on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackPlace {
    pub(super) base: StackBase,
    pub(super) offset: i64,
}

impl StackPlace {
    fn moved(self, by: i64) -> StackPlace {
        StackPlace { offset: self.offset.saturating_add(by), ..self }
    }
}

/// What has become of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is as at the program counter.
    Same,
    /// It was taken from here.
    At(StackPlace),
    /// That is not known.
    Lost,
}
