//! Whether a cycle of published waits is true outside the ledger.
//!
//! # Role
//! The ledger alone says: all members were inside these waits and held these
//! locks at one instant. This looks at what it cannot know: whether the threads
//! sleep, and whether each mutex says the same owner. Where the kernel does not
//! let that be seen, the ledger's word stands.

use super::detect::{Found, Member};
use super::observe::Waiter;
use crate::memory::{Memory, ProcessMemory};
use crate::proc::futex::FutexWait;
use crate::proc::task::{self, Doing};
use lockstead_ledger::Ledger;
use lockstead_ledger::publish::{Flags, How};

/// Bytes of the largest lock of glibc: its futex words lie within.
const LARGEST_LOCK: u64 = 56;
/// Where glibc's mutex names its owner.
const MUTEX_OWNER: u64 = 8;

/// What is found of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is closed.
    True,
    /// A thread is on its way to sleep, or out of it: look again.
    NotYet,
    /// It has opened, or never was.
    False,
}

/// Looks at the members of a cycle in the process `pid`. `visible` says whether
/// the ledger's thread ids are those of this process's `/proc`.
#[must_use]
pub fn verify(found: &Found, ledger: &Ledger<'_>, pid: u32, visible: bool) -> Verdict {
    let mut verdict = Verdict::True;
    let members = &found.members;
    for (at, member) in members.iter().enumerate() {
        let next = &members[(at + 1) % members.len()];
        let holds = match (member.lock, next.holding) {
            (Some(lock), Some(_)) => still_held(ledger, &next.waiter, lock),
            _ => true,
        };
        let of_owner = if visible { owner_agrees(pid, member, next) } else { Verdict::True };
        let of_thread = if visible { sleeps(pid, member) } else { Verdict::True };
        for one in [if holds { Verdict::True } else { Verdict::False }, of_owner, of_thread] {
            verdict = match (verdict, one) {
                (Verdict::False, _) | (_, Verdict::False) => Verdict::False,
                (Verdict::NotYet, _) | (_, Verdict::NotYet) => Verdict::NotYet,
                _ => Verdict::True,
            };
        }
    }
    let still = members.iter().all(|member| is_still(ledger, &member.waiter));
    if still { verdict } else { Verdict::False }
}

fn is_still(ledger: &Ledger<'_>, waiter: &Waiter) -> bool {
    let thread = ledger.thread(waiter.thread as usize);
    thread.is_some_and(|thread| thread.record.wait.is_still(waiter.episode))
}

/// A lock may be released by another thread than its holder.
fn still_held(ledger: &Ledger<'_>, waiter: &Waiter, lock: u64) -> bool {
    ledger
        .thread(waiter.thread as usize)
        .and_then(|thread| thread.stack().find(lock))
        .is_some_and(|(_, holding)| !holding.flags.has(Flags::LENT))
}

fn sleeps(pid: u32, member: &Member) -> Verdict {
    let doing = match task::doing(pid, member.waiter.tid) {
        Ok(doing) => doing,
        Err(_) => return Verdict::False,
    };
    let spins = member.waiter.waiting.how.kind() == How::SPIN;
    let as_published = match doing {
        Doing::Refused => true,
        Doing::Running | Doing::Stopped { .. } => spins,
        Doing::Call(call) => match (FutexWait::decode(&call), member.lock) {
            (Some(wait), Some(lock)) => (lock..lock + LARGEST_LOCK).contains(&wait.address),
            // A joined thread's word lies with glibc.
            (Some(_), None) => true,
            (None, _) => false,
        },
    };
    if as_published { Verdict::True } else { Verdict::NotYet }
}

/// Whether a mutex names the thread that the ledger says.
fn owner_agrees(pid: u32, member: &Member, next: &Member) -> Verdict {
    let how = member.waiter.waiting.how.kind();
    let (Some(lock), Some(_)) = (member.lock, next.holding) else { return Verdict::True };
    if !matches!(how, How::MUTEX | How::CONDITION) {
        return Verdict::True;
    }
    let mut owner = [0; 4];
    match ProcessMemory::new(pid).read(lock + MUTEX_OWNER, &mut owner) {
        Ok(4) => match u32::from_ne_bytes(owner) {
            0 => Verdict::NotYet,
            tid if tid == next.waiter.tid => Verdict::True,
            _ => Verdict::False,
        },
        _ => Verdict::True,
    }
}

/// Whether a thread in a wait on a condition variable sleeps for its mutex.
#[must_use]
pub fn is_taking_back(pid: u32, waiter: &Waiter) -> bool {
    let Ok(Doing::Call(call)) = task::doing(pid, waiter.tid) else { return false };
    let mutex = waiter.waiting.companion;
    FutexWait::decode(&call)
        .is_some_and(|wait| (mutex..mutex + LARGEST_LOCK).contains(&wait.address))
}
