//! The simulated machine as a `Platform` of the core.
//!
//! What a wait and a wake-up cost stands in `futex`.

use crate::engine::StepKind;
use crate::engine::calls;
use crate::engine::task::TaskState;
use crate::engine::words::{Sim, U32, U64};
use crate::engine::world::with;
use crate::futex;
use core::sync::atomic::Ordering;
use lockstead_core::{
    Address, Atomic32, Atomic64, Halves, Nanos, OnCpu, Plain, Platform, Slot, TableEntry,
    WaitBounds, WaitOutcome,
};
use std::cell::UnsafeCell;

/// The number of slow unlocks to come after a contended one, as natively.
const SLOW_UNLOCKS: u32 = 127;

/// The number that is added to an address for the threads that wait for a hand-off there.
const HANDOFF: usize = 1;

impl Atomic32 for U32 {
    const ZERO: Self = U32::ZERO;
    fn load(&self, _: Ordering) -> u32 {
        self.read()
    }
    fn store(&self, value: u32, _: Ordering) {
        self.write(value);
    }
    fn swap(&self, value: u32, _: Ordering) -> u32 {
        self.update(|_| value)
    }
    fn fetch_add(&self, value: u32, _: Ordering) -> u32 {
        self.update(|old| old.wrapping_add(value))
    }
    fn fetch_sub(&self, value: u32, _: Ordering) -> u32 {
        self.update(|old| old.wrapping_sub(value))
    }
    fn fetch_or(&self, value: u32, _: Ordering) -> u32 {
        self.update(|old| old | value)
    }
    fn fetch_and(&self, value: u32, _: Ordering) -> u32 {
        self.update(|old| old & value)
    }
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        _: Ordering,
        _: Ordering,
    ) -> Result<u32, u32> {
        self.replace(current, new)
    }
}

impl Atomic64 for U64 {
    const ZERO: Self = U64::ZERO;
    fn load(&self, _: Ordering) -> u64 {
        self.read()
    }
    fn store(&self, value: u64, _: Ordering) {
        self.write(value);
    }
    fn fetch_add(&self, value: u64, _: Ordering) -> u64 {
        self.update(|old| old.wrapping_add(value))
    }
    fn fetch_sub(&self, value: u64, _: Ordering) -> u64 {
        self.update(|old| old.wrapping_sub(value))
    }
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _: Ordering,
        _: Ordering,
    ) -> Result<u64, u64> {
        self.replace(current, new)
    }
}

/// The halves of the simulator's word. Where releases can be restarted, `erase_low` is as cheap as
/// a store and loses nothing; the cost of restarting is paid by [`Platform::restart_releases`]. On
/// the machines of the documents releases cannot be restarted: there `erase_low` is an exchange.
impl Halves for U64 {
    fn compare_exchange_low(&self, current: u32, new: u32, _: Ordering) -> bool {
        let fits = |old: u64| old as u32 == current;
        fits(self.update(|old| if fits(old) { old & (!0 << 32) | u64::from(new) } else { old }))
    }
    fn fetch_and_low(&self, mask: u32, _: Ordering) -> u32 {
        self.update(|old| old & ((!0 << 32) | u64::from(mask))) as u32
    }
    fn erase_low(&self, most: u32, order: Ordering) -> bool {
        let seen = self.load(Ordering::Relaxed) as u32;
        if seen > most {
            return false;
        }
        if !with(|w| w.restartable()) {
            return self.compare_exchange_low(seen, 0, order);
        }
        let fits = |old: u64| old as u32 == seen;
        let erase = |old: u64| if fits(old) { old & !0 << 32 } else { old };
        let done = fits(self.update_quietly(erase));
        with(|w| w.was_plain());
        self.note(StepKind::Store, self.get());
        done
    }
}

/// A plain field, which costs nothing itself: the lines around it do.
pub struct PlainField<T>(UnsafeCell<T>);

impl<T> Plain<T> for PlainField<T> {
    fn new(value: T) -> Self {
        PlainField(UnsafeCell::new(value))
    }
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        calls::pay(1.0);
        f(self.0.get())
    }
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        calls::pay(1.0);
        f(self.0.get())
    }
}

/// Returns what the kernel finds in a word, at its cost if `paid`.
fn seen32(word: &U32, paid: bool) -> u32 {
    if paid { word.read() } else { word.get() }
}

fn seen_low(word: &U64, paid: bool) -> u32 {
    (if paid { word.read() } else { word.get() }) as u32
}

impl Platform for Sim {
    type U32 = U32;
    type U64 = U64;
    type Cell<T> = PlainField<T>;

    fn me_or_zero() -> u32 {
        calls::me() as u32 + 1
    }

    fn me() -> Slot {
        Slot::new(Self::me_or_zero()).expect("few tasks")
    }

    fn participant(slot: Slot) -> &'static TableEntry<Self> {
        with(|w| w.slots[slot.get() as usize - 1])
    }

    fn relax() {
        with(|w| {
            let pause = w.machine.cost.pause;
            let current = w.current;
            w.tasks[current].debt += pause;
        });
    }

    fn relax_for(turns: u32) {
        with(|w| {
            let pauses = w.machine.cost.pause * u64::from(turns);
            let current = w.current;
            w.tasks[current].debt += pauses;
        });
    }

    fn give_way() {
        calls::give_way();
    }

    fn now() -> Nanos {
        with(|w| {
            let cost = w.machine.kernel.clock;
            w.pay(cost);
            Nanos(w.local_now() / 1000)
        })
    }

    fn processors() -> u32 {
        with(|w| w.machine.cpus() as u32)
    }

    fn on_cpu(slot: Slot) -> OnCpu {
        // Natively two readings of the owner's processor clock.
        with(|w| {
            if w.blind {
                return OnCpu::Unknown;
            }
            let cost = 2.0 * w.machine.kernel.call;
            w.pay(cost);
            let task = &w.tasks[slot.get() as usize - 1];
            if task.state == TaskState::Running { OnCpu::Yes } else { OnCpu::No }
        })
    }

    fn slow_unlocks() -> u32 {
        if with(|w| w.cold) { 0 } else { SLOW_UNLOCKS }
    }

    fn restart_releases() {
        with(|w| {
            if w.restartable() {
                let cost = w.machine.kernel.call + w.machine.kernel.restart;
                w.pay(cost);
            }
        });
        calls::settle();
    }

    fn begin_sleep() -> u32 {
        with(|w| {
            w.asleep += 1;
            w.asleep
        })
    }

    fn end_sleep() {
        with(|w| w.asleep -= 1);
    }

    fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(word.address(), |paid| seen32(word, paid) == expected, how)
    }

    fn wait_low(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(word.address(), |paid| seen_low(word, paid) == expected, how)
    }

    fn wait_handoff(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(word.address() + HANDOFF, |paid| seen_low(word, paid) == expected, how)
    }

    fn address32(word: &U32) -> Address {
        Address(word.address())
    }

    fn address_low(word: &U64) -> Address {
        Address(word.address())
    }

    fn wake(address: Address, count: u32) -> u32 {
        futex::wake(address.0, count)
    }

    fn wake_handoff(address: Address) {
        futex::wake(address.0 + HANDOFF, u32::MAX);
    }
}
