//! Holders whose guards are variables that debug information knows.
//!
//! # Role
//! The variable gives a holder a name for the reader. Where only the code behind a call shows that
//! a thread holds a lock, a guard that is in scope in the same frame confirms it.
//!
//! # Cost
//! The entries of the unit around each such frame are read once. All of them together are bounded,
//! and so are the frames: beyond that holders have no variables.

use super::holders::{FoundHolder, OwnersFound};
use super::model::HolderEvidence;
use crate::memory::ReadableMemory;
use crate::symbols::{FrameValues, Symbolizer};
use std::collections::HashMap;

/// The frames of one process that are asked for variables.
const MOST_FRAMES: usize = 64;
/// The entries of debug information that are read for one process: some tenths of a second.
const MOST_ENTRIES: usize = 4_000_000;

/// The variables that were found, and what may still be read.
pub(super) struct GuardNames {
    /// The names by the thread, the place and the stack pointer of its frame, and the lock.
    known: HashMap<(u32, u64, Option<u64>, u64), Option<String>>,
    entries: usize,
}

impl Default for GuardNames {
    fn default() -> Self {
        GuardNames { known: HashMap::new(), entries: MOST_ENTRIES }
    }
}

impl GuardNames {
    /// Looks for the variables that are the guards of these holders.
    pub(super) fn confirm(
        &mut self,
        found: &mut OwnersFound,
        symbolizer: &mut Symbolizer,
        memory: &dyn ReadableMemory,
    ) {
        for holder in found.holders.values_mut().flatten() {
            holder.variable = self.guard_of(holder, symbolizer, memory);
            let is_likely = holder.hold.evidence == HolderEvidence::Likely;
            if is_likely && holder.variable.is_some() && holder.is_sure && !holder.is_giver() {
                holder.hold.evidence = HolderEvidence::Guard;
            }
        }
    }

    fn guard_of(
        &mut self,
        holder: &FoundHolder,
        symbolizer: &mut Symbolizer,
        memory: &dyn ReadableMemory,
    ) -> Option<String> {
        let lock = holder.hold.lock.address;
        let registers = holder.registers?;
        let key = (holder.thread, holder.at.address, registers.stack_pointer(), lock);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= MOST_FRAMES {
            return None;
        }
        let frame = FrameValues { registers, caller: holder.caller, memory };
        let variable = symbolizer.guard_variable(holder.at, &frame, lock, &mut self.entries);
        self.known.insert(key, variable.clone());
        variable
    }
}
