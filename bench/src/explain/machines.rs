//! Machines that differ from the one that programs run on in one thing, for what is
//! not a matter of policy: whom a lock names, and how many a release wakes.
//!
//! # Invariants
//! All that is not the one thing is passed on to [`Linux`]. The seats of the table are
//! the only part that cannot be, for their type says of which machine they are: a
//! machine has as many as the processes that measure ever use, at the numbers that
//! [`Linux`] gives out.

use lockstead_core::{
    Address, MAX_SLOTS, Nanos, OnCpu, Outcome, Participant, Platform, Slot, Wait,
};
use lockstead_linux::{Cell, Linux, U32, U64};

/// Seats of a machine. The table of [`Linux`] gives out no higher number before so many
/// threads take locks at a time.
const SEATS: usize = 1024;

/// `machine! { Name, "what it does", me: ..., wake: ... }`.
macro_rules! machine {
    ($(#[$doc:meta])* $name:ident, me: $me:expr, wakes: |$count:ident| $wakes:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Platform for $name {
            type U32 = U32;
            type U64 = U64;
            type Cell<T> = Cell<T>;

            #[inline(always)]
            fn me_or_zero() -> u32 {
                $me
            }

            fn me() -> Slot {
                Linux::me()
            }

            fn participant(slot: Slot) -> &'static Participant<Self> {
                static TABLE: [Participant<$name>; SEATS] =
                    [const { Participant::VACANT }; SEATS];
                &TABLE[slot.get() as usize]
            }

            #[inline(always)]
            fn relax() {
                Linux::relax();
            }

            fn now() -> Nanos {
                Linux::now()
            }

            fn processors() -> u32 {
                Linux::processors()
            }

            fn on_cpu(slot: Slot) -> OnCpu {
                Linux::on_cpu(slot)
            }

            fn restart_releases() {
                Linux::restart_releases();
            }

            fn dozing() -> u32 {
                Linux::dozing()
            }

            fn awake() {
                Linux::awake();
            }

            fn wait32(word: &U32, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                Linux::wait32(word, expected, &passed_on(how))
            }

            fn wait_low(word: &U64, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                Linux::wait_low(word, expected, &passed_on(how))
            }

            fn wait_heir(word: &U64, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                Linux::wait_heir(word, expected, &passed_on(how))
            }

            fn wait_low_owned(word: &U64, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                Linux::wait_low_owned(word, expected, &passed_on(how))
            }

            fn wait_heir_owned(word: &U64, expected: u32, how: &Wait<'_, Self>) -> Outcome {
                Linux::wait_heir_owned(word, expected, &passed_on(how))
            }

            fn address32(word: &U32) -> Address {
                Linux::address32(word)
            }

            fn address_low(word: &U64) -> Address {
                Linux::address_low(word)
            }

            fn wake(address: Address, $count: u32) -> u32 {
                Linux::wake(address, $wakes)
            }

            fn wake_heir(address: Address) {
                Linux::wake_heir(address);
            }
        }
    };
}

/// The same wait, on the real machine.
fn passed_on<'a, P: Platform<U32 = U32>>(how: &Wait<'a, P>) -> Wait<'a, Linux> {
    Wait { deadline: how.deadline, cancel: how.cancel, interruptible: how.interruptible }
}

machine!(
    /// Where a release that wakes anybody wakes all who sleep for the lock.
    Herd, me: Linux::me_or_zero(), wakes: |count| {
        let _ = count;
        u32::MAX
    }
);
machine!(
    /// Where all threads have one name, which is nobody's: for the pair that nobody
    /// disputes, since whoever waited would be told that this one has the lock.
    Nameless, me: MAX_SLOTS, wakes: |count| count
);

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_core::RawMutex;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn a_wake_up_for_one_wakes_all_of_the_herd() {
        const SLEEPERS: u32 = 3;
        let (word, awake) = (U32::new(0), AtomicU32::new(0));
        let address = Herd::address32(&word);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    assert_eq!(Herd::wait32(&word, 0, &Wait::FOREVER), Outcome::Woken);
                    awake.fetch_add(1, Ordering::Relaxed);
                });
            }
            let late = Instant::now() + Duration::from_secs(20);
            // One call that meets all three asleep wakes all three.
            std::thread::sleep(Duration::from_millis(50));
            let mut woken = Herd::wake(address, 1);
            assert!(woken > 1, "{woken}");
            while awake.load(Ordering::Relaxed) < SLEEPERS && Instant::now() < late {
                woken += Herd::wake(address, 1);
                std::thread::yield_now();
            }
            assert_eq!(woken, SLEEPERS);
        });
    }

    #[test]
    fn a_mutex_without_names_has_nobodys() {
        let lock = RawMutex::<Nameless>::new();
        lock.lock(Location::caller()).expect("free");
        assert_eq!(lock.owner().map(Slot::get), Some(MAX_SLOTS));
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        assert!(!lock.is_locked());
    }
}
