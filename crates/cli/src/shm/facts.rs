//! What is shown of a segment, as data: the JSON is this, the text is made from it.

use super::cycles;
use super::processes::{Processes, SeenProcess};
use lockstead::shared::inspect::{
    Identity, LockState, LockView, ParticipantView, People, SegmentView,
};
use lockstead::shared::{LockKind, SegmentError};
use serde::Serialize;
use std::collections::HashMap;

/// A segment. The fields are described in docs/json.md.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SegmentFacts {
    /// The path as given.
    pub(super) path: String,
    /// The version of the file's format.
    pub(super) version: u32,
    /// The size of the file.
    pub(super) bytes: u64,
    /// Whether participants have lists of their own with the kernel.
    pub(super) exclusive: bool,
    /// How many threads can take part at a time.
    pub(super) slots: u32,
    /// One object for each slot that is, or was, somebody's.
    pub(super) participants: Vec<SegmentParticipant>,
    /// How many locks the segment has.
    pub(super) locks_total: u64,
    /// How many of them nobody has, shares or waits for.
    pub(super) locks_free: u64,
    /// The locks that are not free, in the order of the source; with `--all` all locks.
    pub(super) locks: Vec<SegmentLock>,
    /// Deadlocks: each member waits for a lock that the next one has, the last for one that the
    /// first has.
    pub(super) cycles: Vec<Vec<CycleLink>>,
    /// What `--recover` has done, before the rest was read.
    pub(super) recovered: Option<RecoveredFacts>,
}

/// One of those that wait for each other: for a lock that the next one has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CycleLink {
    /// The number of its slot.
    pub(super) slot: u32,
    /// How many have died there before.
    pub(super) generation: u32,
    /// The lock that it waits for.
    pub(super) lock: String,
}

/// What `--recover` has done.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RecoveredFacts {
    /// Slots of participants that certainly did not exist any more and had not been marked.
    pub(super) declared_dead: Vec<u32>,
    /// Locks that were not recoverable and are free now (`--reset`).
    pub(super) reset: Vec<String>,
    /// Worn-out slots that can be taken again.
    pub(super) scrubbed: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum ParticipantState {
    /// It takes part in the segment.
    Alive,
    /// It is alive as far as the segment knows, but there is no such thread.
    Missing,
    /// It died, and nobody has taken the slot since.
    Dead,
    /// It went without dying.
    Left,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SegmentParticipant {
    /// The number of its slot.
    pub(super) slot: u32,
    /// How many have died there before.
    pub(super) generation: u32,
    /// What became of it.
    pub(super) state: ParticipantState,
    /// Whether nobody can take the slot any more: too many died there.
    pub(super) worn_out: bool,
    /// Its process, as that calls itself in its own namespace.
    pub(super) process: u32,
    /// Its thread, in the same way.
    pub(super) thread: u32,
    /// The inode of its namespace of process ids; 0: unknown.
    pub(super) namespace: u64,
    /// The process's number where lockstead runs.
    pub(super) process_here: Option<u32>,
    /// The name of the process.
    pub(super) name: Option<String>,
    /// How long ago it came.
    pub(super) age_ns: Option<u64>,
    /// How many locks it has, or had when it died, alone.
    pub(super) holds: u64,
    /// How many locks it reads under or has units of.
    pub(super) shares: u64,
    /// The lock for which it sleeps.
    pub(super) waits_for: Option<String>,
    /// The offset of that lock in the file.
    pub(super) waits_for_offset: Option<u64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SegmentLock {
    /// Its name, from the root on, as in `accounts[3].lock`; `root` if it is the root.
    pub(super) lock: String,
    /// `mutex`, `rwlock`, `semaphore` or `condvar`.
    pub(super) kind: &'static str,
    /// The offset of the lock in the file.
    pub(super) offset: u64,
    /// `free`, `owned`, `owner-missing` (its owner is `missing`), `owner-dead` (the next one gets
    /// it and is told), `inconsistent` (nobody has it, the next one is told) or `not-recoverable`.
    pub(super) state: &'static str,
    /// The participant that has it alone.
    pub(super) owner: Option<LockOwner>,
    /// The hand-off waiter, for whom it is reserved when it comes free.
    pub(super) reserved_for: Option<LockOwner>,
    /// The slots of those who sleep for it.
    pub(super) waiters: Vec<u32>,
    /// The participants that read under the lock or have units of it.
    pub(super) shares: Vec<LockShare>,
    /// All units of a semaphore, whoever has them.
    pub(super) units: Option<u32>,
    /// The units of a semaphore that nobody has.
    pub(super) units_free: Option<u32>,
}

/// A participant as a lock's word names it.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LockOwner {
    /// The number of its slot.
    pub(super) slot: u32,
    /// How many have died there before.
    pub(super) generation: u32,
    /// Whether it lives, as far as the segment knows.
    pub(super) alive: bool,
    /// Its process; null where somebody else has the slot by now.
    pub(super) process: Option<u32>,
    /// Its thread, in the same way.
    pub(super) thread: Option<u32>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LockShare {
    /// The number of its slot.
    pub(super) slot: u32,
    /// How many units it has; 1 of a reader.
    pub(super) units: u32,
}

/// What a walk over all locks gathers.
struct Gathering<'a> {
    people: &'a People,
    /// What is known here of those that live, by slot.
    seen: HashMap<u32, SeenProcess>,
    waiting: HashMap<u64, Vec<u32>>,
    all: bool,
    locks: Vec<SegmentLock>,
    total: u64,
    free: u64,
    holds: HashMap<Identity, u64>,
    names: HashMap<u64, String>,
}

impl SegmentFacts {
    /// Reads the segment; free locks are listed if `all` are.
    pub(super) fn collect(
        path: String,
        view: &SegmentView,
        all: bool,
        recovered: Option<RecoveredFacts>,
    ) -> Result<SegmentFacts, SegmentError> {
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
        let mut facts = SegmentFacts {
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
        self.locks.push(SegmentLock {
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
                .map(|claim| LockShare {
                    slot: claim.slot,
                    units: if semaphore { claim.units } else { 1 },
                })
                .collect(),
            units: lock.units.map(|(all, _)| all),
            units_free: lock.units.map(|(_, free)| free),
        });
    }

    fn who(&self, who: Identity) -> LockOwner {
        let sits = self.people.in_slot(who.slot());
        let sits = sits.filter(|person| person.generation == who.generation());
        LockOwner {
            slot: who.slot(),
            generation: who.generation(),
            alive: sits.is_some_and(|person| person.alive),
            process: sits.map(|person| person.process),
            thread: sits.map(|person| person.thread),
        }
    }

    fn is_missing(&self, person: &ParticipantView) -> bool {
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

    fn person(&self, person: &ParticipantView) -> SegmentParticipant {
        let seen = self.seen.get(&person.slot);
        let state = match (person.alive, person.dead) {
            (true, _) if self.is_missing(person) => ParticipantState::Missing,
            (true, _) => ParticipantState::Alive,
            (false, true) => ParticipantState::Dead,
            (false, false) => ParticipantState::Left,
        };
        // The dead wait for nothing any more.
        let waits_for = person.waits_for.filter(|_| person.alive);
        let holds = person.identity().and_then(|who| self.holds.get(&who)).copied();
        SegmentParticipant {
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

/// Returns the clock on which participants say when they came: one that the next start of the
/// system does not set back.
fn since_1970() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one structure, which lives in this frame.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    (code == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Looks up those that live, by slot. The numbers of one that has ended may be somebody else's
/// by now.
fn see(people: &People) -> HashMap<u32, SeenProcess> {
    let mut processes = Processes::new();
    let living = people.all().iter().filter(|person| person.alive && !person.unnoticed);
    living
        .map(|person| {
            (person.slot, processes.look(person.namespace, person.process, person.thread))
        })
        .collect()
}
