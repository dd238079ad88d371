//! Reads the parts of memory that a walk may take for stack, and no others.

/// Access to the words of a thread's stack, and to no other memory.
pub trait StackMemory {
    /// Returns the word at `address`, if it is aligned and lies in the stack.
    fn word(&self, address: u64) -> Option<u64>;

    /// Moves to the stack that was left for a signal handler, whose stack pointer was `sp`. Returns
    /// false if there is no such stack, or no more.
    fn enter(&mut self, sp: u64) -> bool;
}

/// The stack of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnStack {
    /// The lowest address that may be read.
    low: u64,
    /// The address at which the stack ends.
    high: u64,
    /// The stack below the signal stack that the thread is on, if it is.
    interrupted: Option<(u64, u64)>,
}

/// The unit of memory protection: what is readable in one byte is readable in
/// all.
const PAGE: u64 = 4096;

impl OwnStack {
    /// Makes the stack of the part in use, from the stack pointer `sp` on, of the stack that ends
    /// at `high`.
    ///
    /// # Safety
    /// `sp` belongs to a frame of the calling thread that is live as long as
    /// this is used, and all of `[sp, high)` is readable.
    #[must_use]
    pub const unsafe fn new(sp: u64, high: u64) -> Self {
        Self { low: sp, high, interrupted: None }
    }

    /// Makes the stack that is certain to be readable when nothing is known but that `sp` is the
    /// stack pointer: the rest of its page. For a stack that the program made
    /// for itself, such as a coroutine's.
    ///
    /// # Safety
    /// `sp` belongs to a frame of the calling thread that is live as long as
    /// this is used.
    #[must_use]
    pub const unsafe fn unnamed(sp: u64) -> Self {
        Self { low: sp, high: (sp & !(PAGE - 1)).saturating_add(PAGE), interrupted: None }
    }

    /// Adds the stack `[low, high)` that was left for it: for a thread
    /// in a signal handler that has a stack of its own.
    ///
    /// # Safety
    /// From the stack pointer at which it was left, `[low, high)` is readable as
    /// long as this is used.
    #[must_use]
    pub const unsafe fn over(self, low: u64, high: u64) -> Self {
        Self { interrupted: Some((low, high)), ..self }
    }
}

impl StackMemory for OwnStack {
    #[inline]
    fn word(&self, address: u64) -> Option<u64> {
        if address < self.low || address.checked_add(8)? > self.high || !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: WALK-STACK: the constructor's caller promises that it is readable, and the
        // check says that it is aligned. Volatile, because frames of functions in other languages
        // are no objects that the compiler knows.
        Some(unsafe { (address as *const u64).read_volatile() })
    }

    fn enter(&mut self, sp: u64) -> bool {
        match self.interrupted.take() {
            Some((low, high)) if low <= sp && sp < high => {
                (self.low, self.high) = (sp, high);
                true
            }
            _ => false,
        }
    }
}
