//! The interpreter of a process as a snapshot keeps it, and who holds its locks.

use super::model::{HolderEvidence, LockHolder};
use crate::python::{Interpreter, PythonEvidence, PythonHolder, PythonLock, PythonLook};
use std::collections::BTreeMap;

/// The interpreter of a process, and what was seen of it.
pub(super) struct PythonState {
    pub(super) interpreter: Interpreter,
    pub(super) look: PythonLook,
    /// The threads that a ledger saw take a semaphore and not give it back, by its address.
    pub(super) taken: TakenSemaphores,
}

/// The thread that has taken a semaphore, and not given it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakenSemaphore {
    pub(super) thread: u32,
    /// Whether a thread that had taken it gave it back before: nothing else tells a lock from a
    /// signal, for which its taker waits.
    pub(super) serves_as_lock: bool,
}

/// The takers of semaphores, by the semaphores' addresses.
pub(super) type TakenSemaphores = BTreeMap<u64, TakenSemaphore>;

impl PythonState {
    /// Returns who has a lock, as far as that is certain; `here` turns a thread's number for itself
    /// into that of here.
    pub(super) fn owner(
        &self,
        look: &PythonLook,
        lock: &PythonLock,
        here: impl Fn(u32) -> Option<u32>,
    ) -> Option<LockHolder> {
        match look.holder(lock) {
            PythonHolder::Word(own) => here(own).map(LockHolder::alone),
            PythonHolder::By(own, evidence, rests_on) => {
                let tid = here(own)?;
                // It was given back meanwhile, and another has it.
                if self.taken.get(&lock.key).is_some_and(|taken| taken.thread != tid) {
                    return None;
                }
                let evidence = match evidence {
                    PythonEvidence::Guard => HolderEvidence::Guard,
                    PythonEvidence::Pad => HolderEvidence::Pad,
                    PythonEvidence::Likely => HolderEvidence::Likely,
                    _ => return None,
                };
                let rests_on = Some(rests_on);
                Some(LockHolder { evidence, rests_on, ..LockHolder::alone(tid) })
            }
            PythonHolder::MayHold(_) | PythonHolder::Unknown => None,
        }
    }
}
