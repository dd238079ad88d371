//! A machine with one processor and one real thread, for tests of what a lock
//! does step by step.
//!
//! The test plays all participants in turn ([`as_participant`]). A call that
//! would sleep runs the next action of the test's [`script`] instead, which does
//! what the others would do meanwhile and says how the sleep ends; with no
//! action left the test fails, for it would sleep for ever. Each test thread has
//! its own machine.

#![allow(dead_code, reason = "each test file uses its part")]

use lockstead_core::{
    Address, Atomic32, Atomic64, Halves, Nanos, OnCpu, Ordering, Plain, Platform, Site, Slot,
    TableEntry, WaitBounds, WaitOutcome,
};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The machine that has one thread.
pub(crate) struct Alone;

/// Participants of a machine.
const PARTICIPANTS: u32 = 8;

/// Nanoseconds that pass at each look at the clock.
const TICK: u64 = 100;

type Action = Box<dyn FnOnce() -> WaitOutcome>;

thread_local! {
    static TABLE: &'static [TableEntry<Alone>] =
        (0..=PARTICIPANTS).map(|_| TableEntry::<Alone>::VACANT).collect::<Vec<_>>().leak();
    static ME: Cell<u32> = const { Cell::new(1) };
    static NOW: Cell<u64> = const { Cell::new(1) };
    static SCRIPT: RefCell<VecDeque<Action>> = const { RefCell::new(VecDeque::new()) };
    static PAUSE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
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

/// Says what happens during the next pause of a spinner.
pub(crate) fn script_pause(action: impl FnOnce() + 'static) {
    let before = PAUSE.replace(Some(Box::new(action)));
    assert!(before.is_none(), "one pause at a time");
}

/// Returns the number of actions that no sleep and no pause has run yet.
pub(crate) fn unplayed() -> usize {
    SCRIPT.with_borrow(VecDeque::len) + PAUSE.with_borrow(|pause| usize::from(pause.is_some()))
}

/// Returns the wake-ups since the last call, as addresses and counts.
pub(crate) fn wakes() -> Vec<(Address, u32)> {
    WAKES.take()
}

/// Returns the time, without letting any pass.
pub(crate) fn time() -> Nanos {
    Nanos(NOW.get())
}

/// Does as the child of a `fork` by another thread than participant `number` does.
pub(crate) fn lose(number: u32) {
    let participant = Alone::participant(Slot::new(number).expect("a participant"));
    assert!(participant.claim(number));
    participant.lose();
}

fn sleep(matches: bool, how: &WaitBounds<'_, Alone>) -> WaitOutcome {
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

impl Platform for Alone {
    type U32 = U32;
    type U64 = U64;
    type Cell<T> = Field<T>;

    fn me_or_zero() -> u32 {
        ME.get()
    }
    fn me() -> Slot {
        Slot::new(ME.get()).expect("a participant")
    }
    fn participant(slot: Slot) -> &'static TableEntry<Self> {
        &TABLE.with(|table| *table)[slot.get() as usize]
    }
    fn relax() {
        if let Some(action) = PAUSE.take() {
            action();
        }
    }
    fn now() -> Nanos {
        NOW.set(NOW.get() + TICK);
        Nanos(NOW.get())
    }
    fn processors() -> u32 {
        1
    }
    fn on_cpu(_slot: Slot) -> OnCpu {
        OnCpu::Unknown
    }
    fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word.load(Ordering::Relaxed) == expected, how)
    }
    fn wait_low(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep(word.load(Ordering::Relaxed) as u32 == expected, how)
    }
    fn wait_handoff(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        Self::wait_low(word, expected, how)
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

/// A real atomic of this size.
pub(crate) struct U32(AtomicU32);

impl Atomic32 for U32 {
    const ZERO: Self = U32(AtomicU32::new(0));
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(value, order)
    }
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_or(value, order)
    }
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_and(value, order)
    }
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// A real atomic of this size.
pub(crate) struct U64(AtomicU64);

impl Atomic64 for U64 {
    const ZERO: Self = U64(AtomicU64::new(0));
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl Halves for U64 {}

/// A plain field without checks.
pub(crate) struct Field<T>(UnsafeCell<T>);

impl<T> Plain<T> for Field<T> {
    fn new(value: T) -> Self {
        Field(UnsafeCell::new(value))
    }
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
