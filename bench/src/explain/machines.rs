//! Machines that differ from the one that programs run on in one thing, for what is
//! not a matter of policy: whom a lock names, how many a release wakes, and how it is
//! released.
//!
//! # Invariants
//! All that is not the one thing is passed on to [`Linux`]. The slots of the table are
//! the only part that cannot be, for their type says of which machine they are: a
//! machine has as many as the processes that measure ever use, at the numbers that
//! [`Linux`] gives out.

use lockstead_core::{
    Address, Atomic64, Halves, MAX_SLOTS, Nanos, OnCpu, Ordering, Platform, ShownSleep, Slot,
    TableEntry, WaitBounds, WaitOutcome,
};
use lockstead_linux::{Cell, Linux, U32, U64};

/// Slots of a machine. The table of [`Linux`] gives out no higher number before so many
/// threads take locks at a time.
const SLOTS: usize = 1024;

/// A word that is released by a locked instruction.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct LockedU64(U64);

impl Atomic64 for LockedU64 {
    const ZERO: Self = LockedU64(U64::ZERO);

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    #[inline(always)]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }
    #[inline(always)]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }
    #[inline(always)]
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

/// The release is the trait's own: one look and one locked instruction.
impl Halves for LockedU64 {
    #[inline(always)]
    fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
        self.0.compare_exchange_low(current, new, order)
    }

    #[inline]
    fn fetch_and_low(&self, mask: u32, order: Ordering) -> u32 {
        self.0.fetch_and_low(mask, order)
    }
}

/// A word as [`Linux`] knows it.
trait LinuxWord {
    fn real(&self) -> &U64;
}

impl LinuxWord for U64 {
    #[inline(always)]
    fn real(&self) -> &U64 {
        self
    }
}

impl LinuxWord for LockedU64 {
    #[inline(always)]
    fn real(&self) -> &U64 {
        &self.0
    }
}

/// Declares a machine: `machine! { Name, words: ..., me: ..., slow: ..., restarts: ..., wakes:
/// ... }`.
macro_rules! machine {
    ($(#[$doc:meta])* $name:ident, words: $u64:ty, me: $me:expr, slow: $slow:expr,
        restarts: $restarts:expr, wakes: |$count:ident| $wakes:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Platform for $name {
            type U32 = U32;
            type U64 = $u64;
            type Cell<T> = Cell<T>;

            #[inline(always)]
            fn me_or_zero() -> u32 {
                $me
            }

            fn me() -> Slot {
                Linux::me()
            }

            fn participant(slot: Slot) -> &'static TableEntry<Self> {
                static TABLE: [TableEntry<$name>; SLOTS] =
                    [const { TableEntry::<$name>::VACANT }; SLOTS];
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

            fn slow_unlocks() -> u32 {
                $slow
            }

            fn restart_releases() {
                if $restarts {
                    Linux::restart_releases();
                }
            }

            fn holds(at: Address) {
                Linux::holds(at);
            }

            fn lets_go(at: Address) -> bool {
                Linux::lets_go(at)
            }

            fn begin_sleep() -> u32 {
                Linux::begin_sleep()
            }

            fn end_sleep() {
                Linux::end_sleep();
            }

            fn wait32(word: &U32, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
                Linux::wait32(word, expected, &passed_on(how))
            }

            fn wait_low(word: &$u64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
                Linux::wait_low(word.real(), expected, &passed_on(how))
            }

            fn wait_handoff(word: &$u64, expected: u32, how: &WaitBounds<'_, Self>) -> WaitOutcome {
                Linux::wait_handoff(word.real(), expected, &passed_on(how))
            }

            fn wait_low_shown(
                word: &$u64,
                expected: u32,
                how: &WaitBounds<'_, Self>,
                shown: &ShownSleep,
            ) -> WaitOutcome {
                Linux::wait_low_shown(word.real(), expected, &passed_on(how), shown)
            }

            fn wait_handoff_shown(
                word: &$u64,
                expected: u32,
                how: &WaitBounds<'_, Self>,
                shown: &ShownSleep,
            ) -> WaitOutcome {
                Linux::wait_handoff_shown(word.real(), expected, &passed_on(how), shown)
            }

            fn address32(word: &U32) -> Address {
                Linux::address32(word)
            }

            fn address_low(word: &$u64) -> Address {
                Linux::address_low(word.real())
            }

            fn wake(address: Address, $count: u32) -> u32 {
                Linux::wake(address, $wakes)
            }

            fn wake_handoff(address: Address) {
                Linux::wake_handoff(address);
            }
        }
    };
}

/// Makes the same wait for the real machine.
fn passed_on<'a, P: Platform<U32 = U32>>(how: &WaitBounds<'a, P>) -> WaitBounds<'a, Linux> {
    WaitBounds { deadline: how.deadline, cancel: how.cancel, interruptible: how.interruptible }
}

machine!(
    /// A machine on which a release that wakes anybody wakes all who sleep for the lock.
    Herd, words: U64, me: Linux::me_or_zero(), slow: Linux::slow_unlocks(), restarts: true,
    wakes: |count| {
        let _ = count;
        u32::MAX
    }
);
machine!(
    /// A machine on which all threads have one name, which is nobody's: for the pair that nobody
    /// disputes, since whoever waited would be told that this one has the lock.
    Nameless, words: U64, me: MAX_SLOTS, slow: Linux::slow_unlocks(), restarts: true, wakes: |count| count
);
machine!(
    /// A machine on which a release is one locked instruction, so that none has to be restarted,
    /// and nothing is gained by slow unlocks.
    Locked, words: LockedU64, me: Linux::me_or_zero(), slow: 0, restarts: false,
    wakes: |count| count
);
machine!(
    /// A machine on which a contended lock has no slow unlocks to come: whoever goes to sleep
    /// restarts the others' releases.
    Cold, words: U64, me: Linux::me_or_zero(), slow: 0, restarts: true, wakes: |count| count
);

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_core::RawMutex;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    #[test]
    fn a_wake_up_for_one_wakes_all_of_the_herd() {
        const SLEEPERS: u32 = 3;
        let (word, awake) = (U32::new(0), AtomicU32::new(0));
        let address = Herd::address32(&word);
        std::thread::scope(|scope| {
            for _ in 0..SLEEPERS {
                scope.spawn(|| {
                    assert_eq!(Herd::wait32(&word, 0, &WaitBounds::FOREVER), WaitOutcome::Woken);
                    awake.fetch_add(1, Relaxed);
                });
            }
            let late = Instant::now() + Duration::from_secs(20);
            // One call that meets all three asleep wakes all three.
            std::thread::sleep(Duration::from_millis(50));
            let mut woken = Herd::wake(address, 1);
            assert!(woken > 1, "{woken}");
            while awake.load(Relaxed) < SLEEPERS && Instant::now() < late {
                woken += Herd::wake(address, 1);
                std::thread::yield_now();
            }
            assert_eq!(woken, SLEEPERS);
        });
    }

    #[test]
    fn mutexes_of_machines_without_heat_exclude() {
        fn excludes<P: Platform>()
        where
            RawMutex<P>: Send + Sync,
        {
            const TURNS: u64 = 20_000;
            let (lock, count) = (RawMutex::<P>::new(), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..TURNS {
                            lock.lock(Location::caller()).expect("not held by this thread");
                            count.store(count.load(Relaxed) + 1, Relaxed);
                            // SAFETY: by PEER-HELD this thread holds the lock, which it took
                            // above.
                            unsafe { lock.unlock() };
                        }
                    });
                }
            });
            assert_eq!(count.load(Relaxed), 4 * TURNS);
        }
        excludes::<Locked>();
        excludes::<Cold>();
    }

    #[test]
    fn a_mutex_without_names_has_nobodys() {
        let lock = RawMutex::<Nameless>::new();
        lock.lock(Location::caller()).expect("free");
        assert_eq!(lock.owner().map(Slot::get), Some(MAX_SLOTS));
        // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
        unsafe { lock.unlock() };
        assert!(!lock.is_locked());
    }
}
