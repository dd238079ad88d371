//! What the library that checks wrote down, read while the program runs.
//!
//! # Role
//! A thread of its own reads the ledgers: a program may write a million edges in
//! a moment, and the supervisor has a clock to keep and deadlocks to find. What it
//! finds comes back here. A broken rule is passed on at once. An inversion is held
//! back for a while: the edge that completes it is written before the thread asks
//! for the lock, and if that ends in a deadlock, the deadlock is what is reported.

use super::processes::Observed;
use super::unseen::UnseenLocks;
use super::watch::ProcessWatch;
use crate::check::{CheckedTotals, Lost};
use lockstead_inspect::check::Checker;
use lockstead_inspect::check::closing::CurrentHolders;
use lockstead_inspect::check::facts::{CheckFacts, OrderFacts};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two looks at the ledgers.
const LOOK: Duration = Duration::from_millis(8);
/// The time between two looks when nothing has come for [`CALM`] looks.
const CALM_LOOK: Duration = Duration::from_millis(40);
const CALM: u32 = 64;
/// The most records read from one ledger before the next one has its turn.
const MOST: usize = 1 << 14;
/// How long an inversion is held back at least, and by how many looks at the
/// waits.
const HELD: Duration = Duration::from_millis(30);
const LOOKS: u32 = 3;
/// How long while its locks are held as a deadlock would hold them.
const LONGEST: Duration = Duration::from_secs(1);

enum Message {
    Begins(Arc<Observed>),
    Ended(Arc<Observed>),
}

enum CheckNews {
    Found(Arc<Observed>, CheckFacts),
    /// All of it has been read.
    Read(Arc<Observed>),
}

struct HeldFinding {
    process: Arc<Observed>,
    facts: OrderFacts,
    since: Instant,
    looks: u32,
    ended: bool,
}

/// The checks of a run.
pub(super) struct Checks {
    /// The channel to the thread that checks; none when it is to end.
    to: Option<Sender<Message>>,
    news: Receiver<CheckNews>,
    thread: Option<JoinHandle<CheckedTotals>>,
    held: Vec<HeldFinding>,
}

/// A finding that waits to be reported.
pub(super) type Due = (Arc<Observed>, CheckFacts);

impl Checks {
    /// Starts them. A process that has been read to its end goes `on`.
    pub(super) fn start(on: Sender<Arc<Observed>>) -> Checks {
        let (to, messages) = mpsc::channel();
        let (tell, news) = mpsc::channel();
        let (live, checked, unseen) = Default::default();
        let reader = CheckReader { tell, on, live, checked, unseen };
        let thread = thread::spawn(move || reader.work(&messages));
        Checks { to: Some(to), news, thread: Some(thread), held: Vec::new() }
    }

    /// Begins to check a process.
    pub(super) fn begin(&self, process: Arc<Observed>) {
        self.send(Message::Begins(process));
    }

    /// Checks a process for the last time, which has ended or is as good as ended.
    pub(super) fn end(&self, process: Arc<Observed>) {
        self.send(Message::Ended(process));
    }

    fn send(&self, message: Message) {
        // The thread ends only after the sender.
        let _ = self.to.as_ref().map(|to| to.send(message));
    }

    /// Returns whether anything is held back, so that the next look is to come soon.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns what is to be reported after a look at the waits of these processes.
    pub(super) fn due(&mut self, live: &[(Arc<Observed>, ProcessWatch)]) -> Vec<Due> {
        let mut due = self.hear();
        let now = Instant::now();
        let mut holders: Vec<(*const Observed, CurrentHolders)> = Vec::new();
        let released = self.held.extract_if(.., |held| {
            held.looks += 1;
            let watched = live.iter().find(|(process, _)| Arc::ptr_eq(process, &held.process));
            let Some((process, watch)) = watched else { return held.ended };
            let waited = now.saturating_duration_since(held.since);
            if waited < HELD || held.looks < LOOKS {
                return false;
            }
            if waited >= LONGEST {
                return true;
            }
            if watch.is_pending() {
                return false;
            }
            let key = Arc::as_ptr(process);
            let at = holders.iter().position(|(of, _)| *of == key).unwrap_or_else(|| {
                holders.push((key, CurrentHolders::of(&process.ledger.view())));
                holders.len() - 1
            });
            !holders[at].1.may_close(&held.facts)
        });
        due.extend(released.map(|held| (held.process, CheckFacts::Order(held.facts))));
        due
    }

    /// Takes in what has been found; hands out what is not held back.
    fn hear(&mut self) -> Vec<Due> {
        let mut due = Vec::new();
        for news in self.news.try_iter() {
            match news {
                CheckNews::Found(process, CheckFacts::Order(facts)) => {
                    self.held.push(HeldFinding {
                        process,
                        facts,
                        since: Instant::now(),
                        looks: 0,
                        ended: false,
                    })
                }
                CheckNews::Found(process, facts) => due.push((process, facts)),
                CheckNews::Read(process) => {
                    let of = |held: &&mut HeldFinding| Arc::ptr_eq(&held.process, &process);
                    self.held.iter_mut().filter(of).for_each(|held| held.ended = true);
                }
            }
        }
        due
    }

    /// Waits until all is read, and hands out the rest and what it came to.
    pub(super) fn finish(mut self) -> (Vec<Due>, CheckedTotals) {
        self.to = None;
        let thread = self.thread.take();
        let checked = thread.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let mut due = self.hear();
        due.extend(self.held.into_iter().map(|held| (held.process, CheckFacts::Order(held.facts))));
        (due, checked)
    }
}

/// What the thread works with.
struct CheckReader {
    tell: Sender<CheckNews>,
    on: Sender<Arc<Observed>>,
    live: Vec<(Arc<Observed>, Checker)>,
    checked: CheckedTotals,
    unseen: UnseenLocks,
}

impl CheckReader {
    fn work(mut self, messages: &Receiver<Message>) -> CheckedTotals {
        let mut calm = 0;
        let mut more = false;
        loop {
            let wait = match () {
                () if more => Duration::ZERO,
                () if calm < CALM => LOOK,
                () => CALM_LOOK,
            };
            let message = if self.live.is_empty() {
                messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                messages.recv_timeout(wait)
            };
            match message {
                Ok(Message::Begins(process)) => {
                    self.live.push((process, Checker::default()));
                    calm = 0;
                }
                Ok(Message::Ended(process)) => self.end(process),
                Err(RecvTimeoutError::Disconnected) => return self.checked,
                Err(RecvTimeoutError::Timeout) => {
                    let before = self.read();
                    more = self.look();
                    calm = if self.read() == before { calm + 1 } else { 0 };
                }
            }
        }
    }

    /// Returns how many records were read of the processes that run.
    fn read(&self) -> u64 {
        let counts = self.live.iter().map(|(_, checker)| checker.counts());
        counts.map(|counts| counts.edges + counts.violations).sum()
    }

    fn look(&mut self) -> bool {
        let mut more = false;
        for (process, checker) in &mut self.live {
            more |= look(&self.tell, process, checker, false);
        }
        more
    }

    fn end(&mut self, process: Arc<Observed>) {
        let known = self.live.iter().position(|(live, _)| Arc::ptr_eq(live, &process));
        if let Some(at) = known {
            let (_, mut checker) = self.live.swap_remove(at);
            while look(&self.tell, &process, &mut checker, true) {}
            let losses = &process.ledger.view().header().losses;
            let [edges, violations, facts] =
                [&losses.edges, &losses.violations, &losses.facts].map(|count| count.load(Relaxed));
            self.checked.add(&checker.counts(), Lost { edges, violations, facts });
            for family in self.unseen.of(&process) {
                self.checked.unseen.entry(family).or_default().insert(process.name());
            }
            // It ends once.
            let _ = process.lives.set(checker.into_lives());
        }
        // Nobody listens any more only when all is over.
        let _ = self.tell.send(CheckNews::Read(process.clone()));
        let _ = self.on.send(process);
    }
}

/// Looks at a process once. Says whether there is more.
fn look(
    tell: &Sender<CheckNews>,
    process: &Arc<Observed>,
    checker: &mut Checker,
    last: bool,
) -> bool {
    let mut found = Vec::new();
    let more = checker.look(&process.ledger.view(), MOST, last, &mut found);
    for facts in found {
        let _ = tell.send(CheckNews::Found(process.clone(), facts));
    }
    more
}
