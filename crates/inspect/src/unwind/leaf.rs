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
//! A function may end with a jump to another, which then stands in its place on the stack: so a call leads
//! also to where the function called jumps. Where the table counts from the frame pointer, which the kernel
//! does not show either, the size of the frame is what the function's code takes off the stack pointer in
//! front of the call, and the caller's frame pointer must have been saved beside the return address.
//!
//! The library that `lockstead run` puts under programs calls the C library's functions through pointers. So
//! a call through a pointer leads anywhere if it is in that library, and in a function that was called directly.
//!
//! Frames found so are marked. A leftover passes only if it lies where the true caller's return address
//! would lie in a frame of that function, below that of the true one.

use super::calls::{Called, called_before, is_jump, jump_at, taken_off_stack};
use super::registers::Registers;
use super::{NoRule, Unwinder};
use crate::maps::Backing;
use crate::memory::{ReadableMemory, SavedMemory};
use crate::stack::{CodeAddress, is_lockstead};
use lockstead_unwind::SP;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::iter;

/// How far above the stack pointer: more than a frame of the C library takes that calls such a function.
const RANGE: u64 = 4096;
/// How many bytes of a function are looked through for calls and jumps.
const LONGEST: usize = 16 << 10;

/// What is found of a caller.
pub(super) struct Caller {
    /// Where it goes on.
    pub(super) returns_to: u64,
    /// Its frame pointer, where the table counts from that.
    pub(super) frame_pointer: Option<u64>,
}

/// A search for the caller of one function.
struct Search<'m> {
    memory: &'m dyn ReadableMemory,
    sleeps: u64,
    sp: u64,
    /// The other functions that a function jumps to, for each that was asked about.
    jumps: HashMap<u64, Vec<u64>>,
}

impl Unwinder {
    /// Returns what is known of the caller of the function at `at`, if that has saved nothing.
    pub(super) fn search_caller(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        registers: &Registers,
    ) -> Option<Caller> {
        let row = self.row(memory, at.lookup()).ok()?;
        if !row.is_leaf() {
            return None;
        }
        let sp = registers.get(SP)?;
        let mut search = Search { memory, sleeps: row.function, sp, jumps: HashMap::new() };
        for place in (sp..sp.checked_add(RANGE)?).step_by(8) {
            // The end of the stack.
            let Ok(word) = self.window.read(memory, place) else { return None };
            let after = self.return_address(word);
            if !self.is_code(after) {
                continue;
            }
            let Some(Called::At(called)) = called_before(memory, after) else { continue };
            let jumps = self.jumps(&mut search, called);
            for caller in iter::once(called).chain(jumps) {
                if let Some(found) = self.calls_from(&mut search, caller, place) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Returns where the function at `caller` goes on after its first call of the one that sleeps, if its
    /// return address lies at `place` then.
    fn calls_from(&mut self, search: &mut Search<'_>, caller: u64, place: u64) -> Option<Caller> {
        let memory = search.memory;
        let copy = function_code(memory, caller)?;
        // What the code in front of a call has taken off the stack pointer, in bytes: not known where a part
        // of it may have been jumped over.
        let (mut taken, mut has_jumped) = (Some(0), false);
        for at in copy.instructions() {
            taken = match taken_off_stack(&copy.code, at) {
                Some(0) => taken,
                Some(bytes) if !has_jumped => taken.map(|taken| taken + bytes),
                _ => None,
            };
            has_jumped |= is_jump(&copy.code, at);
            let after = at.checked_add(4)?;
            if called_before(&copy.code, after).is_none() {
                continue;
            }
            let (lies_at, frame_pointer) = match self.row(memory, at) {
                Ok(row) if row.function != caller => return None,
                Ok(row) => match (row.returns_by(), row.returns_beside(), taken) {
                    (Some(above), ..) => (search.sp.checked_add(above)?, None),
                    (None, Some(beside), Some(taken)) => {
                        let frame = search.sp.checked_add(taken)?;
                        let pointer = frame.checked_sub(beside.frame_above_pointer)?;
                        (frame.checked_sub(beside.pair_below_frame)?.checked_add(8)?, Some(pointer))
                    }
                    _ => continue,
                },
                Err(NoRule { .. }) => return None,
            };
            if lies_at != place || !self.leads_to(search, after) {
                continue;
            }
            if let Some(pointer) = frame_pointer {
                // The outermost frame has none that it could have saved.
                let saved = self.window.read(memory, place.checked_sub(8)?).ok()?;
                let stack = self.modules.maps().find(search.sp)?.range.end;
                let is_pointer = saved > pointer && saved < stack && saved.is_multiple_of(16);
                if saved != 0 && !is_pointer {
                    continue;
                }
            }
            return Some(Caller { returns_to: after, frame_pointer });
        }
        None
    }

    /// Tells whether the call in front of `after` leads to the function that sleeps. Over the linkage table
    /// it does so through memory.
    fn leads_to(&mut self, search: &mut Search<'_>, after: u64) -> bool {
        match called_before(search.memory, after) {
            Some(Called::At(called)) => {
                called == search.sleeps || self.jumps(search, called).contains(&search.sleeps)
            }
            Some(Called::Somewhere) => {
                let mapping = self.modules.maps().find(after);
                let path = mapping.and_then(|mapping| match &mapping.backing {
                    Backing::File { path, .. } => path.to_str(),
                    _ => None,
                });
                path.is_some_and(is_lockstead)
            }
            None => false,
        }
    }

    /// Returns the other functions that the one at `function` jumps to the beginning of.
    fn jumps(&mut self, search: &mut Search<'_>, function: u64) -> Vec<u64> {
        let memory = search.memory;
        let known = match search.jumps.entry(function) {
            Entry::Occupied(known) => return known.get().clone(),
            Entry::Vacant(place) => place,
        };
        let mut found = Vec::new();
        let copy = function_code(memory, function);
        for at in copy.iter().flat_map(Code::instructions) {
            let Some(target) = jump_at(memory, at) else { continue };
            if !self.row(memory, at).is_ok_and(|row| row.function == function) {
                break;
            }
            let begins = self.row(memory, target).is_ok_and(|row| row.function == target);
            if begins && target != function && !found.contains(&target) {
                found.push(target);
            }
        }
        known.insert(found.clone());
        found
    }
}

/// The first bytes of a function, and perhaps of what comes after it.
struct Code {
    from: u64,
    code: SavedMemory,
    length: usize,
}

impl Code {
    fn instructions(&self) -> impl Iterator<Item = u64> + use<> {
        (self.from..).step_by(4).take(self.length / 4)
    }
}

fn function_code(memory: &dyn ReadableMemory, function: u64) -> Option<Code> {
    let mut code = vec![0; LONGEST];
    let length = memory.read(function, &mut code).ok()?;
    code.truncate(length);
    Some(Code { from: function, code: SavedMemory::new(function, code), length })
}
