//! What the validators inside a process share: that of the crate and that of the C library.
//!
//! # Role
//! Each of them knows by its own means which thread holds which lock since which place. A [`Book`]
//! makes the order graph of that: it numbers locks, classes and places, and adds what a thread that
//! holds locks asks for. [`closing_cycle`] finds the deadlock that a wait closes. [`inversion`] and
//! [`deadlock`] tell both, so that both validators use the same words.
//!
//! # Invariants
//! - **BOOK-NUMBER** A lock's number is never 0 and never another lock's.
//! - **BOOK-LEVELS** A lock is [`LEVELS`] nodes of the graph, one for each level of a nesting, all
//!   of one class.

use crate::{
    ClassId, Excuse, GateLock, Graph, GraphLosses, Inversion, InversionKind, Level, Limits, LockId,
    Mode, OrderEdge, SiteId, ThreadId,
};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::hash::Hash;
use hashbrown::{HashMap, HashSet};
use lockstead_rules::Rule;

/// The levels of a nesting that are told apart; a deeper one counts as the last.
pub const LEVELS: u32 = 8;

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug)]
pub struct BookHold<S> {
    /// The lock's number in the [`Book`].
    pub number: u32,
    /// Its place in a nesting, below [`LEVELS`].
    pub level: u32,
    /// Whether it is held with other readers.
    pub shared: bool,
    /// Whether a call took it that does not wait.
    pub tried: bool,
    /// The place where it was acquired.
    pub site: S,
}

/// A lock that a thread asks for.
#[derive(Clone, Copy, Debug)]
pub struct BookWant<S> {
    /// The lock's number in the [`Book`].
    pub number: u32,
    /// Its place in a nesting, below [`LEVELS`].
    pub level: u32,
    /// Whether it is asked for with other readers.
    pub shared: bool,
    /// The place where it is asked for.
    pub site: S,
}

impl<S> BookHold<S> {
    /// Returns whether the hold keeps this request waiting: readers do not wait for readers.
    pub fn blocks(&self, want: &BookWant<S>) -> bool {
        self.number == want.number && !(self.shared && want.shared)
    }

    fn mode(&self) -> Mode {
        mode(self.shared)
    }
}

/// Returns how the graph has a hold or a request: a reader waits behind a waiting writer.
fn mode(shared: bool) -> Mode {
    if shared { Mode::Read } else { Mode::Write }
}

/// Returns the lock at one level of a nesting, as the graph has it (BOOK-LEVELS).
fn node(number: u32, level: u32) -> LockId {
    LockId(number * LEVELS + level.min(LEVELS - 1))
}

/// Returns the number of the lock that a node of the graph is of.
fn number(lock: LockId) -> u32 {
    lock.0 / LEVELS
}

/// All locks, classes and places of a process, and the graph of their order.
///
/// `C` tells classes apart, `S` places.
#[derive(Debug)]
pub struct Book<C, S> {
    /// The graph, made when a lock is first asked for under another one.
    graph: Option<Graph>,
    /// The number of the last lock.
    last: u32,
    class_of: HashMap<u32, ClassId>,
    classes: HashMap<C, ClassId>,
    sites: Vec<S>,
    site_numbers: HashMap<S, SiteId>,
}

impl<C, S> Default for Book<C, S> {
    fn default() -> Self {
        Book {
            graph: None,
            last: 0,
            class_of: HashMap::new(),
            classes: HashMap::new(),
            sites: Vec::new(),
            site_numbers: HashMap::new(),
        }
    }
}

impl<C: Eq + Hash, S: Clone + Eq + Hash> Book<C, S> {
    /// Adds a lock of this class and returns its number (BOOK-NUMBER).
    pub fn introduce(&mut self, class: C) -> u32 {
        let next = ClassId(self.classes.len() as u32);
        let class = *self.classes.entry(class).or_insert(next);
        self.last += 1;
        self.class_of.insert(self.last, class);
        self.last
    }

    /// Removes a lock, and its edges with it.
    pub fn forget(&mut self, number: u32) {
        if self.class_of.remove(&number).is_some()
            && let Some(graph) = &mut self.graph
        {
            (0..LEVELS).for_each(|level| graph.forget(node(number, level)));
        }
    }

    /// Returns the number of a place; a new one is numbered.
    pub fn site(&mut self, site: &S) -> SiteId {
        if let Some(&known) = self.site_numbers.get(site) {
            return known;
        }
        let new = SiteId(self.sites.len() as u32);
        self.sites.push(site.clone());
        self.site_numbers.insert(site.clone(), new);
        new
    }

    /// Returns the number of a place that was seen before.
    pub fn known_site(&self, site: &S) -> Option<SiteId> {
        self.site_numbers.get(site).copied()
    }

    /// Adds that a thread which holds `held` asks for a lock, and returns what this brings to
    /// light.
    ///
    /// `alone` says that the process has one thread. Of the locks that are held, by their index,
    /// only those have an order before the wanted one that `ordered` names; the others keep threads
    /// apart all the same.
    pub fn ask(
        &mut self,
        (thread, alone): (ThreadId, bool),
        held: &[BookHold<S>],
        want: &BookWant<S>,
        ordered: impl Fn(usize) -> bool,
    ) -> Vec<Inversion> {
        let mut findings = Vec::new();
        let to_site = self.site(&want.site);
        for (at, from) in held.iter().enumerate().filter(|&(at, _)| ordered(at)) {
            let others = held.iter().enumerate().filter(|&(other, _)| other != at);
            let gates: Vec<GateLock> = others
                .map(|(_, hold)| GateLock {
                    lock: node(hold.number, hold.level),
                    shared: hold.shared,
                })
                .collect();
            let from_site = self.site(&from.site);
            let graph = self.graph.get_or_insert_with(|| Graph::new(Limits::default()));
            for (number, level) in [(from.number, from.level), (want.number, want.level)] {
                if let Some(&class) = self.class_of.get(&number) {
                    graph.declare(node(number, level), class, level.min(LEVELS - 1) as u8);
                }
            }
            let edge = OrderEdge {
                from: node(from.number, from.level),
                to: node(want.number, want.level),
                from_mode: from.mode(),
                to_mode: mode(want.shared),
                from_site,
                to_site,
                thread,
                gates: &gates,
                alone,
                tried_from: from.tried,
                timed_to: false,
            };
            graph.add(&edge, &mut findings);
        }
        findings
    }

    /// Returns what the graph left out.
    pub fn losses(&self) -> GraphLosses {
        self.graph.as_ref().map(Graph::losses).unwrap_or_default()
    }
}

/// A thread of a deadlock: it wants what the next one holds.
#[derive(Clone, Debug)]
pub struct DeadlockMember<S> {
    /// The thread that waits.
    pub thread: ThreadId,
    /// The lock that the thread waits for.
    pub want: BookWant<S>,
    /// How the next thread holds that.
    pub hold: BookHold<S>,
}

/// The threads that hold what blocks a request, each with how.
pub type BookHolders<S> = Vec<(ThreadId, BookHold<S>)>;

/// A thread on the way of a search, what it wants, and the holders that were not followed yet.
type SearchStep<S> = (ThreadId, BookWant<S>, BookHolders<S>);

/// Returns the cycle of waits that `me` closes, if it does, the members in the order in which they
/// wait.
///
/// `wants` says what a thread waits for without end, `holders` who holds what blocks a request. The
/// caller has published what `me` wants in one step with asking, with respect to all other threads
/// that do so: then of the threads of a cycle the last one sees all others. What it sees is true:
/// `me` holds what the thread before it wants, so that one cannot have got it and has released
/// nothing since it began to want, and so on around the cycle.
pub fn closing_cycle<S>(
    me: ThreadId,
    wants: &dyn Fn(ThreadId) -> Option<BookWant<S>>,
    holders: &dyn Fn(&BookWant<S>) -> BookHolders<S>,
) -> Option<Vec<DeadlockMember<S>>> {
    let mut seen: HashSet<ThreadId> = HashSet::new();
    seen.insert(me);
    let mut path: Vec<SearchStep<S>> = Vec::new();
    let step = |thread| wants(thread).map(|want| (thread, holders(&want), want));
    let (thread, ahead, want) = step(me)?;
    path.push((thread, want, ahead));
    // How each thread behind the first was come to.
    let mut by: Vec<BookHold<S>> = Vec::new();
    while let Some((.., ahead)) = path.last_mut() {
        match ahead.pop() {
            Some((holder, hold)) if holder == me => {
                by.push(hold);
                let members = path.into_iter().zip(by);
                return Some(
                    members
                        .map(|((thread, want, _), hold)| DeadlockMember { thread, want, hold })
                        .collect(),
                );
            }
            Some((holder, hold)) => {
                if seen.insert(holder)
                    && let Some((thread, ahead, want)) = step(holder)
                {
                    by.push(hold);
                    path.push((thread, want, ahead));
                }
            }
            None => {
                path.pop();
                by.pop();
            }
        }
    }
    None
}

/// What a validator calls locks, threads and places.
pub trait ReportWords<S> {
    /// Names the lock with this number.
    fn lock(&self, number: u32) -> String;
    /// Names a thread, as behind the word "thread".
    fn thread(&self, thread: ThreadId) -> String;
    /// Adds a line or more: what was done, and at which place.
    fn place(&self, text: &mut String, what: &str, site: &S);
}

/// Returns the first line of a report.
#[must_use]
pub fn first_line(level: Level, what: &str) -> String {
    format!("lockstead: {level}: {what}\n")
}

/// Tells an inversion: who asked for which lock while holding which, and whether that can hurt.
#[must_use]
pub fn inversion<C, S>(
    book: &Book<C, S>,
    finding: &Inversion,
    words: &impl ReportWords<S>,
) -> String {
    let of = if finding.kind == InversionKind::Classes { "class" } else { "lock" };
    let count = finding.steps.len();
    let plural = if count == 1 {
        ""
    } else if of == "class" {
        "es"
    } else {
        "s"
    };
    let phrase = Rule::LockOrderInversion.phrase();
    let mut text = first_line(finding.level, &format!("{phrase} of {count} {of}{plural}"));
    for step in &finding.steps {
        let [from, to] = [step.from, step.to].map(|lock| words.lock(number(lock)));
        let thread = words.thread(step.witness.thread);
        let _ = writeln!(text, "  thread {thread} asked for {to}\n  while it held {from}");
        let place = |site: SiteId| &book.sites[site.0 as usize];
        words.place(&mut text, "held since", place(step.witness.from_site));
        words.place(&mut text, "asked for", place(step.witness.to_site));
    }
    let excuse = match finding.excuse {
        None if finding.kind == InversionKind::Classes => {
            "not the same locks, but of their classes: each order was seen with several pairs"
                .into()
        }
        None => "each of them could hold what the next one asks for, and wait for ever".into(),
        Some(Excuse::OneThread) => "not by as many threads as that takes, so far".into(),
        Some(Excuse::Gate(gate)) => {
            format!("but they held {} as well, so not at the same time", words.lock(number(gate)))
        }
        Some(Excuse::Alone) => "but one of them while there was no other thread".into(),
        Some(Excuse::OtherInstances) => "but the locks are not the same, only their classes".into(),
    };
    let _ = writeln!(text, "  {excuse}");
    text
}

/// Tells a deadlock: who waits for what, and who holds that.
#[must_use]
pub fn deadlock<S>(members: &[DeadlockMember<S>], words: &impl ReportWords<S>) -> String {
    let what = match members.len() {
        1 => "1 thread waits for itself".into(),
        count => format!("{count} threads wait for each other"),
    };
    let mut text = first_line(Rule::Deadlock.level(), &what);
    for (member, next) in members.iter().zip(members.iter().cycle().skip(1)) {
        let (waits, holds) = (words.thread(member.thread), words.thread(next.thread));
        let wanted = words.lock(member.want.number);
        let _ = writeln!(text, "  thread {waits} waits for {wanted}\n  which thread {holds} holds");
        words.place(&mut text, "waits", &member.want.site);
        words.place(&mut text, "held since", &member.hold.site);
    }
    text
}
