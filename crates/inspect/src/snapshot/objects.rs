//! What threads wait for, as a report shows it: from the memory of their locks.
//!
//! # Role
//! The half of a look that gives names and holders to what [`recognise`] found.
//!
//! [`recognise`]: super::recognise

use super::capture::Looking;
use super::model::{LockHeld, LockHolder, SnapshotLock, ThreadWait, WaitEnd, WaitTarget};
use super::recognise::{FoundWait, KnownWait};
use crate::futexes;
use crate::glibc::others::Ownerless;
use crate::maps::Backing;
use crate::memory::ReadableMemory;
use crate::owners::awaited;
use crate::owners::shape::LockShape;
use crate::proc::futex::{FutexWait, WaitLimit};
use crate::proc::status::StatusFile;
use crate::proc::task;
use crate::slots::WordOwner;
use crate::symbols::{LockClues, LockOrigin};
use crate::waits::modes::WaitMode;
use std::collections::BTreeMap;

impl Looking {
    /// Returns the wait as a report shows it; enters its object into `locks`.
    pub(super) fn wait_of(
        &mut self,
        tid: u32,
        known: &KnownWait,
        locks: &mut BTreeMap<u64, SnapshotLock>,
    ) -> ThreadWait {
        let mut shared = false;
        let holder = |thread| LockHeld::By { holders: vec![LockHolder::alone(thread)] };
        let (address, kind, attributes, held) = match &known.found {
            FoundWait::Join(own) => {
                let target = match self.numbers.get(own) {
                    Some(&thread) => WaitTarget::Join { thread },
                    None => WaitTarget::Unknown {
                        why: format!("the end of thread {own}, which is not there"),
                    },
                };
                return self.wait(known, target, shared);
            }
            FoundWait::Refused => {
                let target = WaitTarget::Unknown { why: futexes::REFUSED.into() };
                return self.wait(known, target, shared);
            }
            FoundWait::Mutex(mutex) => (
                mutex.address,
                "mutex",
                mutex.kind.words().into_iter().map(str::to_owned).collect(),
                match self.owner_here(mutex.address, mutex.owner, mutex.kind.is_shared()) {
                    Some(thread) => holder(thread),
                    None => self.elsewhere(mutex.owner, mutex.kind.is_shared()),
                },
            ),
            FoundWait::Stream(stream) => (
                stream.address,
                "stream lock",
                Vec::new(),
                match self.numbers.get(&stream.owner) {
                    Some(&thread) => holder(thread),
                    None => self.elsewhere(stream.owner, false),
                },
            ),
            FoundWait::RwLock(lock) => {
                shared = !lock.exclusive;
                let here = |own| (own, self.owner_here(lock.address, own, lock.shared));
                let held = match (lock.writer.map(here), lock.readers) {
                    (Some((_, Some(thread))), _) => holder(thread),
                    (Some((own, None)), _) => self.elsewhere(own, lock.shared),
                    (None, 0) => LockHeld::Unknown { why: "it is being handed over".into() },
                    (None, count) => LockHeld::Readers { count },
                };
                (lock.address, "rwlock", Vec::new(), held)
            }
            FoundWait::Ownerless(object) => ownerless(object),
            FoundWait::Own(lock) => {
                shared = lock.shared;
                let unknown = |why: &str| LockHeld::Unknown { why: why.into() };
                let held = match lock.owner {
                    _ if lock.readers != 0 => LockHeld::Readers { count: lock.readers },
                    WordOwner::Thread(own) => match self.numbers.get(&own) {
                        Some(&thread) => holder(thread),
                        None => self.elsewhere(own, false),
                    },
                    WordOwner::None => unknown("it is changing hands"),
                    WordOwner::Ended => unknown("its owner has ended without giving it back"),
                    WordOwner::Lost => unknown(
                        "its owner was left behind in the parent when this process was forked",
                    ),
                };
                (lock.address, lock.kind.name(), Vec::new(), held)
            }
            FoundWait::Unknown { kind, why } => {
                let lock = self.awaited_lock(known);
                shared = lock.is_some_and(|lock| {
                    awaited::wait_mode(&known.wait, known.known, &lock, &self.memory)
                        .is_some_and(WaitMode::is_shared)
                });
                let address = lock.map_or(known.wait.address, |lock| lock.address);
                let name = lock
                    .filter(|lock| {
                        let named = kind != "futex word" && lock.shape != LockShape::Semaphore;
                        known.known.is_none() && !named
                    })
                    .and_then(|lock| lock.shape.name());
                let held = LockHeld::Unknown { why: why.clone() };
                (address, name.unwrap_or(kind), Vec::new(), held)
            }
        };
        let found = self.holders_of(address);
        let held = if found.is_empty() { held } else { LockHeld::By { holders: found } };
        let lock = locks.entry(address).or_insert_with(|| {
            let known_shape = !matches!(known.found, FoundWait::Unknown { .. });
            let name = self.lock_name(kind, address, known_shape);
            let (kind, waiting) = (kind.to_owned(), Vec::new());
            let may_hold = self.owners.may_hold.get(&address).into_iter().flatten();
            let may_hold = may_hold.copied().collect();
            SnapshotLock { address, kind, attributes, name, held, waiting, may_hold }
        });
        lock.waiting.push(tid);
        self.wait(known, WaitTarget::Lock { address }, shared)
    }

    fn wait(&self, known: &KnownWait, target: WaitTarget, shared: bool) -> ThreadWait {
        let words = known.wait.words(&self.memory);
        let (word, expected) =
            words.first().copied().unwrap_or((known.wait.address, known.wait.expected));
        let limited = !matches!(&known.found, FoundWait::Own(lock) if !lock.timed);
        ThreadWait {
            target,
            shared,
            until: until(&known.wait, &self.memory).filter(|_| limited),
            waited_ns: None,
            word: Some(word),
            expected: Some(expected),
        }
    }

    /// Returns the name of a lock. `maybe_on_stack`: stacks that the C library made lie in mappings
    /// of their own; of those of other runtimes nothing is known.
    fn lock_name(&mut self, kind: &str, address: u64, maybe_on_stack: bool) -> String {
        let on_stack_of = self.stack_around(address).filter(|_| maybe_on_stack);
        self.name_by(&LockClues {
            kind,
            address,
            on_stack_of: on_stack_of.as_deref(),
            initialised: None,
            first_used: None,
            late: false,
            is_of_second_pair: None,
            serial: None,
        })
    }

    /// Returns the name of a lock, its kind in front.
    pub(super) fn name_by(&mut self, facts: &LockClues<'_>) -> String {
        let (kind, address) = (facts.kind, facts.address);
        let Some((unwinder, symbolizer)) = &mut self.code else {
            return format!("{kind} at {address:#x}");
        };
        let name = symbolizer.lock_name(facts);
        match &name.origin {
            LockOrigin::Variable(variable) => format!("{kind} {variable}"),
            LockOrigin::Address => {
                let backing = unwinder.modules().maps().find(address).map(|m| m.backing.clone());
                let place = match backing {
                    Some(Backing::Special(name)) if name == "[heap]" => " (heap)",
                    Some(Backing::Anonymous) => " (heap or other private memory)",
                    _ => "",
                };
                format!("{name}{place}")
            }
            _ => name.to_string(),
        }
    }

    /// Returns that the thread which calls itself `owner` holds a lock, and why it is not named.
    fn elsewhere(&self, owner: u32, shared: bool) -> LockHeld {
        let why = if shared && self.numbers.contains_key(&owner) {
            "it is shared with a process of another PID namespace: whose thread has this id cannot be told"
        } else if shared {
            "it is shared between processes: that thread is one of another process, or has ended"
        } else if self.has_begun(owner) {
            "that thread began while the process was looked at"
        } else {
            "no thread of this process has this id: it has ended without giving the lock back, or held \
             it in the parent when this process was forked"
        };
        LockHeld::Elsewhere { owner, why: why.into(), acquired: None }
    }

    /// Tells whether the process has a thread now that calls itself so.
    fn has_begun(&self, own: u32) -> bool {
        let is = |tid: u32| {
            let status = StatusFile::read(&format!("/proc/{}/task/{tid}/status", self.pid));
            status.is_ok_and(|status| status.own_number() == Some(own))
        };
        if self.nested {
            task::numbers(self.pid).is_ok_and(|now| now.into_iter().any(is))
        } else {
            is(own)
        }
    }

    /// Returns the thread whose stack an address is on: that with the nearest stack pointer below
    /// it, in the same mapping. The kernel joins the mapping of a stack with memory above it, so
    /// the stack has to be followed to its end.
    fn stack_around(&mut self, address: u64) -> Option<String> {
        let maps = self.code.as_ref()?.0.modules().maps();
        let mapping = maps.find(address)?;
        let is_main = matches!(&mapping.backing, Backing::Special(name) if name == "[stack]");
        let (tid, _, name) = self
            .tasks
            .iter()
            .filter_map(|task| Some((task.tid, task.doing.registers()?.0, task.name.clone())))
            .filter(|(_, sp, _)| mapping.range.contains(sp) && *sp <= address)
            .max_by_key(|(_, sp, _)| *sp)?;
        (is_main || self.stack_end(tid).is_some_and(|end| address < end)).then_some(name)
    }
}

fn ownerless(object: &Ownerless) -> (u64, &'static str, Vec<String>, LockHeld) {
    match *object {
        Ownerless::Condition { address, .. } => {
            (address, "condition variable", Vec::new(), LockHeld::Never)
        }
        Ownerless::Semaphore { address, .. } => {
            let why = "a semaphore has no owner in it: who will post it cannot be told";
            (address, "semaphore", Vec::new(), LockHeld::Unknown { why: why.into() })
        }
        Ownerless::Barrier { address, come, of } => {
            (address, "barrier", vec![format!("{come} of {of} threads have come")], LockHeld::Never)
        }
    }
}

fn until(wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<WaitEnd> {
    let time = wait.limit_time(memory);
    let seconds = time.map(|(seconds, _)| seconds);
    match wait.limit {
        WaitLimit::None => None,
        WaitLimit::After { .. } => Some(WaitEnd { clock: None, seconds, left_ns: None }),
        WaitLimit::At { realtime, .. } => {
            let (clock, id) = if realtime {
                ("realtime", libc::CLOCK_REALTIME)
            } else {
                ("monotonic", libc::CLOCK_MONOTONIC)
            };
            let left_ns = time.and_then(|(seconds, nanos)| {
                let (now, now_nanos) = now(id);
                let seconds = seconds.checked_sub(now)?.checked_mul(1_000_000_000)?;
                seconds.checked_add(nanos - now_nanos)
            });
            Some(WaitEnd { clock: Some(clock), seconds, left_ns })
        }
    }
}

/// Returns the ledger's clock, in nanoseconds.
pub(super) fn ledger_now() -> u64 {
    let (seconds, nanos) = now(libc::CLOCK_MONOTONIC);
    seconds.unsigned_abs() * 1_000_000_000 + nanos.unsigned_abs()
}

/// Returns the time of a clock, in seconds and nanoseconds.
pub(super) fn now(clock: libc::clockid_t) -> (i64, i64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live timespec; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec, time.tv_nsec)
}
