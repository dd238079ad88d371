//! Locks in memory that processes share, when a participant ends and the kernel does not
//! say so, and when a signal handler copies one in the middle of a wait. A program of its
//! own, since it forks.

use lockstead::shared::{
    Segment, SegmentOptions, Shareable, SharedCondvar, SharedError, SharedMutex, SharedRwLock,
    SharedSemaphore,
};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
struct Root {
    stage: AtomicU32,
    child: AtomicU32,
    mutex: SharedMutex<u64>,
    rate: SharedRwLock<u64>,
    slots: SharedSemaphore,
    changed: SharedCondvar,
}

const LONG: Duration = Duration::from_secs(30);

fn segment() -> Segment<Root> {
    Segment::memfd("copies", &SegmentOptions::new()).expect("a segment")
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Runs `body` in a forked child, which ends then, by 1 if it panics.
fn fork(body: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child never returns from here.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
        // SAFETY: the call ends the child without its destructors.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    child
}

#[track_caller]
fn ends(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the child is our own, and nobody has waited for it yet.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the child failed");
}

/// Makes the kernel forget the list of the calling thread, so that it tells of its end to nobody.
fn lose_list() {
    // SAFETY: the kernel gets two numbers: no list, and the size that it expects.
    assert_eq!(unsafe { libc::syscall(libc::SYS_set_robust_list, 0usize, 24usize) }, 0);
}

#[test]
fn who_never_waits_for_long_finds_an_unnoticed_death() {
    let segment = segment();
    let root = segment.root();
    for tries in [false, true] {
        ends(fork(|| {
            core::mem::forget(root.mutex.lock().unwrap());
            lose_list();
        }));
        until("the lock is had", || {
            let locked = match tries {
                true => root.mutex.try_lock(),
                false => root.mutex.lock_timeout(Duration::from_millis(20)),
            };
            locked.is_ok_and(|locked| {
                let told = locked.is_inconsistent();
                drop(locked.recover(|_| ()));
                told
            })
        });
    }
}

/// Shows the same of a semaphore as of the mutex: the units of who has ended, and what it read.
#[test]
fn who_only_tries_finds_units_and_readers_that_ended_unnoticed() {
    let segment = segment();
    let root = segment.root();
    root.slots.add(1).unwrap();
    ends(fork(|| {
        core::mem::forget(root.slots.acquire(1).unwrap());
        lose_list();
    }));
    until("the unit is had", || root.slots.try_acquire(1).is_ok());
    segment.leave().expect("it holds nothing");
    ends(fork(|| {
        core::mem::forget(root.rate.read().unwrap());
        lose_list();
    }));
    until("nobody reads", || root.rate.try_write().is_ok());
}

#[test]
fn all_holders_of_units_are_asked_about() {
    let segment = segment();
    let root = segment.root();
    root.slots.add(3).unwrap();
    // In the slots before and behind that of one who lives.
    let dead = |stage| {
        let child = fork(|| {
            core::mem::forget(root.slots.acquire(1).unwrap());
            lose_list();
            root.stage.store(stage, SeqCst);
            until("both are there", || root.stage.load(SeqCst) == 9);
        });
        until("it has one", || root.stage.load(SeqCst) == stage);
        child
    };
    segment.leave().expect("it holds nothing");
    let one = dead(1);
    let has = root.slots.acquire(1).unwrap().permit();
    let other = dead(2);
    root.stage.store(9, SeqCst);
    ends(one);
    ends(other);
    std::thread::scope(|s| {
        s.spawn(|| drop(root.slots.acquire_timeout(2, LONG).expect("those of the dead")));
    });
    drop(has);
}

extern "C" fn forks(_: libc::c_int) {
    // SAFETY: may be called in a handler, and so may what runs in the child: nothing but
    // what was interrupted.
    let child = unsafe { libc::syscall(libc::SYS_fork) } as i32;
    FORKED.store(child, SeqCst);
}

/// 0 in the child.
static FORKED: AtomicI32 = AtomicI32::new(-1);

/// Has somebody wait who is copied meanwhile. Returns what the copy is told. `wait` is told which
/// process called it, and returns what its wait has ended with.
#[track_caller]
fn copied(root: &Root, wait: impl FnOnce() -> Result<(), SharedError>) -> libc::pid_t {
    root.stage.store(0, SeqCst);
    root.child.store(0, SeqCst);
    let waiter = fork(|| {
        // SAFETY: a sigaction is plain data, of which zeroes have no flags.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = forks as *const () as usize;
        // SAFETY: `action` lives for the call; its handler only forks, which a handler may.
        unsafe { libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut()) };
        root.stage.store(1, SeqCst);
        let ended = wait();
        match FORKED.load(SeqCst) {
            0 => root.child.store(1 + u32::from(ended == Err(SharedError::Cancelled)), SeqCst),
            child => {
                assert_eq!(ended, Ok(()), "the parent waits on");
                ends(child);
            }
        }
    });
    until("it is about to wait", || root.stage.load(SeqCst) == 1);
    until("it sleeps", || {
        let stat = std::fs::read_to_string(format!("/proc/{waiter}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
    });
    // SAFETY: the call takes numbers, and `waiter` is a child that this process has not reaped.
    unsafe { libc::kill(waiter, libc::SIGUSR1) };
    until("the copy knows", || root.child.load(SeqCst) != 0);
    assert_eq!(root.child.load(SeqCst), 2, "the copy is told that nothing was got");
    waiter
}

#[test]
fn a_copy_of_a_waiting_writer_releases_nothing() {
    let segment = segment();
    let root = segment.root();
    let read = root.rate.read().unwrap();
    let writer = copied(root, || {
        let written = root.rate.write()?;
        root.stage.store(2, SeqCst);
        until("somebody else has tried", || root.stage.load(SeqCst) == 3);
        drop(written);
        Ok(())
    });
    drop(read);
    until("it writes", || root.stage.load(SeqCst) == 2);
    assert_eq!(root.rate.try_write().map(drop), Err(SharedError::Held));
    root.stage.store(3, SeqCst);
    ends(writer);
}

#[test]
fn a_copy_of_who_waits_for_units_takes_none() {
    let segment = segment();
    let root = segment.root();
    let waiter = copied(root, || root.slots.acquire(1).map(drop));
    assert!(root.slots.add(1).unwrap());
    ends(waiter);
    assert_eq!((root.slots.free(), root.slots.total()), (1, 1));
}

/// Which claims a thread uses is not inherited, and a child changes nothing of it.
#[test]
fn a_forked_child_has_all_its_claims_and_its_parent_keeps_those_it_uses() {
    let options = SegmentOptions::new().claims(70);
    let segment = Segment::<Root>::memfd("copies", &options).expect("a segment");
    let slots = &segment.root().slots;
    let too_many = Err(SharedError::TooManyClaims);
    assert!(slots.add(200).unwrap());
    let take_all = || {
        let permits: Vec<_> = (0..70).map(|_| slots.acquire(1).unwrap().permit()).collect();
        assert_eq!(slots.try_acquire(1).map(drop), too_many);
        permits
    };
    let mut inherited = take_all();
    ends(fork(|| {
        let own = take_all();
        assert_eq!(slots.free(), 60);
        drop(core::mem::take(&mut inherited));
        assert_eq!(slots.free(), 60, "they are the parent's");
        assert_eq!(slots.try_acquire(1).map(drop), too_many);
        drop(own);
        assert_eq!(slots.free(), 130);
        drop(take_all());
    }));
    assert_eq!(slots.try_acquire(1).map(drop), too_many);
    drop(inherited);
    assert_eq!(slots.free(), 200);
    segment.leave().expect("it holds nothing");
    drop(take_all());
}

#[test]
fn a_copy_of_who_waits_for_a_condition_does_not_have_the_mutex() {
    let segment = segment();
    let root = segment.root();
    let waiter = copied(root, || {
        let guard = root.mutex.lock()?.acquired().expect("nobody died");
        let waited = root.changed.wait_while(guard, |number| *number == 0)?;
        assert_eq!(*waited.acquired().expect("nobody died"), 1);
        Ok(())
    });
    *root.mutex.lock().unwrap().acquired().expect("nobody died") = 1;
    root.changed.notify_all();
    ends(waiter);
    assert_eq!(root.mutex.try_lock().map(drop), Ok(()));
}
