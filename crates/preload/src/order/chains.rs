//! Which chains of held locks are known: a cache for all threads.
//!
//! # Role
//! What a thread holds, in the order in which it took it, is a *chain*, and a
//! number stands for it, its *key*. A thread that holds the chain K and asks for
//! the lock L leaves edges once; from then on the key of both is found here, and
//! nothing else is looked at.
//!
//! # State
//! A slot is chosen by the key of K and the address of L, such that locks that lie
//! side by side in the program have their slots side by side. It has a part of the
//! key of both, and a bit for each thread that need not look again: threads whose
//! records lie a multiple of 32 apart share one.
//!
//! A key contains how often lives have ended near each of its locks ([`LIVES`]),
//! so that what was known of a lock is not taken for knowledge of its successor.
//!
//! # Invariants
//! - **C2** It is a cache. A slot that another chain takes costs a slow look. Two
//!   chains that share a slot and agree in those 32 bits of their keys are taken
//!   for one; among n chains of a process that happens with a probability of
//!   n squared over 2^51.
//! - **C3** A forked child finds it empty.

use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::witness::Known;

/// Slots of the cache.
pub const SLOTS: usize = 1 << 18;

/// The cache; sparse.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Chains(pub [AtomicU64; SLOTS]);

/// The cache of this process.
pub static CHAINS: Chains = Chains([const { AtomicU64::new(0) }; SLOTS]);

/// Counters of lives, each for all addresses with the same bits 6 to 21.
pub const LINES: usize = 1 << 16;

/// How many lives of locks have ended in a line of memory.
pub static LIVES: [AtomicU32; LINES] = [const { AtomicU32::new(0) }; LINES];

/// Multiplier of keys: 2^64 divided by the golden ratio.
pub const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// How far the count of lives is shifted in a key.
pub const LIVES_SHIFT: u32 = 20;
/// The key's bits above this one, 32 of them, are in the slot.
pub const FACT_SHIFT: u32 = 14;
/// The key's bits above this one choose the slot.
pub const SLOT_SHIFT: u32 = 40;

/// The key of holding nothing, in a process that has one thread.
pub const ALONE: u64 = 1 << 63;

/// How a lock is asked for, in keys: added to its address, whose lowest bits are
/// zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Want {
    /// Alone.
    Write = 0,
    /// With other readers.
    Read = 1,
    /// Again, after a wait on a condition variable.
    Back = 2,
}

/// The key of holding what `key` says and this lock. The fast path computes the
/// same.
#[inline]
#[must_use]
pub fn with(key: u64, address: u64, want: Want) -> u64 {
    let lives = LIVES[line(address)].load(Relaxed);
    let mixed = (key.rotate_left(5) ^ address.wrapping_add(want as u64)).wrapping_mul(MULTIPLIER);
    mixed.wrapping_add(u64::from(lives) << LIVES_SHIFT)
}

fn line(address: u64) -> usize {
    (address >> 6) as usize & (LINES - 1)
}

/// A lock at `address` has ended its life.
pub fn life_ended(address: u64) {
    LIVES[line(address)].fetch_add(1, Relaxed);
}

/// The step of one who holds a chain to one more lock.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    slot: &'static AtomicU64,
    fact: u32,
}

impl Step {
    /// From the chain of this key to the lock at `address`. The fast path computes
    /// the same.
    #[inline]
    #[must_use]
    pub fn new(key: u64, address: u64, want: Want) -> Step {
        let low = address as u32;
        let near = (low >> 5).wrapping_add((low >> 12).wrapping_mul(5));
        let slot = ((key >> SLOT_SHIFT) as u32).wrapping_add(near) as usize & (SLOTS - 1);
        Step { slot: &CHAINS.0[slot], fact: (with(key, address, want) >> FACT_SHIFT) as u32 }
    }

    /// Whether the thread whose record has this index need not look again.
    #[inline]
    #[must_use]
    pub fn is_known(&self, thread: u32) -> bool {
        let found = self.slot.load(Relaxed);
        found as u32 == self.fact && found >> (32 + thread % 32) & 1 != 0
    }

    /// Notes that it need not, or that no thread need.
    pub fn learn(&self, thread: u32, known: Known) {
        let found = self.slot.load(Relaxed);
        let others = if found as u32 == self.fact { found >> 32 } else { 0 };
        let threads = match known {
            Known::ToThis => others | 1 << (thread % 32),
            Known::ToAll => 0xffff_ffff,
        };
        // What another thread notes at this instant is lost: it will look again.
        self.slot.store(u64::from(self.fact) | threads << 32, Relaxed);
    }
}

/// Asks the kernel to empty the cache in forked children (C3). False where it
/// cannot.
#[must_use]
pub fn wipe_on_fork() -> bool {
    let (place, advice) = (&raw const CHAINS as usize, libc::MADV_WIPEONFORK as usize);
    // SAFETY: whole pages of ours, by the alignment and size, in zero-initialised
    // private memory.
    let asked =
        unsafe { sys::call(libc::SYS_madvise, [place, size_of::<Chains>(), advice, 0, 0, 0]) };
    asked.is_ok()
}

const _: () = assert!(size_of::<Chains>().is_multiple_of(4096));

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_tell_order_mode_and_life() {
        let (a, b) = (0x7f00_0000_1000, 0x7f00_0000_1028);
        let chain = |locks: &[(u64, Want)]| {
            locks.iter().fold(0, |key, &(address, want)| with(key, address, want))
        };
        let mut keys = HashSet::new();
        for locks in [
            &[(a, Want::Write)][..],
            &[(a, Want::Read)],
            &[(a, Want::Back)],
            &[(b, Want::Write)],
            &[(a, Want::Write), (b, Want::Write)],
            &[(b, Want::Write), (a, Want::Write)],
            &[(a, Want::Write), (a, Want::Write)],
        ] {
            assert!(keys.insert(chain(locks)), "{locks:?}");
        }
        life_ended(a);
        assert!(keys.insert(chain(&[(a, Want::Write)])));
    }

    #[test]
    fn what_is_known_is_known_to_those_that_learned_it() {
        let step = Step::new(77, 0x5555_0000_2000, Want::Write);
        assert!(!step.is_known(3));
        step.learn(3, Known::ToThis);
        step.learn(6, Known::ToThis);
        assert!(step.is_known(3) && step.is_known(6) && !step.is_known(4));
        step.learn(3, Known::ToAll);
        assert!((0..70).all(|thread| step.is_known(thread)));
        let other = Step::new(77, 0x5555_0000_2000, Want::Read);
        assert!(!other.is_known(3), "the same slot, another fact");
        other.learn(3, Known::ToThis);
        assert!(!step.is_known(3));
    }

    #[test]
    fn locks_side_by_side_do_not_displace_each_other() {
        for stride in [32, 40, 56, 64, 100, 4096, 1 << 16, 1 << 18] {
            let locks = (0..4096u64).map(|i| 0x7f12_3456_0000 + i * stride);
            let slots: HashSet<_> = locks
                .map(|address| core::ptr::from_ref(Step::new(9 << 45, address, Want::Write).slot))
                .collect();
            assert!(slots.len() >= 4090, "stride {stride}: {}", slots.len());
        }
    }
}
