//! Locks that the program hands from thread to thread on purpose.
//!
//! `lockstead_handoff(lock)`, of `include/lockstead/check.h`, says so: then others
//! may unlock it, it may be held at the end of a thread, and its order means
//! nothing. It may be said before the lock is initialised or used.

use crate::me::{Me, enter};
use crate::site::CallSite;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use lockstead_ledger::lock::attribute;

crate::thunk! {
    lockstead_handoff(1) => announce;
}

/// The locks that the program announced before they were known. There is room for the first of
/// them; one whose places are all taken is not marked, which is counted.
static ANNOUNCED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
/// The number of places that are looked at for one lock.
const TRIES: usize = 16;

fn places(address: u64) -> impl Iterator<Item = &'static AtomicU64> {
    let first = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (0..TRIES).map(move |i| &ANNOUNCED[(first as usize + i) % ANNOUNCED.len()])
}

unsafe extern "C" fn announce(lock: u64, _: &CallSite) {
    let taken = |place: &AtomicU64| {
        place
            .compare_exchange(0, lock, Relaxed, Relaxed)
            .map_or_else(|found| found == lock, |_| true)
    };
    ANY.store(true, Relaxed);
    let noted = places(lock).any(taken);
    if let Some(me) = enter() {
        me.mark_handed_off(lock);
        if !noted && !me.is_handed_off(lock) {
            me.lose_fact();
        }
    }
}

/// Whether anything was announced.
static ANY: AtomicBool = AtomicBool::new(false);

/// Forgets what was said of the lock at `address`, whose life is over.
pub fn forget(address: u64) {
    if ANY.load(Relaxed) {
        for place in places(address) {
            let _ = place.compare_exchange(address, 0, Relaxed, Relaxed);
        }
    }
}

/// Marks a lock that has got a record, if it was announced.
pub fn recorded(me: &Me, address: u64) {
    if places(address).any(|place| place.load(Relaxed) == address) {
        me.mark_handed_off(address);
    }
}

impl Me {
    fn mark_handed_off(&self, address: u64) {
        if let Some(lock) = self.ledger.find_lock(address).and_then(|index| self.ledger.lock(index))
        {
            let (kind, life, attributes) = lock.shape();
            lock.set_shape(kind, life, attributes | attribute::HAND_OFF);
        }
    }

    /// Tells whether the program has said that others than the owner give the lock back.
    #[must_use]
    pub fn is_handed_off(&self, address: u64) -> bool {
        let lock = self.ledger.find_lock(address).and_then(|index| self.ledger.lock(index));
        lock.is_some_and(|lock| lock.shape().2 & attribute::HAND_OFF != 0)
    }
}
