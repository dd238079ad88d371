//! What the reader-writer lock does, step by step, on a machine with one thread.

use crate::common::heard::{Heard, heard};
use crate::common::{Alone, U32, as_participant, here, lose, script, time, unplayed, wakes};
use lockstead_core::{
    Atomic32, LockError, MAX_SLOTS, Ordering, Policy, RawRwLock, Standard, WaitBounds, WaitOutcome,
};

type Lock = RawRwLock<Alone>;

fn lock() -> &'static Lock {
    Box::leak(Box::new(Lock::new()))
}

fn read_how(lock: &Lock, how: WaitBounds<'_, Alone>) -> Result<(), LockError> {
    lock.read_lazily(|| how, 0, here())
}

fn write_how(lock: &Lock, how: WaitBounds<'_, Alone>) -> Result<(), LockError> {
    lock.write_lazily(|| how, 0, here())
}

/// Releases what participant `number` read.
fn read_done(lock: &Lock, number: u32) {
    // SAFETY: each test that calls this has read with the lock as that participant.
    as_participant(number, || unsafe { lock.unlock_read() });
}

/// Releases what participant `number` writes.
fn write_done(lock: &Lock, number: u32) {
    as_participant(number, || {
        assert!(lock.is_mine());
        // SAFETY: this participant writes, as the line above asserts.
        unsafe { lock.unlock_write() }
    });
}

#[test]
fn readers_share_and_a_writer_excludes() {
    let lock = lock();
    assert_eq!(lock.read(here()), Ok(()));
    as_participant(2, || {
        assert!(lock.try_read(here()));
        assert!(!lock.try_write(here()));
    });
    assert_eq!(lock.readers(), 2);
    read_done(lock, 1);
    assert!(!lock.try_write(here()));
    read_done(lock, 2);
    assert!(!lock.is_locked());
    assert_eq!(lock.write(here()), Ok(()));
    assert!(lock.is_mine());
    as_participant(2, || {
        assert!(!lock.is_mine());
        assert!(!lock.try_read(here()));
        assert!(!lock.try_write(here()));
    });
    write_done(lock, 1);
    assert!(!lock.is_locked());
    assert_eq!(wakes(), [], "nobody slept");
    assert_eq!(size_of::<Lock>(), 16);
}

#[test]
fn a_writer_that_asks_again_is_told_and_not_hung() {
    let lock = lock();
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!(lock.write(here()), Err(LockError::Recursive));
    assert_eq!(lock.read(here()), Err(LockError::Recursive));
    write_done(lock, 1);
    assert!(!lock.is_locked());
}

#[test]
fn a_writer_left_behind_by_fork_is_told_and_not_waited_for() {
    let lock = lock();
    as_participant(5, || assert_eq!(lock.write(here()), Ok(())));
    lose(5);
    assert_eq!(lock.read(here()), Err(LockError::OwnerLost));
    assert_eq!(lock.write(here()), Err(LockError::OwnerLost));
}

#[test]
fn a_reader_sleeps_until_the_writer_leaves_and_all_readers_are_woken() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_write(here())));
    script(|| {
        wakes();
        write_done(lock, 2);
        let woken: Vec<u32> = wakes().into_iter().map(|(_, count)| count).collect();
        assert_eq!(woken, [u32::MAX]);
        WaitOutcome::Woken
    });
    assert_eq!(lock.read(here()), Ok(()));
    assert_eq!((unplayed(), lock.readers()), (0, 1));
    read_done(lock, 1);
    assert!(!lock.is_locked());
}

#[test]
fn a_writer_sleeps_until_the_last_reader_leaves() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_read(here())));
    as_participant(3, || assert!(lock.try_read(here())));
    script(|| {
        read_done(lock, 2);
        assert_eq!(wakes(), [], "a reader is left");
        read_done(lock, 3);
        assert_eq!(wakes().len(), 1);
        WaitOutcome::Woken
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    assert!(lock.is_mine());
    write_done(lock, 1);
    assert!(!lock.is_locked());
}

#[test]
fn a_writer_past_the_bound_holds_newcomers_off_and_is_handed_the_lock() {
    let lock = lock();
    let began = time();
    as_participant(2, || assert!(lock.try_read(here())));
    script(|| {
        as_participant(3, || assert!(lock.try_read(here()), "not promised yet"));
        read_done(lock, 3);
        WaitOutcome::TimedOut
    });
    script(move || {
        assert!(time().since(began) >= Standard::BOUND);
        as_participant(3, || assert!(!lock.try_read(here()), "a reader past a promise"));
        read_done(lock, 2);
        as_participant(3, || assert!(!lock.try_write(here()), "handed over"));
        assert_eq!(lock.writer().map(|slot| slot.get()), Some(1));
        WaitOutcome::Woken
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    write_done(lock, 1);
    assert!(lock.try_write(here()));
}

#[test]
fn who_may_read_already_passes_a_promise_and_no_writer() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_read(here())));
    script(|| WaitOutcome::TimedOut);
    script(|| {
        as_participant(2, || {
            assert!(!lock.try_read(here()), "promised");
            assert!(lock.try_read_recursive(here()));
            assert_eq!(lock.read_recursive_lazily(|| WaitBounds::FOREVER, here()), Ok(()));
        });
        assert_eq!(lock.readers(), 3);
        (0..3).for_each(|_| read_done(lock, 2));
        assert_eq!(lock.writer().map(|slot| slot.get()), Some(1));
        WaitOutcome::Woken
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    as_participant(2, || assert!(!lock.try_read_recursive(here())));
    write_done(lock, 1);
}

#[test]
fn a_watcher_hears_of_recursive_reads_as_of_others() {
    let lock: &'static RawRwLock<Alone, Heard> = Box::leak(Box::default());
    let here = here();
    let line = here.line();
    assert_eq!(lock.read_recursive_lazily(|| WaitBounds::FOREVER, here), Ok(()));
    let both = [format!("will acquire Shared 0 {line}"), format!("acquired Shared Fast {line}")];
    assert_eq!(heard(), both);
    assert!(lock.try_read_recursive(here));
    assert_eq!(heard(), both[1..]);
    as_participant(2, || assert!(!lock.try_write(here)));
    for _ in 0..2 {
        // SAFETY: this participant has read twice above.
        unsafe { lock.unlock_read() };
    }
    heard();
    assert!(lock.try_write(here));
    heard();
    assert!(!lock.try_read_recursive(here));
    assert_eq!(heard(), Vec::<String>::new());
}

#[test]
fn a_reader_past_the_bound_is_handed_the_lock_before_the_next_writer() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_write(here())));
    script(|| WaitOutcome::TimedOut);
    script(|| {
        write_done(lock, 2);
        as_participant(2, || assert!(!lock.try_write(here()), "a writer past a promise"));
        assert_eq!(lock.readers(), 1);
        WaitOutcome::Woken
    });
    assert_eq!(lock.read(here()), Ok(()));
    assert_eq!((unplayed(), lock.readers()), (0, 1));
    as_participant(2, || assert!(lock.try_read(here()), "nothing is promised any more"));
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_in_that_it_held_off() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_read(here())));
    let bound = 10 * Standard::BOUND;
    script(|| WaitOutcome::TimedOut);
    script(move || {
        // A reader is held off, sleeps, and gives up first; the word still says
        // that readers may be asleep.
        as_participant(3, || {
            script(|| WaitOutcome::TimedOut);
            let how = WaitBounds { deadline: Some(time().after(1000)), ..WaitBounds::FOREVER };
            assert_eq!(read_how(lock, how), Err(LockError::TimedOut));
        });
        wakes();
        WaitOutcome::TimedOut
    });
    let how = WaitBounds { deadline: Some(time().after(bound)), ..WaitBounds::FOREVER };
    assert_eq!(write_how(lock, how), Err(LockError::TimedOut));
    assert_eq!(unplayed(), 0);
    let woken: Vec<u32> = wakes().into_iter().map(|(_, count)| count).collect();
    assert_eq!(woken, [u32::MAX], "readers were left asleep on a lock that admits them");
    as_participant(3, || assert!(lock.try_read(here())));
}

#[test]
fn waits_end_by_signal_and_by_cancellation() {
    let lock = lock();
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    as_participant(2, || assert!(lock.try_write(here())));
    let interruptible = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    let cancellable = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    for acquire in [read_how, write_how] {
        token.store(0, Ordering::Relaxed);
        script(|| WaitOutcome::Interrupted);
        assert_eq!(acquire(lock, interruptible), Err(LockError::Interrupted));
        script(|| {
            token.store(1, Ordering::Relaxed);
            WaitOutcome::Woken
        });
        assert_eq!(acquire(lock, cancellable), Err(LockError::Cancelled));
        assert_eq!(unplayed(), 0);
    }
    write_done(lock, 2);
    assert!(lock.try_write(here()), "those that gave up left something behind: {lock:?}");
}

#[test]
fn a_free_lock_is_taken_whatever_the_deadline() {
    let lock = lock();
    let over = WaitBounds { deadline: Some(time()), ..WaitBounds::FOREVER };
    assert_eq!(read_how(lock, over), Ok(()));
    as_participant(2, || assert_eq!(write_how(lock, over), Err(LockError::TimedOut)));
    read_done(lock, 1);
    assert_eq!(write_how(lock, over), Ok(()));
}

#[test]
fn a_downgrade_lets_readers_in_and_no_writer() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_write(here())));
    script(|| {
        wakes();
        // SAFETY: the same participant took the lock for writing above.
        as_participant(2, || unsafe { lock.downgrade() });
        assert_eq!(wakes().len(), 1);
        as_participant(3, || assert!(!lock.try_write(here())));
        WaitOutcome::Woken
    });
    assert_eq!(lock.read(here()), Ok(()));
    assert_eq!((unplayed(), lock.readers()), (0, 2));
    read_done(lock, 1);
    read_done(lock, 2);
    assert!(lock.try_write(here()));
}

#[test]
fn a_reader_too_many_is_told_and_not_hung() {
    let lock = lock();
    for _ in 0..MAX_SLOTS {
        assert!(lock.try_read(here()));
    }
    assert!(!lock.try_read(here()));
    assert_eq!(lock.read(here()), Err(LockError::TooManyReaders));
    assert_eq!(lock.readers(), MAX_SLOTS);
    wakes();
    read_done(lock, 1);
    assert_eq!(wakes(), [], "nobody sleeps because the lock is full");
    assert_eq!(lock.read(here()), Ok(()));
    assert_eq!(lock.readers(), MAX_SLOTS);
}

#[test]
fn a_reader_that_waits_while_the_lock_fills_is_told() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_write(here())));
    script(|| {
        write_done(lock, 2);
        for _ in 0..MAX_SLOTS {
            assert!(lock.try_read(here()));
        }
        WaitOutcome::Woken
    });
    assert_eq!(lock.read(here()), Err(LockError::TooManyReaders));
    assert_eq!((unplayed(), lock.readers()), (0, MAX_SLOTS));
}

#[test]
fn a_handler_that_reads_while_its_own_thread_was_handed_the_lock_is_told() {
    let lock = lock();
    as_participant(2, || assert!(lock.try_read(here())));
    script(|| WaitOutcome::TimedOut);
    script(|| {
        // A signal handler of participant 1, which waits with a promise.
        script(|| {
            read_done(lock, 2);
            WaitOutcome::Woken
        });
        assert_eq!(lock.read(here()), Err(LockError::Recursive));
        assert_eq!(lock.write(here()), Err(LockError::Recursive));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.write(here()), Ok(()));
    assert_eq!(unplayed(), 0);
    write_done(lock, 1);
}
