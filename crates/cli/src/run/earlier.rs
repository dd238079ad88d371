//! The waits for locks that had begun before the command attached.
//!
//! # Role
//! No ledger has them: the library was not there when they began. They are in the snapshot that
//! `lockstead dump` shows, which is taken as soon as the command has come. A thread that is in the
//! same system call with the same arguments and the same stack as then is in the same wait.

use lockstead_inspect::proc::task::{self, SleepingCall, TaskDoing};
use lockstead_inspect::snapshot::Snapshot;
use lockstead_inspect::snapshot::model::{LockHeld, SnapshotLock, ThreadWait, WaitTarget};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The calls in which threads sleep, by their numbers.
pub(super) type SleepingCalls = BTreeMap<u32, SleepingCall>;

/// The waits of one process that had begun before.
#[derive(Debug, Default)]
pub(super) struct EarlierWaits {
    waits: Mutex<BTreeMap<u32, EarlierWait>>,
}

#[derive(Debug)]
struct EarlierWait {
    call: SleepingCall,
    /// What to say of it: the name of the lock; `None` of a thread that joins another one.
    lock: Option<String>,
    since: Instant,
}

/// Reads in which call each thread sleeps.
pub(super) fn calls(pid: u32) -> SleepingCalls {
    let numbers = task::numbers(pid).unwrap_or_default();
    let asleep = numbers.into_iter().filter_map(|tid| match task::doing(pid, tid) {
        Ok(TaskDoing::Call(call)) => Some((tid, call)),
        _ => None,
    });
    asleep.collect()
}

impl EarlierWaits {
    fn waits(&self) -> MutexGuard<'_, BTreeMap<u32, EarlierWait>> {
        // Nobody leaves them half-changed.
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the waits for what others hold that a snapshot shows and no ledger has; `calls`: those
    /// in which threads slept at `since`, before it was taken.
    pub(super) fn note(&self, found: &Snapshot, calls: &SleepingCalls, since: Instant) {
        let waits = found.threads.iter().filter_map(|thread| {
            let lock = waits_for_others(found, thread.wait()?)?;
            let call = *calls.get(&thread.tid)?;
            Some((thread.tid, EarlierWait { call, lock, since }))
        });
        *self.waits() = waits.collect();
    }

    /// Tells whether one of them still lasts.
    pub(super) fn any_lasts(&self, pid: u32) -> bool {
        let mut waits = self.waits();
        waits.retain(|&tid, wait| {
            task::doing(pid, tid).is_ok_and(|doing| doing == TaskDoing::Call(wait.call))
        });
        !waits.is_empty()
    }

    /// Returns the lock for which a thread has waited in this call since before the command came, and
    /// when that was.
    pub(super) fn lock(&self, tid: u32, call: &SleepingCall) -> Option<(String, Instant)> {
        let waits = self.waits();
        let wait = waits.get(&tid).filter(|wait| wait.call == *call)?;
        Some((wait.lock.clone()?, wait.since))
    }

    /// Tells whether a thread was in such a wait, and is still.
    pub(super) fn has(&self, pid: u32, tid: u32) -> bool {
        matches!(task::doing(pid, tid), Ok(TaskDoing::Call(call)) if self.lock(tid, &call).is_some())
    }
}

/// Returns for which lock this is a wait, `None` inside for the end of a thread; `None` if it is for
/// nothing that a thread holds, or the ledger has it.
fn waits_for_others(found: &Snapshot, wait: &ThreadWait) -> Option<Option<String>> {
    wait.word?;
    match wait.target {
        WaitTarget::Lock { address } => {
            let lock = found.lock(address).filter(|lock| is_for_holder(lock))?;
            Some(Some(lock.name.clone()))
        }
        WaitTarget::Join { .. } => Some(None),
        WaitTarget::Unknown { .. } => None,
    }
}

/// Tells whether who waits for this waits for its holder.
fn is_for_holder(lock: &SnapshotLock) -> bool {
    match lock.held {
        LockHeld::By { .. } | LockHeld::Readers { .. } | LockHeld::Elsewhere { .. } => true,
        LockHeld::Never => false,
        // It may be about to change hands.
        LockHeld::Unknown { .. } => matches!(lock.kind.as_str(), "mutex" | "rwlock"),
    }
}
