//! One process whose locks are counted on from look to look.
//!
//! Which locks are the worst changes, and a lock may be destroyed: [`Counters`] says what comes to
//! whom.

use super::counters::Counters;
use crate::clock::now;
use crate::run::processes::{Observed, inside};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::sums::{KnownNames, ProcessSums};
use lockstead_inspect::symbols::Symbolizer;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

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
    /// The figures of the locks.
    pub(super) counters: Counters,
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
            counters: Counters::default(),
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
        let modules = header.modules_noted.load(Relaxed);
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
        self.threads = found.threads;
        self.unlisted = found.others;
        self.counters.take_in(found);
    }
}
