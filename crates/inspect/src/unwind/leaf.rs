//! Finds the caller of a function that has saved nothing: its return address is in a register, which the
//! kernel does not show of a thread that sleeps. So sleep those that wait in some of the C library's
//! functions, `syscall` among them.
//!
//! # What is accepted
//! The caller's frame begins where the stack pointer is, and has somewhere in it the address to which the
//! caller returns. A word above the stack pointer is that if a direct call stands in front of the address in
//! it, the function called so has itself a direct call of the one that sleeps, and the unwind table says of
//! the place behind that call that the return address lies exactly here. The lowest such word decides. Where
//! the caller calls the function several times, and the table says the same of each place, the first stands
//! for all: what comes after is the same.
//!
//! Frames found so are marked. A leftover passes only if it lies where the true caller's return address
//! would lie in a frame of that function, below that of the true one.

use super::calls::{Called, called_before};
use super::registers::Registers;
use super::{NoRule, Unwinder};
use crate::memory::{ReadableMemory, SavedMemory};
use crate::stack::CodeAddress;
use lockstead_unwind::SP;

/// How far above the stack pointer: more than a frame of the C library takes that calls such a function.
const RANGE: u64 = 4096;
/// How many bytes of a function are looked through for calls.
const LONGEST: usize = 16 << 10;

impl Unwinder {
    /// Returns the address to which the function at `at` returns, if it has saved nothing.
    pub(super) fn search_caller(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        registers: &Registers,
    ) -> Option<u64> {
        let row = self.row(memory, at.lookup()).ok()?;
        if !row.is_leaf() {
            return None;
        }
        let (sp, sleeps) = (registers.get(SP)?, row.function);
        for place in (sp..sp.checked_add(RANGE)?).step_by(8) {
            // The end of the stack.
            let Ok(word) = self.window.read(memory, place) else { return None };
            let after = self.return_address(word);
            if !self.is_code(after) {
                continue;
            }
            let Some(Called::At(caller)) = called_before(memory, after) else { continue };
            if let Some(found) = self.calls_from(memory, caller, sleeps, place - sp) {
                return Some(found);
            }
        }
        None
    }

    /// Returns where the function at `caller` goes on after its first call of `callee`, if its return
    /// address lies so far above the stack pointer there.
    fn calls_from(
        &mut self,
        memory: &dyn ReadableMemory,
        caller: u64,
        callee: u64,
        above: u64,
    ) -> Option<u64> {
        let mut code = vec![0; LONGEST];
        let length = memory.read(caller, &mut code).ok()?;
        code.truncate(length);
        let copy = SavedMemory::new(caller, code);
        for at in (caller..).step_by(4).take(length / 4) {
            let after = at.checked_add(4)?;
            let Some(Called::At(target)) = called_before(&copy, after) else { continue };
            // Over the linkage table it leads through memory that the copy has not.
            if target != callee && called_before(memory, after) != Some(Called::At(callee)) {
                continue;
            }
            match self.row(memory, at) {
                Ok(row) if row.function != caller => return None,
                Ok(row) if row.returns_by() == Some(above) => return Some(after),
                Ok(_) => {}
                Err(NoRule { .. }) => return None,
            }
        }
        None
    }
}
