//! What all threads know together: the order graph and the names in it. Behind one mutex, which no
//! known chain takes.

use super::finding::{Finding, Level, act};
use super::inside::{inside, locked};
use super::text;
use backtrace::Backtrace;
use lockstead_core::{LockId as Address, Site};
use lockstead_lockdep::ThreadId;
use lockstead_lockdep::book::{self, Book, BookHold, BookWant, ReportWords};
use lockstead_rules::Rule;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};

/// The part of a thread that others see.
#[derive(Debug)]
pub(super) struct VisibleThread {
    /// The thread's number, which no other thread ever gets.
    pub(super) id: ThreadId,
    /// Its name, or the kernel's number.
    name: String,
    /// What it holds, the oldest first: each from after the lock was acquired until before it is
    /// released (CHECK-HELD).
    pub(super) held: Mutex<Vec<BookHold<Site>>>,
    /// What it waits for without end.
    pub(super) wants: Mutex<Option<BookWant<Site>>>,
}

/// A lock as messages name it.
#[derive(Clone, Debug)]
struct MessageLock {
    name: Option<&'static str>,
    /// The place where it was created, or first used.
    origin: Site,
    address: usize,
}

/// What locks have in common that are of one class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CheckedClass {
    Name(&'static str),
    Origin(Site),
}

#[derive(Default)]
struct CheckEngine {
    book: Book<CheckedClass, Site>,
    subjects: HashMap<u32, MessageLock>,
    /// The first call chain that led to each place of the book, by the place's number.
    chains: Vec<Backtrace>,
    threads: Vec<Arc<VisibleThread>>,
    names: HashMap<ThreadId, String>,
    /// The places of broken rules that were told: by the places, whichever threads and locks of one
    /// origin it were.
    broken: HashSet<(Site, Option<Site>)>,
}

static ENGINE: LazyLock<Mutex<CheckEngine>> = LazyLock::new(Mutex::default);
/// The number of threads that have used a lock and have not ended.
static THREADS: AtomicU32 = AtomicU32::new(0);
static THREADS_EVER: AtomicU32 = AtomicU32::new(0);

/// Returns whether one thread alone has used locks so far, of those that live.
pub(super) fn is_alone() -> bool {
    THREADS.load(Relaxed) <= 1
}

/// Gives a lock that is used for the first time its number, which is never 0.
pub(super) fn introduce(name: Option<&'static str>, origin: Site, address: Address) -> u32 {
    let mut engine = locked(&ENGINE);
    let number =
        engine.book.introduce(name.map_or(CheckedClass::Origin(origin), CheckedClass::Name));
    engine.subjects.insert(number, MessageLock { name, origin, address: address.0 });
    number
}

/// Forgets a lock that is no more.
pub(super) fn forget(number: u32) {
    let mut engine = locked(&ENGINE);
    engine.book.forget(number);
    engine.subjects.remove(&number);
}

/// Adds a thread of this name that uses its first lock.
pub(super) fn join(name: String) -> Arc<VisibleThread> {
    THREADS.fetch_add(1, Relaxed);
    let id = ThreadId(THREADS_EVER.fetch_add(1, Relaxed) + 1);
    let (held, wants) = (Mutex::default(), Mutex::default());
    let shared = Arc::new(VisibleThread { id, name, held, wants });
    let mut engine = locked(&ENGINE);
    engine.names.insert(id, shared.name.clone());
    engine.threads.push(shared.clone());
    shared
}

/// Says what a thread that ends has left behind.
pub(super) fn leave(shared: &Arc<VisibleThread>) {
    THREADS.fetch_sub(1, Relaxed);
    let mut engine = locked(&ENGINE);
    let leaked = locked(&shared.held).clone();
    // One that leaves something behind stays, for whoever waits for it.
    if leaked.is_empty() {
        engine.threads.retain(|thread| thread.id != shared.id);
    }
    let mut found = Vec::new();
    for hold in &leaked {
        if engine.broken.insert((hold.site, None)) {
            let (thread, lock) = (&shared.name, engine.lock(hold.number));
            let story = format!("thread {thread} has ended and holds {lock}: its guard was leaked");
            found.push(engine.tell(Rule::ThreadExit, &story, &[("held since", hold.site)], ""));
        }
    }
    drop(engine);
    act(&found);
}

/// Returns the violation of a rule at the first of these places; `None` if that was said before, or
/// the thread is in the validator already.
pub(super) fn violation(
    rule: Rule,
    story: &str,
    places: &[(&'static str, Site)],
) -> Option<Finding> {
    let say = || {
        let mut sites = places.iter().map(|place| place.1);
        let place = (sites.next()?, sites.next());
        let mut engine = locked(&ENGINE);
        engine.broken.insert(place).then(|| engine.tell(rule, story, places, ""))
    };
    inside(say).flatten()
}

/// Returns what was not checked, for want of room or time: empty, but in programs of
/// millions of locks.
#[must_use]
pub fn losses() -> Vec<String> {
    let losses = locked(&ENGINE).book.losses();
    [
        (losses.locks, "locks found no room in the order graph"),
        (losses.edges, "orders of two locks found no room"),
        (losses.classes, "classes of locks found no room"),
        (losses.searches, "searches for a cycle took too long"),
    ]
    .into_iter()
    .filter(|(count, _)| *count != 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect()
}

/// Adds that a thread asks for a lock, by a chain that is new to it, and returns what this brings
/// to light.
pub(super) fn ask(me: &VisibleThread, want: &BookWant<Site>) -> Vec<Finding> {
    let mut engine = locked(&ENGINE);
    let held = locked(&me.held).clone();
    engine.see(want.site);
    // Who holds it already does not wait for itself (alone, that is refused).
    if let Some(before) = held.iter().find(|hold| hold.number == want.number) {
        let again = before.shared && want.shared;
        if !again || !engine.broken.insert((before.site, Some(want.site))) {
            return Vec::new();
        }
        let lock = engine.lock(want.number);
        let story = format!("thread {} asked for {lock}, which it reads already", me.name);
        let places = [("held since", before.site), ("asked for", want.site)];
        let why = "a writer that comes in between waits for it, and it for the writer";
        return vec![engine.tell(Rule::RecursiveRead, &story, &places, why)];
    }
    held.iter().for_each(|hold| engine.see(hold.site));
    let found = engine.book.ask((me.id, is_alone()), &held, want, |_| true);
    let tell = |finding: &lockstead_lockdep::Inversion| Finding {
        level: finding.level,
        text: book::inversion(&engine.book, finding, &*engine),
    };
    found.iter().map(tell).collect()
}

/// Publishes that the calling thread waits without end, and returns the deadlock that this closes.
pub(super) fn wait(me: &VisibleThread, want: BookWant<Site>) -> Option<Finding> {
    let engine = locked(&ENGINE);
    *locked(&me.wants) = Some(want);
    let wants = |id| {
        let thread = engine.threads.iter().find(|thread| thread.id == id)?;
        *locked(&thread.wants)
    };
    let holders = |want: &BookWant<Site>| {
        let hold = |thread: &Arc<VisibleThread>| {
            let held = locked(&thread.held);
            held.iter().find(|hold| hold.blocks(want)).map(|hold| (thread.id, *hold))
        };
        engine.threads.iter().filter_map(hold).collect()
    };
    let members = book::closing_cycle(me.id, &wants, &holders)?;
    Some(Finding { level: Rule::Deadlock.level(), text: book::deadlock(&members, &*engine) })
}

impl CheckEngine {
    /// Numbers a place, and keeps the call chain of the first time.
    fn see(&mut self, site: Site) {
        if self.book.site(&site).0 as usize == self.chains.len() {
            self.chains.push(Backtrace::new_unresolved());
        }
    }

    /// Tells a violation: who did what, at which places, and why that is wrong.
    fn tell(&self, rule: Rule, story: &str, places: &[(&str, Site)], why: &str) -> Finding {
        let mut text = book::first_line(rule.level(), rule.phrase());
        text::line(&mut text, story);
        places.iter().for_each(|(what, site)| self.place(&mut text, what, site));
        if !why.is_empty() {
            text::line(&mut text, why);
        }
        Finding { level: Level::Rule, text }
    }
}

impl ReportWords<Site> for CheckEngine {
    fn lock(&self, number: u32) -> String {
        match self.subjects.get(&number) {
            None => "a lock that is no more".into(),
            Some(MessageLock { name: Some(name), address, .. }) => {
                format!("`{name}` at {address:#x}")
            }
            Some(MessageLock { origin, address, .. }) => {
                format!("the lock of {origin} at {address:#x}")
            }
        }
    }

    fn thread(&self, thread: ThreadId) -> String {
        self.names.get(&thread).cloned().unwrap_or_else(|| "that has ended".into())
    }

    fn place(&self, text: &mut String, what: &str, site: &Site) {
        let chain = self.book.known_site(site).map(|known| &self.chains[known.0 as usize]);
        text::place(text, what, site, chain);
    }
}
