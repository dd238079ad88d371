//! What semaphores are used for: who takes and who gives each token.
//!
//! # Role
//! For `lockstead run --semaphores`, which says which semaphores could be mutexes: the
//! thread that takes one gives it, it begins with one token and never has two. Each
//! call is counted in the [`SemaphoreUsage`](lockstead_ledger::usage::SemaphoreUsage) of the
//! semaphore's origin; what shows that it is no mutex is noted as an [`Act`].
//!
//! # Protocol
//! A taker is noted after the real call, and erased before the real call that gives:
//! of a semaphore that serves as a mutex nobody finds anything but what should be
//! there, whatever the threads' speeds. Of one that has two tokens at a time it is not
//! asked who gives: takers are known one by one.
//!
//! # Invariants
//! No call is passed over: one that a handler makes while the thread is busy in the
//! library is noted without its chain of calls, one by a thread that has no record is
//! counted as not known.

use super::words::LockWords;
use crate::call::CallOutcome;
use crate::me::{self, Me};
use crate::real::{self, LockPointer, REAL};
use crate::site::CallSite;
use crate::{state, sys, tls};
use core::ffi::c_int;
use core::ptr::null;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::semaphore::SemaphoreRecord;
use lockstead_ledger::thread::ThreadRecord;
use lockstead_ledger::usage::{Act, Reason, Sharing, Taker, UsageOrigin};
use lockstead_ledger::{Birth, Ledger};

/// Whether anybody wants to know.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Does this file's part of [`super::want_tokens`].
pub fn want(wanted: bool) {
    WANTED.store(wanted, Relaxed);
}

/// A call for a semaphore.
struct SemaphoreCall<'a> {
    ledger: &'a Ledger<'static>,
    /// The index of the semaphore's record.
    lock: u32,
    stack: u32,
    site: u64,
    /// The thread's number, as [`Taker::number_of`] has it.
    thread: u32,
    tid: u32,
    /// The signal in whose handler the call is; 0: none.
    signal: u32,
}

impl SemaphoreCall<'_> {
    fn of<'a>(me: &'a Me, lock: u32, stack: u32, site: &CallSite) -> SemaphoreCall<'a> {
        let record = me.record();
        SemaphoreCall {
            ledger: me.ledger,
            lock,
            stack,
            site: site.return_address(),
            thread: Taker::number_of(record.serial.load(Relaxed)),
            tid: record.tid.load(Relaxed),
            signal: record.context.load(Relaxed),
        }
    }

    /// Returns the semaphore; its life begins now if nothing else of it was seen.
    fn semaphore(&self) -> Option<SemaphoreRecord<'static>> {
        let semaphore = self.ledger.semaphore(self.lock).or_else(|| self.unseen())?;
        if self.signal != 0 {
            self.act(&semaphore, Reason::InHandler, self.signal, None);
        }
        Some(semaphore)
    }

    /// Begins the life of a semaphore whose initialisation nobody saw.
    #[cold]
    fn unseen(&self) -> Option<SemaphoreRecord<'static>> {
        let record = self.ledger.lock(self.lock);
        let [stack, address] = record.map_or([0; 2], |record| {
            [u64::from(record.first_stack.load(Relaxed)), record.address.load(Relaxed)]
        });
        // SAFETY: RULES-PASSED: the program has passed it to the function that it called.
        let is_shared =
            address != 0 && unsafe { LockWords::read(ObjectKind::Semaphore, address) }.is_shared();
        let sharing = if is_shared { Sharing::Memory } else { Sharing::Private };
        let origin = UsageOrigin { stack: stack as u32, value: None, sharing };
        let semaphore = self.ledger.use_semaphore(self.lock, origin)?;
        if is_shared && semaphore.is_new {
            self.act(&semaphore, Reason::Shared, sharing as u32, None);
        }
        Some(semaphore)
    }

    fn taker(&self) -> Taker {
        Taker { thread: self.thread, stack: self.stack }
    }

    /// Notes that this call shows that the semaphore is no mutex; `other` had it.
    fn act(
        &self,
        semaphore: &SemaphoreRecord<'_>,
        reason: Reason,
        number: u32,
        other: Option<Taker>,
    ) {
        // Through a function of the program's own all come from one site.
        let place = if self.stack == 0 { self.site } else { u64::from(self.stack) };
        semaphore.act(reason, place, || Act {
            reason,
            stack: self.stack,
            thread: self.thread,
            tid: self.tid,
            other: other.unwrap_or(Taker { thread: 0, stack: 0 }),
            other_tid: other.map_or(0, |other| self.tid_of(other)),
            number,
        });
    }

    /// Returns the number of the thread that took the token.
    fn tid_of(&self, taker: Taker) -> u32 {
        let number = |record: &ThreadRecord| Taker::number_of(record.serial.load(Relaxed));
        let mut threads = self.ledger.threads().map(|thread| thread.record);
        let found = threads.find(|record| number(record) == taker.thread);
        found.map_or(0, |record| record.tid.load(Relaxed))
    }
}

/// Notes a call, whatever the thread is doing.
fn noted(address: u64, site: &CallSite, note: impl Fn(&SemaphoreCall<'_>)) {
    if !WANTED.load(Relaxed) {
        return;
    }
    let Some(ledger) = state::ledger() else { return };
    let by = |me: &Me| {
        let stack = me.stack(site);
        let lock = me.use_lock(address, stack, (ObjectKind::Semaphore, 0));
        note(&SemaphoreCall::of(me, lock, stack, site));
    };
    if let Some(me) = me::enter() {
        return by(&me);
    }
    let mut is_noted = false;
    me::beside_wait(|me| {
        by(me);
        is_noted = true;
    });
    if !is_noted {
        note(&without_chain(ledger, address, site));
    }
}

/// Describes a call of a thread that is busy in the library or has no record. What it was doing may
/// be half done: only what others could do at that moment as well is done here.
#[cold]
fn without_chain<'a>(
    ledger: &'a Ledger<'static>,
    address: u64,
    site: &CallSite,
) -> SemaphoreCall<'a> {
    // The walk was given up: its first address is known.
    const FULL: u32 = 1;
    let stack = ledger.intern_stack(&[site.return_address()], FULL);
    let is_live = |lock: &u32| {
        ledger.lock(*lock).is_some_and(|record| matches!(record.shape().1, RecordLife::Live))
    };
    let known = ledger.find_lock(address).filter(is_live);
    let lock = known.or_else(|| {
        ledger.use_lock(&Birth {
            address,
            kind: ObjectKind::Semaphore,
            attributes: 0,
            init_stack: 0,
            first_stack: stack,
            module: 0,
        })
    });
    let record = tls::own().map_or(null(), |words| words.record.load(Relaxed).cast_const());
    let record = record.cast::<ThreadRecord>();
    let number = |word: fn(&ThreadRecord) -> &AtomicU32| {
        // SAFETY: STATE-OWN-LEDGER, kept by `state`: the record lies in this process's ledger,
        // which stays mapped.
        (!record.is_null()).then(|| unsafe { word(&*record) }.load(Relaxed))
    };
    SemaphoreCall {
        ledger,
        lock: lock.unwrap_or(0),
        stack,
        site: site.return_address(),
        thread: number(|record| &record.serial).map_or(Taker::UNKNOWN, Taker::number_of),
        tid: sys::gettid(),
        signal: number(|record| &record.context).unwrap_or(0),
    }
}

/// Returns the tokens of a semaphore, as glibc keeps them since 2.21.
fn tokens(address: u64) -> u32 {
    // SAFETY: RULES-PASSED: the program has passed it to the function that it called, which reads
    // it too; the first word has been the count in all versions that we run with.
    unsafe { &*(address as *const AtomicU32) }.load(Relaxed)
}

/// Does this file's part of [`super::semaphore_begins`].
pub fn begins(me: &Me, semaphore: u64, site: &CallSite, value: Option<u32>, sharing: Sharing) {
    if !WANTED.load(Relaxed) {
        return;
    }
    let stack = me.stack(site);
    let lock = me.ledger.find_lock(semaphore).unwrap_or(0);
    let seen = SemaphoreCall::of(me, lock, stack, site);
    let Some(semaphore) = me.ledger.use_semaphore(lock, UsageOrigin { stack, value, sharing })
    else {
        return;
    };
    match value {
        Some(0) => seen.act(&semaphore, Reason::BeginsTaken, 0, None),
        Some(value @ 2..) => seen.act(&semaphore, Reason::BeginsAbove, value, None),
        Some(1) | None => {}
    }
    semaphore.usage.highest.fetch_max(value.unwrap_or(0), Relaxed);
    if sharing != Sharing::Private {
        seen.act(&semaphore, Reason::Shared, sharing as u32, None);
    }
}

/// Does this file's part of [`super::semaphore_ends`].
pub fn ends(me: &Me, semaphore: u64, site: &CallSite) {
    let known = WANTED.load(Relaxed).then(|| me.ledger.find_lock(semaphore)).flatten();
    let Some(semaphore) = known.and_then(|lock| me.ledger.semaphore(lock)) else { return };
    let Some(taker) = semaphore.give() else { return };
    let is_named = semaphore.usage.origin().is_some_and(|of| of.sharing == Sharing::Named);
    // Of a named one this process has closed its door, nothing more.
    if !is_named && taker.thread != Taker::UNKNOWN {
        let seen = SemaphoreCall::of(me, 0, me.stack(site), site);
        seen.act(&semaphore, Reason::DestroyedTaken, 0, Some(taker));
    }
    semaphore.usage.left.fetch_add(1, Relaxed);
}

/// Does this file's part of [`super::token_taken`].
pub fn taken(address: u64, site: &CallSite, since: u64) {
    let waited = if since == 0 { 0 } else { sys::now().saturating_sub(since) };
    noted(address, site, |seen| {
        let Some(semaphore) = seen.semaphore() else { return };
        let usage = semaphore.usage;
        usage.taken.fetch_add(1, Relaxed);
        if since != 0 {
            usage.contended.fetch_add(1, Relaxed);
            usage.waited.fetch_add(waited, Relaxed);
            usage.longest.fetch_max(waited, Relaxed);
        }
        seen.ledger.add_share(&usage.taken_at, seen.stack, 1, waited);
        let first = usage.first_thread.compare_exchange(0, seen.thread, Relaxed, Relaxed);
        if first.is_err_and(|first| first != seen.thread) {
            usage.several.store(1, Relaxed);
        }
        if seen.thread == Taker::UNKNOWN {
            usage.unjudged.fetch_add(1, Relaxed);
        }
        let before = semaphore.take(seen.taker());
        let left = tokens(address);
        if semaphore.is_new && left != 0 {
            // It began unseen, with more than one.
            seen.act(&semaphore, Reason::RisesAbove, left.saturating_add(1), None);
            usage.highest.fetch_max(left.saturating_add(1), Relaxed);
        } else if let Some(before) = before.filter(|before| before.thread != Taker::UNKNOWN) {
            seen.act(&semaphore, Reason::TakenTwice, 0, Some(before));
        }
    });
}

/// Does this file's part of [`super::token_missed`].
pub fn missed(address: u64, site: &CallSite, outcome: CallOutcome) {
    noted(address, site, |seen| {
        let Some(semaphore) = seen.semaphore() else { return };
        let usage = semaphore.usage;
        let count = match outcome {
            CallOutcome::Refused => &usage.refused,
            CallOutcome::TimedOut => &usage.timed_out,
            CallOutcome::Interrupted => &usage.interrupted,
            CallOutcome::Acquired | CallOutcome::Ruined | CallOutcome::Failed => return,
        };
        count.fetch_add(1, Relaxed);
    });
}

/// Notes that the program is about to give a token.
pub fn given(address: u64, site: &CallSite) {
    noted(address, site, |seen| {
        let Some(semaphore) = seen.semaphore() else { return };
        let usage = semaphore.usage;
        usage.given.fetch_add(1, Relaxed);
        seen.ledger.add_share(&usage.given_at, seen.stack, 1, 0);
        let before = semaphore.give();
        if seen.thread == Taker::UNKNOWN {
            usage.unjudged.fetch_add(1, Relaxed);
            return;
        }
        match before {
            Some(before) if before.thread == seen.thread => return,
            Some(before) if before.thread == Taker::UNKNOWN => {
                usage.unjudged.fetch_add(1, Relaxed);
                return;
            }
            _ => {}
        }
        let there = tokens(address);
        let count = there.saturating_add(1);
        usage.highest.fetch_max(count, Relaxed);
        const COUNTS: [Reason; 3] = [Reason::BeginsAbove, Reason::RisesAbove, Reason::TakenTwice];
        if there != 0 {
            seen.act(&semaphore, Reason::RisesAbove, count, before);
        } else if !semaphore.is_new && !semaphore.is_marked(&COUNTS) {
            // One that is new was taken before anybody looked: in the parent, say.
            seen.act(&semaphore, Reason::GivenByAnother, 0, before);
        }
    });
}

crate::passing! {
    sem_getvalue(2) => value;
}

unsafe extern "C" fn value(semaphore: LockPointer, _: *mut c_int, site: &CallSite) -> usize {
    real::resolve();
    noted(semaphore as u64, site, |seen| {
        if let Some(semaphore) = seen.semaphore() {
            semaphore.usage.reads.fetch_add(1, Relaxed);
            semaphore.usage.read_stack.store(seen.stack, Relaxed);
        }
    });
    REAL.sem_getvalue.address()
}
