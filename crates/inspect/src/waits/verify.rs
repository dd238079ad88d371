//! Whether a cycle of published waits is true outside the ledger.
//!
//! # Role
//! The ledger alone says: all members were inside these waits and held these
//! locks at one instant. This looks at what it cannot know: whether the threads
//! sleep, and whether each lock says the same owner. Where the kernel does not
//! let that be seen, the ledger's word stands.

use super::detect::{CycleMember, FoundCycle};
use super::observe::LastingWaiter;
use super::words::WordOwners;
use crate::glibc::{MUTEX_OWNER, READERS_SHIFT, RWLOCK_WRITER};
use crate::memory::{ProcessMemory, ReadableMemory};
use crate::proc::futex::FutexWait;
use crate::proc::task::{self, TaskDoing};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{LockRecord, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of the largest lock of glibc: its futex words lie within.
const LARGEST_LOCK: u64 = 56;
/// The place where its reader-writer lock counts its readers, those that wait included.
const READERS: u64 = 0;
/// Bytes of stack in which the innermost functions of glibc have their words.
const FRAME: u64 = 4096;

/// What is found of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// The cycle is closed.
    True,
    /// It is closed, as the ledger and the kernel have it; a mutex of it names nobody that there
    /// is, or it leads through a semaphore. While such a cycle is young, a thread may be about to
    /// write its name; later another library than glibc has these mutexes, and its own words for
    /// them. A semaphore never names anybody.
    Unnamed,
    /// A thread is on its way to sleep, or out of it: look again.
    NotYet,
    /// It has opened, or never was.
    False,
}

/// Looks at the members of a cycle in the process `pid`. `visible` says whether
/// the ledger's thread ids are those of this process's `/proc`.
/// `words` are the owners whom words of the process name.
#[must_use]
pub fn verify(
    found: &FoundCycle,
    ledger: &Ledger<'_>,
    words: &WordOwners,
    (pid, visible): (u32, bool),
) -> Confirmation {
    let mut verdict = Confirmation::True;
    let members = &found.members;
    for (at, member) in members.iter().enumerate() {
        let next = &members[(at + 1) % members.len()];
        let holds = match (member.lock, next.holding) {
            (Some(_), Some(holding)) if holding.flags.has(Flags::BY_WORD) => {
                words.owner(&member.waiter.waiting, ledger, pid) == Some(next.waiter.tid)
            }
            (Some(_), Some(holding)) => still_held(ledger, &next.waiter, holding.address),
            _ => true,
        };
        let holds = holds && !is_handed_on(ledger, member, next);
        let is_mutex = member.waiter.waiting.how.kind() != WaitKind::SEMAPHORE;
        // What its library tells of such a lock, and whom the word names, is known; its waiters
        // spin, nap and sleep in turn.
        let is_told = member
            .lock
            .and_then(|lock| record(ledger, lock))
            .is_some_and(|lock| lock.shape().0.is_told());
        let (of_owner, of_thread) = if is_told {
            (Confirmation::True, Confirmation::True)
        } else if visible {
            let of_owner = owner_agrees(pid, ledger, member, next);
            let anywhere = of_owner == Confirmation::Unnamed && is_mutex;
            (of_owner, sleeps(pid, member, ledger, anywhere))
        } else {
            (
                if is_mutex { Confirmation::True } else { owner_agrees(pid, ledger, member, next) },
                Confirmation::True,
            )
        };
        for one in
            [if holds { Confirmation::True } else { Confirmation::False }, of_owner, of_thread]
        {
            verdict = match (verdict, one) {
                (Confirmation::False, _) | (_, Confirmation::False) => Confirmation::False,
                (Confirmation::NotYet, _) | (_, Confirmation::NotYet) => Confirmation::NotYet,
                (Confirmation::Unnamed, _) | (_, Confirmation::Unnamed) => Confirmation::Unnamed,
                _ => Confirmation::True,
            };
        }
    }
    let still = members.iter().all(|member| is_still(ledger, &member.waiter));
    if still { verdict } else { Confirmation::False }
}

fn is_still(ledger: &Ledger<'_>, waiter: &LastingWaiter) -> bool {
    let thread = ledger.thread(waiter.thread as usize);
    thread.is_some_and(|thread| thread.record.wait.is_still(waiter.episode))
}

/// Returns whether a lock is still held: another thread than its holder may release it.
fn still_held(ledger: &Ledger<'_>, waiter: &LastingWaiter, lock: u64) -> bool {
    ledger
        .thread(waiter.thread as usize)
        .and_then(|thread| thread.stack().find(lock))
        .is_some_and(|(_, holding)| !holding.flags.has(Flags::LENT))
}

/// Returns whether a member sleeps for its lock. `anywhere`: another library may have the word on
/// which the thread sleeps.
fn sleeps(pid: u32, member: &CycleMember, ledger: &Ledger<'_>, anywhere: bool) -> Confirmation {
    let doing = match task::doing(pid, member.waiter.tid) {
        Ok(doing) => doing,
        Err(_) => return Confirmation::False,
    };
    let spins = member.waiter.waiting.how.kind() == WaitKind::SPIN;
    let as_published = match doing {
        TaskDoing::Refused => true,
        TaskDoing::Running | TaskDoing::Stopped { .. } => spins,
        TaskDoing::Call(call) => match (FutexWait::decode(&call), member.lock) {
            (Some(wait), Some(lock)) => {
                anywhere && !wait.timed()
                    || lies_in(lock, LARGEST_LOCK, wait.address)
                    || inherits(ledger, lock) && lies_in(call.sp, FRAME, wait.address)
            }
            // A joined thread's word lies with glibc.
            (Some(_), None) => true,
            (None, _) => false,
        },
    };
    if as_published { Confirmation::True } else { Confirmation::NotYet }
}

/// Tells whether an address is among the `bytes` from `start`; all may be nonsense.
fn lies_in(start: u64, bytes: u64, address: u64) -> bool {
    address.wrapping_sub(start) < bytes
}

/// Tells whether the kernel refuses to let a thread sleep for this mutex in a circle.
/// glibc then has it sleep on a word of its own stack, for good.
fn inherits(ledger: &Ledger<'_>, lock: u64) -> bool {
    record(ledger, lock).is_some_and(|record| record.shape().2 & attribute::INHERIT != 0)
}

fn record<'a>(ledger: &Ledger<'a>, lock: u64) -> Option<&'a LockRecord> {
    ledger.find_lock(lock).and_then(|index| ledger.lock(index))
}

/// Tells whether the lock is one that threads release which do not hold it: then its
/// waiters wait for somebody else.
fn is_handed_on(ledger: &Ledger<'_>, member: &CycleMember, next: &CycleMember) -> bool {
    let lock = member.lock.filter(|_| next.holding.is_some());
    let record = lock.and_then(|lock| record(ledger, lock));
    record.is_some_and(|record| record.handed_on.load(Relaxed) != 0)
}

/// Tells whether a lock names the thread that the ledger says; as far as its kind has
/// a word for that.
fn owner_agrees(
    pid: u32,
    ledger: &Ledger<'_>,
    member: &CycleMember,
    next: &CycleMember,
) -> Confirmation {
    let (Some(lock), Some(holding)) = (member.lock, next.holding) else {
        return Confirmation::True;
    };
    let how = member.waiter.waiting.how.kind();
    let word = |offset: u64| {
        let mut word = [0; 4];
        let read = ProcessMemory::new(pid).read(lock.wrapping_add(offset), &mut word);
        (read.ok() == Some(4)).then(|| u32::from_ne_bytes(word))
    };
    let alone = match how {
        WaitKind::MUTEX | WaitKind::CONDITION => word(MUTEX_OWNER),
        WaitKind::WRITE | WaitKind::READ => word(RWLOCK_WRITER),
        WaitKind::SEMAPHORE => {
            // That it began with one token says little before somebody has given that back.
            let serves = record(ledger, lock)
                .is_some_and(|record| record.shape().2 & attribute::GIVEN_BACK != 0);
            return if serves { Confirmation::Unnamed } else { Confirmation::False };
        }
        _ => return Confirmation::True,
    };
    let Some(alone) = alone else { return Confirmation::True };
    if holding.flags.has(Flags::READ) {
        let some = word(READERS).is_none_or(|word| word >> READERS_SHIFT != 0);
        return if alone == 0 && some { Confirmation::True } else { Confirmation::False };
    }
    match alone {
        0 => Confirmation::Unnamed,
        tid if tid == next.waiter.tid || is_forked(ledger, next, &holding, tid) => {
            Confirmation::True
        }
        tid if how == WaitKind::MUTEX && is_nobody(pid, tid) => Confirmation::Unnamed,
        _ => Confirmation::False,
    }
}

/// Tells whether there is no thread of that number, in this process or another.
fn is_nobody(pid: u32, tid: u32) -> bool {
    let is_there = |path: String| std::fs::exists(path).unwrap_or(true);
    !is_there(format!("/proc/{pid}/task/{tid}")) && !is_there(format!("/proc/{tid}"))
}

/// Tells whether the lock was taken before the fork that made this process: it names
/// the parent's thread still.
fn is_forked(ledger: &Ledger<'_>, holder: &CycleMember, holding: &Holding, tid: u32) -> bool {
    let thread = ledger.thread(holder.waiter.thread as usize);
    holding.flags.has(Flags::INHERITED)
        && thread.is_some_and(|thread| thread.record.forked_by.load(Relaxed) == tid)
}

/// Tells whether a thread in a wait on a condition variable sleeps for its mutex.
#[must_use]
pub fn is_taking_back(pid: u32, waiter: &LastingWaiter) -> bool {
    let Ok(TaskDoing::Call(call)) = task::doing(pid, waiter.tid) else { return false };
    let mutex = waiter.waiting.companion;
    FutexWait::decode(&call).is_some_and(|wait| lies_in(mutex, LARGEST_LOCK, wait.address))
}
