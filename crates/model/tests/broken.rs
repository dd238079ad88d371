//! The core with one line broken (see `build.rs`): the models notice.
//!
//! Each scenario passes with the core as it ships and fails in the expected way
//! with the broken one.

use lockstead_model::{Cell, Config, Kind, Model, Scenario, U32, freed};
use std::panic::Location;

/// Declares the broken cores.
macro_rules! cores {
    ($($name:ident),+ $(,)?) => {
        $(
            #[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "broken")]
            mod $name {
                include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
            }

            lockstead_model::platform!(crate::$name);
        )+
    };
}

cores!(
    classic_leaver_wakes_nobody,
    classic_up_looks_again,
    tuned_taker_wakes_nobody,
    tuned_up_looks_again,
    condvar_joins_after_the_release,
    condvar_sequence_stands_still,
    condvar_forgets_the_mutex,
    rwlock_reader_overlooks_next,
    rwlock_reads_the_bell_late,
    rwlock_withdraws_unsettled,
    rwlock_admits_readers_to_writers,
    rwlock_release_looks_again,
    once_ends_in_two_steps,
    once_wakes_one,
    once_runner_looks_again,
);

/// A flag to wait for. A module of its own, for the broken cores' platforms
/// have functions of the same names.
mod flag {
    use lockstead_core::{Platform, Wait};
    use lockstead_model::{Model, Ordering, U32};

    pub(super) fn wait(flag: &U32) {
        while flag.load(Ordering::Acquire) == 0 {
            Model::wait32(flag, 0, &Wait::FOREVER);
        }
    }

    pub(super) fn raise(flag: &U32) {
        flag.store(1, Ordering::Release);
        Model::wake(Model::address32(flag), u32::MAX);
    }
}

/// Checks that `$scenario`, a macro that makes it of a core, fails with the
/// broken one only.
macro_rules! missed {
    ($scenario:ident, $core:ident, $kind:pat, $config:expr) => {
        $scenario!(lockstead_core).check(&$config).expect("correct as shipped");
        let failure = $scenario!($core).check(&$config).expect_err("broken");
        assert!(matches!(failure.kind, $kind), "{failure}");
    };
}

fn two() -> Config {
    Config::new().spurious(0).stale_reads(1)
}

fn three() -> Config {
    two().preemptions(2)
}

/// Two threads that want a permit, and as many `up`s in a row.
macro_rules! two_ups {
    ($core:ident, $semaphore:ty) => {{
        Scenario::new(|| <$semaphore>::new(0).expect("few permits"))
            .threads(2, |s| s.down(Location::caller()))
            .thread(|s| {
                s.up().expect("room");
                s.up().expect("room");
            })
    }};
}

/// A permit that tells another thread to free the semaphore.
macro_rules! completion {
    ($core:ident, $semaphore:ty) => {{
        Scenario::new(|| <$semaphore>::new(0).expect("few permits"))
            .thread(|s| s.up().expect("room"))
            .thread(|s| {
                s.down(Location::caller());
                freed(s);
            })
    }};
}

macro_rules! classic_two_ups {
    ($core:ident) => {
        two_ups!($core, $core::semaphore::ClassicSemaphore<Model>)
    };
}

macro_rules! classic_completion {
    ($core:ident) => {
        completion!($core, $core::semaphore::ClassicSemaphore<Model>)
    };
}

macro_rules! tuned_two_ups {
    ($core:ident) => {
        two_ups!(
            $core,
            $core::semaphore::TunedSemaphore<Model, $core::hooks::Off, $core::policy::NoSpin>
        )
    };
}

macro_rules! tuned_completion {
    ($core:ident) => {
        completion!(
            $core,
            $core::semaphore::TunedSemaphore<Model, $core::hooks::Off, $core::policy::NoSpin>
        )
    };
}

#[test]
fn model_semaphore_misses_broken_variants() {
    missed!(classic_two_ups, classic_leaver_wakes_nobody, Kind::Deadlock, three());
    missed!(classic_completion, classic_up_looks_again, Kind::UseAfterFree, two());
    missed!(tuned_two_ups, tuned_taker_wakes_nobody, Kind::Deadlock, three());
    missed!(tuned_completion, tuned_up_looks_again, Kind::UseAfterFree, two());
}

/// One waits for a thing, with a time-out if so wished, the other brings it.
macro_rules! store {
    ($core:ident, $deadline:expr) => {{
        use $core::{condvar::RawCondvar, hooks::Off, mutex::RawMutex, policy::NoSpin};
        type Mutex = RawMutex<Model, Off, NoSpin>;
        Scenario::new(|| (Mutex::new(), RawCondvar::<Model>::new(), Cell::new(false)))
            .thread(|(mutex, more, thing)| {
                let how =
                    $core::platform::Wait { deadline: $deadline, ..$core::platform::Wait::FOREVER };
                mutex.lock(Location::caller()).expect("not recursive");
                while !thing.get() {
                    // SAFETY: locked above, and again by each wait.
                    if unsafe { more.wait(mutex, &how, Location::caller()) }.is_err() {
                        break;
                    }
                }
                thing.get();
                // SAFETY: as above.
                unsafe { mutex.unlock() };
            })
            .thread(|(mutex, more, thing)| {
                mutex.lock(Location::caller()).expect("not recursive");
                thing.set(true);
                // SAFETY: locked above.
                unsafe { mutex.unlock() };
                more.notify_one();
            })
    }};
}

macro_rules! patient {
    ($core:ident) => {
        store!($core, None)
    };
}

macro_rules! impatient {
    ($core:ident) => {
        store!($core, Some($core::platform::Nanos(100)))
    };
}

#[test]
fn model_condvar_misses_broken_variants() {
    missed!(patient, condvar_joins_after_the_release, Kind::Deadlock, two());
    missed!(patient, condvar_sequence_stands_still, Kind::Deadlock, two());
    missed!(impatient, condvar_forgets_the_mutex, Kind::Race, two().timeouts(1));
}

/// Readers and writers, with the shipped bound on waiting.
macro_rules! book {
    ($core:ident, $readers:expr, $writers:expr) => {{
        use $core::{hooks::Off, policy::NoSpin, rwlock::RawRwLock};
        Scenario::new(|| (RawRwLock::<Model, Off, NoSpin>::new(), Cell::new(0)))
            .threads($readers, |(lock, text)| {
                lock.read(Location::caller()).expect("not recursive");
                text.get();
                // SAFETY: held for reading.
                unsafe { lock.unlock_read() };
            })
            .threads($writers, |(lock, text)| {
                lock.write(Location::caller()).expect("not recursive");
                text.set(text.get() + 1);
                // SAFETY: held for writing.
                unsafe { lock.unlock_write() };
            })
    }};
}

macro_rules! one_of_each {
    ($core:ident) => {
        book!($core, 1, 1)
    };
}

/// A writer that gives up, perhaps after it was promised the lock, and a reader
/// that waits, inside, for another one to come. No timer has to fire for that.
macro_rules! a_writer_withdraws {
    ($core:ident) => {{
        use $core::{hooks::Off, policy::NoSpin, rwlock::RawRwLock};
        Scenario::new(|| (RawRwLock::<Model, Off, NoSpin>::new(), U32::ZERO, U32::ZERO))
            .thread(|(lock, cancel, come)| {
                lock.read(Location::caller()).expect("not recursive");
                flag::raise(cancel);
                flag::wait(come);
                // SAFETY: held for reading.
                unsafe { lock.unlock_read() };
            })
            .thread(|(lock, _, come)| {
                lock.read(Location::caller()).expect("not recursive");
                flag::raise(come);
                // SAFETY: held for reading.
                unsafe { lock.unlock_read() };
            })
            .thread(|(lock, cancel, _)| {
                let how = $core::platform::Wait {
                    cancel: Some(cancel),
                    ..$core::platform::Wait::FOREVER
                };
                if lock.write_lazily(|| how, 0, Location::caller()).is_ok() {
                    // SAFETY: held for writing.
                    unsafe { lock.unlock_write() };
                }
            })
    }};
}

/// The second of two writers frees the lock after its release.
macro_rules! last_writer_frees {
    ($core:ident) => {{
        use $core::{hooks::Off, policy::NoSpin, rwlock::RawRwLock};
        Scenario::new(|| (RawRwLock::<Model, Off, NoSpin>::new(), Cell::new(0))).threads(
            2,
            |(lock, done)| {
                lock.write(Location::caller()).expect("not recursive");
                done.set(done.get() + 1);
                let last = done.get() == 2;
                // SAFETY: held for writing.
                unsafe { lock.unlock_write() };
                if last {
                    freed(lock);
                }
            },
        )
    }};
}

#[test]
fn model_rwlock_misses_broken_variants() {
    missed!(one_of_each, rwlock_reader_overlooks_next, Kind::Deadlock, two());
    missed!(one_of_each, rwlock_reads_the_bell_late, Kind::Deadlock, two());
    missed!(one_of_each, rwlock_admits_readers_to_writers, Kind::Race | Kind::Panic(_), two());
    // Whom the release calls may have come before the call.
    let config = two().spurious(1);
    missed!(last_writer_frees, rwlock_release_looks_again, Kind::UseAfterFree, config);
    let promised = three().stale_reads(0).timeouts(1);
    missed!(a_writer_withdraws, rwlock_withdraws_unsettled, Kind::Deadlock, promised);
}

macro_rules! once {
    ($core:ident) => {{
        use $core::{once::RawOnce, platform::Wait};
        Scenario::new(|| (RawOnce::<Model>::new(), Cell::new(0))).threads(3, |(once, made)| {
            once.call_once(&Wait::FOREVER, || made.set(1)).expect("waits for ever");
            assert_eq!(made.get(), 1);
        })
    }};
}

macro_rules! once_then_freed {
    ($core:ident) => {{
        use $core::{once::RawOnce, platform::Wait};
        Scenario::new(RawOnce::<Model>::new)
            .thread(|once| {
                if let Ok(Some(turn)) = once.begin(false, &Wait::FOREVER) {
                    turn.complete();
                }
            })
            .thread(|once| match once.begin(false, &Wait::FOREVER) {
                Ok(Some(turn)) => turn.complete(),
                waited => {
                    assert!(matches!(waited, Ok(None)));
                    freed(once);
                }
            })
    }};
}

#[test]
fn model_once_misses_broken_variants() {
    missed!(once, once_ends_in_two_steps, Kind::Deadlock, three());
    missed!(once, once_wakes_one, Kind::Deadlock, three());
    missed!(once_then_freed, once_runner_looks_again, Kind::UseAfterFree, two());
}
