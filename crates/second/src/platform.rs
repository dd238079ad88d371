//! This checker's machine as a platform of the core.

use crate::config::Hint;
use crate::futex::{self, HANDOFF};
use crate::place::Place;
use crate::world::world;
use crate::{Model, U32, U64, section};
use lockstead_core::{
    Address, Atomic32, Atomic64, Halves, Nanos, OnCpu, Plain, Platform, Slot, TableEntry,
    WaitBounds, WaitOutcome,
};
use std::sync::atomic::Ordering;

/// Declares the methods of an atomic of the core, each of which is the one of the same name here.
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

    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.with(f)
    }

    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.with_mut(f)
    }
}

/// How many slots there are.
const SLOTS: usize = 8;

impl Platform for Model {
    type U32 = U32;
    type U64 = U64;
    type Cell<T> = crate::Cell<T>;

    fn me_or_zero() -> u32 {
        world().me() as u32 + 1
    }

    fn me() -> Slot {
        Slot::new(Self::me_or_zero()).expect("few threads")
    }

    fn participant(slot: Slot) -> &'static TableEntry<Self> {
        std::thread_local! {
            static TABLE: &'static [TableEntry<Model>; SLOTS] =
                Box::leak(Box::new([const { TableEntry::<Model>::VACANT }; SLOTS]));
        }
        TABLE.with(|slots| &slots[slot.get() as usize - 1])
    }

    fn relax() {
        world().relax();
    }

    fn now() -> Nanos {
        Nanos(world().now())
    }

    fn processors() -> u32 {
        world().config.processors
    }

    fn on_cpu(_slot: Slot) -> OnCpu {
        let world = world();
        match world.config.hint {
            Hint::Always(answer) => answer,
            Hint::Either if world.choose() => OnCpu::No,
            Hint::Either => OnCpu::Yes,
        }
    }

    fn slow_unlocks() -> u32 {
        world().config.slow_unlocks
    }

    fn restart_releases() {
        section::restart();
    }

    fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(Place::narrow(word), 0, expected, how)
    }

    fn wait_low(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(Place::low(word), 0, expected, how)
    }

    fn wait_handoff(word: &U64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
        futex::wait(Place::low(word), HANDOFF, expected, how)
    }

    fn address32(word: &U32) -> Address {
        Address(Place::narrow(word).address())
    }

    fn address_low(word: &U64) -> Address {
        Address(Place::low(word).address())
    }

    fn wake(address: Address, count: u32) -> u32 {
        futex::wake(address.0, count)
    }

    fn wake_handoff(address: Address) {
        futex::wake(address.0 + HANDOFF, u32::MAX);
    }
}
