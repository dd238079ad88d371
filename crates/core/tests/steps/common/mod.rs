//! A machine with one processor and one real thread, for tests of what a lock
//! does step by step.
//!
//! The test plays all participants in turn ([`as_participant`]). A call that
//! would sleep runs the next action of the test's [`script`] instead, which does
//! what the others would do meanwhile and says how the sleep ends; with no
//! action left the test fails, for it would sleep for ever. What others do at other moments, before
//! an exchange or while releases are restarted, is said in the same way. Each test thread has
//! its own machine, which ends a test that looks at words without end.

#![allow(dead_code, reason = "each test file uses its part")]

use lockstead_core::{
    Address, Atomic32, Awaited, LockError, Nanos, OnCpu, Ordering, Platform, ShownSleep, Site,
    Slot, TableEntry, WaitBounds, WaitOutcome,
};
pub(crate) mod contexts;
pub(crate) mod fences;
pub(crate) mod heard;
mod memory;
pub(crate) mod mutexes;
pub(crate) mod segment;
pub(crate) mod shared;
pub(crate) mod shared_mutex;
pub(crate) mod shared_semaphore;

pub(crate) use memory::{Field, U32, U64};

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::Location;

/// The machine that has one thread.
pub(crate) struct Alone;

/// Participants of a machine.
const PARTICIPANTS: u32 = 8;

/// Nanoseconds that pass at each look at the clock, unless a test says otherwise.
pub(crate) const TICK: u64 = 100;

/// Looks at words in one test: more are a loop that does not end.
const LOOKS: u32 = 5_000_000;

/// The part of a lock at which a thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Channel {
    /// The low half of the lock's word.
    Low,
    /// The same, as the hand-off waiter.
    HandOff,
    /// The sleeper's wake sequence, or another word of 32 bits.
    Sequence,
}

/// One call that would sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sleep {
    pub(crate) channel: Channel,
    pub(crate) until: Option<Nanos>,
    /// What an observer may be shown of it.
    pub(crate) shown: Option<ShownSleep>,
    /// Whether the platform had been told before that the thread would sleep.
    pub(crate) counted: bool,
    /// The restarts of releases before it.
    pub(crate) restarts: u32,
}

/// The settings of a machine, and what has happened on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Nanoseconds that pass at each look at the clock.
    pub(crate) tick: u64,
    pub(crate) processors: u32,
    pub(crate) on_cpu: OnCpu,
    pub(crate) slow_unlocks: u32,
    /// The number of sleepers that the platform tells, the caller included.
    pub(crate) sleepers: u32,
    /// Whether an observer takes note of waits.
    pub(crate) observed: bool,
    /// Whether the participant has still to join.
    pub(crate) stranger: bool,
    /// Sleeps that have been announced and have not ended.
    pub(crate) asleep: u32,
    pub(crate) restarts: u32,
    pub(crate) exchanges: u32,
    pub(crate) pauses: u32,
    pub(crate) gave_way: u32,
    /// Nanoseconds for which others have a processor that is given up.
    pub(crate) others: u64,
    pub(crate) looks: u32,
    pub(crate) asked: u32,
    pub(crate) holds: u32,
    pub(crate) lets_go: u32,
    /// The locks that these were called for last.
    pub(crate) holds_at: usize,
    pub(crate) lets_go_at: usize,
    /// Whether letting go lets others have the processor.
    pub(crate) gives_back: bool,
}

const FRESH: Machine = Machine {
    tick: TICK,
    processors: 1,
    on_cpu: OnCpu::Unknown,
    slow_unlocks: 127,
    sleepers: 1,
    observed: false,
    stranger: false,
    asleep: 0,
    restarts: 0,
    exchanges: 0,
    pauses: 0,
    gave_way: 0,
    others: 10_000,
    looks: 0,
    asked: 0,
    holds: 0,
    lets_go: 0,
    holds_at: 0,
    lets_go_at: 0,
    gives_back: false,
};

pub(crate) type Action = Box<dyn FnOnce() -> WaitOutcome>;

/// The address of a word, and what happens before an access there.
type Access = (usize, Box<dyn FnOnce()>);

thread_local! {
    static TABLE: &'static [TableEntry<Alone>] =
        (0..=PARTICIPANTS).map(|_| TableEntry::<Alone>::VACANT).collect::<Vec<_>>().leak();
    static ME: Cell<u32> = const { Cell::new(1) };
    static NOW: Cell<u64> = const { Cell::new(1) };
    static SCRIPT: RefCell<VecDeque<Action>> = const { RefCell::new(VecDeque::new()) };
    static PAUSES: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
    static EXCHANGES: RefCell<VecDeque<Box<dyn FnOnce()>>> =
        const { RefCell::new(VecDeque::new()) };
    static EXCHANGED: RefCell<VecDeque<Box<dyn FnOnce()>>> =
        const { RefCell::new(VecDeque::new()) };
    static ACCESSES: RefCell<Vec<Access>> =
        const { RefCell::new(Vec::new()) };
    static EXCHANGES32: RefCell<VecDeque<Box<dyn FnOnce()>>> =
        const { RefCell::new(VecDeque::new()) };
    static RESTARTS: RefCell<VecDeque<Box<dyn FnOnce()>>> = const { RefCell::new(VecDeque::new()) };
    static MACHINE: Cell<Machine> = const { Cell::new(FRESH) };
    static SLEEPS: RefCell<Vec<Sleep>> = const { RefCell::new(Vec::new()) };
    static TOLD: RefCell<Vec<(Awaited, Option<Option<LockError>>)>> =
        const { RefCell::new(Vec::new()) };
    static WAKES: RefCell<Vec<(Address, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the caller.
#[track_caller]
pub(crate) fn here() -> Site {
    Location::caller()
}

/// Acts as participant `number` for the time of `f`. Participant 1 is the one
/// a test starts as.
pub(crate) fn as_participant<R>(number: u32, f: impl FnOnce() -> R) -> R {
    assert!((1..=PARTICIPANTS).contains(&number));
    let before = ME.replace(number);
    let result = f();
    ME.set(before);
    result
}

/// Says what happens during the next sleep that has no action yet.
pub(crate) fn script(action: impl FnOnce() -> WaitOutcome + 'static) {
    SCRIPT.with_borrow_mut(|script| script.push_back(Box::new(action)));
}

/// Takes the actions of sleeps away, so that what is done meanwhile has its own.
pub(crate) fn take_script() -> VecDeque<Action> {
    SCRIPT.take()
}

/// Puts them back.
pub(crate) fn give_script(later: VecDeque<Action>) {
    assert!(SCRIPT.replace(later).is_empty());
}

/// Says what happens during the next pause of a spinner that has no action yet.
pub(crate) fn script_pause(action: impl FnOnce() + 'static) {
    PAUSES.with_borrow_mut(|pauses| pauses.push_back(Box::new(action)));
}

/// Says what happens just before the next step that reads and writes a word of 64 bits and that has no action yet.
pub(crate) fn script_exchange(action: impl FnOnce() + 'static) {
    EXCHANGES.with_borrow_mut(|exchanges| exchanges.push_back(Box::new(action)));
}

/// Says what happens just before the next exchange of 32 bits that has no action yet.
pub(crate) fn script_exchange32(action: impl FnOnce() + 'static) {
    EXCHANGES32.with_borrow_mut(|exchanges| exchanges.push_back(Box::new(action)));
}

/// Says what happens just after the next such step of 64 bits that has no action yet.
pub(crate) fn script_exchanged(action: impl FnOnce() + 'static) {
    EXCHANGED.with_borrow_mut(|exchanged| exchanged.push_back(Box::new(action)));
}

/// Says what happens while releases are restarted for the next time that has no action yet.
pub(crate) fn script_restart(action: impl FnOnce() + 'static) {
    RESTARTS.with_borrow_mut(|restarts| restarts.push_back(Box::new(action)));
}

/// Says what happens just before the next access to this word that has no action yet.
pub(crate) fn script_access<W>(word: &W, action: impl FnOnce() + 'static) {
    let at = std::ptr::from_ref(word).addr();
    ACCESSES.with_borrow_mut(|accesses| accesses.push((at, Box::new(action))));
}

/// Runs the action for this access, if there is one. What that does has no actions of its own.
fn access<W>(word: &W) {
    let at = std::ptr::from_ref(word).addr();
    let action = ACCESSES.with_borrow_mut(|accesses| {
        let found = accesses.iter().position(|it| it.0 == at)?;
        Some(accesses.remove(found).1)
    });
    let Some(action) = action else { return };
    let later = ACCESSES.take();
    action();
    assert!(ACCESSES.replace(later).is_empty());
}

type Actions = std::thread::LocalKey<RefCell<VecDeque<Box<dyn FnOnce()>>>>;

/// Runs the next action. What that does has no actions of its own.
fn play(actions: &'static Actions) {
    let Some(action) = actions.with_borrow_mut(VecDeque::pop_front) else { return };
    let later = actions.take();
    action();
    assert!(actions.replace(later).is_empty());
}

/// Returns the number of actions that nothing has run yet.
pub(crate) fn unplayed() -> usize {
    let others = [&PAUSES, &EXCHANGES, &EXCHANGED, &EXCHANGES32, &RESTARTS];
    SCRIPT.with_borrow(VecDeque::len)
        + ACCESSES.with_borrow(Vec::len)
        + others.into_iter().map(|actions| actions.with_borrow(VecDeque::len)).sum::<usize>()
}

/// Returns the settings of the machine and what has happened on it.
pub(crate) fn machine() -> Machine {
    MACHINE.get()
}

/// Changes the settings of the machine.
pub(crate) fn set(change: impl FnOnce(&mut Machine)) {
    let mut machine = MACHINE.get();
    change(&mut machine);
    MACHINE.set(machine);
}

/// Returns the calls since the last time that would sleep.
pub(crate) fn sleeps() -> Vec<Sleep> {
    SLEEPS.take()
}

/// Returns what an observer was told of waits since the last time: that one begins, or how it ends.
pub(crate) fn told() -> Vec<(Awaited, Option<Option<LockError>>)> {
    TOLD.take()
}

/// Returns the wake-ups since the last call, as addresses and counts.
pub(crate) fn wakes() -> Vec<(Address, u32)> {
    WAKES.take()
}

/// Returns the time, without letting any pass.
pub(crate) fn time() -> Nanos {
    Nanos(NOW.get())
}

/// Lets so many nanoseconds pass.
pub(crate) fn pass(nanoseconds: u64) {
    NOW.set(NOW.get() + nanoseconds);
}

/// Does as the child of a `fork` by another thread than participant `number` does.
pub(crate) fn lose(number: u32) {
    let participant = Alone::participant(Slot::new(number).expect("a participant"));
    assert!(participant.claim(number));
    participant.lose();
}

fn sleep(
    matches: bool,
    how: &WaitBounds<'_, Alone>,
    channel: Channel,
    shown: Option<&ShownSleep>,
) -> WaitOutcome {
    look();
    let Machine { asleep, restarts, .. } = machine();
    let (until, shown) = (how.deadline, shown.copied());
    SLEEPS.with_borrow_mut(|sleeps| {
        sleeps.push(Sleep { channel, until, shown, counted: asleep > 0, restarts });
    });
    if !matches {
        return WaitOutcome::Changed;
    }
    if how.cancelled() {
        return WaitOutcome::Cancelled;
    }
    if how.deadline.is_some_and(|deadline| NOW.get() >= deadline.0) {
        return WaitOutcome::TimedOut;
    }
    let action = SCRIPT.with_borrow_mut(VecDeque::pop_front);
    let me = ME.get();
    let outcome = action.expect("sleeps, and nothing will ever wake it")();
    assert_eq!(ME.get(), me);
    if outcome == WaitOutcome::TimedOut {
        let deadline = how.deadline.expect("a sleep without a deadline cannot time out");
        NOW.set(NOW.get().max(deadline.0));
    }
    outcome
}

fn look() {
    set(|machine| machine.looks += 1);
    assert!(machine().looks < LOOKS, "looks without end");
}

/// Takes a step that reads a word of 64 bits and writes it.
fn step<R>(it: impl FnOnce() -> R) -> R {
    look();
    set(|machine| machine.exchanges += 1);
    play(&EXCHANGES);
    let result = it();
    play(&EXCHANGED);
    result
}

impl Platform for Alone {
    type U32 = U32;
    type U64 = U64;
    type Cell<T> = Field<T>;

    fn me_or_zero() -> u32 {
        if machine().stranger { 0 } else { ME.get() }
    }
    fn me() -> Slot {
        set(|machine| machine.stranger = false);
        Slot::new(ME.get()).expect("a participant")
    }
    fn participant(slot: Slot) -> &'static TableEntry<Self> {
        &TABLE.with(|table| *table)[slot.get() as usize]
    }
    fn relax() {
        set(|machine| machine.pauses += 1);
        play(&PAUSES);
    }
    fn give_way() {
        set(|machine| machine.gave_way += 1);
        NOW.set(NOW.get() + machine().others);
        play(&PAUSES);
    }
    fn now() -> Nanos {
        NOW.set(NOW.get() + machine().tick);
        Nanos(NOW.get())
    }
    fn processors() -> u32 {
        machine().processors
    }
    fn on_cpu(_slot: Slot) -> OnCpu {
        set(|machine| machine.asked += 1);
        machine().on_cpu
    }
    fn slow_unlocks() -> u32 {
        machine().slow_unlocks
    }
    fn restart_releases() {
        set(|machine| machine.restarts += 1);
        play(&RESTARTS);
    }
    fn holds(at: Address) {
        set(|machine| (machine.holds, machine.holds_at) = (machine.holds + 1, at.0));
    }
    fn lets_go(at: Address) -> bool {
        set(|machine| (machine.lets_go, machine.lets_go_at) = (machine.lets_go + 1, at.0));
        machine().gives_back
    }
    fn begin_sleep() -> u32 {
        set(|machine| machine.asleep += 1);
        machine().sleepers
    }
    fn end_sleep() {
        set(|machine| machine.asleep -= 1);
    }
    fn wait_begins(awaited: &Awaited) -> bool {
        TOLD.with_borrow_mut(|told| told.push((*awaited, None)));
        machine().observed
    }
    fn wait_ends(awaited: &Awaited, error: Option<LockError>) {
        TOLD.with_borrow_mut(|told| told.push((*awaited, Some(error))));
    }
    fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word.load(Ordering::Relaxed) == expected, how, Channel::Sequence, None)
    }
    fn wait_low(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word.low() == expected, how, Channel::Low, None)
    }
    fn wait_handoff(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word.low() == expected, how, Channel::HandOff, None)
    }
    fn wait32_shown(
        word: &U32,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        shown: &ShownSleep,
    ) -> WaitOutcome {
        sleep(word.load(Ordering::Relaxed) == expected, how, Channel::Sequence, Some(shown))
    }
    fn wait_low_shown(
        word: &U64,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        shown: &ShownSleep,
    ) -> WaitOutcome {
        sleep(word.low() == expected, how, Channel::Low, Some(shown))
    }
    fn wait_handoff_shown(
        word: &U64,
        expected: u32,
        how: &WaitBounds<'_, Self>,
        shown: &ShownSleep,
    ) -> WaitOutcome {
        sleep(word.low() == expected, how, Channel::HandOff, Some(shown))
    }
    fn address32(word: &U32) -> Address {
        Address(std::ptr::from_ref(word).addr())
    }
    fn address_low(word: &U64) -> Address {
        Address(std::ptr::from_ref(word).addr())
    }
    fn wake(address: Address, count: u32) -> u32 {
        WAKES.with_borrow_mut(|wakes| wakes.push((address, count)));
        0
    }
    fn wake_handoff(address: Address) {
        Self::wake(address, u32::MAX);
    }
}
