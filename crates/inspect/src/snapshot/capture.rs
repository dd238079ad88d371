//! A snapshot of a living process from `/proc` and its memory.
//!
//! # Role
//! Order matters, for the process goes on: first all threads are read, then
//! the stacks and words of those that wait, and last a cycle is proved by
//! reading its members anew.

use super::model::{
    About, Activity, Held, Holder, Lock, Snapshot, Source, Target, Thread, Until, Wait,
};
use super::recognise::{self, Caller, Found};
use super::unknown;
use super::verify;
use crate::glibc::others::Ownerless;
use crate::maps::Backing;
use crate::memory::{Memory, ProcessMemory};
use crate::modules::Modules;
use crate::proc::access::Barrier;
use crate::proc::calls;
use crate::proc::futex::{FutexWait, Limit};
use crate::proc::process::{Process, Unusable};
use crate::proc::task::{self, Doing, Task};
use crate::stack::Stack;
use crate::symbols::{LockFacts, Origin, Symbolizer};
use crate::unwind::{Registers, Unwinder};
use std::collections::{BTreeMap, HashMap};

/// Looks at a process. `everything`: also the stacks of threads that neither
/// wait nor hold.
///
/// # Errors
/// It ended meanwhile.
pub fn capture(process: &Process, everything: bool) -> Result<Snapshot, Unusable> {
    let mut looking = Looking::start(process)?;
    looking.find_waits();
    let cycles = verify::rings(&looking.facts(), &|tids| looking.read_again(tids));
    looking.read_other_stacks(everything);
    Ok(looking.finish(process, cycles))
}

/// What is known of one waiting thread.
pub(super) struct Known {
    pub(super) wait: FutexWait,
    pub(super) found: Found,
}

/// The state of a look at a process.
struct Looking {
    pid: u32,
    tasks: Vec<Task>,
    /// From the number that a thread has for itself to its number here.
    numbers: HashMap<u32, u32>,
    waits: BTreeMap<u32, Known>,
    stacks: BTreeMap<u32, Stack>,
    memory: ProcessMemory,
    /// `None` where the maps may not be read.
    code: Option<(Unwinder, Symbolizer)>,
    has_libc: bool,
    limits: Vec<String>,
    /// The threads of one process share its number for itself.
    nested: bool,
}

impl Looking {
    fn start(process: &Process) -> Result<Self, Unusable> {
        let pid = process.pid;
        let nested = process.status.nested();
        let numbers = task::numbers(pid).map_err(|_| Unusable::Ended)?;
        // A thread that ended since is none.
        let tasks: Vec<Task> =
            numbers.iter().filter_map(|&tid| Task::read(pid, tid, nested).ok()).collect();
        if tasks.is_empty() {
            return Err(Unusable::Ended);
        }
        let mut limits = Vec::new();
        let refused = tasks.iter().any(|task| task.doing == Doing::Refused);
        if refused {
            let barrier = Barrier::of(pid, &process.status);
            limits.push(format!(
                "what the threads wait for cannot be read: {}; {}",
                barrier.reason(),
                barrier.advice(pid)
            ));
        }
        let code = if refused { None } else { Self::code(pid, &mut limits) };
        let has_libc = code.as_ref().is_some_and(|(unwinder, _)| {
            unwinder.modules().maps().iter().any(|mapping| is_libc(&mapping.backing))
        });
        if code.as_ref().is_some_and(|(unwinder, _)| {
            unwinder.modules().maps().iter().any(|mapping| is_java(&mapping.backing))
        }) {
            limits.push(format!(
                "a Java machine: the monitors and locks of Java are not among these; \
                 jstack {pid} shows them"
            ));
        }
        let numbers = tasks.iter().map(|task| (task.own, task.tid)).collect();
        Ok(Looking {
            pid,
            tasks,
            numbers,
            waits: BTreeMap::new(),
            stacks: BTreeMap::new(),
            memory: ProcessMemory::new(pid),
            code,
            has_libc,
            limits,
            nested,
        })
    }

    fn code(pid: u32, limits: &mut Vec<String>) -> Option<(Unwinder, Symbolizer)> {
        let both = Modules::of(pid).and_then(|for_stacks| Ok((for_stacks, Modules::of(pid)?)));
        match both {
            Ok((stacks, names)) => Some((Unwinder::new(stacks), Symbolizer::new(names))),
            Err(error) => {
                limits.push(format!("its memory map cannot be read: {error}"));
                None
            }
        }
    }

    /// Stacks and objects of the threads that sleep in futex calls.
    fn find_waits(&mut self) {
        let waiting: Vec<(Task, FutexWait)> =
            self.tasks.iter().filter_map(|task| Some((task.clone(), task.futex()?))).collect();
        self.read_stacks(waiting.iter().map(|(task, _)| task));
        for (task, wait) in waiting {
            let found = self.recognise(&task, &wait);
            self.waits.insert(task.tid, Known { wait, found });
        }
    }

    fn recognise(&self, task: &Task, wait: &FutexWait) -> Found {
        let (Some(stack), Some((unwinder, _))) = (self.stacks.get(&task.tid), &self.code) else {
            let why = "its memory cannot be read".to_owned();
            return Found::Unknown { kind: "futex word".into(), why };
        };
        let caller: Caller = recognise::caller(stack, self.has_libc);
        let mapping = unwinder.modules().maps().find(wait.address);
        let writable = mapping.is_some_and(|mapping| mapping.writable);
        recognise::recognise(task, wait, stack, caller, writable, &self.memory)
    }

    fn read_stacks<'a>(&mut self, tasks: impl Iterator<Item = &'a Task>) {
        let Some((unwinder, symbolizer)) = &mut self.code else { return };
        let walks: Vec<_> = tasks
            .filter_map(|task| {
                let (sp, pc) = task.doing.registers()?;
                Some((task.tid, unwinder.unwind(&self.memory, Registers::new(pc, sp))))
            })
            .collect();
        symbolizer.prepare(walks.iter().flat_map(|(_, walk)| walk.frames.iter().copied()));
        for (tid, walk) in walks {
            self.stacks.insert(tid, symbolizer.stack(&walk.frames, walk.end));
        }
    }

    /// Stacks of the threads that do not wait: of those that hold what others
    /// wait for, or of all.
    fn read_other_stacks(&mut self, everything: bool) {
        let holders: Vec<u32> = self.facts().values().filter_map(|fact| fact.holder).collect();
        let missing: Vec<Task> = self
            .tasks
            .iter()
            .filter(|task| !self.stacks.contains_key(&task.tid))
            .filter(|task| everything || holders.contains(&task.tid))
            .cloned()
            .collect();
        self.read_stacks(missing.iter());
    }

    /// What cycles are made of.
    fn facts(&self) -> verify::Facts {
        self.waits
            .iter()
            .map(|(&tid, known)| (tid, verify::Fact::new(known, &self.numbers)))
            .collect()
    }

    /// The same facts once more for some threads; a thread that does something
    /// else by now has none.
    fn read_again(&self, tids: &[u32]) -> verify::Facts {
        tids.iter()
            .filter_map(|&tid| {
                let at = self.tasks.binary_search_by_key(&tid, |task| task.tid).ok()?;
                let before = self.tasks.get(at)?;
                let doing = task::doing(self.pid, tid).ok()?;
                if doing != before.doing {
                    return None;
                }
                let wait = before.futex()?;
                let known = Known { wait, found: self.recognise(before, &wait) };
                let switches = task::switches(self.pid, tid);
                let fact = verify::Fact::new(&known, &self.numbers);
                Some((tid, verify::Fact { switches, ..fact }))
            })
            .collect()
    }

    fn finish(mut self, process: &Process, cycles: Vec<super::model::Ring>) -> Snapshot {
        let mut locks: BTreeMap<u64, Lock> = BTreeMap::new();
        let known: Vec<(u32, Known)> = std::mem::take(&mut self.waits).into_iter().collect();
        let mut waits = HashMap::new();
        for (tid, known) in known {
            let wait = self.wait_of(tid, &known, &mut locks);
            waits.insert(tid, wait);
        }
        let tasks = std::mem::take(&mut self.tasks);
        let mut stacks = std::mem::take(&mut self.stacks);
        let threads = tasks.into_iter().map(|task| {
            let activity = match waits.remove(&task.tid) {
                Some(wait) => Activity::Waiting { wait },
                None => self.activity(&task),
            };
            Thread {
                tid: task.tid,
                own_tid: self.nested.then_some(task.own),
                stack: stacks.remove(&task.tid),
                name: task.name,
                state: task.state,
                activity,
            }
        });
        Snapshot {
            process: About {
                pid: process.pid,
                own_pid: process.status.own_number().filter(|_| self.nested),
                name: process.name.clone(),
                command: process.command.clone(),
            },
            source: Source::Memory,
            threads: threads.collect(),
            locks: locks.into_values().collect(),
            cycles,
            limits: self.limits.clone(),
        }
    }

    fn activity(&self, task: &Task) -> Activity {
        match (task.state, task.doing) {
            ('Z' | 'X', _) => Activity::Ended,
            ('T' | 't', _) | (_, Doing::Stopped { .. }) => Activity::Stopped,
            (_, Doing::Call(call)) => Activity::Asleep {
                call: calls::name(call.number)
                    .map_or_else(|| format!("system call {}", call.number), str::to_owned),
            },
            (_, Doing::Running) => Activity::Running,
            (_, Doing::Refused) => {
                Activity::Unknown { kernel_function: Task::kernel_function(self.pid, task.tid) }
            }
        }
    }

    /// The wait as a report shows it; enters its object into `locks`.
    fn wait_of(&mut self, tid: u32, known: &Known, locks: &mut BTreeMap<u64, Lock>) -> Wait {
        let mut shared = false;
        let holder =
            |thread| Held::By { holders: vec![Holder { thread, shared: false, acquired: None }] };
        let (address, kind, attributes, held) = match &known.found {
            Found::Join(own) => {
                let target = match self.numbers.get(own) {
                    Some(&thread) => Target::Join { thread },
                    None => Target::Unknown {
                        why: format!("the end of thread {own}, which is not there"),
                    },
                };
                return self.wait(known, target, shared);
            }
            Found::Refused => {
                let target = Target::Unknown { why: unknown::REFUSED.into() };
                return self.wait(known, target, shared);
            }
            Found::Mutex(mutex) => (
                mutex.address,
                "mutex",
                mutex.kind.words().into_iter().map(str::to_owned).collect(),
                match self.numbers.get(&mutex.owner) {
                    Some(&thread) => holder(thread),
                    None => elsewhere(mutex.owner, mutex.kind.is_shared()),
                },
            ),
            Found::Stream(stream) => (
                stream.address,
                "stream lock",
                Vec::new(),
                match self.numbers.get(&stream.owner) {
                    Some(&thread) => holder(thread),
                    None => elsewhere(stream.owner, false),
                },
            ),
            Found::RwLock(lock) => {
                shared = !lock.exclusive;
                let held =
                    match (lock.writer.map(|own| (own, self.numbers.get(&own))), lock.readers) {
                        (Some((_, Some(&thread))), _) => holder(thread),
                        (Some((own, None)), _) => elsewhere(own, lock.shared),
                        (None, 0) => Held::Unknown { why: "it is being handed over".into() },
                        (None, count) => Held::Readers { count },
                    };
                (lock.address, "rwlock", Vec::new(), held)
            }
            Found::Ownerless(object) => ownerless(object),
            Found::Unknown { kind, why } => {
                (known.wait.address, kind.as_str(), Vec::new(), Held::Unknown { why: why.clone() })
            }
        };
        let lock = locks.entry(address).or_insert_with(|| {
            let known_shape = !matches!(known.found, Found::Unknown { .. });
            let name = self.lock_name(kind, address, known_shape);
            let (kind, waiting) = (kind.to_owned(), Vec::new());
            Lock { address, kind, attributes, name, held, waiting }
        });
        lock.waiting.push(tid);
        self.wait(known, Target::Lock { address }, shared)
    }

    fn wait(&self, known: &Known, target: Target, shared: bool) -> Wait {
        let words = known.wait.words(&self.memory);
        let (word, expected) =
            words.first().copied().unwrap_or((known.wait.address, known.wait.expected));
        Wait { target, shared, until: until(&known.wait, &self.memory), word, expected }
    }

    /// `maybe_on_stack`: stacks that the C library made lie in mappings of their
    /// own; of those of other runtimes nothing is known.
    fn lock_name(&mut self, kind: &str, address: u64, maybe_on_stack: bool) -> String {
        let on_stack_of = self.stack_around(address).filter(|_| maybe_on_stack);
        let Some((unwinder, symbolizer)) = &mut self.code else {
            return format!("{kind} at {address:#x}");
        };
        let facts = LockFacts {
            kind,
            address,
            on_stack_of: on_stack_of.as_deref(),
            initialised: None,
            first_locked: None,
            serial: None,
        };
        let name = symbolizer.lock_name(&facts);
        match &name.origin {
            Origin::Variable(variable) => format!("{kind} {variable}"),
            Origin::Address => {
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

    /// The thread whose stack an address is on: that with the nearest stack
    /// pointer below it, in the same mapping.
    fn stack_around(&self, address: u64) -> Option<String> {
        let maps = self.code.as_ref()?.0.modules().maps();
        let mapping = maps.find(address)?;
        self.tasks
            .iter()
            .filter_map(|task| Some((task.doing.registers()?.0, &task.name)))
            .filter(|(sp, _)| mapping.range.contains(sp) && *sp <= address)
            .max_by_key(|(sp, _)| *sp)
            .map(|(_, name)| name.clone())
    }
}

fn is_libc(backing: &Backing) -> bool {
    ["libc.so", "libc-2"].iter().any(|prefix| file_name(backing).starts_with(prefix))
}

fn is_java(backing: &Backing) -> bool {
    file_name(backing) == "libjvm.so"
}

fn file_name(backing: &Backing) -> &str {
    let Backing::File { path, .. } = backing else { return "" };
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn elsewhere(owner: u32, shared: bool) -> Held {
    let why = if shared {
        "it is shared between processes: that thread is one of another process, or has ended"
    } else {
        "no thread of this process has this id: it has ended without giving the lock back, or held \
         it in the parent when this process was forked"
    };
    Held::Elsewhere { owner, why: why.into() }
}

fn ownerless(object: &Ownerless) -> (u64, &'static str, Vec<String>, Held) {
    match *object {
        Ownerless::Condition { address, .. } => {
            (address, "condition variable", Vec::new(), Held::Never)
        }
        Ownerless::Semaphore { address, .. } => {
            let why = "a semaphore has no owner in it: who will post it cannot be told";
            (address, "semaphore", Vec::new(), Held::Unknown { why: why.into() })
        }
        Ownerless::Barrier { address, come, of } => {
            (address, "barrier", vec![format!("{come} of {of} threads have come")], Held::Never)
        }
    }
}

fn until(wait: &FutexWait, memory: &dyn Memory) -> Option<Until> {
    let time = wait.limit_time(memory);
    let seconds = time.map(|(seconds, _)| seconds);
    match wait.limit {
        Limit::None => None,
        Limit::After { .. } => Some(Until { clock: None, seconds, left_ns: None }),
        Limit::At { realtime, .. } => {
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
            Some(Until { clock: Some(clock), seconds, left_ns })
        }
    }
}

fn now(clock: libc::clockid_t) -> (i64, i64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live timespec; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    (time.tv_sec, time.tv_nsec)
}
