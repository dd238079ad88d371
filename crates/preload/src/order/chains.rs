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
//! side by side in the program have their slots side by side. It has the upper half
//! of the key of both, and a bit for each thread that need not look again: threads
//! whose records lie a multiple of 32 apart share one.
//!
//! A key contains how often lives have ended near each of its locks ([`LIVES`]),
//! so that what was known of a lock is not taken for knowledge of its successor.
//!
//! # Invariants
//! - **CHAINS-CACHE** It is a cache. A slot that another chain takes costs a slow look. Two
//!   chains that share a slot and agree in those 32 bits of their keys are taken
//!   for one; among n chains of a process that happens with a probability of
//!   n squared over 2^51.
//! - **CHAINS-FORK** A forked child finds it empty.

use crate::state::STATE;
use crate::wiped::{self, PADDING, Padding};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lockstead_ledger::witness::EdgeKnowledge;

/// The number of slots of the cache.
pub const SLOTS: usize = 1 << 18;

/// The cache, of which untouched pages cost nothing.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Chains {
    before: Padding,
    /// The slots, which are all that is used.
    pub slots: [AtomicU64; SLOTS],
    after: Padding,
}

/// The cache of this process.
pub static CHAINS: Chains =
    Chains { before: PADDING, slots: [const { AtomicU64::new(0) }; SLOTS], after: PADDING };

/// The number of counters of lives.
const LIVES_SLOTS: usize = 1 << 16;

/// How many lives of locks have ended near an address, times `LIFE`.
pub static LIVES: [AtomicU64; LIVES_SLOTS] = [const { AtomicU64::new(0) }; LIVES_SLOTS];

/// What the end of a life adds to a key: to its upper half, which is all that is
/// compared, and to the lower, which the next step mixes into the upper.
const LIFE: u64 = 1 << 32 | 1 << 20;

/// The multiplier of keys: 2^64 divided by the golden ratio. In memory, for the fast path.
pub static MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// The number whose product with an address, without the lower bits, says where that lies, in steps
/// of some 31 bytes. So addresses at a stride of a power of two differ.
pub const NEAR: u32 = 128 + 5;
/// The number of lower bits of that product that are left out.
pub const NEAR_SHIFT: u32 = 12;

/// The key of holding nothing, in a process that has one thread.
pub const ALONE: u64 = 1 << 63;

/// How a lock is asked for, in keys: added to its address, whose lowest bits are
/// zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum KeyMode {
    /// The lock is asked for alone.
    Write = 0,
    /// It is asked for with other readers.
    Read = 1,
    /// It is asked for again, after a wait on a condition variable.
    Back = 2,
    /// It is asked for alone, until a deadline. Of this and the next the sum is an address inside
    /// the lock, which is larger: no other lock has it.
    WriteTimed = 4,
    /// It is asked for with other readers, until a deadline.
    ReadTimed = 5,
    /// It is asked for with other readers, past a writer that waits.
    ReadRecursive = 6,
}

/// Returns the key of holding what `key` says and this lock. The fast path computes the same.
#[inline]
#[must_use]
pub fn with(key: u64, address: u64, want: KeyMode) -> u64 {
    let lives = LIVES[life_slot(address)].load(Relaxed);
    let mixed = (key ^ address.wrapping_add(want as u64)).wrapping_mul(MULTIPLIER);
    mixed.wrapping_add(lives)
}

/// Returns where an address lies, in numbers that are near each other for addresses that are.
#[inline]
fn near(address: u64) -> u32 {
    (address as u32).wrapping_mul(NEAR) >> NEAR_SHIFT
}

#[inline]
fn life_slot(address: u64) -> usize {
    near(address) as usize & (LIVES_SLOTS - 1)
}

/// Notes that a lock at `address` has ended its life.
pub fn life_ended(address: u64) {
    LIVES[life_slot(address)].fetch_add(LIFE, Relaxed);
}

/// The step of a thread that holds a chain of locks to one more lock.
#[derive(Clone, Copy, Debug)]
pub struct ChainStep {
    slot: &'static AtomicU64,
    fact: u32,
}

impl ChainStep {
    /// Makes the step from the chain of this key to the lock at `address`. The fast path computes
    /// the same.
    #[inline]
    #[must_use]
    pub fn new(key: u64, address: u64, want: KeyMode) -> ChainStep {
        let slot = ((key >> 32) as u32).wrapping_add(near(address)) as usize & (SLOTS - 1);
        ChainStep { slot: &CHAINS.slots[slot], fact: (with(key, address, want) >> 32) as u32 }
    }

    /// Tells whether the thread with this [mark](lockstead_ledger::thread::ThreadRecord::mark) need
    /// not look again.
    #[inline]
    #[must_use]
    pub fn is_known(&self, mark: u32) -> bool {
        let found = self.slot.load(Relaxed);
        (found >> 32) as u32 == self.fact && found as u32 & mark != 0
    }

    /// Tells whether no thread need look again.
    #[inline]
    #[must_use]
    pub fn is_known_to_all(&self) -> bool {
        self.slot.load(Relaxed) == u64::from(self.fact) << 32 | u64::from(u32::MAX)
    }

    /// Notes that it need not, or that no thread need.
    pub fn learn(&self, mark: u32, known: EdgeKnowledge) {
        let found = self.slot.load(Relaxed);
        let others = if (found >> 32) as u32 == self.fact { found as u32 } else { 0 };
        let marks = match known {
            EdgeKnowledge::ToThis => others | mark,
            EdgeKnowledge::ToAll => u32::MAX,
        };
        // What another thread notes at this instant is lost: it will look again.
        self.slot.store(u64::from(self.fact) << 32 | u64::from(marks), Relaxed);
    }
}

/// Asks the kernel to empty the cache in forked children (CHAINS-FORK). False where it
/// cannot.
#[must_use]
pub fn wipe_on_fork() -> bool {
    advise(libc::MADV_WIPEONFORK)
}

/// Forgets all chains that are in the cache.
pub fn forget() {
    if !advise(libc::MADV_DONTNEED) {
        CHAINS.slots.iter().for_each(|slot| slot.store(0, Relaxed));
    }
}

fn advise(advice: libc::c_int) -> bool {
    let (place, bytes) = (&raw const CHAINS.slots as usize, size_of_val(&CHAINS.slots));
    // SAFETY: the slots lie between their paddings (WIPED-ALONE), in zero-initialised private memory,
    // and are atomics that may become zero at any time (CHAINS-CACHE).
    unsafe { wiped::advise(place, bytes, advice) }
}

/// Notes that the calling thread is one that nobody has told us of, nor will of its end. If the
/// first thread was alone until now, its keys say so still, and only it may write them: it computes
/// them anew when it finds no chain known.
pub fn one_unseen_thread_more() {
    if STATE.others.fetch_add(1, Relaxed) == 0 {
        forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_tell_order_mode_and_life() {
        let (a, b) = (0x7f00_0000_1000, 0x7f00_0000_1028);
        let chain = |locks: &[(u64, KeyMode)]| {
            locks.iter().fold(0, |key, &(address, want)| with(key, address, want))
        };
        let mut keys = HashSet::new();
        for locks in [
            &[(a, KeyMode::Write)][..],
            &[(a, KeyMode::Read)],
            &[(a, KeyMode::Back)],
            &[(a, KeyMode::WriteTimed)],
            &[(a, KeyMode::ReadTimed)],
            &[(a, KeyMode::ReadRecursive)],
            &[(b, KeyMode::Write)],
            &[(a, KeyMode::Write), (b, KeyMode::Write)],
            &[(b, KeyMode::Write), (a, KeyMode::Write)],
            &[(a, KeyMode::Write), (a, KeyMode::Write)],
        ] {
            assert!(keys.insert(chain(locks)), "{locks:?}");
        }
        life_ended(a);
        assert!(keys.insert(chain(&[(a, KeyMode::Write)])));
    }

    #[test]
    fn a_step_to_the_next_life_is_another_one() {
        let (a, b) = (0x7f00_0077_1000, 0x7f00_0099_1028);
        for lock in [a, b] {
            let step = || ChainStep::new(with(0, a, KeyMode::Write), b, KeyMode::Write);
            for _ in 0..1000 {
                step().learn(8, EdgeKnowledge::ToAll);
                assert!(step().is_known_to_all());
                life_ended(lock);
                assert!(!step().is_known(8), "{lock:x}");
            }
        }
    }

    #[test]
    fn what_is_known_is_known_to_those_that_learned_it() {
        let step = ChainStep::new(77, 0x5555_0000_2000, KeyMode::Write);
        assert!(!step.is_known(8));
        step.learn(8, EdgeKnowledge::ToThis);
        step.learn(64, EdgeKnowledge::ToThis);
        assert!(step.is_known(8) && step.is_known(64) && !step.is_known(16));
        step.learn(8, EdgeKnowledge::ToAll);
        assert!((0..32).all(|bit| step.is_known(1 << bit)));
        let other = ChainStep::new(77, 0x5555_0000_2000, KeyMode::Read);
        assert!(!other.is_known(8), "the same slot, another fact");
        other.learn(8, EdgeKnowledge::ToThis);
        assert!(!step.is_known(8));
    }

    #[test]
    fn locks_side_by_side_do_not_displace_each_other() {
        for stride in [32, 40, 56, 64, 100, 4096, 1 << 16, 1 << 18] {
            let locks = (0..4096u64).map(|i| 0x7f12_3456_0000 + i * stride);
            let slots: HashSet<_> = locks
                .map(|address| {
                    core::ptr::from_ref(ChainStep::new(9 << 45, address, KeyMode::Write).slot)
                })
                .collect();
            assert!(slots.len() >= 4090, "stride {stride}: {}", slots.len());
        }
    }
}
