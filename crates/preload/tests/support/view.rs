//! A ledger in the words of the tests.

use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::publish::{Holding, Waiting};
use lockstead_ledger::thread::{ThreadPart, state};
use lockstead_ledger::{Ledger, ledger::LedgerPart};
use std::sync::atomic::Ordering::Relaxed;

/// Returns everything that a thread holds now; without what it has lent.
pub(crate) fn held(thread: &ThreadPart<'_>) -> Vec<Holding> {
    let stack = thread.stack();
    (0..stack.depth()).filter_map(|index| stack.entry(index).read()).collect()
}

/// Returns the threads of which there is a record.
pub(crate) fn threads<'a>(ledger: &Ledger<'a>) -> Vec<ThreadPart<'a>> {
    ledger.threads().filter(|thread| thread.record.state.load(Relaxed) != state::FREE).collect()
}

/// Returns the one thread that is named so; `None` while it is not.
pub(crate) fn named<'a>(ledger: &Ledger<'a>, name: &str) -> Option<ThreadPart<'a>> {
    threads(ledger).into_iter().find(|thread| {
        let words = thread.record.name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes());
        words.take_while(|&byte| byte != 0).eq(name.bytes())
    })
}

/// Returns the first thread.
pub(crate) fn first<'a>(ledger: &Ledger<'a>) -> ThreadPart<'a> {
    ledger.thread(0).expect("the first thread is recorded first")
}

/// Returns what a thread waits for.
pub(crate) fn wait(thread: &ThreadPart<'_>) -> Option<Waiting> {
    thread.record.wait.read().map(|(_, waiting)| waiting)
}

/// What is known of the lock at an address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) acquisitions: u64,
    pub(crate) contended: u64,
    pub(crate) waits: u64,
    pub(crate) timed_out: u64,
    pub(crate) refused: u64,
}

/// Returns kind, life and attributes of the lock at an address.
pub(crate) fn shape(ledger: &Ledger<'_>, address: u64) -> (ObjectKind, RecordLife, u16) {
    let index = ledger.find_lock(address).expect("a record");
    ledger.lock(index).expect("found").shape()
}

/// Returns the counts of the lock at an address, those in the threads' caches included.
pub(crate) fn facts(ledger: &Ledger<'_>, address: u64) -> Facts {
    let index = ledger.find_lock(address).expect("a record");
    let lock = ledger.lock(index).expect("found");
    let generation = lock.generation.load(Relaxed);
    let known = threads(ledger).into_iter().flat_map(|thread| thread.known());
    let cached: u64 = known
        .filter(|known| known.address.load(Relaxed) == address)
        .filter(|known| known.generation.load(Relaxed) == generation)
        .map(|known| u64::from(known.count.load(Relaxed)))
        .sum();
    let mut facts =
        Facts { acquisitions: lock.acquisitions.load(Relaxed) + cached, ..Facts::default() };
    if let Some(statistics) = ledger.existing_extension(lock) {
        facts.contended = statistics.contended.load(Relaxed);
        facts.timed_out = statistics.timed_out.load(Relaxed);
        facts.refused = statistics.refused.load(Relaxed);
        facts.waits = statistics.wait.read().count();
    }
    facts
}

/// Asserts that nothing is missing in the ledger, nothing is held or waited for, and no thread is
/// in the middle of anything. For a program in which all threads but one have ended, and that one
/// does nothing.
pub(crate) fn assert_quiet(ledger: &Ledger<'_>) {
    let losses = &ledger.header().losses;
    for lost in [
        &losses.locks,
        &losses.extensions,
        &losses.stacks,
        &losses.threads,
        &losses.modules,
        &losses.late,
    ] {
        assert_eq!(lost.load(Relaxed), 0, "{losses:?}, {:?}", ledger.extent());
    }
    for thread in threads(ledger) {
        let record = thread.record;
        let index = record.index.load(Relaxed);
        assert_eq!(wait(&thread), None, "thread {index}");
        assert_eq!(held(&thread), [], "thread {index}");
        assert_eq!(record.busy.load(Relaxed), 0, "thread {index}");
        assert_eq!(record.held_dropped.load(Relaxed), 0, "thread {index}");
        let expected = if index == 0 { state::LIVE } else { state::ENDED };
        assert_eq!(record.state.load(Relaxed), expected, "thread {index}");
    }
    assert!(ledger.used(LedgerPart::Threads) > 0);
}
