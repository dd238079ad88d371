//! What the command looks for in one process, round by round: cycles, waits that last, and
//! what the ledger does not have.

use super::futexes::FutexWatch;
use super::glance::{Glances, Sight};
use super::holders::HolderWatch;
use super::lasting::LastingWaits;
use super::pace::LookBudget;
use super::processes::Observed;
use super::python::PythonWatch;
use lockstead_inspect::waits::blocked::WaitPatience;
use lockstead_inspect::waits::detect::{Detector, FoundCycle};
use lockstead_inspect::waits::observe::{LastingWaiter, Observer};
use lockstead_inspect::waits::surroundings::WaitSurroundings;
use lockstead_inspect::waits::verify::{self, Confirmation};
use lockstead_inspect::waits::words::{self, WordOwners};
use lockstead_ledger::Ledger;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What the command looks for in one process, round by round.
pub(super) struct ProcessWatch {
    observer: Observer,
    /// The cycles reported so far.
    pub(super) detector: Detector,
    patience: Option<WaitPatience>,
    /// Owners who stand in the words of locks.
    words: WordOwners,
    /// What the ledger does not have.
    pub(super) glances: Glances,
    futexes: FutexWatch,
    lasting: LastingWaits,
    /// Where threads of Python wait.
    python: PythonWatch,
    /// What the holders of locks do that are waited for.
    holders: HolderWatch,
    /// A cycle was found that is not confirmed yet.
    pending: bool,
    modules: u64,
    round: u64,
}

/// What a round found.
pub(super) enum RoundNews {
    /// A cycle of waiting threads.
    Cycle(FoundCycle),
    /// A wait that lasts.
    Blocked(LastingWaiter),
    /// Something that the ledger does not have.
    Seen(Sight),
}

/// Threads in waits on condition variables are asked about only every so many
/// rounds: it takes a file a thread.
const ASKING: u64 = 4;

impl ProcessWatch {
    /// Prepares to watch a process, with reports of waits that last for `limit`.
    pub(super) fn new(limit: Option<Duration>, now: Instant) -> Self {
        let patience = limit.map(|limit| limit.as_nanos() as u64);
        ProcessWatch {
            observer: Observer::default(),
            detector: Detector::default(),
            words: WordOwners::default(),
            patience: patience.map(WaitPatience::new),
            glances: Glances::new(limit, now),
            futexes: FutexWatch::default(),
            lasting: LastingWaits::new(),
            python: PythonWatch::default(),
            holders: HolderWatch::default(),
            pending: false,
            modules: 0,
            round: 0,
        }
    }

    /// Looks at the process once; `quiet`: since when no process of the run has used the processor,
    /// if all of them stand still; `looks`: what looks at threads that wait may cost. Says whether to
    /// look again soon.
    pub(super) fn round(
        &mut self,
        process: &Observed,
        now: u64,
        quiet: Option<Instant>,
        looks: &mut LookBudget,
        news: &mut Vec<RoundNews>,
    ) -> bool {
        let ledger = process.ledger.view();
        self.round += 1;
        let modules = ledger.header().modules_noted.load(Relaxed);
        if modules != self.modules {
            self.modules = modules;
            process.read_maps();
            self.lasting.update(&process.maps());
            self.python.update();
            self.holders.update();
            self.words.update();
        }
        if process.visible {
            let before = looks.used_before_sleep;
            looks.spend(|ns| self.holders.look(process, now, ns, before));
        }
        let changed = self.observer.look(&ledger);
        if changed || self.pending || self.round.is_multiple_of(ASKING) && self.has_conditions() {
            self.cycles(process, &ledger, now, news);
        }
        if let Some(patience) = &mut self.patience {
            let (observer, detector) = (&self.observer, &self.detector);
            let alive = observer.waiters().filter(|waiter| !detector.is_dead(waiter));
            news.extend(patience.due(alive, now).into_iter().cloned().map(RoundNews::Blocked));
        }
        let counts = |lock| words::named_by_word(&ledger, lock).is_some();
        let waiters = self.observer.waiters();
        let earlier = || process.earlier.any_lasts(process.pid);
        if process.visible && self.futexes.is_due(&process.futexes, waiters, counts, earlier, now) {
            news.push(RoundNews::Seen(Sight::Futexes));
        }
        if process.visible && self.lasting.is_due(self.observer.waiters(), now) {
            news.push(RoundNews::Seen(Sight::Lasting));
        }
        if process.visible && self.lasting.is_host() {
            looks.spend(|_| self.python.look(process, now));
        }
        let sights = self.glances.look(process, Instant::now(), quiet);
        let is_new =
            |sight: &Sight| !matches!(sight, Sight::Standstill { .. }) || !self.detector.has_dead();
        news.extend(sights.into_iter().filter(is_new).map(RoundNews::Seen));
        self.pending || self.observer.has_fresh()
    }

    /// Returns the threads that wait as they did at the look before.
    pub(super) fn waiters(&self) -> impl Iterator<Item = &LastingWaiter> {
        self.observer.waiters()
    }

    /// Returns the same threads, with the locks that only words say they hold.
    pub(super) fn complete(&self, process: &Observed) -> Vec<LastingWaiter> {
        self.words.complete(self.waiters(), &process.ledger.view(), process.pid)
    }

    /// Returns whether a cycle has been seen that may yet turn out true.
    pub(super) fn is_pending(&self) -> bool {
        self.pending
    }

    fn has_conditions(&self) -> bool {
        let mut waiters = self.observer.waiters();
        waiters.any(|waiter| waiter.waiting.companion != 0 && !waiter.held.is_empty())
    }

    fn cycles(
        &mut self,
        process: &Observed,
        ledger: &Ledger<'_>,
        now: u64,
        news: &mut Vec<RoundNews>,
    ) {
        let context =
            WaitSurroundings { ledger: *ledger, pid: process.pid, visible: process.visible };
        self.pending = false;
        let waiters = self.words.complete(self.observer.waiters(), ledger, process.pid);
        let place = (process.pid, process.visible);
        for mut found in self.detector.find(waiters.iter(), &context) {
            match verify::verify(&found, ledger, &self.words, place) {
                Confirmation::True if self.detector.note(&found) => {
                    news.push(RoundNews::Cycle(found))
                }
                Confirmation::Unnamed if !found.timed && found.is_old(now) => {
                    found.unnamed = true;
                    if self.detector.note(&found) {
                        news.push(RoundNews::Cycle(found));
                    }
                }
                Confirmation::NotYet | Confirmation::Unnamed => self.pending = true,
                Confirmation::True | Confirmation::False => {}
            }
        }
    }
}
