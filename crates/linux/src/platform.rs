//! Makes [`Linux`] a platform of the core's locks.

use crate::atomics::{Cell, U32, U64};
use crate::futex::{self, Channel, Scope, SleepUntil};
use crate::linux::Linux;
use crate::{me, membership, observer, owner, processors, table};
use lockstead_core::{
    Address, Awaited, LockError, Nanos, OnCpu, Platform, ShownSleep, Slot, TableEntry, WaitBounds,
    WaitOutcome,
};

impl Platform for Linux {
    type U32 = U32;
    type U64 = U64;
    type Cell<T> = Cell<T>;

    #[inline(always)]
    fn me_or_zero() -> u32 {
        me::me_or_zero()
    }

    #[inline]
    fn me() -> Slot {
        let me = Slot::new(me::me_or_zero()).unwrap_or_else(membership::join);
        owner::show_up(me);
        me
    }

    #[inline]
    fn participant(slot: Slot) -> &'static TableEntry<Self> {
        table::participant(slot)
    }

    #[inline(always)]
    fn relax() {
        core::hint::spin_loop();
    }

    fn give_way() {
        // SAFETY: `sched_yield` takes no argument and touches no memory.
        unsafe { libc::sched_yield() };
    }

    #[inline]
    fn now() -> Nanos {
        futex::now()
    }

    #[inline]
    fn processors() -> u32 {
        processors::effective()
    }

    fn on_cpu(slot: Slot) -> OnCpu {
        owner::on_cpu(slot)
    }

    fn restart_releases() {
        crate::halves::restart();
    }

    #[inline]
    fn holds(at: Address) {
        crate::slice::ask(at);
    }

    #[inline]
    fn lets_go(at: Address) -> bool {
        crate::slice::give_back(at)
    }

    fn begin_sleep() -> u32 {
        membership::begin_sleep()
    }

    fn end_sleep() {
        membership::end_sleep();
        if let Some(me) = Slot::new(me::me_or_zero()) {
            owner::show_up(me);
        }
    }

    #[inline]
    fn wait_begins(awaited: &Awaited) -> bool {
        observer::wait_begins(awaited)
    }

    fn wait_ends(awaited: &Awaited, error: Option<LockError>) {
        observer::wait_ends(awaited, error);
    }

    fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(word.get(), expected, &until(how), Scope::Private)
    }

    fn wait_low(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word, expected, how, Channel::Crowd, None)
    }

    fn wait_handoff(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word, expected, how, Channel::HandOff, None)
    }

    fn wait32_shown(
        word: &U32,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        shown: &ShownSleep,
    ) -> WaitOutcome {
        let heard = (Channel::Crowd, Some(shown));
        futex::wait_at(word.get().as_ptr(), expected, &until(how), Scope::Private, heard)
    }

    fn wait_low_shown(
        word: &U64,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        shown: &ShownSleep,
    ) -> WaitOutcome {
        sleep(word, expected, how, Channel::Crowd, Some(shown))
    }

    fn wait_handoff_shown(
        word: &U64,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        shown: &ShownSleep,
    ) -> WaitOutcome {
        sleep(word, expected, how, Channel::HandOff, Some(shown))
    }

    #[inline]
    fn address32(word: &U32) -> Address {
        Address(word.get().as_ptr().addr())
    }

    #[inline]
    fn address_low(word: &U64) -> Address {
        Address(word.low_half().addr())
    }

    fn wake(address: Address, count: u32) -> u32 {
        futex::wake(address.0, count, Scope::Private)
    }

    fn wake_handoff(address: Address) {
        futex::wake_on(address.0, u32::MAX, Scope::Private, Channel::HandOff);
    }
}

fn sleep(
    word: &U64,
    expected: u32,
    how: &WaitBounds<'_, Linux>,
    channel: Channel,
    shown: Option<&ShownSleep>,
) -> WaitOutcome {
    let wait = |until: &SleepUntil<'_>| {
        futex::wait_at(word.low_half(), expected, until, Scope::Private, (channel, shown))
    };
    let until = until(how);
    if crate::halves::unreliable() {
        return sleep_and_look(&until, wait);
    }
    wait(&until)
}

/// Sleeps, and has the caller look again every millisecond: a release may have missed it.
fn sleep_and_look(
    until: &SleepUntil<'_>,
    wait: impl Fn(&SleepUntil<'_>) -> WaitOutcome,
) -> WaitOutcome {
    let soon = futex::now().after(1_000_000);
    if until.deadline.is_some_and(|deadline| deadline <= soon) {
        return wait(until);
    }
    match wait(&SleepUntil { deadline: Some(soon), ..*until }) {
        // Woken for no reason, which is allowed at any time.
        WaitOutcome::TimedOut => WaitOutcome::Woken,
        outcome => outcome,
    }
}

fn until<'a>(how: &WaitBounds<'a, Linux>) -> SleepUntil<'a> {
    SleepUntil {
        deadline: how.deadline,
        cancel: how.cancel.map(U32::get),
        interruptible: how.interruptible,
    }
}
