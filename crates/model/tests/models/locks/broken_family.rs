//! The semaphores, the condition variable, the reader-writer lock and once, each with one step
//! broken: the models notice.

use lockstead_core::policy::NoSpin;
use lockstead_core::{
    ClassicSemaphore, Nanos, Off, Platform, RawCondvar, RawMutex, RawOnce, RawRwLock,
    TunedSemaphore, WaitBounds,
};
use lockstead_model::{Cell, Config, FailureKind, Model, Ordering, Scenario, U32, freed};
use std::panic::Location;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;

fn two() -> Config {
    Config::new().spurious(0).stale_reads(1)
}

fn three() -> Config {
    two().preemptions(2)
}

/// Makes the scenario of two threads that want a permit, and as many `up`s in a row.
macro_rules! two_ups {
    ($semaphore:ty) => {
        Scenario::new(|| <$semaphore>::new(0).expect("few permits"))
            .threads(2, |s| s.down(Location::caller()))
            .thread(|s| {
                s.up().expect("room");
                s.up().expect("room");
            })
    };
}

/// Makes the scenario of a permit that tells another thread to free the semaphore.
macro_rules! completion {
    ($semaphore:ty) => {
        Scenario::new(|| <$semaphore>::new(0).expect("few permits"))
            .thread(|s| s.up().expect("room"))
            .thread(|s| {
                s.down(Location::caller());
                freed(s);
            })
    };
}

#[test]
fn model_semaphore_misses_broken_variants() {
    type Classic = ClassicSemaphore<Model>;
    type Tuned = TunedSemaphore<Model, Off, NoSpin>;
    missed!(two_ups!(Classic), classic_leaver_wakes_nobody, FailureKind::Deadlock, three());
    missed!(completion!(Classic), classic_up_looks_again, FailureKind::UseAfterFree, two());
    missed!(two_ups!(Tuned), tuned_taker_wakes_nobody, FailureKind::Deadlock, three());
    missed!(completion!(Tuned), tuned_up_looks_again, FailureKind::UseAfterFree, two());
}

type Store = (RawMutex<Model, Off, NoSpin>, RawCondvar<Model>, Cell<bool>);

/// Makes the scenario in which one thread waits for a thing, until then at most, and the other
/// brings it.
fn store(deadline: Option<Nanos>) -> Scenario<Store> {
    Scenario::new(|| (RawMutex::new(), RawCondvar::new(), Cell::new(false)))
        .thread(move |(mutex, more, thing): &Store| {
            let how = WaitBounds { deadline, ..FOREVER };
            mutex.lock(Location::caller()).expect("not recursive");
            while !thing.get() {
                // SAFETY: this thread locked the mutex above, and each wait has locked it again.
                if unsafe { more.wait(mutex, &how, Location::caller()) }.is_err() {
                    break;
                }
            }
            thing.get();
            // SAFETY: the last wait has locked it again.
            unsafe { mutex.unlock() };
        })
        .thread(|(mutex, more, thing)| {
            mutex.lock(Location::caller()).expect("not recursive");
            thing.set(true);
            // SAFETY: this thread has locked it above.
            unsafe { mutex.unlock() };
            more.notify_one();
        })
}

#[test]
fn model_condvar_misses_broken_variants() {
    missed!(store(None), condvar_joins_after_the_release, FailureKind::Deadlock, two());
    missed!(store(None), condvar_sequence_stands_still, FailureKind::Deadlock, two());
    let impatient = store(Some(Nanos(100)));
    missed!(impatient, condvar_forgets_the_mutex, FailureKind::Race, two().timeouts(1));
}

/// A reader-writer lock with the shipped bound on waiting.
type RwLock = RawRwLock<Model, Off, NoSpin>;

/// Reads, and does something meanwhile.
fn reads(lock: &RwLock, inside: impl FnOnce()) {
    lock.read(Location::caller()).expect("not recursive");
    inside();
    // SAFETY: this thread has locked it for reading.
    unsafe { lock.unlock_read() };
}

/// Writes, and does something meanwhile.
fn writes<R>(lock: &RwLock, inside: impl FnOnce() -> R) -> R {
    lock.write(Location::caller()).expect("not recursive");
    let result = inside();
    // SAFETY: this thread has locked it for writing.
    unsafe { lock.unlock_write() };
    result
}

/// Makes the scenario of a reader and a writer.
fn one_of_each() -> Scenario<(RwLock, Cell<u32>)> {
    Scenario::new(|| (RwLock::new(), Cell::new(0)))
        .thread(|(lock, text)| reads(lock, || assert!(text.get() < 2)))
        .thread(|(lock, text)| writes(lock, || text.set(text.get() + 1)))
}

/// Waits until the flag is raised.
fn wait(flag: &U32) {
    while flag.load(Ordering::Acquire) == 0 {
        Model::wait32(flag, 0, &FOREVER);
    }
}

fn raise(flag: &U32) {
    flag.store(1, Ordering::Release);
    Model::wake(Model::address32(flag), u32::MAX);
}

/// Makes the scenario of a writer that gives up, perhaps after it was promised the lock, and a
/// reader that waits, inside, for another one to come. No timer has to fire for that.
fn a_writer_withdraws() -> Scenario<(RwLock, U32, U32)> {
    Scenario::new(|| (RwLock::new(), U32::ZERO, U32::ZERO))
        .thread(|(lock, cancel, come)| {
            reads(lock, || {
                raise(cancel);
                wait(come);
            });
        })
        .thread(|(lock, _, come)| reads(lock, || raise(come)))
        .thread(|(lock, cancel, _)| {
            let how = || WaitBounds { cancel: Some(cancel), ..FOREVER };
            if lock.write_lazily(how, 0, Location::caller()).is_ok() {
                // SAFETY: this thread has locked it for writing.
                unsafe { lock.unlock_write() };
            }
        })
}

/// Makes the scenario in which the second of two writers frees the lock after its release.
fn last_writer_frees() -> Scenario<(RwLock, Cell<u32>)> {
    Scenario::new(|| (RwLock::new(), Cell::new(0))).threads(2, |(lock, done)| {
        let last = writes(lock, || {
            done.set(done.get() + 1);
            done.get() == 2
        });
        if last {
            freed(lock);
        }
    })
}

#[test]
fn model_rwlock_misses_broken_variants() {
    missed!(one_of_each(), rwlock_reader_overlooks_next, FailureKind::Deadlock, two());
    missed!(one_of_each(), rwlock_reads_the_wake_sequence_late, FailureKind::Deadlock, two());
    missed!(
        one_of_each(),
        rwlock_admits_readers_to_writers,
        FailureKind::Race | FailureKind::Panic(_),
        two()
    );
    // Whom the release calls may have come before the call.
    let config = two().spurious(1);
    missed!(last_writer_frees(), rwlock_release_looks_again, FailureKind::UseAfterFree, config);
    let promised = three().stale_reads(0).timeouts(1);
    missed!(a_writer_withdraws(), rwlock_withdraws_unsettled, FailureKind::Deadlock, promised);
}

fn once() -> Scenario<(RawOnce<Model>, Cell<u32>)> {
    Scenario::new(|| (RawOnce::new(), Cell::new(0))).threads(3, |(once, made)| {
        once.call_once(&FOREVER, || made.set(1)).expect("waits for ever");
        assert_eq!(made.get(), 1);
    })
}

/// Makes the scenario in which a thread that has waited for the other frees it.
fn once_then_freed() -> Scenario<RawOnce<Model>> {
    Scenario::new(RawOnce::new)
        .thread(|once| {
            if let Ok(Some(turn)) = once.begin(false, &FOREVER) {
                turn.complete();
            }
        })
        .thread(|once| match once.begin(false, &FOREVER) {
            Ok(Some(turn)) => turn.complete(),
            waited => {
                assert!(matches!(waited, Ok(None)));
                freed(once);
            }
        })
}

#[test]
fn model_once_misses_broken_variants() {
    missed!(once(), once_ends_in_two_steps, FailureKind::Deadlock, three());
    missed!(once(), once_wakes_one, FailureKind::Deadlock, three());
    missed!(once_then_freed(), once_runner_looks_again, FailureKind::UseAfterFree, two());
}
