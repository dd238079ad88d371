//! One process whose locks are counted on from look to look.
//!
//! # What never goes back
//! Which locks are the worst changes, and a lock may be destroyed. So what is new since the look before
//! goes to the lock if it has figures of its own now, and to the others if it has not: no counter goes
//! back, and all together are what the process came to.

use crate::clock::now;
use crate::run::processes::{Observed, inside};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::sums::{KnownNames, LockSums, ProcessSums};
use lockstead_inspect::symbols::Symbolizer;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A lock, or the others, as they are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesLock {
    /// What tells it from others of the process.
    pub(super) id: u32,
    /// What it is called.
    pub(super) name: String,
    /// What kind of lock it is.
    pub(super) kind: String,
    /// What has come to it.
    pub(super) sums: LockSums,
    /// The threads that wait for it now.
    pub(super) waiting: u64,
    /// The longest wait, in nanoseconds.
    pub(super) longest_ns: u64,
    last: LockSums,
    generation: u32,
}

/// A process, up to the last look.
pub(super) struct CountedProcess {
    /// The number of the process.
    pub(super) pid: u32,
    /// The name of the program.
    pub(super) program: String,
    /// The number of threads.
    pub(super) threads: u64,
    /// How many locks have no figures of their own.
    pub(super) unlisted: u64,
    /// The sum of all that have no figures of their own.
    pub(super) others: SeriesLock,
    worst: Vec<SeriesLock>,
    /// What has come to locks with figures of their own, ever.
    given: LockSums,
    /// `None` once it has ended and was read to the end.
    source: Option<CountedSource>,
}

/// What a process that may still change is read from.
struct CountedSource {
    process: Arc<Observed>,
    names: Symbolizer,
    known: KnownNames,
    modules: u64,
}

impl CountedProcess {
    /// Begins to count.
    pub(super) fn new(process: Arc<Observed>) -> CountedProcess {
        let names = Symbolizer::new(Modules::saved(process.maps()));
        CountedProcess {
            pid: process.pid,
            program: process.name(),
            threads: 0,
            unlisted: 0,
            others: SeriesLock::default(),
            worst: Vec::new(),
            given: LockSums::default(),
            source: Some(CountedSource {
                process,
                names,
                known: KnownNames::default(),
                modules: 0,
            }),
        }
    }

    /// Tells whether this is that process, and still counts.
    pub(super) fn is_of(&self, process: &Arc<Observed>) -> bool {
        self.source.as_ref().is_some_and(|source| Arc::ptr_eq(&source.process, process))
    }

    /// Tells whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.source.is_none()
    }

    /// Returns the locks that have figures of their own.
    pub(super) fn locks(&self) -> &[SeriesLock] {
        &self.worst
    }

    /// Reads the rest of a process of which nothing more is to be seen.
    pub(super) fn finish(&mut self, top: usize) {
        self.look(top);
        self.source = None;
        self.threads = 0;
    }

    /// Reads what the process has come to; `top` locks get figures of their own.
    pub(super) fn look(&mut self, top: usize) {
        let Some(source) = &mut self.source else { return };
        let ledger = source.process.ledger.view();
        let header = ledger.header();
        let modules = header.modules_used.load(Relaxed);
        if modules != source.modules {
            source.modules = modules;
            source.names.update(source.process.maps());
        }
        let ended = match (*inside(&source.process.ended), header.ended.load(Relaxed)) {
            (Some(ended), _) => ended,
            (None, 0) => now(),
            (None, ended) => ended,
        };
        let end = ended.max(header.began.load(Relaxed));
        let found = ProcessSums::take(&ledger, &mut source.names, &mut source.known, (end, top));
        self.take_in(found);
    }

    fn take_in(&mut self, found: ProcessSums) {
        let mut before: HashMap<(u32, u32), SeriesLock> =
            self.worst.drain(..).map(|lock| ((lock.id, lock.generation), lock)).collect();
        let mut waiting = found.waiting;
        for lock in found.worst {
            waiting = waiting.saturating_sub(lock.waiting);
            let series = before.remove(&lock.id).unwrap_or_default();
            let new = gained(&lock.sums, &series.last);
            self.given = joined(&self.given, &new, u64::saturating_add);
            self.worst.push(SeriesLock {
                id: lock.id.0,
                generation: lock.id.1,
                name: lock.name,
                kind: lock.kind,
                sums: joined(&series.sums, &new, u64::saturating_add),
                waiting: lock.waiting,
                longest_ns: lock.longest_ns,
                last: joined(&series.last, &lock.sums, u64::max),
            });
        }
        let rest = gained(&found.all, &self.given);
        self.others.sums = joined(&self.others.sums, &rest, u64::max);
        self.others.waiting = waiting;
        self.threads = found.threads;
        self.unlisted = found.others;
    }
}

/// Returns how much more a sum is than another one.
fn gained(now: &LockSums, before: &LockSums) -> LockSums {
    joined(now, before, u64::saturating_sub)
}

fn joined(one: &LockSums, other: &LockSums, by: fn(u64, u64) -> u64) -> LockSums {
    LockSums {
        acquisitions: by(one.acquisitions, other.acquisitions),
        contended: by(one.contended, other.contended),
        waited_ns: by(one.waited_ns, other.waited_ns),
        held_ns: by(one.held_ns, other.held_ns),
    }
}
