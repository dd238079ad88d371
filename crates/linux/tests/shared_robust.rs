//! Locks that survive their holders, between processes.

mod common;
mod segment;

use common::{Watchdog, in_child, in_threads, until};
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use lockstead_core::Atomic64 as _;
use lockstead_core::WaitBounds;
use lockstead_core::robust::{Got, Life, RobustError};
use lockstead_linux::U32;
use lockstead_linux::futex::{self, Scope, refuse_waitv};
use lockstead_linux::shared::{self, AttachError, Busy, JoinError};
use segment::{Child, LOCKS, Segment, attach_with};
use std::sync::Mutex;
use std::time::Duration;

/// The tests of this file change what holds for the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const LONG: Duration = Duration::from_secs(20);

fn sleep_for_ever() -> ! {
    loop {
        // SAFETY: `pause` takes no argument: it waits for a signal.
        unsafe { libc::pause() };
    }
}

/// Starts a child that takes these locks.
fn holder(segment: &Segment, locks: core::ops::Range<usize>) -> Child {
    let told = segment.word(0);
    told.store(0, SeqCst);
    let child = Child::new(|| {
        for lock in locks {
            assert_eq!(segment.lock_within(lock, LONG), Ok(Got::Clean));
        }
        told.store(1, SeqCst);
        sleep_for_ever();
    });
    until("the child has its locks", || told.load(SeqCst) == 1);
    child
}

#[test]
fn a_killed_holder_is_found_by_whoever_tries() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let segment = Segment::new();
    let child = holder(&segment, 0..LOCKS);
    let party = segment.party();
    assert_eq!(segment.lock(0).try_lock(&party), Err(RobustError::TimedOut));
    child.kill_and_wait();
    for number in 0..LOCKS {
        let lock = segment.lock(number);
        assert_eq!(lock.try_lock(&party), Ok(Got::OwnerDied), "lock {number}");
        assert!(lock.mark_consistent(&party) && lock.unlock(&party));
        assert_eq!(lock.try_lock(&party), Ok(Got::Clean));
        assert!(lock.unlock(&party));
    }
}

fn until_they_sleep(children: &[Child]) {
    children.iter().for_each(|child| common::until_thread_sleeps(child.0));
}

#[test]
fn a_killed_holder_is_found_by_those_that_sleep() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for refused in [false, true] {
        refuse_waitv(refused);
        let segment = Segment::new();
        let child = holder(&segment, 0..2);
        let sleepers: Vec<_> = (0..4)
            .map(|number| {
                Child::new(|| {
                    let lock = number % 2;
                    segment.word(1).fetch_add(1, SeqCst);
                    let got = segment.lock_within(lock, LONG).expect("got in time");
                    segment.word(2).fetch_add(u64::from(got == Got::OwnerDied), SeqCst);
                    segment.lock(lock).mark_consistent(&segment.party());
                    assert!(segment.unlock(lock));
                })
            })
            .collect();
        until("all are about to sleep", || segment.word(1).load(SeqCst) == 4);
        until_they_sleep(&sleepers);
        child.kill_and_wait();
        for sleeper in sleepers {
            assert_eq!(sleeper.wait(), 0);
        }
        assert_eq!(segment.word(2).load(SeqCst), 2, "each lock tells one of them");
    }
    refuse_waitv(false);
}

#[test]
fn a_killed_waiter_is_no_owner() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let segment = Segment::new();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            Child::new(|| {
                segment.word(1).fetch_add(1, SeqCst);
                let _ = segment.lock_within(0, LONG);
            })
        })
        .collect();
    until("all are about to sleep", || segment.word(1).load(SeqCst) == 3);
    until_they_sleep(&waiters);
    for waiter in waiters {
        waiter.kill_and_wait();
    }
    let busy = in_other_process(&segment, |segment| {
        segment.lock(0).try_lock(&segment.party()) == Err(RobustError::TimedOut)
    });
    assert!(busy, "its owner lives");
    assert!(segment.unlock(0));
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    assert!(segment.unlock(0));
}

fn in_other_process(segment: &Segment, ask: impl FnOnce(&Segment) -> bool) -> bool {
    segment.word(9).store(0, SeqCst);
    let child = Child::new(|| segment.word(9).store(1 + u64::from(ask(segment)), SeqCst));
    assert_eq!(child.wait(), 0);
    segment.word(9).load(SeqCst) == 2
}

#[test]
fn a_chain_of_deaths_reaches_the_last_sleeper() {
    let _watchdog = Watchdog::new(120);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let segment = Segment::new();
    let child = holder(&segment, 0..1);
    // Each dies with the lock as soon as it has it.
    let sleepers: Vec<_> = (0..8)
        .map(|_| {
            Child::new(|| {
                segment.word(1).fetch_add(1, SeqCst);
                let got = segment.lock_within(0, LONG).expect("got in time");
                segment.word(2).fetch_add(u64::from(got == Got::OwnerDied), SeqCst);
                // SAFETY: the signal ends this process; the call touches no memory.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            })
        })
        .collect();
    until("all are about to sleep", || segment.word(1).load(SeqCst) == 8);
    until_they_sleep(&sleepers);
    child.kill_and_wait();
    for sleeper in sleepers {
        sleeper.wait();
    }
    assert_eq!(segment.word(2).load(SeqCst), 8);
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
    // Not declared consistent: of no use to anybody.
    assert!(segment.unlock(0));
    assert_eq!(segment.lock_within(0, LONG), Err(RobustError::NotRecoverable));
}

#[test]
fn a_thread_that_ends_leaves_its_slot_as_it_was_unless_it_holds_something() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let segment = Segment::new();
    let slots = Mutex::new(Vec::new());
    let party = segment.party();
    for holds in [false, false, true, false] {
        in_threads(1, &|| {
            assert_eq!(segment.lock_within(3, LONG), Ok(Got::Clean));
            if !holds {
                assert!(segment.unlock(3));
            }
            slots.lock().expect("no panic").push(segment.party().me);
        });
        if holds {
            until("the kernel reports the thread", || {
                segment.lock(3).try_lock(&party) == Ok(Got::OwnerDied)
            });
            assert!(segment.lock(3).mark_consistent(&party) && segment.lock(3).unlock(&party));
        }
    }
    let slots = slots.into_inner().expect("no panic");
    assert_eq!(slots[0], slots[1], "left and taken again under the same name");
    assert_eq!(slots[1], slots[2]);
    let (dead, next) = (slots[2], slots[3]);
    assert_ne!(dead, next, "a dead participant's name is not given again");
    let life = Life(segment.record(dead.slot()).life.load(Relaxed));
    assert!(!life.is_alive() || life.generation() != dead.generation());
}

#[test]
fn many_processes_keep_a_count() {
    let _watchdog = Watchdog::new(120);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let segment = Segment::new();
    let add = || {
        for _ in 0..5000 {
            assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
            let word = segment.word(5);
            word.store(word.load(Relaxed) + 1, Relaxed);
            assert!(segment.unlock(0));
        }
    };
    let children: Vec<_> = (0..4).map(|_| Child::new(|| in_threads(2, &add))).collect();
    for child in children {
        assert_eq!(child.wait(), 0);
    }
    assert_eq!(segment.word(5).load(Relaxed), 4 * 2 * 5000);
}

#[test]
fn an_address_outside_of_segments_is_foreign() {
    let word = 0u64;
    let address = core::ptr::from_ref(&word).addr();
    assert!(shared::member(address).is_none() && shared::me(address).is_none());
    assert_eq!(shared::join(address).err(), Some(JoinError::Foreign));
}

#[test]
fn parts_out_of_place_are_refused() {
    let refused = |change: &dyn Fn(&mut shared::SegmentParts)| attach_with(change).err();
    assert_eq!(refused(&|parts| parts.len = 100), Some(AttachError::BadParts));
    assert_eq!(refused(&|parts| parts.len = usize::MAX), Some(AttachError::BadParts));
    let misaligned = refused(&|parts| {
        parts.doorbell =
            core::ptr::NonNull::new(parts.base.as_ptr().wrapping_add(2).cast()).expect("not null");
    });
    assert_eq!(misaligned, Some(AttachError::BadParts));
    assert_eq!(refused(&|parts| parts.file = -1), Some(AttachError::BadFile(libc::EBADF)));
    let segment = Segment::new();
    let (base, len) = segment.handle().attached().range();
    let over = refused(&|parts| {
        let at = core::ptr::with_exposed_provenance_mut::<u8>(base);
        parts.base = core::ptr::NonNull::new(at).expect("mapped");
        parts.len = len;
        parts.doorbell = parts.base.cast();
        parts.records = core::ptr::NonNull::from(segment.handle().domain().records);
        parts.claims = core::ptr::NonNull::from(segment.handle().domain().claims);
    });
    assert_eq!(over, Some(AttachError::Overlaps));
    let handle = attach_with(|_| ()).expect("as it should be");
    assert!(shared::detach(handle).is_ok());
}

#[test]
fn detaching_waits_for_nobody_and_refuses_instead() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let mut segment = Segment::new();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    let handle = segment.handle.take().expect("attached");
    let (handle, busy) = shared::detach(handle).expect_err("a lock is held");
    assert_eq!(busy, Busy::Holds);
    assert!(segment.unlock(0));
    let (begin, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let handle = std::thread::scope(|scope| {
        scope.spawn(|| {
            segment.party();
            begin.wait();
            done.wait();
        });
        begin.wait();
        let (handle, busy) = shared::detach(handle).expect_err("another thread is a member");
        assert_eq!(busy, Busy::Threads(1));
        done.wait();
        handle
    });
    // `scope` waits for the closure, not for the thread's last words.
    let mut handle = Some(handle);
    until("the thread has left", || match shared::detach(handle.take().expect("kept")) {
        Ok(()) => true,
        Err((again, _)) => {
            handle = Some(again);
            false
        }
    });
    assert_eq!(shared::join(segment.address()).err(), Some(JoinError::Foreign));
    assert!(shared::me(segment.address()).is_none());
    in_child("nor in a child", || shared::me(segment.address()).is_none());
}

#[test]
fn a_wait_ends_by_cancelling_and_by_a_signal() {
    extern "C" fn nothing(_: libc::c_int) {}
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    common::handle(libc::SIGUSR2, libc::SA_RESTART, nothing);
    let segment = Segment::new();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    let (cancel, thread) = (U32::new(0), AtomicI32::new(0));
    for (how, expected) in [
        (WaitBounds { cancel: Some(&cancel), ..WaitBounds::FOREVER }, RobustError::Cancelled),
        (WaitBounds { interruptible: true, ..WaitBounds::FOREVER }, RobustError::Interrupted),
    ] {
        thread.store(0, SeqCst);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let party = segment.party();
                thread.store(common::gettid(), SeqCst);
                segment.lock(0).lock(&party, &how)
            });
            until("it is about to wait", || thread.load(SeqCst) != 0);
            common::until_thread_sleeps(thread.load(SeqCst));
            if how.interruptible {
                until("the signal has come in its sleep", || {
                    common::signal(thread.load(SeqCst), libc::SIGUSR2);
                    std::thread::sleep(Duration::from_millis(1));
                    waiter.is_finished()
                });
            } else {
                cancel.get().store(1, SeqCst);
                futex::wake(cancel.get().as_ptr().addr(), u32::MAX, Scope::Private);
            }
            assert_eq!(waiter.join().expect("no panic"), Err(expected));
        });
    }
    assert!(segment.unlock(0));
}
