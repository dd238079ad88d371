//! What findings are made of: one process, its threads and locks by name, its
//! stacks; and the words for them.

use super::processes::Observed;
use crate::finding_text::frames;
use lockstead_inspect::check::describe::Describer;
use lockstead_inspect::check::facts::ThreadFacts;
use lockstead_inspect::futexes::{FutexRole, of_stack};
use lockstead_inspect::memory::{ProcessMemory, ReadableMemory};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::proc::calls;
use lockstead_inspect::proc::task::{self, TaskDoing};
use lockstead_inspect::report::finding::{
    FindingHold, FindingThread, FindingWait, HolderActivity, NamedLock,
};
use lockstead_inspect::report::names::{type_name, way_name};
use lockstead_inspect::report::{LockFacts, Names, thread_name, thread_start};
use lockstead_inspect::runtimes;
use lockstead_inspect::snapshot::model::HolderEvidence;
use lockstead_inspect::stack::Stack;
use lockstead_inspect::still::Still;
use lockstead_inspect::symbols::{Symbolizer, site};
use lockstead_inspect::unwind::{Registers, Unwinder};
use lockstead_inspect::waits::words::WordOwners;
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::thread::{ThreadPart, state};
use lockstead_render::words::{brief, clean};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How often a thread that runs and sleeps by turns is tried to be seen.
const TRIES: usize = 5;

/// The names of threads, by the indices of their records.
pub(super) type ThreadNames = HashMap<u32, String>;

/// One process, to be described.
pub(super) struct Scene {
    pub(super) process: Arc<Observed>,
    /// The threads' names as they were when something was found: threads end, and rename
    /// themselves.
    pub(super) names: ThreadNames,
    /// Owners who stand in the words of locks.
    pub(super) words: WordOwners,
    symbolizer: Symbolizer,
    unwinder: Option<Unwinder>,
}

impl Scene {
    pub(super) fn new(process: Arc<Observed>) -> Self {
        let modules = |process: &Observed| {
            Modules::of(process.pid).unwrap_or_else(|_| Modules::saved(process.maps()))
        };
        let symbolizer = Symbolizer::new(modules(&process));
        Scene {
            symbolizer,
            process,
            names: ThreadNames::new(),
            words: WordOwners::default(),
            unwinder: None,
        }
    }

    /// Takes in code that has been loaded since.
    pub(super) fn update(&mut self) {
        self.process.read_maps();
        self.symbolizer.update(self.process.maps());
    }

    /// Names the program: `prog (pid 12)`.
    pub(super) fn program(&self) -> String {
        format!("{} (pid {})", clean(&self.process.name()), self.process.pid)
    }

    /// Returns which tool of the program's runtime shows more.
    pub(super) fn advice(&self) -> Option<String> {
        let pid = self.process.pid;
        runtimes::of(pid, &self.process.maps()).map(|runtime| runtime.advice(pid))
    }

    /// Returns a thread, by the index of its record.
    pub(super) fn party(&mut self, index: u32) -> FindingThread {
        let record = self.process.ledger.view().thread(index as usize).map(|thread| thread.record);
        let Some(tid) = record.map(|record| record.tid.load(Relaxed)) else {
            return FindingThread::default();
        };
        FindingThread { tid, name: self.thread_name(index, tid), ..FindingThread::default() }
    }

    /// Returns what the thread with this number is called, as the exit report calls it.
    pub(super) fn name_by_number(&mut self, tid: u32) -> Option<String> {
        let ledger = self.process.ledger.view();
        let is_it = |thread: &ThreadPart<'_>| {
            thread.record.tid.load(Relaxed) == tid
                && thread.record.state.load(Relaxed) == state::LIVE
        };
        let index = ledger.threads().position(|thread| is_it(&thread))?;
        self.thread_name(u32::try_from(index).ok()?, tid)
    }

    /// Returns what a thread is called that the ledger of this process names; it may be the
    /// parent's, from before a fork.
    pub(super) fn name_of(&mut self, thread: ThreadFacts) -> Option<String> {
        if let Some(index) = self.process.record_of(thread) {
            return self.thread_name(index, thread.tid);
        }
        let parent = self.process.forked_from.upgrade().filter(|_| thread.serial == 0)?;
        let index = parent.record_of(thread)?;
        let ledger = parent.ledger.view();
        let record = ledger.thread(index as usize)?.record;
        current_name(&parent, thread.tid)
            .filter(|name| parent.first_name.as_ref() != Some(name))
            .or_else(|| thread_name(record))
            .or_else(|| thread_start(record, &ledger, &mut self.symbolizer))
    }

    /// Lets facts be described that the ledger of this process has.
    pub(super) fn describe<T>(
        &mut self,
        threads: &dyn Fn(ThreadFacts) -> Option<String>,
        how: impl FnOnce(&mut Describer<'_>) -> T,
    ) -> T {
        let program = self.process.program.to_string_lossy();
        how(&mut Describer {
            ledger: self.process.ledger.view(),
            names: &mut self.symbolizer,
            threads,
            program: &program,
        })
    }

    /// Returns what the thread of a record is called: as the exit report calls it, so that it has
    /// one name. What the kernel calls a thread that nobody has named is the program's name.
    fn thread_name(&mut self, index: u32, tid: u32) -> Option<String> {
        let ledger = self.process.ledger.view();
        let record = ledger.thread(index as usize)?.record;
        let known = self.names.get(&index).cloned();
        let now = current_name(&self.process, tid);
        let own = |name: &Option<String>| name.clone().filter(|_| *name != self.process.first_name);
        own(&known)
            .or_else(|| thread_name(record))
            .or_else(|| own(&now))
            .or_else(|| thread_start(record, &ledger, &mut self.symbolizer))
    }

    /// Returns the stacks of the waits on futex words, in which threads are now, that are for
    /// events.
    pub(super) fn events(&mut self) -> Vec<u32> {
        let ledger = self.process.ledger.view();
        let waits = ledger.threads().filter_map(|thread| thread.record.wait.read());
        let mut stacks: Vec<u32> = waits
            .filter(|(_, waiting)| waiting.how.kind() == WaitKind::FUTEX)
            .map(|(_, waiting)| waiting.stack)
            .collect();
        stacks.sort_unstable();
        stacks.dedup();
        stacks.retain(|&stack| {
            let role = self.recorded(stack).as_ref().and_then(of_stack).map(|found| found.role);
            role == Some(FutexRole::Event)
        });
        stacks
    }

    /// Returns the names of a lock.
    pub(super) fn lock(&mut self, address: u64) -> NamedLock {
        let ledger = self.process.ledger.view();
        let record = ledger.find_lock(address).and_then(|index| ledger.lock(index));
        let Some(record) = record else {
            let name = format!("lock at {address:#x}");
            return NamedLock { name, type_name: String::new(), address };
        };
        let facts = LockFacts::of(&ledger, record);
        let name = Names::lock(&mut self.symbolizer, &facts);
        NamedLock { name, type_name: type_name(facts.kind, facts.attributes), address }
    }

    /// Returns what is held, for how long, acquired where.
    pub(super) fn holds(&mut self, holding: &Holding, now: u64) -> FindingHold {
        FindingHold {
            lock: self.lock(holding.address),
            shared: holding.flags.has(Flags::READ),
            by_word: holding.flags.has(Flags::BY_WORD),
            evidence: HolderEvidence::Word,
            rests_on: None,
            held_ns: (holding.started != 0).then(|| now.saturating_sub(holding.started)),
            stack: self.recorded(holding.stack),
        }
    }

    /// Returns a wait for the lock at `lock`, or for no lock.
    pub(super) fn waits(&mut self, waiting: &Waiting, lock: Option<u64>, now: u64) -> FindingWait {
        let kind = waiting.how.kind();
        FindingWait {
            how: way_name(kind),
            lock: lock.map(|lock| self.lock(lock)),
            thread: None,
            behind_writer: false,
            // The deadline of a wait on a condition is not one for the mutex.
            timed: waiting.how.is_timed() && kind != WaitKind::CONDITION,
            waited_ns: Some(now.saturating_sub(waiting.since)),
            stack: self.recorded(waiting.stack),
            python: None,
        }
    }

    fn recorded(&mut self, id: u32) -> Option<Stack> {
        let ledger = self.process.ledger.view();
        let stored = ledger.stack(id)?;
        let returns: Vec<u64> = stored.returns().collect();
        Some(Names::stack(&mut self.symbolizer, &returns, stored.end))
    }

    /// Returns what a thread is doing at this moment, and its stack.
    pub(super) fn doing(&mut self, tid: u32) -> HolderActivity {
        let said = |what: &str| HolderActivity { what: what.into(), stack: None };
        let pid = self.process.pid;
        if !self.process.visible {
            return said("cannot be seen from this PID namespace");
        }
        let mut tries = 0;
        let (doing, still) = loop {
            let Ok(doing) = task::doing(pid, tid) else { return said("has ended") };
            if doing != TaskDoing::Running {
                break (doing, None);
            }
            match Still::of(pid, tid) {
                // It has gone to sleep in the meantime.
                Err(error) if error.kind() == ErrorKind::WouldBlock && tries < TRIES => tries += 1,
                still => break (doing, still.ok()),
            }
        };
        let what = match &doing {
            TaskDoing::Running => "is now running on a processor, or ready to".into(),
            TaskDoing::Call(call) => match calls::name(call.number) {
                Some(name) => format!("is now in the system call {name}"),
                None => format!("is now in system call {}", call.number),
            },
            TaskDoing::Stopped { .. } => "is now stopped, or waits for memory".into(),
            TaskDoing::Refused => "is alive; what it does may not be seen".into(),
        };
        let stack = match (doing.registers(), still) {
            (Some((sp, pc)), _) => self.unwound(&ProcessMemory::new(pid), Registers::new(pc, sp)),
            (None, Some(still)) => self.unwound(&still.stack, still.registers),
            (None, None) => None,
        };
        HolderActivity { what, stack }
    }

    fn unwound(&mut self, memory: &dyn ReadableMemory, from: Registers) -> Option<Stack> {
        let modules = Modules::of(self.process.pid).ok()?;
        let unwinder = self.unwinder.get_or_insert_with(|| Unwinder::new(modules));
        unwinder.update(self.process.maps());
        let walked = unwinder.unwind(memory, from);
        Some(self.symbolizer.stack(&walked.frames, walked.end))
    }
}

/// Returns the name that a thread has now.
pub(super) fn current_name(process: &Observed, tid: u32) -> Option<String> {
    let file = format!("/proc/{}/task/{tid}/comm", process.pid);
    let name = process.visible.then(|| fs::read(file).ok())??;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// Names the place of a stack: `push() at queue.c:12`.
pub(super) fn place(stack: Option<&Stack>) -> String {
    let place = stack.and_then(site).map(|frame| brief(&frame.site()));
    place.unwrap_or_else(|| "an unknown place".into())
}

/// Adds what a thread does.
pub(super) fn doing(text: &mut String, doing: &HolderActivity, most: usize) {
    let colon = if doing.stack.is_some() { ":" } else { "" };
    let _ = writeln!(text, "    {}{colon}", doing.what);
    if let Some(stack) = &doing.stack {
        frames(text, stack, most);
    }
}
