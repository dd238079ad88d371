//! Python's threads in a snapshot: what they wait for, who has it, and the GIL.
//!
//! # Role
//! Puts what [`python`](crate::python) reads over what the C library's objects showed: a
//! semaphore becomes the lock that it belongs to, with its holder, and a wait for the GIL
//! becomes a wait for whoever has it. Locks of Python's, native ones and the GIL are then in one
//! graph.
//!
//! # The proof, where the GIL is in a cycle
//! A thread that waits for the GIL does not sleep soundly: it looks every few milliseconds.
//! But it cannot leave that wait as long as another thread has the GIL, and only that thread
//! gives it back. So if the holder slept from one reading to the next, and had it at
//! both, the waiter was in its wait all the time, whatever its count of switches.

use super::capture::Looking;
use super::interpreter::{PythonState, TakenSemaphores};
use super::model::{HolderEvidence, LockHeld, LockHolder, SnapshotLock, ThreadWait, WaitTarget};
use super::verify::{Fact, FactHolder, WaitFacts};
use crate::modules::Modules;
use crate::proc::futex::FutexWait;
use crate::proc::status::StatusFile;
use crate::proc::task::{self, TaskDoing};
use crate::python::{
    FoundInterpreter, Gil, Interpreter, PythonHolder, PythonLock, PythonLook, PythonStack,
    PythonWait, WaitPlace,
};
use crate::waits::graph::Wants;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a thread is looked at that may be waiting for the GIL, and runs just now.
const LOOKS: u32 = 10;
/// The time between two of these looks.
const PAUSE: Duration = Duration::from_micros(300);

impl Looking {
    /// Looks at the interpreter of the process, if it has one. `taken`: what a ledger saw.
    pub(super) fn look_at_python(&mut self, taken: TakenSemaphores) {
        if self.code.is_none() {
            return;
        }
        let Ok(mut modules) = Modules::of(self.pid) else { return };
        match Interpreter::find(&mut modules, &self.memory) {
            Some(FoundInterpreter::Readable(interpreter)) => {
                let mut look = self.python_now(&interpreter);
                if self.catch_gil_waits(&look) {
                    look = self.python_now(&interpreter);
                }
                if look.cut {
                    self.limits.push(
                        "not all of its Python threads were looked at: there are too many".into(),
                    );
                }
                let is_main = |own: &u32| self.numbers.get(own) == Some(&self.pid);
                let mut waits = look.threads.iter().filter(|(own, _)| is_main(own));
                if waits.any(|(_, main)| matches!(main.wait, Some(PythonWait::Lock(_))))
                    && has_event_handlers(self.pid)
                {
                    self.limits.push(
                        "the program has a handler for a signal that it may get: that may end the \
                         main thread's wait, so that a cycle through it is probable only"
                            .into(),
                    );
                }
                self.python = Some(PythonState { interpreter: *interpreter, look, taken });
            }
            Some(FoundInterpreter::Unreadable(why)) => self.limits.push(why),
            None => {}
        }
    }

    /// Tells whether there is an interpreter that can be read.
    pub(super) fn has_python(&self) -> bool {
        self.python.is_some()
    }

    fn python_now(&self, interpreter: &Interpreter) -> PythonLook {
        let places = self.tasks.iter().filter_map(|task| Some((task.own, place(&task.doing)?)));
        let places: BTreeMap<u32, WaitPlace> = places.collect();
        interpreter.look(&self.memory, &places, &|own| self.numbers.contains_key(&own))
    }

    /// Looks again at threads that ran and do not have the GIL: they may look for it. Tells
    /// whether one of them was found waiting.
    fn catch_gil_waits(&mut self, look: &PythonLook) -> bool {
        let holders: Vec<u32> = look.gils.iter().filter_map(|gil| gil.holder).collect();
        if holders.is_empty() {
            return false;
        }
        let mut caught = false;
        for task in &mut self.tasks {
            let runs = task.doing == TaskDoing::Running && look.threads.contains_key(&task.own);
            if !runs || holders.contains(&task.own) {
                continue;
            }
            let found = at_gil(self.pid, task.tid, |address| look.gil(address).is_some());
            if let Some(doing) = found {
                (task.doing, task.state) = (doing, 'S');
                caught = true;
            }
        }
        caught
    }

    /// Puts what the interpreter says over the facts; `again`: the threads that are looked at anew,
    /// whose counts of switches are compared.
    pub(super) fn add_python_facts(&self, facts: &mut WaitFacts, again: Option<&[u32]>) {
        let Some(state) = &self.python else { return };
        let fresh;
        let look = match again {
            None => &state.look,
            Some(_) => {
                fresh = self.python_now(&state.interpreter);
                &fresh
            }
        };
        let is_signalled = has_event_handlers(self.pid);
        for (own, thread) in &look.threads {
            let (Some(wait), Some(&tid)) = (&thread.wait, self.numbers.get(own)) else { continue };
            if again.is_some_and(|again| !again.contains(&tid)) {
                continue;
            }
            if let PythonWait::Gil(address) = *wait {
                let gil = look.gil(address + GIL_PART);
                let there = again.is_none()
                    || at_gil(self.pid, tid, |word| look.gil(word).is_some()).is_some();
                if there && let Some(fact) = self.gil_fact(gil) {
                    facts.insert(tid, fact);
                }
                continue;
            }
            let Some(fact) = facts.get_mut(&tid) else { continue };
            let (wants, holder) = match wait {
                PythonWait::Lock(lock) => {
                    let holder = state.owner(look, lock, |own| self.numbers.get(&own).copied());
                    let holder = holder.map(|holder| FactHolder {
                        likely: holder.evidence == HolderEvidence::Likely
                            || is_signalled && tid == self.pid,
                        ..FactHolder::alone(holder.thread)
                    });
                    (Some(Wants::Exclusive(lock.key)), holder)
                }
                PythonWait::Join(own) => (self.numbers.get(own).copied().map(Wants::Join), None),
                PythonWait::Event { .. } | PythonWait::Gil(_) => (None, None),
            };
            (fact.wants, fact.holders) = (wants, holder.into_iter().collect());
        }
    }

    fn gil_fact(&self, gil: Option<&Gil>) -> Option<Fact> {
        let gil = gil?;
        let holder = gil.holder.and_then(|own| self.numbers.get(&own).copied());
        // Its own count says nothing: see the proof above.
        let (wants, switches) = (Some(Wants::Exclusive(gil.address)), Some((0, 0)));
        let holders = holder.map(FactHolder::alone).into_iter().collect();
        Some(Fact { wants, timed: false, holders, switches })
    }

    /// Names what Python's threads wait for, and who has it.
    pub(super) fn name_python_waits(
        &self,
        waits: &mut BTreeMap<u32, ThreadWait>,
        locks: &mut BTreeMap<u64, SnapshotLock>,
    ) {
        let Some(state) = &self.python else { return };
        let look = &state.look;
        let mut left: BTreeSet<u64> = BTreeSet::new();
        for (own, thread) in &look.threads {
            let (Some(found), Some(&tid)) = (&thread.wait, self.numbers.get(own)) else { continue };
            if let PythonWait::Gil(address) = *found {
                // Between two looks at it the thread was seen to run.
                waits.entry(tid).or_insert_with(|| ThreadWait {
                    target: WaitTarget::Lock { address },
                    shared: false,
                    until: None,
                    waited_ns: None,
                    word: None,
                    expected: None,
                });
            }
            let Some(wait) = waits.get_mut(&tid) else { continue };
            if let WaitTarget::Lock { address } = wait.target
                && let Some(lock) = locks.get_mut(&address)
            {
                lock.waiting.retain(|&waiter| waiter != tid);
                left.insert(address);
            }
            let (address, lock) = match found {
                PythonWait::Join(own) => {
                    if let Some(&thread) = self.numbers.get(own) {
                        wait.target = WaitTarget::Join { thread };
                    }
                    continue;
                }
                PythonWait::Lock(lock) => (lock.key, self.python_lock(state, lock)),
                PythonWait::Event { kind, object } => (*object, event(kind, *object)),
                PythonWait::Gil(address) => {
                    // It is one of many short waits, without an end of their own.
                    (wait.until, wait.waited_ns) = (None, None);
                    (*address, self.gil(look.gil(*address + GIL_PART), *address))
                }
            };
            wait.target = WaitTarget::Lock { address };
            let there = locks.entry(address).or_insert_with(|| lock.clone());
            if there.kind != lock.kind {
                let waiting = std::mem::take(&mut there.waiting);
                *there = SnapshotLock { waiting, ..lock };
            }
            there.waiting.push(tid);
        }
        // What nobody waits for any more was the inner part of something else.
        locks.retain(|address, lock| {
            !left.contains(address)
                || !lock.waiting.is_empty()
                || matches!(lock.held, LockHeld::By { .. } | LockHeld::Elsewhere { .. })
        });
    }

    fn python_lock(&self, state: &PythonState, lock: &PythonLock) -> SnapshotLock {
        let kind = lock.kind();
        let here = |own: u32| self.numbers.get(&own).copied();
        let owner = state.owner(&state.look, lock, here);
        let seen = || {
            let taken = state.taken.get(&lock.key).filter(|_| !lock.recursive)?;
            let thread = Some(taken.thread).filter(|_| taken.serves_as_lock)?;
            let rests_on = Some("it took the lock, and has not given it back".into());
            let evidence = HolderEvidence::Seen;
            Some(LockHolder { evidence, rests_on, ..LockHolder::alone(thread) })
        };
        let loose = state.look.loose.iter().find(|loose| loose.lock == lock.key);
        let why = match (lock.recursive, lock.locked, loose) {
            (_, false, _) => "it is changing hands".into(),
            (true, true, _) => "the thread that it names runs no Python".into(),
            (false, true, Some(loose)) => format!(
                "it was taken in a suspended generator, {}, which no thread runs",
                loose.frame.site()
            ),
            (false, true, None) => "no frame shows who took this lock of Python's".into(),
        };
        let held = held_by(owner.or_else(seen), &why);
        let may_hold = match (&held, state.look.holder(lock)) {
            (LockHeld::Unknown { .. }, PythonHolder::MayHold(owns)) => {
                owns.into_iter().filter_map(here).collect()
            }
            _ => Vec::new(),
        };
        let name = format!("{kind} at {:#x}", lock.object);
        SnapshotLock { held, may_hold, ..bare(kind, lock.key, name) }
    }

    fn gil(&self, gil: Option<&Gil>, address: u64) -> SnapshotLock {
        let holder = gil.and_then(|gil| gil.holder);
        let holder = holder.and_then(|own| self.numbers.get(&own).copied());
        let held = held_by(holder.map(LockHolder::alone), "it is changing hands");
        SnapshotLock { held, ..bare("GIL", address, "the GIL".into()) }
    }

    /// Returns the frames of Python of a thread, by its number for itself.
    pub(super) fn python_stack(&self, own: u32) -> Option<PythonStack> {
        let thread = self.python.as_ref()?.look.threads.get(&own)?;
        Some(thread.stack.clone()).filter(|stack| !stack.frames.is_empty())
    }
}

/// An offset in a GIL's record that is one of its parts.
const GIL_PART: u64 = 32;

/// Tells whether the process has a handler for a signal that a program gets as it goes on: from
/// timers, from its children, from files, or sent by its own threads. Python runs the handler in the
/// main thread, in the middle of a wait for a lock, and an exception in it ends the wait.
fn has_event_handlers(pid: u32) -> bool {
    let status = StatusFile::read(&format!("/proc/{pid}/status")).ok();
    handles_events(status.and_then(|status| status.caught()).unwrap_or(0))
}

/// Tells the same by the bits of the signals that have handlers. Those that end a program are not
/// among them: Python has a handler for Ctrl-C from the start.
fn handles_events(caught: u64) -> bool {
    const EVENTS: [i32; 7] = [
        libc::SIGALRM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGCHLD,
        libc::SIGIO,
    ];
    /// The first of the real-time signals that the C library has not for itself.
    const REAL_TIME: u32 = 34;
    let is_caught = |signal: &i32| caught & 1 << (signal - 1) != 0;
    EVENTS.iter().any(is_caught) || caught >> (REAL_TIME - 1) != 0
}

fn place(doing: &TaskDoing) -> Option<WaitPlace> {
    let TaskDoing::Call(call) = doing else { return None };
    Some(WaitPlace { address: FutexWait::decode(call)?.address, stack: call.sp })
}

/// Returns the call of a thread that waits for a GIL: now, or as soon as it sleeps again.
fn at_gil(pid: u32, tid: u32, is_gil: impl Fn(u64) -> bool) -> Option<TaskDoing> {
    for look in 0..LOOKS {
        if look != 0 {
            std::thread::sleep(PAUSE);
        }
        let doing = task::doing(pid, tid).ok()?;
        match place(&doing) {
            Some(place) if is_gil(place.address) => return Some(doing),
            Some(_) => return None,
            None if doing == TaskDoing::Running => {}
            None => return None,
        }
    }
    None
}

fn bare(kind: &str, address: u64, name: String) -> SnapshotLock {
    SnapshotLock {
        address,
        kind: kind.into(),
        attributes: Vec::new(),
        name,
        held: LockHeld::Never,
        waiting: Vec::new(),
        may_hold: Vec::new(),
    }
}

fn event(kind: &str, object: u64) -> SnapshotLock {
    let name = match kind {
        "the end of a thread" => kind.to_owned(),
        _ => format!("{kind} at {object:#x}"),
    };
    bare(kind, object, name)
}

fn held_by(holder: Option<LockHolder>, why: &str) -> LockHeld {
    match holder {
        Some(holder) => LockHeld::By { holders: vec![holder] },
        None => LockHeld::Unknown { why: why.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_of_events_count_and_those_that_end_a_program_do_not() {
        let caught = |signal: i32| handles_events(1 << (signal - 1));
        for signal in [libc::SIGALRM, libc::SIGUSR1, libc::SIGCHLD, 34, 64] {
            assert!(caught(signal), "{signal}");
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGSEGV, 32, 33] {
            assert!(!caught(signal), "{signal}");
        }
    }
}
