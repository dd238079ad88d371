//! Segments and locks without types.

use crate::support::Watchdog;
use lockstead::shared::inspect::RootLayout;
use lockstead::shared::raw::{
    Form, RawCondvar, RawMutex, RawOutcome, RawRwLock, RawSegment, RawSemaphore,
};
use lockstead::shared::{
    JoinError, LockKind, OnDeath, Segment, SegmentError, SegmentOptions, Shareable, SharedError,
    SharedMutex,
};
use lockstead_core::{Nanos, WaitBounds};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

#[derive(Shareable)]
#[repr(C)]
struct Account {
    lock: SharedMutex<u64>,
    number: u32,
    flags: [u8; 4],
}

fn forever() -> WaitBounds<'static, lockstead_linux::Linux> {
    WaitBounds::FOREVER
}

/// Returns a wait whose time is over.
fn never() -> WaitBounds<'static, lockstead_linux::Linux> {
    WaitBounds { deadline: Some(Nanos(1)), ..WaitBounds::FOREVER }
}

struct Locks {
    segment: RawSegment,
}

impl Locks {
    fn new() -> Locks {
        let form = Form::unknown(4096);
        let fill = |root: core::ptr::NonNull<u8>| {
            // SAFETY: the place is within the root, which nobody else has yet.
            unsafe { root.add(64).cast().write(RawSemaphore::new(3, OnDeath::Report)) };
        };
        let segment = RawSegment::memfd("raw", &SegmentOptions::new(), &form, fill);
        Locks { segment: segment.expect("a segment") }
    }

    fn mutex(&self) -> &RawMutex {
        // SAFETY: the place is within the root, which is used in this way only.
        unsafe { self.segment.root().cast().as_ref() }
    }

    fn rwlock(&self) -> &RawRwLock {
        // SAFETY: the place is within the root, and its bytes are used as this lock only.
        unsafe { self.segment.root().add(8).cast().as_ref() }
    }

    fn condvar(&self) -> &RawCondvar {
        // SAFETY: the place is within the root, and its bytes are used as this lock only.
        unsafe { self.segment.root().add(16).cast().as_ref() }
    }

    fn count(&self) -> &AtomicU32 {
        // SAFETY: the place is within the root, and its bytes are used as this count only.
        unsafe { self.segment.root().add(24).cast().as_ref() }
    }

    fn semaphore(&self) -> &RawSemaphore {
        // SAFETY: the place is within the root, where `new` wrote the semaphore.
        unsafe { self.segment.root().add(64).cast().as_ref() }
    }
}

#[test]
fn a_described_segment_is_that_of_the_type_with_the_same_layout() {
    let data = RootLayout::plain("u64", 8);
    let byte = RootLayout::plain("u8", 1);
    let fields = vec![
        ("lock".into(), 0, RootLayout::lock(LockKind::Mutex, 16, 8, data).expect("fits")),
        ("number".into(), 16, RootLayout::plain("u32", 4)),
        ("flags".into(), 20, RootLayout::array(4, 1, byte).expect("fits")),
    ];
    let account = RootLayout::structure("Account", 24, fields).expect("fits");
    let form = Form::new(RootLayout::array(10, 24, account).expect("fits"), 8).expect("in order");
    let raw =
        RawSegment::memfd("accounts", &SegmentOptions::new(), &form, |_| ()).expect("a segment");
    let fd = || raw.as_fd().try_clone_to_owned().expect("a descriptor");
    let typed = Segment::<[Account; 10]>::from_fd(fd()).expect("the same");
    *typed.root()[3].lock.lock().unwrap().acquired().unwrap() = 7;
    // SAFETY: the place is that of the lock's data, and nobody has the lock.
    assert_eq!(unsafe { raw.root().add(3 * 24 + 8).cast::<u64>().read() }, 7);
    // And the other way round.
    let again = RawSegment::from_fd(fd(), Some(&Form::of::<[Account; 10]>())).expect("the same");
    assert_eq!(again.layout(), form.layout());
    let other = RawSegment::from_fd(fd(), Some(&Form::of::<[Account; 11]>()));
    assert!(matches!(other, Err(SegmentError::OtherRoot { .. })), "{other:?}");
    assert!(RawSegment::from_fd(fd(), None).is_ok(), "whatever it is");
}

#[test]
fn what_is_described_has_to_fit() {
    let lock =
        || RootLayout::lock(LockKind::Mutex, 8, 8, RootLayout::plain("()", 0)).expect("fits");
    assert!(RootLayout::lock(LockKind::Semaphore, 8, 8, RootLayout::plain("()", 0)).is_none());
    assert!(RootLayout::structure("S", 12, vec![("lock".into(), 4, lock())]).is_none());
    assert!(RootLayout::structure("S", 4, vec![("lock".into(), 0, lock())]).is_none());
    assert!(RootLayout::array(2, 4, lock()).is_none());
    let refused = Form::new(RootLayout::plain("a\u{1b}b", 8), 8);
    assert!(matches!(refused, Err(SegmentError::Options(_))), "{refused:?}");
    assert!(Form::new(RootLayout::plain("u64", 8), 3).is_err());
    assert!(Form::new(RootLayout::plain("u8", 1), 2).is_err());
    let deep = (0..60).fold(lock(), |layout, _| RootLayout::array(1, 8, layout).expect("fits"));
    assert!(Form::new(deep, 8).is_err());
}

#[test]
fn each_lock_tells_who_has_it() {
    let _watchdog = Watchdog::new("each_lock_tells_who_has_it");
    let locks = Locks::new();
    let (mutex, rwlock, semaphore) = (locks.mutex(), locks.rwlock(), locks.semaphore());
    assert_eq!(mutex.lock(&forever()), Ok(RawOutcome::Acquired));
    assert!(mutex.is_locked() && mutex.is_mine() && !mutex.is_inconsistent());
    assert_eq!(mutex.lock(&forever()), Err(SharedError::Recursive));
    assert_eq!(rwlock.read(&forever()), Ok(RawOutcome::Acquired));
    assert_eq!(semaphore.acquire(1, &forever()), Ok(0));
    assert_eq!(semaphore.acquire(2, &forever()), Ok(0));
    thread::scope(|s| {
        s.spawn(|| {
            assert_eq!(mutex.try_lock(), Err(SharedError::Held));
            assert_eq!(mutex.lock(&never()), Err(SharedError::TimedOut));
            assert!(!mutex.unlock() && !mutex.is_mine() && !mutex.mark_consistent());
            assert_eq!(rwlock.try_write(), Err(SharedError::Held));
            assert_eq!(rwlock.try_read(), Ok(RawOutcome::Acquired));
            assert!(rwlock.unlock() && !rwlock.unlock());
            assert_eq!(semaphore.try_acquire(1), Err(SharedError::Held));
            assert_eq!(semaphore.release(1), Ok(false));
        });
    });
    assert!(locks.segment.leave().is_err(), "it holds three locks");
    assert!(mutex.unlock() && !mutex.unlock());
    assert!(rwlock.unlock());
    assert_eq!(rwlock.write(&forever()), Ok(RawOutcome::Acquired));
    assert!(rwlock.unlock());
    assert_eq!((semaphore.release(2), semaphore.consume(2)), (Ok(true), Ok(false)));
    assert_eq!((semaphore.consume(1), semaphore.units()), (Ok(true), (2, 2)));
    assert_eq!((semaphore.add(4), semaphore.units()), (Ok(true), (6, 6)));
    locks.segment.leave().expect("it holds nothing");
    let elsewhere = RawMutex::default();
    assert_eq!(elsewhere.lock(&forever()), Err(SharedError::NotInSegment));
}

#[test]
fn a_wait_for_a_condition_has_the_mutex_back() {
    let _watchdog = Watchdog::new("a_wait_for_a_condition_has_the_mutex_back");
    let locks = Locks::new();
    thread::scope(|s| {
        let waiter = s.spawn(|| {
            assert_eq!(locks.mutex().lock(&forever()), Ok(RawOutcome::Acquired));
            while locks.count().load(Ordering::Relaxed) == 0 {
                let waited = locks.condvar().wait(locks.mutex(), &forever()).expect("waits");
                assert_eq!(waited.mutex, RawOutcome::Acquired);
            }
            assert!(locks.mutex().unlock());
        });
        assert_eq!(locks.mutex().lock(&forever()), Ok(RawOutcome::Acquired));
        locks.count().store(1, Ordering::Relaxed);
        locks.condvar().notify_all();
        assert!(locks.mutex().unlock());
        // A scope waits for its threads' work, not for their ends: until then they take part.
        waiter.join().expect("ends");
    });
    assert_eq!(locks.mutex().lock(&forever()), Ok(RawOutcome::Acquired));
    let waited = locks.condvar().wait(locks.mutex(), &never()).expect("waits");
    assert_eq!((waited.mutex, waited.ended), (RawOutcome::Acquired, Some(SharedError::TimedOut)));
    assert!(locks.mutex().unlock());
    locks.segment.close().expect("nothing is held");
}

#[test]
fn what_a_thread_leaves_is_told_to_the_next() {
    let _watchdog = Watchdog::new("what_a_thread_leaves_is_told_to_the_next");
    let locks = Locks::new();
    let (mutex, rwlock, semaphore) = (locks.mutex(), locks.rwlock(), locks.semaphore());
    let die_with_all = || {
        thread::scope(|s| {
            s.spawn(|| {
                assert!(matches!(mutex.lock(&forever()), Ok(RawOutcome::Acquired)));
                assert!(matches!(rwlock.write(&forever()), Ok(RawOutcome::Acquired)));
                assert!(semaphore.acquire(2, &forever()).is_ok());
            });
        });
    };
    die_with_all();
    assert_eq!(mutex.lock(&forever()), Ok(RawOutcome::OwnerDied));
    assert!(mutex.is_inconsistent() && mutex.mark_consistent() && !mutex.is_inconsistent());
    assert!(mutex.unlock());
    assert_eq!(rwlock.read(&forever()), Ok(RawOutcome::OwnerDied));
    assert_eq!(
        thread::scope(|s| s.spawn(|| rwlock.try_read()).join().unwrap()),
        Err(SharedError::Held)
    );
    assert!(rwlock.is_inconsistent() && rwlock.mark_consistent() && rwlock.unlock());
    assert_eq!(semaphore.acquire(3, &forever()), Ok(2));
    assert_eq!(semaphore.release(3), Ok(true));
    die_with_all();
    assert_eq!(mutex.lock(&forever()), Ok(RawOutcome::OwnerDied));
    assert!(mutex.unlock());
    assert_eq!(mutex.lock(&forever()), Ok(RawOutcome::NotRecoverable));
    assert_eq!(mutex.try_lock(), Ok(RawOutcome::NotRecoverable));
    assert_eq!(rwlock.write(&forever()), Ok(RawOutcome::OwnerDied));
    assert!(rwlock.unlock());
    assert_eq!(rwlock.try_read(), Ok(RawOutcome::NotRecoverable));
}

/// A word of a lock there may name the slot, and nobody knows where.
#[test]
fn slots_of_a_segment_with_unknown_locks_stay_worn_out() {
    let options = SegmentOptions::new().participants(1);
    let form = Form::unknown(64);
    let segment = RawSegment::memfd("worn", &options, &form, |_| ()).expect("a segment");
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    // The last generation, and dead.
    let life = ((1u64 << 14) - 1) << 32 | 0xc000_0000;
    file.write_all_at(&life.to_ne_bytes(), segment.header().slots_at + 128).expect("written");
    assert_eq!(segment.participate(), Err(JoinError::WornOut));
    assert_eq!(segment.scrub(), 0);
}
