//! A snapshot of a living process from `/proc` and its memory.
//!
//! # Role
//! Order matters, for the process goes on: first all threads are read, then
//! the stacks and words of those that wait, and last a cycle is proved by
//! reading its members anew.

use super::holders::OwnersFound;
use super::interpreter::PythonState;
use super::model::{
    HolderEvidence, JudgedCycle, Snapshot, SnapshotLock, SnapshotProcess, SnapshotSource,
    SnapshotThread, ThreadActivity, ThreadWait,
};
use super::owned::{self, OwnersKept};
use super::recognise::{self, CallingCode, FoundWait, KnownWait};
use super::seen::SeenAcquisitions;
use super::verify;
use crate::futexes;
use crate::maps::{Backing, FileIdentity, Maps};
use crate::memory::{ProcessMemory, ReadableMemory};
use crate::modules::Modules;
use crate::owners::awaited;
use crate::proc::access::Barrier;
use crate::proc::asleep::{self, SleepSurroundings};
use crate::proc::calls;
use crate::proc::futex::FutexWait;
use crate::proc::process::{LiveProcess, Unusable};
use crate::proc::task::{self, TaskDoing, TaskMoment};
use crate::python::PythonStack;
use crate::runtimes::{self, Runtime};
use crate::slots::{self, OwnLock, SlotTable};
use crate::stack::{self, CodeAddress, Frame, Stack};
use crate::symbols::Symbolizer;
use crate::unwind::{Registers, Unwinder, Unwound};
use crate::waits::graph::Wants;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::Range;

/// Looks at a process. `everything`: also the stacks of threads that neither
/// wait nor hold. `may_stop`: threads that sleep may be stopped for some microseconds, where their
/// registers are needed to tell who holds a lock.
///
/// # Errors
/// It ended meanwhile.
pub fn capture(
    process: &LiveProcess,
    everything: bool,
    may_stop: bool,
) -> Result<Snapshot, Unusable> {
    let mut looking = Looking::start(process, may_stop)?;
    if let Some(barrier) = looking.barrier(process) {
        looking.limits.push(format!(
            "what the threads wait for cannot be read: {}; {}",
            barrier.reason(),
            barrier.advice(process.pid)
        ));
    } else {
        looking.open_code(|| Modules::of(process.pid));
        looking.try_memory();
    }
    looking.find_waits(|_| true);
    looking.catch_nappers();
    looking.find_owners();
    looking.look_at_python(BTreeMap::new());
    let cycles = looking.cycles();
    let facts = looking.facts();
    let holders = facts.values().flat_map(|fact| &fact.holders).map(|holder| holder.thread);
    let holders: Vec<u32> = holders.collect();
    looking.read_other_stacks(|tid| everything || holders.contains(&tid));
    let (mut waits, mut locks) = (BTreeMap::new(), BTreeMap::new());
    for (tid, known) in std::mem::take(&mut looking.waits) {
        waits.insert(tid, looking.wait_of(tid, &known, &mut locks));
    }
    looking.name_python_waits(&mut waits, &mut locks);
    Ok(looking.finish(
        process,
        SnapshotFacts { source: SnapshotSource::Memory, waits, locks, cycles, stacks: Vec::new() },
    ))
}

/// What a snapshot is made of, beside the threads.
pub(super) struct SnapshotFacts {
    pub(super) source: SnapshotSource,
    /// What each thread waits for, by its id.
    pub(super) waits: BTreeMap<u32, ThreadWait>,
    pub(super) locks: BTreeMap<u64, SnapshotLock>,
    pub(super) cycles: Vec<JudgedCycle>,
    pub(super) stacks: Vec<Stack>,
}

/// The state of a look at a process.
pub(super) struct Looking {
    pub(super) pid: u32,
    pub(super) tasks: Vec<TaskMoment>,
    /// A thread's number here, by the number that it has for itself.
    pub(super) numbers: HashMap<u32, u32>,
    /// Whether a process of another PID namespace has these files in its memory, which share locks.
    pub(super) shared_across: RefCell<HashMap<FileIdentity, bool>>,
    /// The waits of those threads that [`Looking::find_waits`] was asked for.
    pub(super) waits: BTreeMap<u32, KnownWait>,
    pub(super) stacks: BTreeMap<u32, Stack>,
    /// The part of a stack that is the C library's own, of threads whose stacks were read.
    library_frames: BTreeMap<u32, Range<u64>>,
    pub(super) memory: ProcessMemory,
    /// `None` where the maps may not be read.
    pub(super) code: Option<(Unwinder, Symbolizer)>,
    has_libc: bool,
    /// Threads may be stopped for some microseconds.
    pub(super) may_stop: bool,
    /// The holders of locks that do not name them.
    pub(super) owners: OwnersFound,
    pub(super) kept: OwnersKept,
    /// The threads of which a ledger says that they wait, and for no condition.
    pub(super) plain: HashSet<u32>,
    /// The threads that a ledger saw acquire locks which do not name them.
    pub(super) seen: SeenAcquisitions,
    /// The tables of lockstead's own locks, by the files that have some.
    slots: RefCell<HashMap<String, Option<SlotTable>>>,
    pub(super) limits: Vec<String>,
    runtime: Option<&'static Runtime>,
    /// The memory of the process and its maps can be read.
    readable: bool,
    /// The threads of the process have other numbers for themselves than here.
    pub(super) nested: bool,
    /// The interpreter of Python that the process has, once it was looked for.
    pub(super) python: Option<PythonState>,
}

impl Looking {
    /// Reads what the kernel says of all threads.
    pub(super) fn start(process: &LiveProcess, may_stop: bool) -> Result<Self, Unusable> {
        let pid = process.pid;
        let nested = process.status.nested();
        let numbers = task::numbers(pid).map_err(|_| Unusable::Ended)?;
        let tasks = task::read_all(pid, &numbers, nested);
        if tasks.is_empty() {
            return Err(Unusable::Ended);
        }
        let numbers = tasks.iter().map(|task| (task.own, task.tid)).collect();
        Ok(Looking {
            pid,
            tasks,
            numbers,
            shared_across: RefCell::default(),
            waits: BTreeMap::new(),
            stacks: BTreeMap::new(),
            library_frames: BTreeMap::new(),
            memory: ProcessMemory::new(pid),
            code: None,
            has_libc: false,
            may_stop,
            owners: OwnersFound::default(),
            kept: OwnersKept::default(),
            plain: HashSet::new(),
            seen: SeenAcquisitions::default(),
            slots: RefCell::default(),
            limits: Vec::new(),
            runtime: None,
            readable: true,
            nested,
            python: None,
        })
    }

    /// Returns what keeps the memory of the process from being read.
    pub(super) fn barrier(&self, process: &LiveProcess) -> Option<Barrier> {
        let refused = self.tasks.iter().any(|task| task.doing == TaskDoing::Refused);
        refused.then(|| Barrier::of(self.pid, &process.status))
    }

    /// Makes the code of the process known; `modules` is called twice.
    pub(super) fn open_code(&mut self, modules: impl Fn() -> io::Result<Modules>) {
        let both = modules().and_then(|for_stacks| Ok((for_stacks, modules()?)));
        let (for_stacks, for_names) = match both {
            Ok(both) => both,
            Err(error) => {
                self.readable = false;
                self.limits.push(format!("its memory map cannot be read: {error}"));
                return;
            }
        };
        let maps = for_stacks.maps();
        self.has_libc = maps.iter().any(|mapping| is_libc(&mapping.backing));
        self.runtime = runtimes::of(self.pid, maps);
        self.code = Some((Unwinder::new(for_stacks), Symbolizer::new(for_names)));
    }

    /// Tells whether memory can be read at all: filters forbid that by itself. The
    /// stack of a thread that sleeps is there, unless the thread has ended.
    fn try_memory(&mut self) {
        let mut stacks = self.tasks.iter().filter_map(|task| Some(task.doing.registers()?.0));
        let refused = stacks.find_map(|sp| self.memory.read(sp, &mut [0]).err().filter(is_refusal));
        if let Some(error) = refused {
            self.readable = false;
            self.limits.push(format!("its memory cannot be read: {error}"));
        }
    }

    /// Finds stacks and objects of the threads that sleep in futex calls, of those that are asked
    /// for by their ids.
    pub(super) fn find_waits(&mut self, which: impl Fn(u32) -> bool) {
        let waiting: Vec<(TaskMoment, FutexWait)> = self
            .tasks
            .iter()
            .filter(|task| which(task.tid) && !self.waits.contains_key(&task.tid))
            .filter_map(|task| Some((task.clone(), task.futex()?)))
            .collect();
        self.read_stacks(waiting.iter().map(|(task, _)| task));
        for (task, wait) in waiting {
            let known = self.known(&task, wait);
            self.waits.insert(task.tid, known);
        }
    }

    /// Returns the cycles among the threads whose waits were found.
    pub(super) fn cycles(&mut self) -> Vec<JudgedCycle> {
        verify::judged_cycles(&self.facts(), &mut |tids| self.read_again(tids))
    }

    /// Returns what a thread waits for, by its stack.
    pub(super) fn known(&self, task: &TaskMoment, wait: FutexWait) -> KnownWait {
        let found = self.recognise(task, &wait);
        let known = self.stacks.get(&task.tid).and_then(futexes::of_stack);
        let known = awaited::telling(known);
        let sp = task.doing.registers().map(|(sp, _)| sp);
        let awaited = owned::awaited_by(&found, &wait, known, sp, &self.memory);
        KnownWait { wait, found, known, awaited }
    }

    fn recognise(&self, task: &TaskMoment, wait: &FutexWait) -> FoundWait {
        let (Some(stack), Some((unwinder, _))) = (self.stacks.get(&task.tid), &self.code) else {
            let why = "its memory cannot be read".to_owned();
            return FoundWait::Unknown { kind: "futex word".into(), why };
        };
        if let Some(lock) = self.own_lock(wait, stack, unwinder.modules().maps()) {
            return FoundWait::Own(lock);
        }
        let caller: CallingCode = recognise::caller(stack, self.has_libc);
        let mapping = unwinder.modules().maps().find(wait.address);
        let writable = mapping.is_some_and(|mapping| mapping.writable);
        let frames = self.library_frames.get(&task.tid);
        recognise::recognise(wait, stack, frames, caller, writable, &self.memory)
    }

    /// Returns the lock of the crate lockstead that a thread sleeps for, if it does.
    fn own_lock(&self, wait: &FutexWait, stack: &Stack, maps: &Maps) -> Option<OwnLock> {
        if !slots::is_for_owned(wait) {
            return None;
        }
        let passed = |frame: &&Frame| frame.is_libc() || frame.is_lockstead();
        let frame = stack.frames.iter().find(|frame| !passed(frame))?;
        let module = frame.module.as_deref()?;
        let mut known = self.slots.borrow_mut();
        let slots = known
            .entry(module.to_owned())
            .or_insert_with(|| SlotTable::find(maps, module, &self.memory));
        OwnLock::behind(wait, slots.as_ref()?, &self.memory)
    }

    pub(super) fn read_stacks<'a>(&mut self, tasks: impl Iterator<Item = &'a TaskMoment>) {
        let begins = tasks.filter_map(|task| Some((task.tid, self.registers(task)?.0)));
        let begins: Vec<(u32, Registers)> = begins.collect();
        let Some((unwinder, symbolizer)) = &mut self.code else { return };
        let walks = begins.into_iter();
        let walks = walks.map(|(tid, registers)| (tid, unwinder.unwind(&self.memory, registers)));
        let walks: Vec<_> = walks.collect();
        symbolizer.prepare(walks.iter().flat_map(|(_, walk)| walk.frames.iter().copied()));
        for (tid, walk) in walks {
            match library_frames(&walk, unwinder.modules().maps()) {
                Some(frames) => self.library_frames.insert(tid, frames),
                None => self.library_frames.remove(&tid),
            };
            self.stacks.insert(tid, symbolizer.stack(&walk.frames, walk.end));
        }
    }

    /// Returns where the stack of a thread ends above, if it can be followed as far; it is not
    /// shown.
    pub(super) fn stack_end(&mut self, tid: u32) -> Option<u64> {
        let task = self.tasks.iter().find(|task| task.tid == tid)?;
        let (registers, _) = self.registers(task)?;
        let (unwinder, _) = self.code.as_mut()?;
        let walk = unwinder.unwind(&self.memory, registers);
        walk.registers.last()?.stack_pointer().filter(|_| walk.end.is_complete())
    }

    /// Reads the stacks of threads whose stacks have not been read, and that are asked for or wait
    /// for what others hold.
    pub(super) fn read_other_stacks(&mut self, which: impl Fn(u32) -> bool) {
        let missing: Vec<TaskMoment> = self
            .tasks
            .iter()
            .filter(|task| !self.stacks.contains_key(&task.tid))
            .filter(|task| which(task.tid) || is_for_lock(task))
            .cloned()
            .collect();
        self.read_stacks(missing.iter());
    }

    /// Returns what cycles are made of.
    pub(super) fn facts(&self) -> verify::WaitFacts {
        let facts = self.waits.iter();
        let mut facts = facts.map(|(&tid, known)| (tid, self.fact(known, &self.owners))).collect();
        self.add_python_facts(&mut facts, None);
        facts
    }

    fn fact(&self, known: &KnownWait, owners: &OwnersFound) -> verify::Fact {
        let fact =
            verify::Fact::new(known, &|address, own, shared| self.owner_here(address, own, shared));
        let Some(lock) = self.awaited_lock(known) else { return fact };
        let mode = awaited::wait_mode(&known.wait, known.known, &lock, &self.memory);
        let holders = owners.needed(lock.address).iter();
        let holders = holders.map(|found| verify::FactHolder {
            thread: found.thread,
            mode: found.hold.mode,
            likely: found.hold.evidence == HolderEvidence::Likely,
        });
        verify::Fact {
            wants: fact.wants.or_else(|| Some(Wants::of(mode?, lock.address))),
            holders: holders.collect(),
            ..fact
        }
    }

    /// Tells whether a thread is still in the call that it was found in.
    pub(super) fn stays(&self, tid: u32) -> bool {
        let task = self.tasks.iter().find(|task| task.tid == tid);
        task.is_some_and(|task| task::doing(self.pid, tid).is_ok_and(|now| now == task.doing))
    }

    /// Returns the same facts once more for some threads; a thread that does something else by now
    /// has none.
    fn read_again(&mut self, tids: &[u32]) -> verify::WaitFacts {
        self.follow_nappers(tids);
        let owners = self.search_owners_again(tids);
        let facts = tids.iter();
        let mut facts = facts
            .filter_map(|&tid| {
                let at = self.tasks.binary_search_by_key(&tid, |task| task.tid).ok()?;
                let before = self.tasks.get(at)?;
                let doing = task::doing(self.pid, tid).ok()?;
                if doing != before.doing {
                    return None;
                }
                let known = self.known(before, before.futex()?);
                // One that may give up at any moment proves nothing by its sleep.
                let lasting = !matches!(&known.found, FoundWait::Own(lock) if !lock.lasting);
                let switches = lasting.then(|| task::switches(self.pid, tid)).flatten();
                let fact = self.fact(&known, &owners);
                Some((tid, verify::Fact { switches, ..fact }))
            })
            .collect();
        self.add_python_facts(&mut facts, Some(tids));
        facts
    }

    /// Returns the finished snapshot.
    pub(super) fn finish(mut self, process: &LiveProcess, facts: SnapshotFacts) -> Snapshot {
        let mut waits = facts.waits;
        let tasks = std::mem::take(&mut self.tasks);
        // A ledger has the waits of all threads, whatever the kernel tells.
        let seen = self.readable && tasks.iter().all(|task| task.doing != TaskDoing::Refused);
        let complete = facts.source == SnapshotSource::Ledger || seen;
        let mut stacks = std::mem::take(&mut self.stacks);
        let owns = tasks.iter().map(|task| task.own);
        let mut python: HashMap<u32, PythonStack> =
            owns.filter_map(|own| Some((own, self.python_stack(own)?))).collect();
        let around = SleepSurroundings::default();
        let threads = tasks.into_iter().map(|task| {
            let activity = match waits.remove(&task.tid) {
                Some(wait) => ThreadActivity::Waiting { wait },
                None => self.activity(&task, &around),
            };
            let stack = stacks.remove(&task.tid);
            let role = self.runtime.zip(stack.as_ref());
            let role = role.and_then(|(runtime, stack)| runtime.role(stack));
            SnapshotThread {
                tid: task.tid,
                own_tid: self.nested.then_some(task.own),
                stack,
                role: role.map(str::to_owned),
                python: python.remove(&task.own),
                name: task.name,
                state: task.state,
                activity,
            }
        });
        Snapshot {
            process: SnapshotProcess {
                pid: process.pid,
                own_pid: process.status.own_number().filter(|_| self.nested),
                name: process.name.clone(),
                command: process.command.clone(),
            },
            source: facts.source,
            threads: threads.collect(),
            locks: facts.locks.into_values().collect(),
            cycles: facts.cycles,
            stacks: facts.stacks,
            limits: self.limits.clone(),
            advice: self.runtime.map(|runtime| runtime.advice(process.pid)),
            complete,
        }
    }

    fn activity(&self, task: &TaskMoment, around: &SleepSurroundings) -> ThreadActivity {
        match (task.state, task.doing) {
            ('Z' | 'X', _) => ThreadActivity::Ended,
            ('T' | 't', _) | (_, TaskDoing::Stopped { .. }) => ThreadActivity::Stopped,
            (_, TaskDoing::Call(call)) => ThreadActivity::Asleep {
                call: calls::name(call.number)
                    .map_or_else(|| format!("system call {}", call.number), str::to_owned),
                on: asleep::asleep(self.pid, &call, &self.memory, around),
            },
            (_, TaskDoing::Running) => ThreadActivity::Running,
            (_, TaskDoing::Refused) => ThreadActivity::Unknown {
                kernel_function: TaskMoment::kernel_function(self.pid, task.tid),
            },
        }
    }
}

fn is_for_lock(task: &TaskMoment) -> bool {
    matches!(&task.doing, TaskDoing::Call(call) if asleep::is_for_lock(call))
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// Returns the part of a stack that belongs to the C library's functions that were called last: up
/// to where the frame of the function begins that called them. `None` unless each of these frames
/// was found by the tables.
fn library_frames(walk: &Unwound, maps: &Maps) -> Option<Range<u64>> {
    let is_library = |at: &CodeAddress| {
        let file = maps.find(at.lookup()).map(|mapping| file_name(&mapping.backing));
        file.is_some_and(stack::is_libc)
    };
    let above = walk.frames.iter().position(|at| !is_library(at))?;
    let sure = walk.frames[..=above].iter().all(|at| !at.found);
    let pointer = |frame: usize| walk.registers.get(frame)?.stack_pointer();
    let (start, end) = (pointer(0)?, pointer(above)?);
    sure.then_some(start..end)
}

fn is_libc(backing: &Backing) -> bool {
    ["libc.so", "libc-2"].iter().any(|prefix| file_name(backing).starts_with(prefix))
}

fn file_name(backing: &Backing) -> &str {
    let Backing::File { path, .. } = backing else { return "" };
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
