//! Walks the call stack of the calling thread, from inside one of its lock calls.
//!
//! # Role
//! Runs in other people's programs, on the thread itself, whenever a lock call
//! meets a call chain that it has not met before. It never allocates, never
//! waits, makes no system call, and calls nothing but `_dl_find_object`, which
//! is itself free of locks; so it may run in a signal handler and in any thread.
//! It needs no scratch memory: its own frames stay below 2 KiB (2.25 on aarch64).
//!
//! # How a frame is left
//! 1. the return address is looked up in [`Rules`], which remembers how its
//!    frame is left, one word an address;
//! 2. else the module is found, in its `.eh_frame_hdr` the function, in
//!    `.eh_frame` the row of rules for the address, and the rule is remembered;
//! 3. where a module says nothing about an address (just-in-time compiled code,
//!    assembler without annotations), the frame pointer is tried, and the walk
//!    is marked as [`guessed`](WalkedStack::guessed).
//!
//! # Invariants
//! - **WALK-STACK** The stack is read through [`StackMemory`] alone, which refuses what is not
//!   an aligned word of the part of the stack that is in use.
//! - **WALK-UPWARDS** The stack pointer grows with every frame; it may leap only out of a
//!   signal handler's frame, and from one stack to another only once.
//! - **WALK-TABLES** Unwind tables are read through [`ModuleImage`] alone, within the mapping of
//!   the module they belong to.
//!
//! From these: a walk never faults and always ends, whatever the stack or the
//! tables hold. What they cannot give is truth: a stack that was overwritten
//! gives addresses that never called anybody.
//!
//! # Registers
//! Of the registers only stack pointer and frame pointer are followed. The compilers' rules need no
//! others, except in the middle of a prologue that realigns the stack, where no
//! call is made; a rule that needs another ends the walk
//! ([`WalkEnd::Unknown`]).

use crate::arch::leaving::return_address;

mod ends;
mod module;
mod rules;
mod stack;
mod step;

pub use ends::{WalkEnd, WalkStart};
pub use lockstead_unwind::ModuleImage;
pub use module::{FindObject, Loaded, LoadedModules};
pub use rules::Rules;
pub use stack::{OwnStack, StackMemory};

pub(crate) use step::{LeftFrame, WalkFrame};

/// How many further return addresses [`WalkedStack::slots`] locates.
pub const SLOTS: usize = 3;

/// What [`Unwinder::walk`] found, beside the return addresses themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedStack {
    /// How many return addresses were written.
    pub len: usize,
    /// Why there are not more.
    pub end: WalkEnd,
    /// A frame was left by its frame pointer without a table that says so: the
    /// addresses beyond are likely, not certain.
    pub guessed: bool,
    /// The places of the addresses after the first.
    pub slots: ReturnSlots,
}

/// The places on the stack of the return addresses after the first, by which the same chain of
/// calls can be recognised without a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnSlots {
    /// How many of `words` are known: fewer than [`SLOTS`] where the walk ended
    /// before, or where a frame is larger than half a MiB.
    pub known: u8,
    /// The distances from [`WalkStart::sp`], in words of eight bytes. Each is of a word that the
    /// walk has read.
    pub words: [u16; SLOTS],
}

impl ReturnSlots {
    /// Tells whether the addresses of `chain`, which starts with [`WalkStart::pc`], still
    /// lie where a walk from the same `sp` found them.
    ///
    /// # Safety
    /// `sp` is the stack pointer of the calling thread's live caller, and the
    /// stack the same one, no shorter, on which the walk ran that filled this.
    #[inline]
    #[must_use]
    pub unsafe fn lead_to(&self, sp: u64, chain: &[u64]) -> bool {
        let known = usize::from(self.known);
        chain.len() > known
            && self.words.iter().zip(&chain[1..]).take(known).all(|(&words, &address)| {
                let slot = (sp + u64::from(words) * 8) as *const u64;
                // SAFETY: the caller promises the stack on which the walk has read this word
                // (WALK-STACK); other frames of this thread do not run meanwhile.
                return_address(unsafe { slot.read_volatile() }) == address
            })
    }
}

/// An unwinder over the modules `M` of a process, with what it has learned of
/// them.
#[derive(Clone, Copy, Debug)]
pub struct Unwinder<'a, M> {
    modules: M,
    rules: &'a Rules,
}

impl<'a, M: LoadedModules> Unwinder<'a, M> {
    /// Makes an unwinder over `modules` that remembers in `rules`. All unwinders with
    /// the same rules must have the same modules.
    pub const fn new(modules: M, rules: &'a Rules) -> Self {
        Self { modules, rules }
    }

    /// Writes the return addresses of the calls that led to `start`, the
    /// innermost, `start.pc`, first.
    ///
    /// An address of a frame that a signal interrupted is the address of the
    /// instruction that comes next there; all others follow a call.
    pub fn walk(
        &self,
        start: WalkStart,
        mut memory: impl StackMemory,
        chain: &mut [u64],
    ) -> WalkedStack {
        let mut frame = WalkFrame::of(start);
        let mut walk = WalkedStack {
            len: 0,
            end: WalkEnd::Full,
            guessed: false,
            slots: ReturnSlots::default(),
        };
        for entry in chain.iter_mut() {
            *entry = frame.pc;
            walk.len += 1;
            match step::leave(&self.modules, self.rules, frame, &mut memory) {
                Ok(left) => {
                    walk.guessed |= left.guessed;
                    walk.slots.extend(walk.len, start.sp, left.slot);
                    frame = left.caller;
                }
                Err(end) => {
                    walk.end = end;
                    break;
                }
            }
        }
        // The last step may have found a slot whose address had no place.
        walk.slots.known = walk.slots.known.min(walk.len.saturating_sub(1) as u8);
        walk
    }
}

impl ReturnSlots {
    /// Takes up that the return address of index `index` lies at `slot`.
    fn extend(&mut self, index: usize, sp: u64, slot: Option<u64>) {
        if index != usize::from(self.known) + 1 || index > SLOTS {
            return;
        }
        let words = slot.and_then(|slot| slot.checked_sub(sp)).map(|bytes| bytes / 8);
        if let Some(words) = words.and_then(|words| u16::try_from(words).ok()) {
            self.words[index - 1] = words;
            self.known += 1;
        }
    }
}
