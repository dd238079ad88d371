//! The model as a [`Platform`] of the core.

use crate::config::Fault;
use crate::engine::with;
use crate::futex::{self, WaitEnding};
use crate::memory::MAX_THREADS;
use crate::report::Site;
use crate::{Model, U32, U64, section, space};
use lockstead_core::{
    Address, Atomic32, Atomic64, Halves, Nanos, OnCpu, Plain, Platform, Slot, TableEntry,
    WaitBounds, WaitOutcome,
};
use std::panic::Location;
use std::sync::atomic::Ordering;

/// Declares the methods of an atomic of the core, each of which is the model's own of the same
/// name.
macro_rules! atomic_methods {
    ($value:ty: $($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        $(
            #[track_caller]
            fn $name(&self, $($argument: $type),*) $(-> $result)? {
                self.$name($($argument),*)
            }
        )+
        #[track_caller]
        fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            self.compare_exchange(current, new, success, failure)
        }
    };
}

impl Atomic32 for U32 {
    const ZERO: Self = U32::ZERO;
    atomic_methods! { u32:
        load(order: Ordering) -> u32;
        store(value: u32, order: Ordering);
        swap(value: u32, order: Ordering) -> u32;
        fetch_add(value: u32, order: Ordering) -> u32;
        fetch_sub(value: u32, order: Ordering) -> u32;
        fetch_or(value: u32, order: Ordering) -> u32;
        fetch_and(value: u32, order: Ordering) -> u32;
    }
}

impl Atomic64 for U64 {
    const ZERO: Self = U64::ZERO;
    atomic_methods! { u64:
        load(order: Ordering) -> u64;
        store(value: u64, order: Ordering);
        fetch_add(value: u64, order: Ordering) -> u64;
        fetch_sub(value: u64, order: Ordering) -> u64;
    }
}

impl Halves for U64 {
    #[track_caller]
    fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
        self.compare_exchange_low(current, new, order)
    }

    #[track_caller]
    fn fetch_and_low(&self, mask: u32, order: Ordering) -> u32 {
        self.fetch_and(!0 << 32 | u64::from(mask), order) as u32
    }

    #[track_caller]
    fn erase_low(&self, most: u32, order: Ordering) -> bool {
        self.erase_low(most, order)
    }
}

impl<T> Plain<T> for crate::Cell<T> {
    fn new(value: T) -> Self {
        crate::Cell::new(value)
    }

    #[track_caller]
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.with(f)
    }

    #[track_caller]
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.with_mut(f)
    }
}

/// What the hand-off waiter of a lock adds to the address at which it sleeps: it sleeps in the same
/// word as the others, on the other half as it were.
const HANDOFF: usize = 4;

fn sleep_low(
    word: &U64,
    expected: u32,
    how: &WaitBounds<'_, Model>,
    channel: usize,
    site: Site,
) -> WaitOutcome {
    let mut ending = ends(how, channel);
    let look = with(|engine| engine.clock + LOOK_AGAIN);
    let relies = with(|engine| engine.config.fault == Some(Fault::NoLook));
    let looks = section::refused() && !relies && ending.deadline.is_none_or(|end| end > look);
    if looks {
        ending.deadline = Some(look);
    }
    match futex::wait(&word.atom, u64::from(u32::MAX), expected.into(), &ending, site) {
        WaitOutcome::TimedOut if looks => WaitOutcome::Woken,
        outcome => outcome,
    }
}

/// The nanoseconds after which a thread looks again that may not restart sections.
const LOOK_AGAIN: u64 = 1000;

fn ends<'a>(how: &WaitBounds<'a, Model>, channel: usize) -> WaitEnding<'a> {
    WaitEnding {
        channel,
        deadline: how.deadline.map(|deadline| deadline.0),
        cancel: how.cancel,
        interruptible: how.interruptible,
    }
}

impl Platform for Model {
    type U32 = U32;
    type U64 = U64;
    type Cell<T> = crate::Cell<T>;

    fn me_or_zero() -> u32 {
        crate::thread() as u32 + 1
    }

    fn me() -> Slot {
        Slot::new(Self::me_or_zero()).expect("few threads")
    }

    fn participant(slot: Slot) -> &'static TableEntry<Self> {
        std::thread_local! {
            /// One for each thread of a model, and the one that sets up.
            static SLOTS: &'static [TableEntry<Model>; MAX_THREADS] = {
                let slots = Box::leak(Box::new([const { TableEntry::<Model>::VACANT }; MAX_THREADS]));
                space::announce_slots(slots);
                slots
            };
        }
        SLOTS.with(|slots| &slots[slot.get() as usize - 1])
    }

    #[track_caller]
    fn relax() {
        futex::relax(Location::caller());
    }

    #[track_caller]
    fn now() -> Nanos {
        Nanos(futex::now(Location::caller()))
    }

    fn processors() -> u32 {
        with(|engine| engine.config.processors)
    }

    fn on_cpu(_slot: Slot) -> OnCpu {
        futex::on_cpu()
    }

    fn slow_unlocks() -> u32 {
        with(|engine| engine.config.slow_unlocks)
    }

    #[track_caller]
    fn restart_releases() {
        section::restart(Location::caller());
    }

    #[track_caller]
    fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        let site = Location::caller();
        futex::wait(&word.atom, u64::from(u32::MAX), expected.into(), &ends(how, 0), site)
    }

    #[track_caller]
    fn wait_low(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep_low(word, expected, how, 0, Location::caller())
    }

    #[track_caller]
    fn wait_handoff(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        sleep_low(word, expected, how, HANDOFF, Location::caller())
    }

    fn address32(word: &U32) -> Address {
        Address(std::ptr::from_ref(word).addr())
    }

    fn address_low(word: &U64) -> Address {
        Address(std::ptr::from_ref(word).addr())
    }

    #[track_caller]
    fn wake(address: Address, count: u32) -> u32 {
        futex::wake(address.0, count, Location::caller())
    }

    #[track_caller]
    fn wake_handoff(address: Address) {
        futex::wake(address.0 + HANDOFF, u32::MAX, Location::caller());
    }
}
