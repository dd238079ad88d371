//! Which of its claims a thread uses.
//!
//! # Role
//! The claims lie in the segment, where anybody may write; which of them a thread uses it
//! keeps to itself. A thread that reads or has permits in more than [`SEGMENTS`]
//! segments at once does without claims in the others: it reads alone.

use super::Party;
use super::header::MOST_CLAIMS;
use core::cell::Cell;
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::{Atomic32, Ordering};

/// The number of segments whose claims a thread counts at once.
const SEGMENTS: usize = 8;
const WORDS: usize = MOST_CLAIMS as usize / 64;

/// The claims of the thread in one segment.
struct UsedClaims {
    /// The address of the segment, and the name of the thread there.
    base: Cell<usize>,
    me: Cell<u32>,
    bits: [Cell<u64>; WORDS],
}

impl UsedClaims {
    const fn new() -> UsedClaims {
        UsedClaims { base: Cell::new(0), me: Cell::new(0), bits: [const { Cell::new(0) }; WORDS] }
    }

    fn is_of(&self, party: &Party) -> bool {
        self.base.get() == party.domain.base && self.me.get() == party.me.bits()
    }

    fn is_idle(&self) -> bool {
        self.bits.iter().all(|bits| bits.get() == 0)
    }
}

// Without a destructor, so that locks work in those of other variables.
std::thread_local! {
    static USED: [UsedClaims; SEGMENTS] = const { [const { UsedClaims::new() }; SEGMENTS] };
}

/// Takes a claim of the calling thread that it does not use.
#[inline]
pub(super) fn take(party: &Party) -> Option<usize> {
    let each = party.domain.claims_each.min(MOST_CLAIMS as usize);
    USED.with(|all| {
        let used = all.iter().find(|used| used.is_of(party)).or_else(|| {
            let used = all.iter().find(|used| used.is_idle())?;
            used.base.set(party.domain.base);
            used.me.set(party.me.bits());
            Some(used)
        })?;
        let mut words = used.bits.iter().enumerate();
        let (word, bits) = words.find(|(_, bits)| bits.get() != u64::MAX)?;
        let bit = bits.get().trailing_ones() as usize;
        let number = word * 64 + bit;
        (number < each).then(|| {
            bits.set(bits.get() | 1 << bit);
            number
        })
    })
}

/// Returns the claim of the calling thread, among those that it uses, that names `what` in the
/// segment.
pub(super) fn find(party: &Party, what: u32) -> Option<usize> {
    let claims = party.domain.claims_of(party.me.slot());
    USED.with(|all| {
        let used = all.iter().find(|used| used.is_of(party))?;
        for (word, bits) in used.bits.iter().enumerate() {
            let mut left = bits.get();
            while left != 0 {
                let number = word * 64 + left.trailing_zeros() as usize;
                let claim = claims.get(number)?;
                if claim.what.load(Ordering::Relaxed) & !AWAITED == what {
                    return Some(number);
                }
                left &= left - 1;
            }
        }
        None
    })
}

/// Gives a claim back that the calling thread does not use any longer.
#[inline]
pub(super) fn put(party: &Party, number: usize) {
    USED.with(|all| {
        let used = all.iter().find(|used| used.is_of(party));
        if let Some(bits) = used.and_then(|used| used.bits.get(number / 64)) {
            bits.set(bits.get() & !(1 << (number % 64)));
        }
    });
}
