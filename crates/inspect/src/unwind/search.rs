//! Finds a frame that lies by a frame pointer nobody knows.
//!
//! # Role
//! From outside, a thread in a system call shows its program counter and stack
//! pointer. Code compiled with frame pointers (anything unoptimised, and whole
//! distributions) finds its frame by `rbp`, and the C library's frames above it
//! often have not saved that register. Its value is then looked for on the
//! stack: it is the address of a pair, the caller's `rbp` and the return
//! address, somewhere above the stack pointer.
//!
//! # What is accepted
//! Leftovers of earlier calls look like such pairs. A place is *plausible* if
//! the return address is behind a call instruction (or is where the kernel lets
//! signal handlers return to, which counts as a confirmed call) and the walk goes on from
//! there to the bottom of the stack. Each step of that walk has a *link*: the
//! call in front of the return address leads to the very function it is said
//! to have called (*confirmed*), or to another (*contradicted*), or it is
//! indirect (*open*). The lowest plausible place decides, for the true one
//! always is plausible and lies below those of its callers:
//!
//! - its own link is confirmed and no later one contradicted: accepted;
//! - its own link is open, but no other place is plausible, and what follows is
//!   found without frame pointers: the thread's first function, accepted;
//! - else nothing is. Tail calls end here: their links contradict.
//!
//! A leftover passes only if its function was called directly by another
//! function which an indirect call had run from where the true caller stands.
//! Frames found so are marked.

use super::calls::{Link, link};
use super::registers::Registers;
use super::{MAX_FRAMES, Unwinder};
use crate::memory::ReadableMemory;
use crate::stack::{CodeAddress, StackEnd};
use lockstead_unwind::{FP, SP};

/// How far above the stack pointer: more than most frames take.
const RANGE: u64 = 256 << 10;

/// Frame pointers are aligned as the stack is at calls.
const STEP: u64 = 16;

/// What followed a plausible place.
struct SearchWalk {
    own: Link,
    contradicted_later: bool,
    by_frame_pointer: bool,
}

impl Unwinder {
    /// Returns the frame pointer of the frame at `at`, whose row asks for it.
    pub(super) fn search(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        registers: &Registers,
    ) -> Option<u64> {
        let sp = registers.get(SP)?;
        let first = sp.checked_next_multiple_of(STEP)?;
        let mut lone = None;
        for place in (first..first.saturating_add(RANGE)).step_by(STEP as usize) {
            // The end of the stack.
            let Ok(word) = self.window.read(memory, place + 8) else { break };
            if !self.is_code(self.return_address(word)) {
                continue;
            }
            let start = registers.with(FP, Some(place));
            let Some(walk) = self.walk(memory, at, start) else { continue };
            if lone.is_some() {
                return None;
            }
            match walk.own {
                Link::Confirmed if !walk.contradicted_later => return Some(place),
                Link::Open if !walk.contradicted_later && !walk.by_frame_pointer => {
                    lone = Some(place);
                }
                _ => return None,
            }
        }
        lone
    }

    /// Walks to the bottom. Returns `None` if it is not reached over calls.
    fn walk(
        &mut self,
        memory: &dyn ReadableMemory,
        at: CodeAddress,
        mut registers: Registers,
    ) -> Option<SearchWalk> {
        let mut at = at;
        let mut own = None;
        let mut walk =
            SearchWalk { own: Link::Open, contradicted_later: false, by_frame_pointer: false };
        for _ in 0..MAX_FRAMES {
            let row = self.row(memory, at.lookup()).ok()?;
            let caller = match self.step(memory, at, &mut registers) {
                Ok(caller) => caller,
                // Reached, if there was at least the one caller looked for.
                Err(StackEnd::Bottom) => {
                    walk.own = own?;
                    return Some(walk);
                }
                Err(_) => return None,
            };
            // What a signal interrupted did not call.
            if !row.signal {
                let link = if self.row(memory, caller.lookup()).is_ok_and(|row| row.signal) {
                    Link::Confirmed
                } else {
                    link(memory, caller.address, row.function)?
                };
                if own.is_none() {
                    own = Some(link);
                } else {
                    walk.contradicted_later |= link == Link::Contradicted;
                    walk.by_frame_pointer |= row.is_by_frame_pointer();
                }
            }
            at = caller;
        }
        None
    }
}
