//! Holders whom the ledger saw acquire a lock: threads that have slept on its word, and neither
//! woken it since nor gone on sleeping on it.
//!
//! # What it rests on
//! Whoever acquires Rust's `std::sync::Mutex` after a call to sleep leaves its word at *contended*,
//! and so calls to wake when it gives the lock back, which the ledger would know; and only the
//! thread that has the guard gives it back. That holds for no other kind of lock without more:
//! parking_lot's threads sleep on words of their own and may be handed the lock, the writer of a
//! `RwLock` on a counter, and who waits for an event has no need to wake anybody. So a thread is
//! named by this alone where the functions on the stack of its sleep are those of the mutex, and
//! else only where its own code would release the lock in just the step of this mutex.
//!
//! # What is excluded
//! A thread that runs: it may be on its way from the sleep to the lock. So may one in a signal
//! handler. A word that is not *contended* any more belongs to something else by now.

use crate::futexes::{FutexRole, of_stack};
use crate::memory::ReadableMemory;
use crate::proc::task::{self, TaskDoing};
use crate::report::names::Names;
use crate::stack::Stack;
use crate::symbols::Symbolizer;
use lockstead_ledger::Ledger;
use lockstead_ledger::futexes::SleptWords;
use lockstead_ledger::thread::state;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;

/// The word of a mutex that is held and waited for.
const CONTENDED: u32 = 2;

/// What is said of such a holder.
pub(super) const RESTS_ON: &str = "it has waited for it, and has woken nobody since";

/// A thread that has slept on a word and not woken it since.
#[derive(Clone, Debug)]
pub(super) struct SeenAcquisition {
    pub(super) thread: u32,
    /// How often the thread had been switched away when that was read: it is so as long as the
    /// thread has not run.
    switches: (u64, u64),
    /// The time at which its sleep ended.
    pub(super) at: u64,
    /// The stack that led to the sleep.
    pub(super) stack: Stack,
    /// Whether the functions on that stack are those of Rust's mutex.
    pub(super) by_name: bool,
}

/// Those threads, by the addresses of the words.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenAcquisitions(BTreeMap<u64, Vec<SeenAcquisition>>);

impl SeenAcquisitions {
    /// Reads from the ledger of a process which threads have slept on these words; `numbers` has
    /// the threads' ids here.
    pub(super) fn read(
        ledger: &Ledger<'_>,
        (pid, numbers): (u32, &HashMap<u32, u32>),
        words: &[u64],
        symbolizer: &mut Symbolizer,
    ) -> SeenAcquisitions {
        let mut seen: BTreeMap<u64, Vec<SeenAcquisition>> = BTreeMap::new();
        for thread in ledger.threads() {
            let own = thread.record.tid.load(Relaxed);
            let Some(&tid) = numbers.get(&own) else { continue };
            if thread.record.state.load(Relaxed) != state::LIVE {
                continue;
            }
            let switches = task::switches(pid, tid);
            let slept = SleptWords::new(&thread.record.slept).read();
            for slept in slept.filter(|slept| words.contains(&slept.word)) {
                let Some((stored, switches)) = ledger.stack(slept.stack).zip(switches) else {
                    continue;
                };
                let returns: Vec<u64> = stored.returns().collect();
                let stack = Names::stack(symbolizer, &returns, stored.end);
                let by_name = of_stack(&stack).is_some_and(|known| {
                    known.family == "Rust std"
                        && known.role == FutexRole::Exclusive
                        && known.name.contains("Mutex")
                });
                let found = SeenAcquisition { thread: tid, switches, at: slept.at, stack, by_name };
                seen.entry(slept.word).or_default().push(found);
            }
        }
        SeenAcquisitions(seen)
    }

    /// Returns the thread that was seen to acquire a lock, if it still sleeps as it did then, and
    /// no other was.
    pub(super) fn holder(
        &self,
        lock: u64,
        pid: u32,
        memory: &dyn ReadableMemory,
    ) -> Option<&SeenAcquisition> {
        let [seen] = self.0.get(&lock)?.as_slice() else { return None };
        let mut word = [0; 4];
        let is_contended = memory.read(lock, &mut word).is_ok_and(|read| read == word.len())
            && u32::from_ne_bytes(word) == CONTENDED;
        // After the word: the number of switches alone is that of a thread, too, that was woken and runs.
        let sleeps = matches!(task::doing(pid, seen.thread), Ok(TaskDoing::Call(_)));
        // Last, so that it slept all the time.
        let is_as_read = task::switches(pid, seen.thread) == Some(seen.switches);
        (sleeps && is_contended && is_as_read).then_some(seen)
    }
}
