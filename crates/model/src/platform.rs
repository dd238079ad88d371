//! The model as a `Platform` of the core.

/// Implements the traits of a core for [`Model`](crate::Model) and its atomics.
///
/// `$core` is the crate or module that holds `platform`: the
/// shipped core, or a copy of it with one line broken, which the tests use to
/// see that the models notice.
#[macro_export]
macro_rules! platform {
    ($($core:tt)+) => {
        const _: () = {
            use $($core)+::atomic::{Atomic32, Atomic64, Halves, Ordering, Plain};
            use $($core)+::platform::{Address, Nanos, OnCpu, Outcome, Participant, Platform, Wait};
            use $($core)+::slot::Slot;
            use $crate::hidden as model;

            impl Atomic32 for $crate::U32 {
                const ZERO: Self = $crate::U32::ZERO;
                #[track_caller]
                fn load(&self, order: Ordering) -> u32 {
                    self.load(order)
                }
                #[track_caller]
                fn store(&self, value: u32, order: Ordering) {
                    self.store(value, order);
                }
                #[track_caller]
                fn swap(&self, value: u32, order: Ordering) -> u32 {
                    self.swap(value, order)
                }
                #[track_caller]
                fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
                    self.fetch_add(value, order)
                }
                #[track_caller]
                fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
                    self.fetch_sub(value, order)
                }
                #[track_caller]
                fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
                    self.fetch_or(value, order)
                }
                #[track_caller]
                fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
                    self.fetch_and(value, order)
                }
                #[track_caller]
                fn compare_exchange(
                    &self,
                    current: u32,
                    new: u32,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<u32, u32> {
                    self.compare_exchange(current, new, success, failure)
                }
            }

            impl Atomic64 for $crate::U64 {
                const ZERO: Self = $crate::U64::ZERO;
                #[track_caller]
                fn load(&self, order: Ordering) -> u64 {
                    self.load(order)
                }
                #[track_caller]
                fn store(&self, value: u64, order: Ordering) {
                    self.store(value, order);
                }
                #[track_caller]
                fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                    self.fetch_add(value, order)
                }
                #[track_caller]
                fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
                    self.fetch_sub(value, order)
                }
                #[track_caller]
                fn compare_exchange(
                    &self,
                    current: u64,
                    new: u64,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<u64, u64> {
                    self.compare_exchange(current, new, success, failure)
                }
            }

            impl Halves for $crate::U64 {
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

            impl<T> Plain<T> for $crate::Cell<T> {
                fn new(value: T) -> Self {
                    $crate::Cell::new(value)
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

            fn ends<'a>(how: &Wait<'a, $crate::Model>) -> model::Ends<'a> {
                model::Ends {
                    channel: 0,
                    deadline: how.deadline.map(|deadline| deadline.0),
                    cancel: how.cancel,
                    interruptible: how.interruptible,
                }
            }

            fn outcome(outcome: model::Outcome) -> Outcome {
                match outcome {
                    model::Outcome::Woken => Outcome::Woken,
                    model::Outcome::Changed => Outcome::Changed,
                    model::Outcome::TimedOut => Outcome::TimedOut,
                    model::Outcome::Interrupted => Outcome::Interrupted,
                    model::Outcome::Cancelled => Outcome::Cancelled,
                }
            }

            impl Platform for $crate::Model {
                type U32 = $crate::U32;
                type U64 = $crate::U64;
                type Cell<T> = $crate::Cell<T>;

                fn me_or_zero() -> u32 {
                    $crate::thread() as u32 + 1
                }

                fn me() -> Slot {
                    Slot::new(Self::me_or_zero()).expect("few threads")
                }

                fn participant(slot: Slot) -> &'static Participant<Self> {
                    ::std::thread_local! {
                        static SEATS: &'static [Participant<$crate::Model>; model::SEATS] = {
                            let seats = ::std::boxed::Box::leak(::std::boxed::Box::new(
                                [const { Participant::<$crate::Model>::VACANT }; model::SEATS],
                            ));
                            model::announce_seats(seats);
                            seats
                        };
                    }
                    SEATS.with(|seats| &seats[slot.get() as usize - 1])
                }

                #[track_caller]
                fn relax() {
                    model::relax(::core::panic::Location::caller());
                }

                #[track_caller]
                fn now() -> Nanos {
                    Nanos(model::now(::core::panic::Location::caller()))
                }

                fn processors() -> u32 {
                    model::processors()
                }

                fn on_cpu(_slot: Slot) -> OnCpu {
                    match model::on_cpu() {
                        model::OnCpu::Yes => OnCpu::Yes,
                        model::OnCpu::No => OnCpu::No,
                        model::OnCpu::Unknown => OnCpu::Unknown,
                    }
                }

                fn slow_unlocks() -> u32 {
                    model::slow_unlocks()
                }

                #[track_caller]
                fn restart_releases() {
                    model::restart(::core::panic::Location::caller());
                }

                #[track_caller]
                fn wait32(word: &Self::U32, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                    let site = ::core::panic::Location::caller();
                    outcome(model::wait32(word, expected, &ends(how), site))
                }

                #[track_caller]
                fn wait_low(word: &Self::U64, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                    let site = ::core::panic::Location::caller();
                    outcome(model::wait_low(word, expected, &ends(how), site))
                }

                #[track_caller]
                fn wait_handoff(word: &Self::U64, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                    let site = ::core::panic::Location::caller();
                    let ends = model::Ends { channel: model::HEIR, ..ends(how) };
                    outcome(model::wait_low(word, expected, &ends, site))
                }

                fn address32(word: &Self::U32) -> Address {
                    Address(::core::ptr::from_ref(word).addr())
                }

                fn address_low(word: &Self::U64) -> Address {
                    Address(::core::ptr::from_ref(word).addr())
                }

                #[track_caller]
                fn wake(address: Address, count: u32) -> u32 {
                    model::wake(address.0, count, ::core::panic::Location::caller())
                }

                #[track_caller]
                fn wake_handoff(address: Address) {
                    let site = ::core::panic::Location::caller();
                    model::wake(address.0 + model::HEIR, u32::MAX, site);
                }
            }
        };
    };
}

crate::platform!(lockstead_core);

/// What [`platform!`](crate::platform) builds on; not for use by hand.
#[doc(hidden)]
pub mod hidden {
    use crate::engine::with;
    use crate::{U32, U64, futex};
    use std::panic::Location;

    pub use crate::engine::{MOST_WATCHES, has_ended, here, turn};
    pub use crate::fence::{can_fence, fence_others};
    pub use crate::futex::Ends;
    pub use crate::section::restart;
    pub use crate::space::announce_seats;
    pub use crate::watch::{
        Ended, Watched, add_and_wake, at_death_wake, defer_wake, wait_any, wake_shared,
    };
    pub use lockstead_core::{OnCpu, Outcome};

    pub fn word(word: &U32, expected: u32) -> Watched<'_> {
        Watched { atom: &word.atom, shift: 0, expected, queues: true }
    }

    pub fn low(word: &U64, expected: u32) -> Watched<'_> {
        Watched { atom: &word.atom, shift: 0, expected, queues: true }
    }

    pub fn seen(word: &U32, expected: u32) -> Watched<'_> {
        Watched { atom: &word.atom, shift: 0, expected, queues: false }
    }

    pub fn high(word: &U64, expected: u32) -> Watched<'_> {
        Watched { atom: &word.atom, shift: 32, expected, queues: false }
    }

    /// What [`Ends::channel`] adds to the address for the heir of a lock: it
    /// sleeps in the same word, on the other half as it were.
    pub const HEIR: usize = 4;

    /// Participants: one for each thread, and the one that sets up.
    pub const SEATS: usize = crate::memory::MAX_THREADS;

    pub fn relax(site: &'static Location<'static>) {
        futex::relax(site);
    }

    pub fn now(site: &'static Location<'static>) -> u64 {
        futex::now(site)
    }

    pub fn on_cpu() -> OnCpu {
        futex::on_cpu()
    }

    pub fn slow_unlocks() -> u32 {
        with(|engine| engine.config.slow_unlocks)
    }

    pub fn processors() -> u32 {
        with(|engine| engine.config.processors)
    }

    pub fn wait32(
        word: &U32,
        expected: u32,
        ends: &Ends<'_>,
        site: &'static Location<'static>,
    ) -> Outcome {
        futex::wait(&word.atom, u64::from(u32::MAX), u64::from(expected), ends, site)
    }

    pub fn wait_low(
        word: &U64,
        expected: u32,
        ends: &Ends<'_>,
        site: &'static Location<'static>,
    ) -> Outcome {
        futex::wait(&word.atom, u64::from(u32::MAX), u64::from(expected), ends, site)
    }

    pub fn wake(address: usize, count: u32, site: &'static Location<'static>) -> u32 {
        futex::wake(address, count, site)
    }
}
