//! Locks in memory that processes share, when a process dies. A program of its own, so
//! that no thread of another test holds a lock of the allocator at a fork.

#[path = "common/watched.rs"]
mod watched;

use lockstead::shared::raw::{RawMutex, RawOutcome, RawRwLock};
use lockstead::shared::{
    Locked, OnDeath, Segment, SegmentOptions, Shareable, SharedCondvar, SharedError, SharedMutex,
    SharedRwLock, SharedSemaphore, Taken,
};
use lockstead_core::WaitBounds;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use watched::Watched;

#[derive(Shareable)]
#[repr(C)]
struct Root {
    stage: AtomicU32,
    pairs: [SharedMutex<[u64; 2]>; 8],
    rates: SharedRwLock<[u64; 2]>,
    others: SharedRwLock<u64>,
    slots: SharedSemaphore,
    reports: SharedSemaphore,
    changed: SharedCondvar,
    many: [SharedMutex<()>; 5000],
}

const LONG: Duration = Duration::from_secs(30);

fn segment() -> Segment<Root> {
    let segment = Segment::memfd_with("deaths", &SegmentOptions::new(), |root: &mut Root| {
        root.slots = SharedSemaphore::new(3, OnDeath::Return);
        root.reports = SharedSemaphore::new(3, OnDeath::Report);
    });
    segment.expect("a segment")
}

impl Root {
    fn reach(&self, stage: u32) {
        self.stage.store(stage, Ordering::Release);
    }

    #[track_caller]
    fn await_stage(&self, stage: u32) {
        let end = Instant::now() + LONG;
        while self.stage.load(Ordering::Acquire) != stage {
            assert!(Instant::now() < end, "stage {stage} is never reached");
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// A forked child. Killed, if it still lives, when dropped.
struct Child(libc::pid_t);

impl Child {
    /// Starts a child that runs `body` and then waits to be killed.
    fn new(body: impl FnOnce()) -> Child {
        // SAFETY: the child runs `body` and never returns from here.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", std::io::Error::last_os_error()),
            0 => {
                let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
                // SAFETY: the calls have no preconditions, and end the child without its
                // destructors.
                unsafe {
                    libc::alarm(60);
                    if right {
                        loop {
                            libc::pause();
                        }
                    }
                    libc::_exit(1)
                }
            }
            child => Child(child),
        }
    }

    fn kill(self) {
        // SAFETY: the child is our own, and nobody has waited for it yet.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: the child is our own, and nobody has waited for it yet.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, &mut status, 0);
        }
        assert!(libc::WIFSIGNALED(status), "the child failed: {status:#x}");
    }
}

#[test]
fn the_next_one_is_told_of_a_killed_owner() {
    let segment = segment();
    let root = segment.root();
    let child = Child::new(|| {
        let mut pair = root.pairs[0].lock().unwrap().acquired().unwrap();
        pair[0] = 9;
        root.reach(1);
        core::mem::forget(pair);
    });
    root.await_stage(1);
    assert_eq!(root.pairs[0].try_lock().map(drop), Err(SharedError::Held));
    child.kill();
    let Locked::OwnerDied(mut pair) = root.pairs[0].lock_timeout(LONG).unwrap() else {
        panic!("its owner died")
    };
    assert_eq!(*pair, [9, 0]);
    pair[1] = pair[0];
    let pair = pair.mark_consistent();
    drop(pair);
    assert!(matches!(root.pairs[0].lock().unwrap(), Locked::Acquired(_)));
}

#[test]
fn who_touches_nothing_has_the_next_one_told() {
    let segment = segment();
    let root = segment.root();
    let child = Child::new(|| {
        core::mem::forget(root.pairs[0].lock().unwrap());
        core::mem::forget(root.rates.write().unwrap());
        root.reach(1);
    });
    root.await_stage(1);
    child.kill();
    // SAFETY: a mutex with data begins with one without, and so does a reader-writer lock; both are
    // mapped as long as the segment.
    let (mutex, rwlock): (&RawMutex, &RawRwLock) = unsafe {
        let (pair, rates) = (NonNull::from(&root.pairs[0]), NonNull::from(&root.rates));
        (pair.cast().as_ref(), rates.cast().as_ref())
    };
    let forever = WaitBounds::FOREVER;
    for _ in 0..3 {
        assert_eq!(mutex.lock(&forever), Ok(RawOutcome::OwnerDied));
        assert!(mutex.unlock_untouched());
        assert!(!mutex.unlock_untouched() && !mutex.is_locked() && mutex.is_inconsistent());
        assert_eq!(rwlock.read(&forever), Ok(RawOutcome::OwnerDied));
        assert!(rwlock.unlock_untouched());
        assert_eq!(rwlock.write(&forever), Ok(RawOutcome::OwnerDied));
        assert!(rwlock.unlock_untouched());
        assert!(!rwlock.unlock_untouched() && rwlock.is_inconsistent());
    }
    assert_eq!(mutex.lock(&forever), Ok(RawOutcome::OwnerDied));
    assert!(mutex.mark_consistent() && mutex.unlock());
    assert_eq!(mutex.lock(&forever), Ok(RawOutcome::Acquired));
    assert!(mutex.unlock_untouched() && !mutex.is_inconsistent());
}

#[test]
fn who_sleeps_is_woken_by_the_death() {
    let segment = segment();
    let root = segment.root();
    let child = Child::new(|| {
        core::mem::forget(root.pairs[0].lock().unwrap());
        root.reach(1);
    });
    root.await_stage(1);
    let watched = [(); 4].map(|()| Watched::default());
    std::thread::scope(|s| {
        let waiters: Vec<_> = watched
            .iter()
            .map(|watched| {
                s.spawn(|| {
                    watched.begins();
                    let pair = root.pairs[0].lock_timeout(LONG).unwrap();
                    let died = pair.is_inconsistent();
                    drop(pair.recover(|pair| *pair = [1, 1]).unwrap());
                    died
                })
            })
            .collect();
        watched.iter().for_each(Watched::sleeps);
        child.kill();
        let told = waiters.into_iter().map(|waiter| waiter.join().unwrap());
        assert_eq!(told.filter(|&died| died).count(), 1, "one is told, and repairs");
    });
}

#[test]
fn all_locks_of_a_killed_process_are_recovered() {
    let segment = segment();
    let root = segment.root();
    let child = Child::new(|| {
        for lock in &root.many {
            core::mem::forget(lock.lock().unwrap());
        }
        root.reach(1);
    });
    root.await_stage(1);
    child.kill();
    for lock in &root.many {
        let lock = lock.lock_timeout(LONG).unwrap();
        assert!(matches!(lock, Locked::OwnerDied(_)));
        drop(lock.recover(|()| ()).unwrap());
    }
    for lock in &root.many {
        assert!(matches!(lock.try_lock().unwrap(), Locked::Acquired(_)));
    }
}

#[test]
fn a_child_is_not_its_parent() {
    let segment = segment();
    let root = segment.root();
    let mine = root.pairs[0].lock().unwrap().acquired().unwrap();
    let read = root.rates.read().unwrap().acquired().unwrap();
    let permit = root.slots.acquire(1).unwrap();
    let child = {
        let (mine, read, permit) = (&mine, &read, &permit);
        Child::new(move || {
            // SAFETY: the parent's guards, of which the child has a copy of its own.
            unsafe {
                drop(core::ptr::read(mine));
                drop(core::ptr::read(read));
                drop(core::ptr::read(permit));
            }
            assert_eq!(root.pairs[0].try_lock().map(drop), Err(SharedError::Held));
            assert_eq!(root.rates.try_write().map(drop), Err(SharedError::Held));
            assert_eq!(root.slots.try_acquire(3).map(drop), Err(SharedError::Held));
            core::mem::forget(root.pairs[1].lock().unwrap());
            root.reach(1);
        })
    };
    root.await_stage(1);
    assert!(root.pairs[0].is_locked());
    assert_eq!(root.pairs[1].try_lock().map(drop), Err(SharedError::Held));
    child.kill();
    assert!(matches!(root.pairs[1].lock_timeout(LONG).unwrap(), Locked::OwnerDied(_)));
    assert_eq!(root.pairs[0].lock().map(drop), Err(SharedError::Recursive), "still the parent's");
    drop((mine, read, permit));
    assert!(matches!(root.rates.try_write().unwrap(), Locked::Acquired(_)));
    assert_eq!(root.slots.free(), 3);
}

#[test]
fn an_inherited_guard_is_not_the_childs_own() {
    let segment = segment();
    let root = segment.root();
    let read = root.rates.read().unwrap().acquired().unwrap();
    let written = root.others.write().unwrap().acquired().unwrap();
    let permit = root.slots.acquire(1).unwrap().permit();
    let child = {
        let (read, written, permit) = (&read, &written, &permit);
        Child::new(move || {
            root.reach(1);
            root.await_stage(2);
            core::mem::forget(root.rates.read().unwrap());
            core::mem::forget(root.slots.acquire(1).unwrap());
            core::mem::forget(root.others.write().unwrap());
            // SAFETY: the parent's guards, of which the child has a copy of its own.
            unsafe {
                drop(core::ptr::read(read));
                drop(core::ptr::read(written));
                drop(core::ptr::read(permit));
            }
            root.reach(3);
        })
    };
    root.await_stage(1);
    drop((read, written, permit));
    root.reach(2);
    root.await_stage(3);
    assert_eq!(root.rates.try_write().map(drop), Err(SharedError::Held));
    assert_eq!(root.others.try_read().map(drop), Err(SharedError::Held));
    assert_eq!(root.slots.free(), 2);
    child.kill();
    assert!(root.others.read_timeout(LONG).unwrap().is_inconsistent());
}

/// What a child lets go is its own: also the whole segment.
#[test]
fn a_child_that_lets_go_of_the_segment_leaves_its_parent_in_it() {
    let segment = segment();
    let root = segment.root();
    let mine = root.pairs[0].lock().unwrap().acquired().unwrap();
    let child = {
        let segment = &segment;
        Child::new(move || {
            // SAFETY: the child's own copy, used no more afterwards, but for what `same`
            // has mapped anew.
            let own = unsafe { core::ptr::read(segment) };
            let fd = own.as_fd().try_clone_to_owned().expect("a descriptor");
            drop(own);
            let same = Segment::<Root>::from_fd(fd).expect("the same");
            assert_eq!(same.root().pairs[0].try_lock().map(drop), Err(SharedError::Held));
            drop(same.root().pairs[1].lock().unwrap());
            same.root().reach(1);
            core::mem::forget(same);
        })
    };
    root.await_stage(1);
    child.kill();
    assert_eq!(root.pairs[0].lock().map(drop), Err(SharedError::Recursive));
    std::thread::scope(|s| {
        s.spawn(|| {
            // Longer than sleepers rely on the kernel's word alone.
            let limit = Duration::from_millis(2500);
            let refused = root.pairs[0].lock_timeout(limit).map(drop);
            assert_eq!(refused, Err(SharedError::TimedOut), "nobody has died");
        });
    });
    drop(mine);
    assert!(matches!(root.pairs[0].lock().unwrap(), Locked::Acquired(_)));
}

#[test]
fn a_killed_reader_is_one_less() {
    let segment = segment();
    let root = segment.root();
    let child = Child::new(|| {
        core::mem::forget(root.rates.read().unwrap());
        root.reach(1);
    });
    root.await_stage(1);
    assert_eq!(root.rates.try_write().map(drop), Err(SharedError::Held));
    let watched = Watched::default();
    std::thread::scope(|s| {
        let writer = s.spawn(|| {
            watched.begins();
            root.rates.write_timeout(LONG).map(|w| w.is_inconsistent())
        });
        watched.sleeps();
        child.kill();
        assert_eq!(writer.join().unwrap(), Ok(false));
    });
}

#[test]
fn a_killed_writer_is_repaired_by_who_comes_next() {
    let segment = segment();
    let root = segment.root();
    for reads in [true, false] {
        root.reach(0);
        let child = Child::new(|| {
            let mut rates = root.rates.write().unwrap().acquired().unwrap();
            rates[0] += 1;
            root.reach(1);
            core::mem::forget(rates);
        });
        root.await_stage(1);
        child.kill();
        let repair = |rates: &mut [u64; 2]| rates[1] = rates[0];
        if reads {
            let rates = root.rates.read_timeout(LONG).unwrap();
            assert!(rates.is_inconsistent());
            assert_eq!(*rates.recover(repair).unwrap(), [1, 1]);
        } else {
            let rates = root.rates.write_timeout(LONG).unwrap();
            assert!(rates.is_inconsistent());
            assert_eq!(*rates.recover(repair).unwrap(), [2, 2]);
        }
        assert!(matches!(root.rates.read().unwrap(), Locked::Acquired(_)));
    }
}

#[test]
fn units_of_a_killed_holder_are_returned_or_reported() {
    let segment = segment();
    let root = segment.root();
    let child = Child::new(|| {
        core::mem::forget(root.slots.acquire(2).unwrap());
        core::mem::forget(root.reports.acquire(2).unwrap());
        root.reach(1);
    });
    root.await_stage(1);
    assert_eq!(root.slots.try_acquire(2).map(drop), Err(SharedError::Held));
    let watched = Watched::default();
    std::thread::scope(|s| {
        let waiter = s.spawn(|| {
            watched.begins();
            let taken = root.slots.acquire_timeout(2, LONG).unwrap();
            matches!(taken, Taken::Acquired(_))
        });
        watched.sleeps();
        child.kill();
        assert!(waiter.join().unwrap());
    });
    let taken = root.reports.acquire_timeout(2, LONG).unwrap();
    assert!(matches!(taken, Taken::HolderDied { lost: 2, .. }), "{taken:?}");
    drop(taken);
    assert_eq!((root.slots.free(), root.reports.free()), (3, 3));
}

/// Two wait, one is notified and killed, whether or not it has looked. The other one is
/// not left asleep beside what it waits for.
#[test]
fn a_notification_is_not_lost_with_who_got_it() {
    let segment = segment();
    let root = segment.root();
    for _ in 0..20 {
        root.reach(0);
        *root.pairs[0].lock().unwrap().recover(|_| ()).unwrap() = [0, 0];
        // Reads only: what it was woken for stays there when it dies.
        let child = Child::new(|| {
            let pair = root.pairs[0].lock_timeout(LONG).unwrap().recover(|_| ()).unwrap();
            root.reach(1);
            let pair = root.changed.wait_while(pair, |pair| pair[0] == 0).unwrap();
            core::mem::forget(pair);
        });
        root.await_stage(1);
        std::thread::scope(|s| {
            let other = s.spawn(|| {
                let pair = root.pairs[0].lock_timeout(LONG).unwrap().recover(|_| ()).unwrap();
                root.reach(2);
                let limit = Duration::from_secs(20);
                let waited =
                    root.changed.wait_while_timeout(pair, limit, |pair| pair[0] == 0).unwrap();
                let _ = waited.mutex.recover(|_| ());
                waited.ended
            });
            root.await_stage(2);
            let mut pair = root.pairs[0].lock_timeout(LONG).unwrap().recover(|_| ()).unwrap();
            pair[0] = 1;
            drop(pair);
            // The longest asleep first: the child.
            root.changed.notify_one();
            child.kill();
            assert_eq!(other.join().unwrap(), None);
        });
    }
}

#[test]
fn a_slot_is_taken_again_after_each_death() {
    let options = SegmentOptions::new().participants(2);
    let segment = Segment::<Root>::memfd("deaths", &options).expect("a segment");
    let root = segment.root();
    let lock = &root.pairs[0];
    for deaths in 0..30 {
        let pair = lock.lock_timeout(LONG).unwrap();
        assert_eq!(pair.is_inconsistent(), deaths > 0);
        assert_eq!(pair.recover(|_| ()).unwrap()[0], deaths);
        root.reach(0);
        let child = Child::new(|| {
            let mut pair = lock.lock().unwrap().acquired().unwrap();
            pair[0] += 1;
            // Not before: who sees it locked only might kill it too early.
            root.reach(1);
            core::mem::forget(pair);
        });
        root.await_stage(1);
        child.kill();
    }
}
