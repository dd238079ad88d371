//! Where in memory there are locks: a filter that says at once that there are none.
//!
//! # State
//! A bit for each 16 bytes of memory, which are never of two blocks of an
//! allocator, and a bit for each page, both for all addresses that are equal modulo
//! [`WINDOW`]. A bit is set when a lock becomes known there and stays: what lies
//! there then is asked of the table of locks.
//!
//! And a bit for each [`REGION_SHIFT`] bits of address in which there was a thread's
//! stack, so that a lock elsewhere costs no search for its thread.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lockstead_ledger::Ledger;
use lockstead_ledger::ledger::LedgerPart;

/// The number of bytes in which each address has bits of its own.
pub const WINDOW: u64 = 1 << 30;

const GRANULE_SHIFT: u32 = 4;
const PAGE_SHIFT: u32 = 12;
const GRANULES: usize = (WINDOW >> GRANULE_SHIFT) as usize;
const PAGES: usize = (WINDOW >> PAGE_SHIFT) as usize;

/// The number of bytes up to which the granules are looked at directly, without the pages.
const SMALL: u64 = 16 << PAGE_SHIFT;

static GRANULE: [AtomicU64; GRANULES / 64] = [const { AtomicU64::new(0) }; GRANULES / 64];
static PAGE: [AtomicU64; PAGES / 64] = [const { AtomicU64::new(0) }; PAGES / 64];

/// The shift of regions of two MiB, of which a stack has a few.
pub const REGION_SHIFT: u32 = 21;
const REGIONS: usize = 1 << 18;

static STACK: [AtomicU64; REGIONS / 64] = [const { AtomicU64::new(0) }; REGIONS / 64];

/// Notes that a thread's stack lies from `low` to below `high`.
pub fn note_stack(low: u64, high: u64) {
    if low < high {
        let last = (high - 1) >> REGION_SHIFT;
        let regions = (low >> REGION_SHIFT..=last).take(REGIONS);
        regions.for_each(|region| set(&STACK, region));
    }
}

/// Tells whether `address` may lie on a thread's stack.
#[must_use]
pub fn may_be_on_stack(address: u64) -> bool {
    let (word, bit) = place(&STACK, address >> REGION_SHIFT);
    word.load(Relaxed) & bit != 0
}

/// Notes that there is a lock at `address`.
pub fn note(address: u64) {
    set(&GRANULE, address >> GRANULE_SHIFT);
    set(&PAGE, address >> PAGE_SHIFT);
}

fn set(bits: &[AtomicU64], index: u64) {
    let (word, bit) = place(bits, index);
    if word.load(Relaxed) & bit == 0 {
        word.fetch_or(bit, Relaxed);
    }
}

fn place(bits: &[AtomicU64], index: u64) -> (&AtomicU64, u64) {
    (&bits[(index / 64) as usize & (bits.len() - 1)], 1 << (index % 64))
}

/// Tells whether there may be a lock from `low` to below `high`, which is above.
#[inline]
#[must_use]
pub fn any(low: u64, high: u64) -> bool {
    if high - low <= SMALL {
        any_set(&GRANULE, low >> GRANULE_SHIFT, (high - 1) >> GRANULE_SHIFT)
    } else {
        high - low >= WINDOW || any_set(&PAGE, low >> PAGE_SHIFT, (high - 1) >> PAGE_SHIFT)
    }
}

#[inline]
fn any_set(bits: &[AtomicU64], first: u64, last: u64) -> bool {
    (first / 64..=last / 64).any(|word| {
        let from = if word == first / 64 { !0 << (first % 64) } else { !0 };
        let to = if word == last / 64 { !0 >> (63 - last % 64) } else { !0 };
        place(bits, word * 64).0.load(Relaxed) & from & to != 0
    })
}

/// Calls `each` with the index of each lock that has a record and lies from `low`
/// to below `high`.
pub fn each(ledger: &Ledger<'_>, low: u64, high: u64, mut each: impl FnMut(u32)) {
    if high - low >= WINDOW {
        for index in 1..ledger.used(LedgerPart::Locks) as u32 {
            let address = ledger.lock(index).map_or(0, |lock| lock.address.load(Relaxed));
            if (low..high).contains(&address) && ledger.find_lock(address) == Some(index) {
                each(index);
            }
        }
        return;
    }
    let mut page = low >> PAGE_SHIFT;
    while page << PAGE_SHIFT < high {
        let (word, bit) = place(&PAGE, page);
        let found = word.load(Relaxed);
        if found == 0 {
            // Nothing in 64 pages.
            page = (page | 63) + 1;
            continue;
        }
        if found & bit != 0 {
            let from = low.max(page << PAGE_SHIFT);
            let to = high.min((page + 1) << PAGE_SHIFT);
            each_in_page(ledger, from, to, &mut each);
        }
        page += 1;
    }
}

fn each_in_page(ledger: &Ledger<'_>, low: u64, high: u64, each: &mut impl FnMut(u32)) {
    for granule in low >> GRANULE_SHIFT..=(high - 1) >> GRANULE_SHIFT {
        let (word, bit) = place(&GRANULE, granule);
        if word.load(Relaxed) & bit == 0 {
            continue;
        }
        // The smallest locks are words of four bytes.
        for address in (granule << GRANULE_SHIFT..(granule + 1) << GRANULE_SHIFT).step_by(4) {
            if (low..high).contains(&address)
                && let Some(index) = ledger.find_lock(address)
            {
                each(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_told_from_what_lies_elsewhere() {
        let (low, high) = (0x7ead_beef_0000, 0x7ead_bf6f_0000);
        assert!(!may_be_on_stack(low) && !may_be_on_stack(high - 8));
        note_stack(high, low);
        assert!(!may_be_on_stack(low));
        note_stack(low, high);
        assert!((low..high).step_by(4096).all(may_be_on_stack));
        assert!(!may_be_on_stack(low - (4 << 20)) && !may_be_on_stack(high + (4 << 20)));
    }

    #[test]
    fn a_lock_is_seen_from_every_range_that_it_lies_in_and_no_other() {
        // Nobody else's addresses.
        let lock = 0x1234_5678_9ab0;
        let ranges = |far: u64| {
            [(lock - far, lock + 1), (lock, lock + 1), (lock, lock + far), (lock - far, lock + far)]
        };
        let beside = |far: u64| [(lock - far, lock), (lock + 16, lock + 16 + far)];
        for far in [16, 160, 4096, 10_000, 60_000] {
            assert!(ranges(far).iter().all(|&(low, high)| !any(low, high)), "{far}");
        }
        note(lock);
        for far in [16, 160, 4096, 10_000, 100_000, 10 << 20, WINDOW + 5] {
            assert!(ranges(far).iter().all(|&(low, high)| any(low, high)), "{far}");
        }
        for far in [16, 160, 4096, 10_000, 32_000] {
            assert!(beside(far).iter().all(|&(low, high)| !any(low, high)), "{far}");
        }
        let page = lock & !4095;
        assert!(!any(page - (10 << 20), page) && !any(page + 4096, page + (10 << 20)));
        // Another one at the same place of another window.
        assert!(any(lock + WINDOW, lock + WINDOW + 8));
    }
}
