//! Where threads of Python wait, looked at while they do.
//!
//! # Role
//! The report of a run comes when the waits are over, and then nobody can say where a thread was in
//! Python. So the command looks at the threads of a process with an interpreter that wait just now,
//! and adds up what it meets. The frames of a wait are read once: they stay as they are until it
//! ends.
//!
//! # Whose frames they are
//! A wait is known by the thread's record, whose thread that is, and the number of the wait. All
//! three are read before the frames and again after them; frames of which they are not the same are
//! thrown away.
//!
//! # Cost
//! Nothing in the process, and nothing while no thread waits. A look at a wait that is known is a
//! load; at a new one it reads some ten pages of the process.
//! [`LookBudget`](super::pace::LookBudget) bounds all looks together, and what a look has no time for
//! is met by the next one.

use super::processes::{Observed, inside};
use crate::clock;
use lockstead_inspect::memory::ProcessMemory;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::proc::task::{self, TaskDoing};
use lockstead_inspect::python::{FoundInterpreter, Interpreter, PythonWaiter, SeenWaiter};
use lockstead_inspect::report::lives::WaitedLife;
use lockstead_inspect::report::python::{MetWait, PlaceNumber, WaitedPlace};
use lockstead_ledger::Ledger;
use lockstead_ledger::publish::{Episode, WaitKind, Waiting};
use lockstead_ledger::thread::{ThreadPart, ThreadRecord};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// How long a look reads frames, in nanoseconds: whoever looks keeps the coarse clock as well.
const LONGEST: u64 = 1_500_000;

/// One wait of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct WaitId {
    /// The index of the thread's record, and how often that was claimed.
    record: u32,
    claim: u32,
    episode: Episode,
}

/// A thread that waits, as the ledger has it.
struct MetWaiter {
    id: WaitId,
    tid: u32,
    ident: u64,
    waiting: Waiting,
    life: WaitedLife,
}

/// What a wait was found to be, where the thread is in code of Python.
type KnownWait = Option<(PlaceNumber, Option<u64>)>;

/// Looks at the threads of one process that wait.
#[derive(Default)]
pub(super) struct PythonWatch {
    interpreter: Option<Box<Interpreter>>,
    /// It was looked for since code was last loaded.
    is_sought: bool,
    /// The waits that a look has met and that last.
    known: HashMap<WaitId, KnownWait>,
    /// The time of the last look.
    last: u64,
    /// The record at which the next look begins, for it may not have time for all.
    first: u32,
}

impl PythonWatch {
    /// Notes that code was loaded.
    pub(super) fn update(&mut self) {
        self.is_sought = self.interpreter.is_some();
    }

    /// Looks at `now`, in nanoseconds of the ledger's clock.
    pub(super) fn look(&mut self, process: &Observed, now: u64) {
        let is_in_vain = self.is_sought && self.interpreter.is_none();
        if is_in_vain {
            return;
        }
        let last = std::mem::replace(&mut self.last, now);
        let since = if last == 0 { process.began() } else { last };
        let ledger = process.ledger.view();
        let mut before = std::mem::take(&mut self.known);
        let (mut new, mut all) = (Vec::new(), Vec::new());
        for waiter in waiters(&ledger) {
            match before.remove_entry(&waiter.id) {
                Some((id, wait)) => {
                    self.known.insert(id, wait);
                    all.push((waiter, false));
                }
                None => new.push(waiter),
            }
        }
        if new.is_empty() && all.is_empty() {
            return;
        }
        let found = self.read(process, &ledger, &new);
        let mut sums = inside(&process.python);
        sums.looks += 1;
        for (id, seen) in found {
            let known = seen.and_then(|SeenWaiter { stack, wait }| {
                let waits_for = wait.as_ref().map(|wait| wait.kind().to_owned());
                let place = sums.place(WaitedPlace { waits_for, stack })?;
                Some((place, wait.and_then(|wait| wait.object())))
            });
            self.known.insert(id, known);
        }
        all.extend(new.into_iter().map(|waiter| (waiter, true)));
        for (waiter, is_new) in all {
            let known = self.known.get(&waiter.id).copied().flatten();
            let (place, object) = known.map_or((None, None), |(place, at)| (Some(place), at));
            sums.add(MetWait {
                life: waiter.life,
                place,
                object,
                ns: now.saturating_sub(since),
                lasted_ns: now.saturating_sub(waiter.waiting.since),
                is_new,
            });
        }
    }

    /// Reads the frames of these waits, as many as there is time for; returns those that are sure.
    fn read(
        &mut self,
        process: &Observed,
        ledger: &Ledger<'_>,
        new: &[MetWaiter],
    ) -> Vec<(WaitId, Option<SeenWaiter>)> {
        if new.is_empty() {
            return Vec::new();
        }
        let memory = ProcessMemory::new(process.pid);
        self.seek(process, &memory);
        let Some(interpreter) = &self.interpreter else { return Vec::new() };
        // From the record on at which the last look ended.
        let split = new.partition_point(|waiter| waiter.id.record < self.first);
        let (before, after) = new.split_at(split);
        let order: Vec<&MetWaiter> = after.iter().chain(before).collect();
        let asked: Vec<PythonWaiter> = order
            .iter()
            .map(|waiter| PythonWaiter {
                ident: waiter.ident,
                address: waiter.waiting.target,
                stack: stack_pointer(process.pid, ledger, waiter),
            })
            .collect();
        let began = clock::now();
        let goes_on = || clock::now().saturating_sub(began) < LONGEST;
        let seen = interpreter.waiters(&memory, &asked, &goes_on);
        self.first = order.get(seen.len()).map_or(0, |waiter| waiter.id.record);
        sure(ledger, order.iter().map(|waiter| waiter.id).zip(seen))
    }

    /// Looks for the interpreter, once after code was loaded.
    fn seek(&mut self, process: &Observed, memory: &ProcessMemory) {
        if std::mem::replace(&mut self.is_sought, true) {
            return;
        }
        let Ok(mut modules) = Modules::of(process.pid) else { return };
        let mut sums = inside(&process.python);
        match Interpreter::find(&mut modules, memory) {
            Some(FoundInterpreter::Readable(found)) => {
                sums.version = Some(found.version());
                self.interpreter = Some(found);
            }
            Some(FoundInterpreter::Unreadable(why)) => sums.unreadable = Some(why),
            None => {}
        }
    }
}

/// Returns the threads that wait for something that has a record, in the order of theirs.
fn waiters(ledger: &Ledger<'_>) -> Vec<MetWaiter> {
    let waiter = |(record, thread): (usize, ThreadPart<'_>)| {
        let claim = thread.record.generation.load(Relaxed);
        let (episode, waiting) = thread.record.wait.read()?;
        if waiting.how.kind() == WaitKind::JOIN {
            return None;
        }
        let id = WaitId { record: u32::try_from(record).ok()?, claim, episode };
        let found = MetWaiter {
            id,
            tid: thread.record.tid.load(Relaxed),
            ident: thread.record.handle.load(Relaxed),
            waiting,
            life: WaitedLife::now(ledger, ledger.lock_of(&waiting)?)?,
        };
        is_still(thread.record, &id).then_some(found)
    };
    ledger.threads().enumerate().filter_map(waiter).collect()
}

/// Returns those of the waits that last still, with what was found of them meanwhile.
fn sure<T>(ledger: &Ledger<'_>, found: impl Iterator<Item = (WaitId, T)>) -> Vec<(WaitId, T)> {
    let lasts = |(id, _): &(WaitId, T)| {
        let thread = ledger.thread(id.record as usize);
        thread.is_some_and(|thread| is_still(thread.record, id))
    };
    found.filter(lasts).collect()
}

/// Tells whether a record's thread is in this wait.
fn is_still(record: &ThreadRecord, id: &WaitId) -> bool {
    record.generation.load(Relaxed) == id.claim && record.wait.is_still(id.episode)
}

/// Returns the stack pointer of a thread that sleeps on a semaphore.
fn stack_pointer(pid: u32, ledger: &Ledger<'_>, waiter: &MetWaiter) -> Option<u64> {
    if waiter.waiting.how.kind() != WaitKind::SEMAPHORE {
        return None;
    }
    let record = ledger.thread(waiter.id.record as usize)?.record;
    let [low, high] = [&record.stack_low, &record.stack_high].map(|end| end.load(Relaxed));
    // It is asked for the sake of semaphores that lie on the stack, not far above it.
    let address = waiter.waiting.target;
    match (low != 0).then_some(low..high) {
        Some(stack) if stack.contains(&address) => Some(address),
        Some(_) => Some(0),
        None => match task::doing(pid, waiter.tid) {
            Ok(TaskDoing::Call(call)) => Some(call.sp),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::syscalls::own_ledger::OwnLedger;
    use super::*;
    use lockstead_ledger::Birth;
    use lockstead_ledger::lock::ObjectKind;

    /// Makes a lock, and has a thread wait for it.
    fn wait(ledger: &Ledger<'_>, thread: usize, address: u64) {
        let birth = Birth {
            address,
            kind: ObjectKind::Semaphore,
            attributes: 0,
            init_stack: 0,
            first_stack: 0,
            module: 0,
        };
        ledger.init_lock(&birth).expect("room");
        let wait = &ledger.thread(thread).expect("a record").record.wait;
        let (how, target) = (WaitKind::SEMAPHORE, address);
        let waiting = Waiting { how, stack: 0, target, since: 5, deadline: 0, companion: 0 };
        wait.end();
        wait.begin(&waiting);
    }

    #[test]
    fn frames_count_only_for_the_wait_that_was_there_before_and_after_them() {
        let pid = std::process::id();
        let (own, _file) = OwnLedger::new(pid, 1).expect("a ledger");
        let ledger = own.view();
        let threads: Vec<usize> =
            (0..4).map(|_| own.begin_thread(pid, pid, 1).expect("room")).collect();
        for (&thread, address) in threads.iter().zip([0x1000, 0x2000, 0x3000]) {
            wait(&ledger, thread, address);
        }
        let before = waiters(&ledger);
        let records: Vec<usize> = before.iter().map(|waiter| waiter.id.record as usize).collect();
        assert_eq!(records, threads[..3], "the fourth does not wait");
        let ids = || before.iter().map(|waiter| (waiter.id, ()));
        assert_eq!(sure(&ledger, ids()).len(), 3);
        // The first waits again, for the same; the second record is given to another thread.
        wait(&ledger, threads[0], 0x1000);
        ledger.thread(threads[1]).expect("a record").record.generation.fetch_add(1, Relaxed);
        assert_eq!(sure(&ledger, ids()), [(before[2].id, ())]);
        ledger.thread(threads[2]).expect("a record").record.wait.end();
        assert_eq!(sure(&ledger, ids()), []);
        // What waits is known by the life of its lock.
        let after = waiters(&ledger);
        let lives: Vec<u32> = after.iter().map(|waiter| waiter.life.record).collect();
        let locks = [0x1000, 0x2000].map(|at| ledger.find_lock(at).expect("a lock"));
        assert_eq!(lives, locks);
        assert_ne!(after[0].life, before[0].life, "it was made anew");
    }
}
