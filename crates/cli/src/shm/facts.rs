//! What is shown of a segment, as data: the JSON is this, the text is made from it.

use super::cycles;
use super::processes::{Processes, Seen};
use lockstead::shared::inspect::{Identity, LockState, LockView, Participant, People, View};
use lockstead::shared::{LockKind, SegmentError};
use serde::Serialize;
use std::collections::HashMap;

/// A segment. The fields are described in docs/json.md.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) path: String,
    pub(super) version: u32,
    pub(super) bytes: u64,
    pub(super) exclusive: bool,
    pub(super) slots: u32,
    pub(super) participants: Vec<Person>,
    pub(super) locks_total: u64,
    pub(super) locks_free: u64,
    pub(super) locks: Vec<Lock>,
    pub(super) cycles: Vec<Vec<Link>>,
    pub(super) recovered: Option<Recovered>,
}

/// One of those that wait for each other: for a lock that the next one has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Link {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) lock: String,
}

/// What `--recover` has done.
#[derive(Debug, Serialize)]
pub(super) struct Recovered {
    pub(super) declared_dead: Vec<u32>,
    pub(super) reset: Vec<String>,
    pub(super) scrubbed: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Alive,
    /// Alive as far as the segment knows, but its process or its thread does not exist.
    Missing,
    Dead,
    Left,
}

#[derive(Debug, Serialize)]
pub(super) struct Person {
    pub(super) slot: u32,
    pub(super) generation: u32,
    pub(super) state: State,
    pub(super) worn_out: bool,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) namespace: u64,
    pub(super) process_here: Option<u32>,
    pub(super) name: Option<String>,
    pub(super) age_ns: Option<u64>,
    pub(super) holds: u64,
    pub(super) shares: u64,
    pub(super) waits_for: Option<String>,
    pub(super) waits_for_offset: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Lock {
    pub(super) lock: String,
    pub(super) kind: &'static str,
    pub(super) offset: u64,
    pub(super) state: &'static str,
    pub(super) owner: Option<Who>,
    pub(super) reserved_for: Option<Who>,
    pub(super) waiters: Vec<u32>,
    pub(super) shares: Vec<Share>,
    pub(super) units: Option<u32>,
    pub(super) units_free: Option<u32>,
}

/// A participant as a lock's word names it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Who {
    pub(super) slot: u32,
    pub(super) generation: u32,
    /// As far as the segment knows.
    pub(super) alive: bool,
    /// `None` where somebody else has the slot by now.
    pub(super) process: Option<u32>,
    pub(super) thread: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(super) struct Share {
    pub(super) slot: u32,
    pub(super) units: u32,
}

/// What a walk over all locks gathers.
struct Gathering<'a> {
    people: &'a People,
    /// What is known here of those that live, by slot.
    seen: HashMap<u32, Seen>,
    waiting: HashMap<u64, Vec<u32>>,
    all: bool,
    locks: Vec<Lock>,
    total: u64,
    free: u64,
    holds: HashMap<Identity, u64>,
    names: HashMap<u64, String>,
}

impl Facts {
    /// Reads the segment; free locks are listed if `all` are.
    pub(super) fn collect(
        path: String,
        view: &View,
        all: bool,
        recovered: Option<Recovered>,
    ) -> Result<Facts, SegmentError> {
        let people = view.people()?;
        let mut waiting: HashMap<u64, Vec<u32>> = HashMap::new();
        for person in people.all().iter().filter(|person| person.alive) {
            if let Some(lock) = person.waits_for {
                waiting.entry(lock).or_default().push(person.slot);
            }
        }
        let mut gathering = Gathering {
            people: &people,
            seen: see(&people),
            waiting,
            all,
            locks: Vec::new(),
            total: 0,
            free: 0,
            holds: HashMap::new(),
            names: HashMap::new(),
        };
        view.locks(&people, &mut |lock| {
            gathering.add(lock);
            true
        })?;
        let participants = people.all().iter();
        let participants = participants.map(|person| gathering.person(person)).collect();
        let header = view.header();
        let mut facts = Facts {
            path,
            version: header.version,
            bytes: header.total,
            exclusive: header.exclusive,
            // Nobody sits in number 0.
            slots: header.slots.saturating_sub(1),
            participants,
            locks_total: gathering.total,
            locks_free: gathering.free,
            locks: gathering.locks,
            cycles: Vec::new(),
            recovered,
        };
        facts.cycles = cycles::find(&facts);
        Ok(facts)
    }
}

impl Gathering<'_> {
    fn add(&mut self, lock: &LockView<'_>) {
        self.total += 1;
        if let Some(owner) = lock.owner {
            *self.holds.entry(owner).or_default() += 1;
        }
        let waiters = self.waiting.get(&lock.offset).cloned().unwrap_or_default();
        if !waiters.is_empty() {
            self.names.insert(lock.offset, lock.path.to_owned());
        }
        let free = lock.state == LockState::Free && waiters.is_empty() && lock.claims.is_empty();
        self.free += u64::from(free);
        if free && !self.all {
            return;
        }
        let semaphore = lock.kind == LockKind::Semaphore;
        self.locks.push(Lock {
            lock: lock.path.to_owned(),
            kind: lock.kind.name(),
            offset: lock.offset,
            state: self.state(lock),
            owner: lock.owner.map(|owner| self.who(owner)),
            reserved_for: lock.reserved_for.map(|reserved_for| self.who(reserved_for)),
            waiters,
            shares: lock
                .claims
                .iter()
                .map(|claim| Share {
                    slot: claim.slot,
                    units: if semaphore { claim.units } else { 1 },
                })
                .collect(),
            units: lock.units.map(|(all, _)| all),
            units_free: lock.units.map(|(_, free)| free),
        });
    }

    fn who(&self, who: Identity) -> Who {
        let sits = self.people.in_slot(who.slot());
        let sits = sits.filter(|person| person.generation == who.generation());
        Who {
            slot: who.slot(),
            generation: who.generation(),
            alive: sits.is_some_and(|person| person.alive),
            process: sits.map(|person| person.process),
            thread: sits.map(|person| person.thread),
        }
    }

    fn is_missing(&self, person: &Participant) -> bool {
        person.unnoticed || self.seen.get(&person.slot).is_some_and(|seen| seen.missing)
    }

    fn state(&self, lock: &LockView<'_>) -> &'static str {
        let owner = lock.owner.and_then(|owner| self.people.living(owner));
        match lock.state {
            LockState::Owned if owner.is_some_and(|owner| self.is_missing(owner)) => {
                "owner-missing"
            }
            LockState::Owned => "owned",
            LockState::OwnerMissing => "owner-missing",
            LockState::OwnerDead => "owner-dead",
            LockState::Inconsistent => "inconsistent",
            LockState::NotRecoverable => "not-recoverable",
            LockState::Free => "free",
            _ => "unknown",
        }
    }

    fn person(&self, person: &Participant) -> Person {
        let seen = self.seen.get(&person.slot);
        let state = match (person.alive, person.dead) {
            (true, _) if self.is_missing(person) => State::Missing,
            (true, _) => State::Alive,
            (false, true) => State::Dead,
            (false, false) => State::Left,
        };
        // The dead wait for nothing any more.
        let waits_for = person.waits_for.filter(|_| person.alive);
        let holds = person.identity().and_then(|who| self.holds.get(&who)).copied();
        Person {
            slot: person.slot,
            generation: person.generation,
            state,
            worn_out: person.worn_out,
            process: person.process,
            thread: person.thread,
            namespace: person.namespace,
            process_here: seen.and_then(|seen| seen.here),
            name: seen.and_then(|seen| seen.name.clone()),
            age_ns: since_1970().and_then(|now| now.checked_sub(person.since)),
            holds: holds.unwrap_or(0),
            shares: person.claims.len() as u64,
            waits_for: waits_for.and_then(|lock| self.names.get(&lock).cloned()),
            waits_for_offset: waits_for,
        }
    }
}

/// The clock on which participants say when they came: one that the next start of the system
/// does not set back.
fn since_1970() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local variable.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    (code == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Looks up those that live, by slot. The numbers of one that has ended may be somebody else's
/// by now.
fn see(people: &People) -> HashMap<u32, Seen> {
    let mut processes = Processes::new();
    let living = people.all().iter().filter(|person| person.alive && !person.unnoticed);
    living
        .map(|person| {
            (person.slot, processes.look(person.namespace, person.process, person.thread))
        })
        .collect()
}
