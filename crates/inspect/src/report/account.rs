//! What the threads of a ledger still keep for themselves, added to the locks
//! it belongs to: acquisitions in their caches, waits and holds that had not
//! ended when the ledger was read.

use lockstead_ledger::Ledger;
use lockstead_ledger::header::{LedgerHeader, tick_of};
use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::publish::{Flags, Holding, WaitKind};
use lockstead_ledger::thread::{ThreadPart, state};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// A wait or a hold that had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// How long up to the end. Of a hold that may have been too short for the
    /// coarse clock it is not known.
    pub(super) ns: Option<u64>,
    /// Id of the stack of the acquisition.
    pub(super) stack: u32,
}

/// What only the records of threads tell of locks, by the index of the lock's record.
#[derive(Debug, Default)]
pub(super) struct Account {
    acquisitions: HashMap<u32, u64>,
    waits: HashMap<u32, Vec<Unfinished>>,
    holds: HashMap<u32, Vec<Unfinished>>,
    /// Acquisitions of former locks at an address that cannot be attributed.
    pub(super) late: u64,
}

impl Account {
    /// Reads all threads of a ledger whose process is taken to end at `end`.
    pub(super) fn of(ledger: &Ledger<'_>, end: u64) -> Account {
        let mut account = Account::default();
        let mut graves = None;
        for thread in ledger.threads() {
            account.add_cache(ledger, &thread, &mut graves);
            if is_running(&thread) {
                account.add_wait(ledger, &thread, end);
                account.add_holds(ledger, &thread, end);
            }
        }
        account
    }

    /// Returns the number of acquisitions that threads still count for themselves.
    pub(super) fn acquisitions(&self, index: u32) -> u64 {
        self.acquisitions.get(&index).copied().unwrap_or(0)
    }

    /// Returns the waits that had not ended.
    pub(super) fn waits(&self, index: u32) -> &[Unfinished] {
        self.waits.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Returns the holds that had not ended.
    pub(super) fn holds(&self, index: u32) -> &[Unfinished] {
        self.holds.get(&index).map_or(&[], Vec::as_slice)
    }

    fn add_cache(
        &mut self,
        ledger: &Ledger<'_>,
        thread: &ThreadPart<'_>,
        graves: &mut Option<HashMap<u64, u32>>,
    ) {
        for known in thread.known() {
            let count = u64::from(known.count.load(Relaxed));
            let address = known.address.load(Relaxed);
            if count == 0 || address == 0 {
                continue;
            }
            let index = known.lock.load(Relaxed);
            if index == 0 {
                // One of the locks that found no room, which are counted.
                continue;
            }
            let of = match ledger.lock(index) {
                Some(lock) if lock.generation.load(Relaxed) == known.generation.load(Relaxed) => {
                    Some(canonical(ledger, index))
                }
                // The lock that was meant is gone: where it lies buried.
                Some(lock) => {
                    let graves = graves.get_or_insert_with(|| graves_of(ledger));
                    graves.get(&address).copied().or_else(|| {
                        let [init, first] =
                            [&lock.init_stack, &lock.first_stack].map(|id| id.load(Relaxed));
                        let class =
                            ledger.classes().get(if init != 0 { init } else { first } as usize)?;
                        Some(class.mass_grave.load(Relaxed)).filter(|&grave| grave != 0)
                    })
                }
                None => None,
            };
            match of {
                Some(index) => *self.acquisitions.entry(index).or_default() += count,
                None => self.late += count,
            }
        }
    }

    fn add_wait(&mut self, ledger: &Ledger<'_>, thread: &ThreadPart<'_>, end: u64) {
        let Some((_, waiting)) = thread.record.wait.read() else { return };
        if waiting.how.kind() == WaitKind::JOIN {
            return;
        }
        if let Some(index) = ledger.lock_of(&waiting) {
            let ns = Some(end.saturating_sub(waiting.since));
            self.waits.entry(index).or_default().push(Unfinished { ns, stack: waiting.stack });
        }
    }

    fn add_holds(&mut self, ledger: &Ledger<'_>, thread: &ThreadPart<'_>, end: u64) {
        let stack = thread.stack();
        let header = ledger.header();
        let unsharp = header.time_of(tick_of(header.clock_before.load(Relaxed)));
        for depth in 0..stack.depth() {
            let Some(held) = stack.entry(depth).read() else { continue };
            if held.flags.has(Flags::LENT) {
                continue;
            }
            if let Some(index) = ledger.find_lock(held.address) {
                let began = began(header, &held);
                let is_known = held.started != 0 || began < unsharp;
                let ns = is_known.then(|| end.saturating_sub(began));
                self.holds.entry(index).or_default().push(Unfinished { ns, stack: held.stack });
            }
        }
    }
}

/// Tells whether the record's thread runs.
pub(super) fn is_running(thread: &ThreadPart<'_>) -> bool {
    thread.record.state.load(Relaxed) == state::LIVE
}

/// Returns when a hold began: exactly, or by the tick.
pub(super) fn began(header: &LedgerHeader, held: &Holding) -> u64 {
    if held.started != 0 { held.started } else { header.time_of(held.tick) }
}

/// Returns the one record of an address that stands for others of the same address: two threads
/// that saw a lock first at the same time may have made two.
pub(super) fn canonical(ledger: &Ledger<'_>, index: u32) -> u32 {
    let Some(lock) = ledger.lock(index) else { return index };
    match lock.shape().1 {
        RecordLife::Live | RecordLife::Destroyed | RecordLife::Gone => {
            ledger.find_lock(lock.address.load(Relaxed)).unwrap_or(index)
        }
        RecordLife::Grave | RecordLife::MassGrave | RecordLife::Unused => index,
    }
}

/// Returns the latest grave of each address.
fn graves_of(ledger: &Ledger<'_>) -> HashMap<u64, u32> {
    let used = ledger.used(lockstead_ledger::LedgerPart::Locks);
    (1..used as u32)
        .filter_map(|index| {
            let lock = ledger.lock(index)?;
            let (kind, life, _) = lock.shape();
            (life == RecordLife::Grave && kind != ObjectKind::Unknown)
                .then(|| (lock.address.load(Relaxed), index))
        })
        .collect()
}
