//! What the numbers of a process are called, looked up once.

use crate::recording::{FrameNames, HolderDoing, LockNames, RecordedProcess, ThreadFacts};
use lockstead_inspect::proc::calls;
use lockstead_inspect::report::{self, names::way_name};
use lockstead_ledger::events::{Event, EventKind, FOR_LOCK};
use lockstead_ledger::publish::WaitKind;
use std::collections::HashMap;

/// The names of one process.
pub(super) struct Labels<'r> {
    locks: HashMap<(u32, u8), &'r LockNames>,
    stacks: HashMap<u32, Vec<&'r FrameNames>>,
    threads: HashMap<u32, &'r ThreadFacts>,
}

impl<'r> Labels<'r> {
    /// Takes in the names of a process.
    pub(super) fn of(process: &'r RecordedProcess) -> Self {
        let names = &process.names;
        let frame = |place: &u32| names.frames.get(*place as usize);
        Labels {
            locks: names.locks.iter().map(|lock| ((lock.lock, lock.generation), lock)).collect(),
            stacks: names
                .stacks
                .iter()
                .map(|stack| (stack.stack, stack.frames.iter().filter_map(frame).collect()))
                .collect(),
            threads: names.threads.iter().map(|thread| (thread.thread, thread)).collect(),
        }
    }

    /// Returns what the lock of an event is called; of a join the thread.
    pub(super) fn lock(&self, event: &Event) -> String {
        if is_join(event) {
            return match event.lock {
                0 => "the end of a thread".into(),
                thread => format!("the end of {}", self.thread(thread)),
            };
        }
        self.lock_in(event.lock, event.generation)
    }

    /// Returns what the lock with this index is called, in the life with this generation.
    pub(super) fn lock_in(&self, lock: u32, generation: u8) -> String {
        match self.locks.get(&(lock, generation)) {
            Some(lock) => lock.name.clone(),
            None => "a lock without a name".into(),
        }
    }

    /// Returns what kind of lock it is; `None` if that is not known.
    pub(super) fn kind(&self, event: &Event) -> Option<&'r LockNames> {
        let lock = self.locks.get(&(event.lock, event.generation)).copied();
        lock.filter(|_| !is_join(event))
    }

    /// Returns the frames of a stack, innermost first.
    pub(super) fn stack(&self, stack: u32) -> &[&'r FrameNames] {
        self.stacks.get(&stack).map_or(&[], Vec::as_slice)
    }

    /// Returns what a thread is called.
    pub(super) fn thread(&self, thread: u32) -> String {
        let facts = self.threads.get(&thread);
        facts.and_then(|facts| facts.name.clone()).unwrap_or_else(|| format!("thread {thread}"))
    }

    /// Returns what is known of a thread.
    pub(super) fn thread_facts(&self, thread: u32) -> Option<&'r ThreadFacts> {
        self.threads.get(&thread).copied()
    }
}

/// Tells whether an event is the wait for the end of a thread.
pub(super) fn is_join(event: &Event) -> bool {
    event.kind == EventKind::Wait && kind(event) == WaitKind::JOIN
}

/// Returns the kind of a wait.
fn kind(event: &Event) -> WaitKind {
    WaitKind((event.how & !FOR_LOCK).into())
}

/// Returns a way of waiting in words.
pub(super) fn way(event: &Event) -> &'static str {
    way_name(kind(event))
}

/// Tells whether a wait was one for a lock, and not for something to happen.
pub(super) fn is_for_lock(event: &Event) -> bool {
    let kind = kind(event);
    report::is_for_lock(kind) || kind == WaitKind::FUTEX && event.how & FOR_LOCK != 0
}

/// Returns what a look has met in words.
pub(super) fn doing(doing: HolderDoing) -> String {
    match doing {
        HolderDoing::Runs => "has a processor".into(),
        HolderDoing::LacksProcessor => "could run, has no processor".into(),
        HolderDoing::Sleeps(call) => match calls::name(call) {
            Some(name) => format!("sleeps in {name}"),
            None => format!("sleeps in system call {call}"),
        },
        HolderDoing::Waits => "waits itself".into(),
        HolderDoing::Stopped => "is stopped".into(),
    }
}
