//! What all threads know together: the order graph, the names in it, and what
//! was found. Behind one mutex, which no known chain takes.

use super::cycles::Member;
use super::text;
use super::thread::{Held, LEVELS, Shared, Want, inside};
use super::{Finding, Level};
use crate::{LockId as Address, Site};
use backtrace::Backtrace;
use lockstead_lockdep::{ClassId, Edge, Gate, Graph, Limits, LockId, Mode, SiteId, Step, ThreadId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex};

/// A lock as messages name it.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) name: Option<&'static str>,
    /// Where it was created, or first used.
    pub(super) origin: Site,
    pub(super) address: usize,
    class: ClassId,
}

/// What locks have in common that are of one class.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Class {
    Name(&'static str),
    Origin(Site),
}

#[derive(Default)]
pub(super) struct Engine {
    graph: Option<Graph>,
    /// The next lock's number less one.
    locks_so_far: u32,
    subjects: HashMap<u32, Subject>,
    classes: HashMap<Class, ClassId>,
    /// Each with the first call chain that led there.
    sites: Vec<(Site, Backtrace)>,
    site_numbers: HashMap<Site, u32>,
    threads: Vec<Arc<Shared>>,
    names: HashMap<u32, String>,
    found: Vec<Finding>,
    /// Where rules were broken that was said: by the places, whichever threads and
    /// locks of one origin it were.
    broken: HashSet<(Site, Option<Site>)>,
}

static ENGINE: LazyLock<Mutex<Engine>> = LazyLock::new(Mutex::default);
/// Threads that have used a lock and have not ended.
static THREADS: AtomicU32 = AtomicU32::new(0);
static THREADS_EVER: AtomicU32 = AtomicU32::new(0);

/// Whether one thread alone has used locks so far, of those that live.
pub(super) fn is_alone() -> bool {
    THREADS.load(Relaxed) <= 1
}

pub(super) fn with<R>(work: impl FnOnce(&mut Engine) -> R) -> R {
    work(&mut inside(&ENGINE))
}

/// A lock is used for the first time. Returns its number, which is never 0.
pub(super) fn introduce(name: Option<&'static str>, origin: Site, address: Address) -> u32 {
    with(|engine| {
        let next = ClassId(engine.classes.len() as u32);
        let class = name.map_or(Class::Origin(origin), Class::Name);
        let class = *engine.classes.entry(class).or_insert(next);
        engine.locks_so_far += 1;
        let number = engine.locks_so_far;
        engine.subjects.insert(number, Subject { name, origin, address: address.0, class });
        number
    })
}

/// A lock is no more.
pub(super) fn forget(number: u32) {
    with(|engine| {
        if let Some(graph) = &mut engine.graph {
            (0..LEVELS).for_each(|level| graph.forget(node(number, level)));
        }
        engine.subjects.remove(&number);
    });
}

/// A thread uses its first lock.
pub(super) fn join(make: impl FnOnce(u32) -> Shared) -> Arc<Shared> {
    THREADS.fetch_add(1, Relaxed);
    let shared = Arc::new(make(THREADS_EVER.fetch_add(1, Relaxed) + 1));
    with(|engine| {
        engine.names.insert(shared.id, shared.name.clone());
        engine.threads.push(shared.clone());
    });
    shared
}

/// A thread ends.
pub(super) fn leave(shared: &Arc<Shared>) {
    THREADS.fetch_sub(1, Relaxed);
    let found: Vec<_> = with(|engine| {
        let leaked = shared.held();
        // One that leaves something behind stays, for whoever waits for it.
        if leaked.is_empty() {
            engine.threads.retain(|thread| thread.id != shared.id);
        }
        let mut found = Vec::new();
        for held in &leaked {
            if engine.broken.insert((held.site, None)) {
                let text = text::leaked(engine, &shared.name, held);
                found.push(Finding { level: Level::Rule, text });
            }
        }
        found
    });
    super::act(&found);
}

/// A rule was broken at the first of these places; `None` if that was said before.
pub(super) fn violation(what: &str, story: &str, places: &[(&str, Site)]) -> Option<Finding> {
    with(|engine| {
        let mut sites = places.iter().map(|place| place.1);
        let place = (sites.next()?, sites.next());
        if !engine.broken.insert(place) {
            return None;
        }
        let text = text::violation(what, story, places);
        Some(Finding { level: Level::Rule, text })
    })
}

/// Keeps what was found and, if that was wanted, printed.
pub(super) fn keep(found: &[Finding]) {
    with(|engine| engine.found.extend_from_slice(found));
}

/// What was found so far.
pub(super) fn findings() -> Vec<Finding> {
    with(|engine| engine.found.clone())
}

/// What was not checked.
pub(super) fn losses() -> Vec<String> {
    with(|engine| {
        let losses = engine.graph.as_ref().map(Graph::losses).unwrap_or_default();
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
    })
}

/// A lock at one place of a nesting, in the graph.
fn node(number: u32, level: u32) -> LockId {
    LockId(number * LEVELS + level)
}

fn mode(shared: bool) -> Mode {
    // A reader waits behind a waiting writer.
    if shared { Mode::Read } else { Mode::Write }
}

/// A thread that holds `held` asks for a lock, by a chain that is new to it.
/// Returns what this has brought to light.
pub(super) fn ask(me: &Shared, held: &[Held], want: &Want, level: u32) -> Vec<Finding> {
    with(|engine| {
        let to_site = engine.site(want.site);
        // Who holds it already does not wait for itself (alone, that is refused).
        if let Some(before) = held.iter().find(|held| held.number == want.number) {
            let again = before.shared && want.shared;
            if !again || !engine.broken.insert((before.site, Some(want.site))) {
                return Vec::new();
            }
            let text = text::read_again(engine, &me.name, before, want);
            return vec![Finding { level: Level::Rule, text }];
        }
        let mut findings = Vec::new();
        for (at, from) in held.iter().enumerate() {
            let others = held.iter().enumerate().filter(|(other, _)| *other != at);
            let gates: Vec<Gate> = others
                .map(|(_, held)| Gate { lock: node(held.number, held.level), shared: held.shared })
                .collect();
            let from_site = engine.site(from.site);
            engine.declare(from.number, from.level);
            engine.declare(want.number, level);
            let edge = Edge {
                from: node(from.number, from.level),
                to: node(want.number, level),
                from_mode: mode(from.shared),
                to_mode: mode(want.shared),
                from_site,
                to_site,
                thread: ThreadId(me.id),
                gates: &gates,
                alone: is_alone(),
                tried_from: from.tried,
                timed_to: false,
            };
            engine.graph().add(&edge, &mut findings);
        }
        findings
            .iter()
            .map(|finding| {
                let level = match finding.level {
                    lockstead_lockdep::Level::Order => Level::Order,
                    lockstead_lockdep::Level::Potential => Level::Potential,
                };
                let text = text::inversion(engine, level, finding);
                Finding { level, text }
            })
            .collect()
    })
}

impl Engine {
    fn graph(&mut self) -> &mut Graph {
        self.graph.get_or_insert_with(|| Graph::new(Limits::default()))
    }

    fn declare(&mut self, number: u32, level: u32) {
        if let Some(subject) = self.subjects.get(&number) {
            let class = subject.class;
            self.graph().declare(node(number, level), class, level as u8);
        }
    }

    fn site(&mut self, site: Site) -> SiteId {
        let next = self.sites.len() as u32;
        SiteId(*self.site_numbers.entry(site).or_insert_with(|| {
            self.sites.push((site, Backtrace::new_unresolved()));
            next
        }))
    }

    /// The threads that have used a lock and have not ended.
    pub(super) fn threads(&self) -> &[Arc<Shared>] {
        &self.threads
    }

    /// Threads wait for each other.
    pub(super) fn deadlock(&self, members: &[Member]) -> Vec<Finding> {
        let text = text::deadlock(self, members);
        vec![Finding { level: Level::Deadlock, text }]
    }

    pub(super) fn subject(&self, number: u32) -> Option<&Subject> {
        self.subjects.get(&number)
    }

    /// The lock of a step of a finding.
    pub(super) fn subject_of(&self, lock: LockId) -> Option<&Subject> {
        self.subject(lock.0 / LEVELS)
    }

    pub(super) fn thread_name(&self, step: &Step) -> &str {
        self.names.get(&step.witness.thread.0).map_or("a thread", String::as_str)
    }

    /// A place, and the first call chain that led there.
    pub(super) fn place(&self, site: SiteId) -> &(Site, Backtrace) {
        &self.sites[site.0 as usize]
    }

    /// The first call chain that led to a place, if any was seen.
    pub(super) fn chain(&self, site: Site) -> Option<&Backtrace> {
        self.site_numbers.get(site).map(|&number| &self.sites[number as usize].1)
    }
}
