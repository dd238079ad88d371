//! The threads' parts of a ledger as a report shows them: what they hold and
//! what they wait for.

use super::capture::Looking;
use super::interpreter::{TakenSemaphore, TakenSemaphores};
use super::model::{LockHeld, LockHolder, SnapshotLock, ThreadWait, WaitEnd, WaitTarget};
use super::objects::{ledger_now, now};
use crate::proc::futex::FutexWait;
use crate::proc::task::{self, TaskDoing};
use crate::report::names::{Names, attribute_names, given_name, noun};
use crate::stack::{CodeAddress, Stack};
use crate::symbols::LockClues;
use crate::waits::surroundings::joined;
use crate::waits::surroundings::right_of;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{LockRecord, ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::thread::{ThreadPart, state};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of the largest lock of glibc: its futex words lie within.
const LARGEST_LOCK: u64 = 56;

/// One wait of a thread.
pub(super) struct ReadWait {
    /// The index of the thread's record, if the ledger has the wait.
    pub(super) record: Option<u32>,
    pub(super) wait: ThreadWait,
}

/// What a ledger says at one moment.
pub(super) struct LedgerEntries {
    /// What each thread waits for, by its id here.
    pub(super) waits: BTreeMap<u32, ReadWait>,
    /// The locks by their addresses.
    pub(super) locks: BTreeMap<u64, SnapshotLock>,
    /// The place where locks were acquired.
    pub(super) stacks: Vec<Stack>,
    /// The names of threads by the stacks that they run on.
    thread_stacks: Vec<(u64, u64, String)>,
    /// Since when threads sleep on futex words, by their ids: what for, memory tells.
    pub(super) sleeping: HashMap<u32, u64>,
    /// The takers of semaphores that began with one token, by their addresses.
    pub(super) taken: TakenSemaphores,
    pub(super) now: u64,
}

/// A thread's part, as read.
struct ReadPart {
    index: u32,
    tid: u32,
    leaked: bool,
    waiting: Option<Waiting>,
    held: Vec<Holding>,
}

impl LedgerEntries {
    /// Reads all threads. The stacks of their waits go to `looking`.
    /// `taking_back`: threads, by their records, that are known to be getting a
    /// mutex back after a condition.
    pub(super) fn read(
        looking: &mut Looking,
        ledger: &Ledger<'_>,
        taking_back: &HashSet<u32>,
    ) -> LedgerEntries {
        let mut entries = LedgerEntries {
            waits: BTreeMap::new(),
            locks: BTreeMap::new(),
            stacks: Vec::new(),
            thread_stacks: thread_stacks(ledger, looking),
            sleeping: HashMap::new(),
            taken: TakenSemaphores::new(),
            now: ledger_now(),
        };
        let threads = ledger.threads().enumerate();
        let parts: Vec<ReadPart> =
            threads.filter_map(|(index, thread)| part(looking, index as u32, &thread)).collect();
        let sites = entries.name_stacks(looking, ledger, &parts);
        for part in &parts {
            for holding in &part.held {
                entries.hold(looking, ledger, part, holding, sites.get(&holding.stack).copied());
            }
        }
        for part in &parts {
            let Some(waiting) = part.waiting else { continue };
            if waiting.how.kind() == WaitKind::FUTEX {
                entries.sleeping.insert(part.tid, waiting.since);
                continue;
            }
            if waiting.how.kind() != WaitKind::CONDITION {
                looking.plain.insert(part.tid);
            }
            let back = taking_back.contains(&part.index) || {
                let companion = entries.locks.get(&waiting.companion);
                companion.is_some() && sleeps_in(looking, part.tid, waiting.companion)
            };
            entries.wait(looking, ledger, part.index, part.tid, &waiting, back);
            if let Some(&at) = sites.get(&waiting.stack) {
                looking.stacks.insert(part.tid, entries.stacks[at].clone());
            }
        }
        entries
    }

    /// Names each stack once; says where in `stacks` it is.
    fn name_stacks(
        &mut self,
        looking: &mut Looking,
        ledger: &Ledger<'_>,
        parts: &[ReadPart],
    ) -> HashMap<u32, usize> {
        let mut sites = HashMap::new();
        let Some((_, symbolizer)) = &mut looking.code else { return sites };
        let mut stored = Vec::new();
        for part in parts {
            let waiting = part.waiting.iter().map(|waiting| waiting.stack);
            for id in part.held.iter().map(|holding| holding.stack).chain(waiting) {
                if let Entry::Vacant(entry) = sites.entry(id)
                    && let Some(stack) = ledger.stack(id)
                {
                    entry.insert(stored.len());
                    stored.push((stack.returns().collect::<Vec<u64>>(), stack.end));
                }
            }
        }
        let all = stored.iter().flat_map(|(returns, _)| returns);
        symbolizer.prepare(all.copied().map(CodeAddress::return_to));
        let named = stored.iter().map(|(returns, end)| Names::stack(symbolizer, returns, *end));
        self.stacks = named.collect();
        sites
    }

    fn hold(
        &mut self,
        looking: &mut Looking,
        ledger: &Ledger<'_>,
        part: &ReadPart,
        holding: &Holding,
        acquired: Option<usize>,
    ) {
        let record = ledger.find_lock(holding.address).and_then(|index| ledger.lock(index));
        if let Some((ObjectKind::Semaphore, _, attributes)) = record.map(LockRecord::shape) {
            let serves_as_lock = attributes & attribute::GIVEN_BACK != 0;
            let taken = TakenSemaphore { thread: part.tid, serves_as_lock };
            self.taken.insert(holding.address, taken);
            // Whoever took the others may wait until somebody else gives them.
            if !serves_as_lock {
                return;
            }
        }
        // Who has the right to become the writer reads.
        let right = right_of(ledger, holding.address);
        let address = right.unwrap_or(holding.address);
        let exact = holding.started != 0;
        let began = if exact { holding.started } else { ledger.header().time_of(holding.tick) };
        let holder = LockHolder {
            shared: right.is_some() || holding.flags.has(Flags::READ),
            held_ns: Some(self.now.saturating_sub(began)),
            exact,
            acquired,
            ..LockHolder::alone(part.tid)
        };
        let lock = self.lock(looking, ledger, address, ObjectKind::Unknown);
        match &mut lock.held {
            // The first of several times that a thread holds it counts.
            LockHeld::By { holders } if holders.iter().any(|h| h.thread == part.tid) => {}
            LockHeld::By { holders } => holders.push(holder),
            held if part.leaked => {
                let why = "that thread has ended without giving it back".into();
                *held = LockHeld::Elsewhere { owner: part.tid, why, acquired };
            }
            held => *held = LockHeld::By { holders: vec![holder] },
        }
    }

    /// Returns the lock at an address, made on first use; `kind` is what it is if the ledger does
    /// not say.
    fn lock(
        &mut self,
        looking: &mut Looking,
        ledger: &Ledger<'_>,
        address: u64,
        kind: ObjectKind,
    ) -> &mut SnapshotLock {
        let thread_stacks = &self.thread_stacks;
        self.locks.entry(address).or_insert_with(|| {
            let record = ledger.find_lock(address).and_then(|index| ledger.lock(index));
            let (kind, attributes) = match record.map(|record| record.shape()) {
                Some((ObjectKind::Unknown, _, attributes)) => (kind, attributes),
                Some((kind, _, attributes)) => (kind, attributes),
                None => (kind, 0),
            };
            let chain = |id: Option<u32>| {
                let stored = id.filter(|&id| id != 0).and_then(|id| ledger.stack(id));
                stored.map(|stack| stack.returns().map(CodeAddress::return_to).collect::<Vec<_>>())
            };
            let initialised = chain(record.map(|record| record.init_stack.load(Relaxed)));
            let first_used = chain(record.map(|record| record.first_stack.load(Relaxed)));
            let serial = record.map(|record| u64::from(record.serial.load(Relaxed)));
            let at = thread_stacks.partition_point(|(low, ..)| *low <= address);
            let around = at.checked_sub(1).and_then(|at| thread_stacks.get(at));
            let noun = if kind.plain() == ObjectKind::Condition {
                "condition variable"
            } else {
                noun(kind)
            };
            let given = record.and_then(|record| given_name(ledger, record));
            let name = given.unwrap_or_else(|| {
                looking.name_by(&LockClues {
                    kind: noun,
                    address,
                    on_stack_of: around
                        .filter(|(_, high, _)| address < *high)
                        .map(|(.., name)| name.as_str()),
                    initialised: initialised.as_deref(),
                    first_used: first_used.as_deref(),
                    late: false,
                    is_of_second_pair: None,
                    serial: serial.filter(|&serial| serial != 0),
                })
            });
            SnapshotLock {
                address,
                kind: noun.into(),
                attributes: attribute_names(attributes).into_iter().map(str::to_owned).collect(),
                name,
                held: unheld(kind),
                waiting: Vec::new(),
                may_hold: Vec::new(),
            }
        })
    }

    fn wait(
        &mut self,
        looking: &mut Looking,
        ledger: &Ledger<'_>,
        record: u32,
        tid: u32,
        waiting: &Waiting,
        back: bool,
    ) {
        let (address, kind) = match waiting.how.kind() {
            WaitKind::CONDITION if back => (waiting.companion, ObjectKind::Mutex),
            WaitKind::CONDITION => (waiting.target, ObjectKind::Condition),
            WaitKind::MUTEX => (waiting.target, ObjectKind::Mutex),
            WaitKind::READ | WaitKind::WRITE => (waiting.target, ObjectKind::RwLock),
            WaitKind::SPIN => (waiting.target, ObjectKind::Spin),
            WaitKind::SEMAPHORE => (waiting.target, ObjectKind::Semaphore),
            WaitKind::BARRIER => (waiting.target, ObjectKind::Barrier),
            _ => (waiting.target, ObjectKind::Unknown),
        };
        let target = if waiting.how.kind() == WaitKind::JOIN {
            let joined = joined(ledger, waiting.target, waiting.since)
                .and_then(|index| ledger.thread(index as usize))
                .and_then(|thread| looking.numbers.get(&thread.record.tid.load(Relaxed)));
            match joined {
                Some(&thread) => WaitTarget::Join { thread },
                None => WaitTarget::Unknown { why: "the end of a thread that is not known".into() },
            }
        } else {
            let lock = self.lock(looking, ledger, address, kind);
            lock.waiting.push(tid);
            WaitTarget::Lock { address }
        };
        let wait = ThreadWait {
            target,
            shared: waiting.how.kind() == WaitKind::READ,
            // Getting a mutex back has no end of its own.
            until: if back { None } else { until(waiting) },
            waited_ns: Some(self.now.saturating_sub(waiting.since)),
            word: None,
            expected: None,
        };
        self.waits.insert(tid, ReadWait { record: Some(record), wait });
    }

    /// Tells whether the ledger has a wait of this thread by now, with what it is for.
    pub(super) fn waits_now(&self, looking: &Looking, ledger: &Ledger<'_>, tid: u32) -> bool {
        ledger.threads().any(|thread| {
            let own = thread.record.tid.load(Relaxed);
            thread.record.state.load(Relaxed) == state::LIVE
                && looking.numbers.get(&own) == Some(&tid)
                && thread
                    .record
                    .wait
                    .read()
                    .is_some_and(|(_, waiting)| waiting.how.kind() != WaitKind::FUTEX)
        })
    }

    /// Returns the threads that wait for a lock of which the ledger knows no holder, though it
    /// should have one.
    pub(super) fn without_holder(&self) -> HashSet<u32> {
        let locks = self.locks.values().filter(|lock| {
            let ownable = ["mutex", "rwlock"].contains(&lock.kind.as_str());
            ownable && matches!(lock.held, LockHeld::Unknown { .. })
        });
        locks.flat_map(|lock| lock.waiting.iter().copied()).collect()
    }

    /// Returns the threads that hold what others wait for.
    pub(super) fn wanted_holders(&self) -> HashSet<u32> {
        let wanted = self.locks.values().filter(|lock| !lock.waiting.is_empty());
        wanted
            .flat_map(|lock| match &lock.held {
                LockHeld::By { holders } => holders.as_slice(),
                _ => &[],
            })
            .map(|holder| holder.thread)
            .collect()
    }
}

/// Reads one thread; `None` for one that does not run and has left nothing.
fn part(looking: &Looking, index: u32, thread: &ThreadPart<'_>) -> Option<ReadPart> {
    /// A thread may run on while it is read.
    const ATTEMPTS: u32 = 3;
    let record = thread.record;
    let own = record.tid.load(Relaxed);
    let leaked = match record.state.load(Relaxed) {
        state::LIVE => false,
        state::LEAKED => true,
        _ => return None,
    };
    let tid = match looking.numbers.get(&own) {
        Some(&tid) if !leaked => tid,
        None if leaked => own,
        _ => return None,
    };
    let mut part = ReadPart { index, tid, leaked, waiting: None, held: Vec::new() };
    for _ in 0..ATTEMPTS {
        let wait = record.wait.read().filter(|_| !leaked);
        let stack = thread.stack();
        let held = (0..stack.depth()).filter_map(|at| stack.entry(at).read());
        part.held = held.filter(|holding| !holding.flags.has(Flags::LENT)).collect();
        part.waiting = wait.map(|(_, waiting)| waiting);
        if wait.is_none_or(|(episode, _)| record.wait.is_still(episode)) {
            return Some(part);
        }
    }
    // It waits again and again: it runs.
    part.waiting = None;
    Some(part)
}

fn thread_stacks(ledger: &Ledger<'_>, looking: &Looking) -> Vec<(u64, u64, String)> {
    let names: HashMap<u32, &str> =
        looking.tasks.iter().map(|task| (task.own, task.name.as_str())).collect();
    let mut found: Vec<_> = ledger
        .threads()
        .filter_map(|thread| {
            let record = thread.record;
            let name = names.get(&record.tid.load(Relaxed))?;
            let [low, high] = [&record.stack_low, &record.stack_high].map(|end| end.load(Relaxed));
            let live = record.state.load(Relaxed) == state::LIVE && low != 0;
            live.then(|| (low, high, (*name).to_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Tells whether the thread sleeps in a futex call on a lock at this address.
fn sleeps_in(looking: &Looking, tid: u32, lock: u64) -> bool {
    let Ok(TaskDoing::Call(call)) = task::doing(looking.pid, tid) else { return false };
    let offset = FutexWait::decode(&call).and_then(|wait| wait.address.checked_sub(lock));
    offset.is_some_and(|offset| offset < LARGEST_LOCK)
}

/// Returns what is said of an object while no holder of it is known.
fn unheld(kind: ObjectKind) -> LockHeld {
    let why = match kind.plain() {
        ObjectKind::Condition | ObjectKind::Barrier => return LockHeld::Never,
        ObjectKind::Semaphore => "a semaphore has no owner: who will post it cannot be told",
        _ => {
            "no holder is recorded: it is changing hands, or was taken before lockstead came or \
             in a signal handler"
        }
    };
    LockHeld::Unknown { why: why.into() }
}

fn until(waiting: &Waiting) -> Option<WaitEnd> {
    if !waiting.how.is_timed() {
        return None;
    }
    let (clock, id) = if waiting.how.is_realtime() {
        ("realtime", libc::CLOCK_REALTIME)
    } else {
        ("monotonic", libc::CLOCK_MONOTONIC)
    };
    let deadline = i64::try_from(waiting.deadline).ok();
    let left_ns = deadline.and_then(|deadline| {
        let (seconds, nanos) = now(id);
        deadline.checked_sub(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?)
    });
    let seconds = deadline.map(|deadline| deadline / 1_000_000_000);
    Some(WaitEnd { clock: Some(clock), seconds, left_ns })
}
