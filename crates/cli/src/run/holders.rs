//! What the holders of locks do, looked at while others wait for them.
//!
//! # Role
//! The report of a run comes when the waits are over, and then nobody can say what kept them. So the
//! command looks at the locks that threads wait for just now, and adds up what it meets: whether the
//! holder runs, lacks a processor, sleeps and in which call, or whether the lock is free.
//!
//! # What is true of a moment
//! The word of a lock is read between two looks at the wait, so a wait that had ended by then does
//! not count. What the holder does is read next, and then the word again: a holder that has let go
//! meanwhile ran. Where that took longer than [`MOMENT`], because the command itself lost the
//! processor, nothing is concluded. Of a holder that does not sleep it is asked last whether it has a
//! processor.
//!
//! # Cost
//! Nothing in the process, and nothing while no thread waits. A look reads some small files of
//! `/proc` for each lock, and the stack of a holder that sleeps, which stays known while it sleeps.
//! [`LookBudget`](super::pace::LookBudget) bounds all looks together.

use super::processes::{Observed, inside};
use crate::clock;
use crate::recording::{HolderDoing, HolderSample};
use lockstead_inspect::memory::ProcessMemory;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::proc::processor::{self, Looker, Processor};
use lockstead_inspect::proc::task::{self, SleepingCall, TaskDoing};
use lockstead_inspect::report::holders::{AsleepAt, MetHolder, MetLock};
use lockstead_inspect::report::lives::WaitedLife;
use lockstead_inspect::unwind::{Registers, Unwinder};
use lockstead_inspect::waits::grip::{self, Grip, Holder};
use lockstead_inspect::waits::words::WordOwners;
use lockstead_ledger::Ledger;
use lockstead_ledger::events::Event;
use lockstead_ledger::publish::{Episode, WaitKind, Waiting};
use lockstead_ledger::thread::state;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering::Relaxed;

/// How long a look may go on, in nanoseconds: whoever looks keeps the coarse clock as well.
const LONGEST: u64 = 1_000_000;
/// The longest time in which what was read of one lock is taken for one moment, in nanoseconds.
const MOMENT: u64 = 300_000;
/// The most holders of one lock that are looked at: of more readers these stand for all.
const HOLDERS: usize = 4;
/// The most frames of a stack that are kept.
const FRAMES: usize = 64;

/// A thread that waits for a lock.
struct LockWaiter {
    record: usize,
    tid: u32,
    episode: Episode,
    waiting: Waiting,
}

impl LockWaiter {
    fn is_still(&self, ledger: &Ledger<'_>) -> bool {
        let thread = ledger.thread(self.record);
        thread.is_some_and(|thread| thread.record.wait.is_still(self.episode))
    }
}

/// Looks at the locks of one process that threads wait for.
#[derive(Default)]
pub(super) struct HolderWatch {
    words: WordOwners,
    unwinder: Option<Unwinder>,
    /// Code was loaded since the unwinder was last told.
    is_stale: bool,
    /// Where threads sleep, by their numbers and calls, as the last look found it.
    asleep: HashMap<(u32, SleepingCall), AsleepAt>,
    /// The lock at which the next look begins, for it may not have time for all.
    first: u64,
}

impl HolderWatch {
    /// Notes that code was loaded.
    pub(super) fn update(&mut self) {
        self.is_stale = true;
        self.words.update();
    }

    /// Looks at `now`, in nanoseconds of the ledger's clock. The look stands for `ns` nanoseconds; the
    /// thread had used `used_before` nanoseconds of its processor when it last slept.
    pub(super) fn look(&mut self, process: &Observed, now: u64, ns: u64, used_before: u64) {
        let ns = ns.min(now.saturating_sub(process.began()));
        let ledger = process.ledger.view();
        let locks: BTreeSet<u64> = waiters(&ledger).map(|waiter| waiter.waiting.target).collect();
        if locks.is_empty() {
            return self.asleep.clear();
        }
        let looker = Looker::here(used_before);
        let mut asleep = HashMap::new();
        let first = std::mem::take(&mut self.first);
        for &lock in locks.range(first..).chain(locks.range(..first)) {
            if clock::now().saturating_sub(now) > LONGEST {
                self.first = lock;
                break;
            }
            self.look_at(process, &ledger, lock, (&looker, ns), &mut asleep);
        }
        self.asleep = asleep;
    }

    /// Looks at one lock and those who wait for it.
    fn look_at(
        &mut self,
        process: &Observed,
        ledger: &Ledger<'_>,
        lock: u64,
        (looker, ns): (&Looker, u64),
        asleep: &mut HashMap<(u32, SleepingCall), AsleepAt>,
    ) {
        // Those of this moment: a lock is free at the end of a wait, and that is soon over.
        let of_lock = |waiter: &LockWaiter| waiter.waiting.target == lock;
        let mut waiters: Vec<LockWaiter> = waiters(ledger).filter(of_lock).collect();
        let Some(waiting) = waiters.first().map(|waiter| waiter.waiting) else { return };
        let Some(index) = ledger.lock_of(&waiting) else { return };
        let Some(life) = WaitedLife::now(ledger, index) else { return };
        let generation = ledger.lock(index).map_or(0, |lock| lock.generation.load(Relaxed));
        let moment = clock::now();
        let grip = grip::grip(&waiting, ledger, &self.words, process.pid);
        waiters.retain(|waiter| waiter.is_still(ledger));
        if waiters.is_empty() {
            return;
        }
        let (met, holders) = match &grip {
            Grip::Free => (all(&waiters, MetHolder::Free), 1),
            Grip::Unknown => (all(&waiters, MetHolder::Unknown), 1),
            Grip::Held(holders) => {
                let holders = &holders[..holders.len().min(HOLDERS)];
                let doing: Vec<_> = holders.iter().map(|one| doing_of(process, one)).collect();
                let again = grip::grip(&waiting, ledger, &self.words, process.pid);
                if clock::now().saturating_sub(moment) > MOMENT {
                    return;
                }
                let has_let_go = |holder: &Holder| match &again {
                    Grip::Held(still) => still.iter().all(|other| other.tid != holder.tid),
                    Grip::Free | Grip::Unknown => true,
                };
                let mut met = Vec::new();
                let mut samples = Vec::new();
                for (holder, doing) in holders.iter().zip(doing) {
                    let doing = match has_let_go(holder) {
                        true => MetHolder::Running(holder.stack),
                        false => self.met(process, ledger, holder, doing, looker, asleep),
                    };
                    samples.extend(sampled(doing).map(|doing| HolderSample {
                        at: moment,
                        tid: holder.tid,
                        lock: index,
                        generation: Event::life(generation),
                        doing,
                    }));
                    met.extend(waiters.iter().map(|waiter| {
                        let is_its_own = waiter.tid == holder.tid;
                        (waiter.waiting.stack, if is_its_own { MetHolder::Free } else { doing })
                    }));
                }
                if process.is_recorded.load(Relaxed) {
                    inside(&process.samples).append(&mut samples);
                }
                (met, holders.len())
            }
        };
        inside(&process.holders).add(&MetLock { life, met, ns }, holders);
    }

    /// Returns what was met, of a holder that does this.
    fn met(
        &mut self,
        process: &Observed,
        ledger: &Ledger<'_>,
        holder: &Holder,
        doing: Option<TaskDoing>,
        looker: &Looker,
        asleep: &mut HashMap<(u32, SleepingCall), AsleepAt>,
    ) -> MetHolder {
        match doing {
            None | Some(TaskDoing::Refused) => MetHolder::Unknown,
            Some(TaskDoing::Stopped { .. }) => MetHolder::Stopped(holder.stack),
            Some(TaskDoing::Running) => match processor::of(process.pid, holder.tid, looker) {
                Processor::Has | Processor::Lent => MetHolder::Running(holder.stack),
                Processor::Lacks => MetHolder::Ready(holder.stack),
                Processor::Unknown => MetHolder::Unknown,
            },
            Some(TaskDoing::Call(call)) => {
                if let Some(waits) = holder.thread.and_then(|at| waits_itself(ledger, at)) {
                    return waits;
                }
                let key = (holder.tid, call);
                let at = match self.asleep.get(&key) {
                    Some(&known) => known,
                    None => self.walk(process, call, holder.stack),
                };
                asleep.insert(key, at);
                MetHolder::Asleep(call.number, at)
            }
        }
    }

    /// Walks the stack of a thread that sleeps.
    fn walk(&mut self, process: &Observed, call: SleepingCall, acquired: u32) -> AsleepAt {
        let otherwise = AsleepAt::Acquired(acquired);
        if std::mem::take(&mut self.is_stale) || self.unwinder.is_none() {
            let Ok(modules) = Modules::of(process.pid) else { return otherwise };
            match &mut self.unwinder {
                Some(unwinder) => unwinder.update(modules.maps().clone()),
                None => self.unwinder = Some(Unwinder::new(modules)),
            }
        }
        let Some(unwinder) = &mut self.unwinder else { return otherwise };
        let memory = ProcessMemory::new(process.pid);
        let walked = unwinder.unwind(&memory, Registers::new(call.pc, call.sp));
        let frames = walked.frames.iter().take(FRAMES).map(|frame| frame.address);
        let number = inside(&process.holders).stack(frames.collect());
        number.map_or(otherwise, AsleepAt::Walked)
    }
}

/// Returns what a thread does; `None` if it has ended.
fn doing_of(process: &Observed, holder: &Holder) -> Option<TaskDoing> {
    task::doing(process.pid, holder.tid).ok().filter(|doing| !doing.has_ended())
}

/// Returns the threads that wait for locks of which it is known who holds them.
fn waiters<'l>(ledger: &Ledger<'l>) -> impl Iterator<Item = LockWaiter> + use<'l> {
    ledger.threads().enumerate().filter_map(|(record, thread)| {
        let (episode, waiting) = thread.record.wait.read()?;
        let is_live = thread.record.state.load(Relaxed) == state::LIVE;
        let tid = thread.record.tid.load(Relaxed);
        (is_live && grip::is_for_holder(waiting.how)).then_some(LockWaiter {
            record,
            tid,
            episode,
            waiting,
        })
    })
}

/// Returns what was met as a recording has it.
fn sampled(met: MetHolder) -> Option<HolderDoing> {
    match met {
        MetHolder::Running(_) => Some(HolderDoing::Runs),
        MetHolder::Ready(_) => Some(HolderDoing::LacksProcessor),
        MetHolder::Asleep(call, _) => Some(HolderDoing::Sleeps(call)),
        MetHolder::Waiting(..) | MetHolder::Joining(_) => Some(HolderDoing::Waits),
        MetHolder::Stopped(_) => Some(HolderDoing::Stopped),
        MetHolder::Free | MetHolder::Unknown => None,
    }
}

/// Returns the same for all who wait.
fn all(waiters: &[LockWaiter], met: MetHolder) -> Vec<(u32, MetHolder)> {
    waiters.iter().map(|waiter| (waiter.waiting.stack, met)).collect()
}

/// Returns what a thread waits for, if the ledger has that.
fn waits_itself(ledger: &Ledger<'_>, thread: u32) -> Option<MetHolder> {
    let (_, waiting) = ledger.thread(thread as usize)?.record.wait.read()?;
    if waiting.how.kind() == WaitKind::JOIN {
        return Some(MetHolder::Joining(waiting.stack));
    }
    let life = WaitedLife::now(ledger, ledger.lock_of(&waiting)?)?;
    Some(MetHolder::Waiting(life, waiting.stack))
}
