//! Sleeping on several words at once, and waking.
//!
//! # Role
//! The half of [`RobustMachine`] that is futex calls.
//!
//! # Protocol
//! `futex_waitv` queues at the words in the order of its vector, compares each as it
//! queues there, and returns the *highest* index of those at which it was woken (DEATH-WAIT-ORDER).
//! The cancellation word, which nobody else reports, comes first, so that it never
//! hides that another one was woken.
//!
//! Where the call is refused, and for sleeps that report signal handlers (`futex_waitv`
//! is restarted after those with `SA_RESTART`), the thread sleeps on the first word
//! only, for at most `GLANCE`, and looks again: it polls, and notices all the same. A program whose
//! handlers are all without `SA_RESTART` says so ([`handlers_end_calls`]), and does not poll.
//!
//! # Wake-ups that others take
//! Whoever may map the file, be it for reading only, can sleep at its words, or have the kernel
//! move those who sleep there, and so take wake-ups away. A sleeper that nobody woke for a second,
//! and that then finds what it slept for, has met that ([`RobustMachine::missed`]); the sleeps of
//! its process last for at most `GLANCE` during the next minute.
//!
//! # Errors of the kernel
//! As in [`futex`]; none of them consumes a wake-up.

use super::{list, member, oracle, page, registry::AttachedSegment, release, wake_op};
use crate::atomics::{U32, U64};
use crate::futex::{self, Channel, Scope, SleepUntil};
use crate::linux::Linux;
use crate::observer;
use crate::sys::{KeepErrno, errno};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use lockstead_core::robust::{
    Addend, Life, RobustError, RobustMachine, RobustWait, WatchedWord, Woken,
};
use lockstead_core::{Nanos, WaitBounds, WaitOutcome};

/// The longest sleep where the kernel cannot watch all words, in nanoseconds.
const GLANCE: u64 = 20_000_000;

/// The number of words that one call can watch, with a cancellation word.
const MOST: usize = 128;

/// The time for which sleeps stay short after a wake-up was missed, in nanoseconds.
const WARY: u64 = 60_000_000_000;

/// The time until which the process is wary, as [`futex::now`] tells it; 0: none was missed.
static WARY_UNTIL: AtomicU64 = AtomicU64::new(0);

/// Whether handlers of this process end system calls.
static HANDLERS_END_CALLS: AtomicBool = AtomicBool::new(false);

/// Says, for the rest of the process's life, that the signal handlers that are to end waits are
/// installed without `SA_RESTART`: waits that a handler ends then sleep on all their words, where
/// they would look every 20 milliseconds otherwise. A handler with `SA_RESTART` does not end them.
///
/// ```
/// lockstead_linux::shared::handlers_end_calls();
/// ```
pub fn handlers_end_calls() {
    HANDLERS_END_CALLS.store(true, Ordering::Relaxed);
}

/// Returns the moment at which a sleep is over that is to be short.
fn soon() -> Option<Nanos> {
    let until = WARY_UNTIL.load(Ordering::Relaxed);
    if until == 0 {
        return None;
    }
    let now = futex::now();
    (now.0 < until).then(|| now.after(GLANCE))
}

impl RobustMachine for Linux {
    type Segment = AttachedSegment;

    const MOST_WATCHES: usize = MOST - 1;

    /// Returns a second: the kernel's word is good, but for the cases that `oracle` names.
    #[inline(always)]
    fn trust() -> Option<u64> {
        Some(1_000_000_000)
    }

    const SPINS: u32 = 40;

    #[inline(always)]
    fn subtracts() -> bool {
        release::subtracts()
    }

    /// The length of a rest: with the kernel's slack, 50 to 100 microseconds: some fifty sections
    /// of those that are shorter than the way to sleep.
    const REST: Option<u64> = Some(50_000);

    fn rest(nanos: u64) -> Woken {
        let _errno = KeepErrno::new();
        let born = page::born();
        let time = libc::timespec { tv_sec: 0, tv_nsec: nanos.min(999_999_999) as i64 };
        // Not by the libc's function, where a thread can be cancelled. SAFETY: SYSCALL-LIVE: a live
        // timespec; the call is asked for no remainder.
        unsafe {
            let clock = libc::CLOCK_MONOTONIC;
            let rest = core::ptr::null_mut::<libc::timespec>();
            libc::syscall(libc::SYS_clock_nanosleep, clock, 0, &raw const time, rest);
        }
        if page::is_copy_of(born) { Woken::Copied } else { Woken::Changed }
    }

    fn wait_any(watches: &[WatchedWord<'_, Self>], how: &WaitBounds<'_, Self>) -> Woken {
        let _errno = KeepErrno::new();
        let born = page::born();
        let restarts = how.interruptible && !HANDLERS_END_CALLS.load(Ordering::Relaxed);
        let woken = if restarts || futex::waitv_refused() {
            glance(watches, how)
        } else {
            wait_all(watches, how).unwrap_or_else(|| {
                futex::refuse_waitv(true);
                glance(watches, how)
            })
        };
        if page::is_copy_of(born) {
            // A signal handler has forked: this is the child, who is nobody here, or somebody else
            // by now, because the handler has used a lock.
            return Woken::Copied;
        }
        woken
    }

    fn wake_shared(word: *const U32, count: u32) -> u32 {
        futex::wake(word.addr(), count, Scope::Shared)
    }

    fn add_and_wake(word: &U32, add: Addend, count: u32) {
        wake_op::add_and_wake(word.get(), add, count);
    }

    fn at_death_wake(word: Option<NonNull<U32>>) -> Option<NonNull<U32>> {
        list::name(word)
    }

    #[inline]
    fn shared_wait_begins(wait: &RobustWait) -> bool {
        observer::shared_wait_begins(wait)
    }

    fn shared_wait_ends(wait: &RobustWait, error: Option<RobustError>) {
        observer::shared_wait_ends(wait, error);
    }

    fn missed() {
        WARY_UNTIL.store(futex::now().0.saturating_add(WARY), Ordering::Relaxed);
    }

    fn defer_wake(word: &U32) -> bool {
        list::defer_wake(word)
    }

    fn has_ended(segment: &AttachedSegment, slot: u32, life: Life) -> bool {
        oracle::ask_about_own(segment);
        oracle::has_ended(segment, slot, life)
    }

    fn is_caller(segment: &AttachedSegment, slot: u32, life: Life) -> bool {
        member::is_caller(segment, slot, life)
    }
}

/// Returns the address of a watched word, what it is to hold, and who can wake there: what is only
/// compared is slept on by this process alone, in which nobody wakes it.
fn place(watch: &WatchedWord<'_, Linux>) -> (*const u32, u32, Scope) {
    match *watch {
        WatchedWord::Word(word, value) => (word.get().as_ptr().cast_const(), value, Scope::Shared),
        WatchedWord::Low(word, value) => (word.low_half(), value, Scope::Shared),
        WatchedWord::High(word, value) => (high_half(word), value, Scope::Private),
        WatchedWord::Seen(word, value) => (word.get().as_ptr().cast_const(), value, Scope::Private),
    }
}

fn high_half(word: &U64) -> *const u32 {
    let low = word.low_half();
    if cfg!(target_endian = "big") { low.wrapping_sub(1) } else { low.wrapping_add(1) }
}

/// Sleeps on all the words. Returns `None` where the kernel, or a filter, does not offer that.
fn wait_all(watches: &[WatchedWord<'_, Linux>], how: &WaitBounds<'_, Linux>) -> Option<Woken> {
    let mut vector: [MaybeUninit<futex::FutexWaitv>; MOST] =
        [const { MaybeUninit::uninit() }; MOST];
    let mut used = 0;
    let mut push = |address: *const u32, value: u32, scope: Scope| {
        if let Some(entry) = vector.get_mut(used) {
            entry.write(futex::FutexWaitv::new(address, value, scope));
            used += 1;
        }
    };
    if let Some(cancel) = how.cancel {
        push(cancel.get().as_ptr(), 0, Scope::Private);
    }
    for watch in watches {
        let (address, value, scope) = place(watch);
        push(address, value, scope);
    }
    // SAFETY: the loop above has written the first `used` entries.
    let vector = unsafe { core::slice::from_raw_parts(vector.as_ptr().cast(), used) };
    let first = usize::from(how.cancel.is_some());
    let soon = soon().filter(|soon| how.deadline.is_none_or(|deadline| *soon < deadline));
    let result = futex::wait_vector(vector, soon.or(how.deadline));
    if let Ok(index) = result {
        return Some(match index.checked_sub(first) {
            Some(index) => Woken::At(index),
            None if how.cancelled() => Woken::Cancelled,
            None => Woken::Changed,
        });
    }
    Some(match errno() {
        libc::ETIMEDOUT if soon.is_some() => Woken::Unsure,
        libc::ETIMEDOUT => Woken::TimedOut,
        libc::EINTR => Woken::Interrupted,
        libc::ENOSYS | libc::EPERM | libc::EACCES => return None,
        libc::EAGAIN => Woken::Changed,
        _ => {
            futex::refused();
            Woken::Changed
        }
    })
}

/// Sleeps on the first word, for a short while.
fn glance(watches: &[WatchedWord<'_, Linux>], how: &WaitBounds<'_, Linux>) -> Woken {
    if how.cancelled() {
        return Woken::Cancelled;
    }
    let differs = |watch: &WatchedWord<'_, Linux>| {
        let (address, value, _) = place(watch);
        // SAFETY: the address is that of an atomic, or of half of one, which the watch borrows.
        let word = unsafe { AtomicU32::from_ptr(address.cast_mut()) };
        word.load(Ordering::Relaxed) != value
    };
    if watches.iter().any(differs) {
        return Woken::Changed;
    }
    let Some(first) = watches.first() else {
        return Woken::Changed;
    };
    let (address, value, _) = place(first);
    let soon = futex::now().after(GLANCE);
    let end = how.deadline.map_or(soon, |deadline| deadline.min(soon));
    let until = SleepUntil { deadline: Some(end), cancel: None, interruptible: how.interruptible };
    match futex::wait_at(address, value, &until, Scope::Shared, (Channel::Crowd, None)) {
        WaitOutcome::Woken => Woken::At(0),
        WaitOutcome::TimedOut if how.deadline == Some(end) => Woken::TimedOut,
        WaitOutcome::Interrupted => Woken::Interrupted,
        _ => Woken::Changed,
    }
}
