//! What is known of one lock of a program that runs, for whoever looks at it more closely.

use super::detail::durations;
use super::model::{Durations, ReportSite};
use super::names::{Names, type_name};
use super::places::Places;
use super::sites::{ShareSum, SharesOf, sites, stack};
use crate::stack::Stack;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::ObjectKind;
use std::sync::atomic::Ordering::Relaxed;

/// What one lock has come to since it was first used. Waits and holds that last are not in it.
#[derive(Clone, Debug)]
pub struct OneLock {
    /// What kind of lock it is, in words.
    pub type_name: String,
    /// The address of it.
    pub address: u64,
    /// The times of waiting.
    pub wait: Durations,
    /// The times of holding, estimated as far as they were not timed.
    pub hold: Durations,
    /// The places that waited, the longest time first.
    pub waited_at: Vec<ReportSite>,
    /// The places that took it and held it, the longest time first; none of a futex word, of which
    /// nobody knows who holds it.
    pub held_at: Vec<ReportSite>,
    /// The places that woke the waiters of a futex word, the most frequent first; none of other locks.
    pub woken_at: Vec<ReportSite>,
    /// The stack of its initialisation.
    pub initialised_at: Option<Stack>,
}

impl OneLock {
    /// Reads what a ledger has of the lock with this index in this life of its address. Returns
    /// `None` if that life is over and its record is that of another lock.
    #[must_use]
    pub fn read(
        ledger: &Ledger<'_>,
        names: &mut dyn Names,
        lock: u32,
        generation: u32,
    ) -> Option<OneLock> {
        let record = ledger.lock(lock)?;
        if record.generation.load(Relaxed) != generation {
            return None;
        }
        let (kind, _, attributes) = record.shape();
        let mut one = OneLock {
            type_name: type_name(kind, attributes),
            address: record.address.load(Relaxed),
            wait: Durations::default(),
            hold: Durations::default(),
            waited_at: Vec::new(),
            held_at: Vec::new(),
            woken_at: Vec::new(),
            initialised_at: stack(ledger, names, record.init_stack.load(Relaxed)),
        };
        // A lock that never cost anything has none.
        let Some(statistics) = ledger.existing_extension(record) else { return Some(one) };
        let (mut waited_at, mut held_at) = (ShareSum::default(), ShareSum::default());
        waited_at.add_all(ledger, &statistics.waited_at);
        held_at.add_all(ledger, &statistics.held_at);
        let mut places = Places::default();
        let is_futex = kind == ObjectKind::Futex;
        if !is_futex {
            places.learn(ledger, names, &statistics.held_at);
        }
        one.wait = durations(ledger, &places, names, &statistics.wait.read());
        one.hold = durations(ledger, &places, names, &statistics.hold.read());
        one.waited_at = sites(ledger, &places, names, &waited_at, SharesOf::Time);
        if is_futex {
            one.woken_at = sites(ledger, &places, names, &held_at, SharesOf::Count);
        } else {
            one.held_at = sites(ledger, &places, names, &held_at, SharesOf::Time);
        }
        Some(one)
    }
}
