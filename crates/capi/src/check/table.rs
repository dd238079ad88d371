//! What is known of the locks and of the threads that hold them.

use super::contexts::Contexts;
use super::cycles::Want;
use super::report::Place;
use core::fmt;
use lockstead_lockdep::{
    ClassId, Edge, Excuse, Finding, Gate, Graph, Level, Limits, LockId, Mode, SiteId, ThreadId,
};
use std::collections::HashMap;

/// Levels of a nesting that are told apart; a deeper one counts as the last.
const LEVELS: u32 = 8;

/// `enum lks_kind__`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Mutex,
    Semaphore,
    RwLock,
    Cond,
    Once,
    Ww,
    Rt,
    RtRecursive,
}

impl Kind {
    pub(super) fn of(code: u32) -> Kind {
        match code {
            0 => Kind::Mutex,
            1 => Kind::Semaphore,
            2 => Kind::RwLock,
            3 => Kind::Cond,
            4 => Kind::Once,
            _ => Kind::Ww,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Mutex => "mutex",
            Kind::Semaphore => "semaphore",
            Kind::RwLock => "reader-writer lock",
            Kind::Cond => "condition variable",
            Kind::Once => "once",
            Kind::Ww => "wait/wound mutex",
            Kind::Rt => "real-time mutex",
            Kind::RtRecursive => "recursive real-time mutex",
        })
    }
}

/// A lock that was seen.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) kind: Kind,
    pub(super) name: Option<String>,
    /// In the graph.
    number: u32,
    pub(super) destroyed: Option<Place>,
}

/// A lock that a thread has.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) address: usize,
    pub(super) reads: bool,
    pub(super) at: Place,
    pub(super) thread: u32,
    /// Of a wait/wound mutex.
    pub(super) is_ww: bool,
    number: u32,
    level: u32,
    tried: bool,
}

#[derive(Default)]
pub(super) struct Table {
    known: HashMap<usize, Known>,
    /// Of all threads, in the order of acquisition. In programs under check these are
    /// few.
    held: Vec<Held>,
    /// Of waits that have no end.
    pub(super) wants: Vec<Want>,
    pub(super) contexts: Contexts,
    graph: Option<Graph>,
    numbers: u32,
    classes: HashMap<String, u32>,
    sites: Vec<Place>,
    site_numbers: HashMap<Place, u32>,
}

impl Table {
    /// The lock at an address; of this kind from now on, if it was not seen before.
    pub(super) fn lock(&mut self, address: usize, kind: Kind, at: &Place) -> &mut Known {
        if !self.known.contains_key(&address) {
            self.introduce(address, kind, None, at);
        }
        self.known.get_mut(&address).expect("just introduced")
    }

    /// A lock begins at an address.
    pub(super) fn introduce(
        &mut self,
        address: usize,
        kind: Kind,
        name: Option<String>,
        at: &Place,
    ) {
        self.numbers += 1;
        let number = self.numbers;
        // Locks of one place of initialisation, or of first use, are of one class.
        let next = self.classes.len() as u32;
        let class = *self.classes.entry(at.to_string()).or_insert(next);
        let graph = self.graph.get_or_insert_with(|| Graph::new(Limits::default()));
        for level in 0..LEVELS {
            graph.declare(LockId(number * LEVELS + level), ClassId(class), level as u8);
        }
        let fresh = Known { kind, name, number, destroyed: None };
        if let Some(before) = self.known.insert(address, fresh) {
            (0..LEVELS).for_each(|level| graph.forget(LockId(before.number * LEVELS + level)));
        }
    }

    pub(super) fn known(&self, address: usize) -> Option<&Known> {
        self.known.get(&address)
    }

    /// The lock as messages call it.
    pub(super) fn name(&self, address: usize) -> String {
        match self.known.get(&address) {
            Some(Known { kind, name: Some(name), .. }) => {
                format!("{kind} `{name}` at {address:#x}")
            }
            Some(Known { kind, .. }) => format!("{kind} at {address:#x}"),
            None => format!("lock at {address:#x}"),
        }
    }

    /// Somebody's hold of the lock, or this thread's.
    pub(super) fn holder(&self, address: usize, thread: Option<u32>) -> Option<&Held> {
        let fits = |held: &&Held| {
            held.address == address && thread.is_none_or(|thread| held.thread == thread)
        };
        self.held.iter().rev().find(fits)
    }

    /// A thread has a lock.
    pub(super) fn acquired(
        &mut self,
        hold: (usize, bool, u32),
        level: u32,
        tried: bool,
        at: Place,
    ) {
        let (address, reads, thread) = hold;
        let known = self.known.get(&address);
        let number = known.map_or(0, |known| known.number);
        let is_ww = known.is_some_and(|known| known.kind == Kind::Ww);
        let level = level.min(LEVELS - 1);
        self.wants_nothing(thread);
        self.held.push(Held { address, reads, at, thread, is_ww, number, level, tried });
    }

    /// A thread has it no more; false if it had not.
    pub(super) fn released(&mut self, address: usize, reads: bool, thread: u32) -> bool {
        let fits =
            |held: &Held| held.address == address && held.reads == reads && held.thread == thread;
        let at = self.held.iter().rposition(fits);
        at.map(|at| self.held.remove(at)).is_some()
    }

    /// A thread's wait is over.
    pub(super) fn wants_nothing(&mut self, thread: u32) {
        self.wants.retain(|want| want.thread() != thread);
    }

    /// All that is held.
    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    /// What a thread holds that has ended, and does no more, as far as others go.
    pub(super) fn left_by(&mut self, thread: u32) -> Vec<Held> {
        self.wants_nothing(thread);
        self.held.extract_if(.., |held| held.thread == thread).collect()
    }

    /// A thread that holds locks asks for a further one: what orders that can deadlock
    /// this has brought to light.
    pub(super) fn ask(&mut self, hold: (usize, bool, u32), level: u32, at: &Place) -> Vec<String> {
        self.ask_among(hold, level, at, |_| true)
    }

    /// The same, of those that it holds only these.
    pub(super) fn ask_among(
        &mut self,
        hold: (usize, bool, u32),
        level: u32,
        at: &Place,
        among: impl Fn(&Held) -> bool,
    ) -> Vec<String> {
        let (address, reads, thread) = hold;
        let Some(number) = self.known.get(&address).map(|known| known.number) else {
            return Vec::new();
        };
        let to = LockId(number * LEVELS + level.min(LEVELS - 1));
        let to_site = self.site(at);
        let mode = |reads: bool| if reads { Mode::Read } else { Mode::Write };
        let mine: Vec<_> = self.held.iter().filter(|held| held.thread == thread).cloned().collect();
        let mut found = Vec::new();
        for (index, from) in mine.iter().enumerate().filter(|(_, from)| among(from)) {
            let others = mine.iter().enumerate().filter(|(other, _)| *other != index);
            let gates: Vec<_> = others
                .map(|(_, held)| Gate {
                    lock: LockId(held.number * LEVELS + held.level),
                    shared: held.reads,
                })
                .collect();
            let edge = Edge {
                from: LockId(from.number * LEVELS + from.level),
                to,
                from_mode: mode(from.reads),
                to_mode: mode(reads),
                from_site: self.site(&from.at),
                to_site,
                thread: ThreadId(thread),
                gates: &gates,
                alone: false,
                tried_from: from.tried,
                timed_to: false,
            };
            if let Some(graph) = &mut self.graph {
                graph.add(&edge, &mut found);
            }
        }
        found.iter().filter_map(|finding| self.tell(finding)).collect()
    }

    fn site(&mut self, at: &Place) -> SiteId {
        if let Some(&known) = self.site_numbers.get(at) {
            return SiteId(known);
        }
        let number = self.sites.len() as u32;
        self.sites.push(at.clone());
        self.site_numbers.insert(at.clone(), number);
        SiteId(number)
    }

    /// Only what can deadlock as it was seen; one thread alone cannot with itself.
    fn tell(&self, finding: &Finding) -> Option<String> {
        if finding.level != Level::Potential || finding.excuse == Some(Excuse::OneThread) {
            return None;
        }
        let count = finding.steps.len();
        let mut text = format!("lockstead: POTENTIAL: lock order inversion of {count} locks\n");
        for step in &finding.steps {
            let [from, to] = [step.from, step.to].map(|lock| self.number_name(lock.0 / LEVELS));
            let [held, asked] = [step.witness.from_site, step.witness.to_site]
                .map(|site| &self.sites[site.0 as usize]);
            text += &format!(
                "  thread {} asked for the {to}\n    at {asked}\n  while it held the {from}\n    \
                 since {held}\n",
                step.witness.thread.0
            );
        }
        Some(text)
    }

    fn number_name(&self, number: u32) -> String {
        let lock = self.known.iter().find(|(_, known)| known.number == number);
        lock.map_or_else(|| "lock that is no more".into(), |(&address, _)| self.name(address))
    }
}
