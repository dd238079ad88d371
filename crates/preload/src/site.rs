//! Names the place in the program at which an interposed function was called.

use crate::unwind::WalkStart;

/// What a thunk leaves on the stack: the caller's frame pointer, below the
/// return address that the call pushed. Its own address tells the rest.
#[repr(C)]
#[derive(Debug)]
pub struct CallSite {
    frame_pointer: u64,
    return_address: u64,
}

impl CallSite {
    /// Returns the address to which the interposed function returns.
    #[inline(always)]
    #[must_use]
    pub fn return_address(&self) -> u64 {
        self.return_address
    }

    /// Returns the caller's stack pointer at the call, and after it.
    #[inline(always)]
    #[must_use]
    pub fn stack_pointer(&self) -> u64 {
        core::ptr::from_ref(self) as u64 + size_of::<CallSite>() as u64
    }

    /// Returns where a walk of the caller's stack starts.
    #[inline(always)]
    #[must_use]
    pub fn start(&self) -> WalkStart {
        WalkStart { pc: self.return_address, sp: self.stack_pointer(), bp: self.frame_pointer }
    }
}
