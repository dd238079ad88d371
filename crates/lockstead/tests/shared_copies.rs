//! Locks in memory that processes share, when a participant ends and the kernel does not
//! say so, and when a signal handler copies one in the middle of a wait. A program of its
//! own, since it forks.

use core::ptr::null_mut;
use lockstead::shared::{
    Locked, Segment, SegmentOptions, Shareable, SharedCondvar, SharedError, SharedMutex,
    SharedRwLock, SharedSemaphore,
};
use lockstead_core::robust::word::WAITERS;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
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
    used: SharedMutex<u64>,
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
    // what was interrupted, and the locks of the segment.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as i32;
    FORKED.store(child, SeqCst);
    if child != 0 {
        return;
    }
    // SAFETY: the call takes a number: a copy that waits on for ever ends all the same.
    unsafe { libc::alarm(25) };
    let segment = SEGMENT.load(SeqCst);
    // SAFETY: null, or the segment of the test, which lives until the copy has ended.
    if let Some(segment) = unsafe { segment.as_ref() } {
        // No panic leaves a handler.
        if !matches!(segment.root().used.lock(), Ok(Locked::Acquired(_))) {
            // SAFETY: the call ends the copy without its destructors.
            unsafe { libc::_exit(7) };
        }
    }
}

/// 0 in the child.
static FORKED: AtomicI32 = AtomicI32::new(-1);

/// The segment of which a copy uses a mutex before it returns from the handler; null: it uses none.
static SEGMENT: AtomicPtr<Segment<Root>> = AtomicPtr::new(null_mut());

/// The tests that copy a waiter, which share these two: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Has somebody wait who is copied meanwhile, by a handler that takes a mutex in the copy if it
/// `uses` one. `wait` returns what its wait has ended with. The copy must be told that nothing was
/// got, and be somebody new who holds nothing. The waiter counts as asleep when it `sleeps`.
#[track_caller]
fn copied_when(
    segment: &Segment<Root>,
    uses: bool,
    wait: impl FnOnce() -> Result<(), SharedError>,
    mut sleeps: impl FnMut() -> bool,
) -> libc::pid_t {
    let root = segment.root();
    root.stage.store(0, SeqCst);
    root.child.store(0, SeqCst);
    let waiter = fork(|| {
        let used = if uses { core::ptr::from_ref(segment).cast_mut() } else { null_mut() };
        SEGMENT.store(used, SeqCst);
        // SAFETY: a sigaction is plain data, of which zeroes have no flags.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = forks as *const () as usize;
        // SAFETY: `action` lives for the call; its handler only does what a handler may.
        unsafe { libc::sigaction(libc::SIGUSR1, &action, null_mut()) };
        root.stage.store(1, SeqCst);
        let ended = wait();
        match FORKED.load(SeqCst) {
            0 => {
                let is_nobody = ended == Err(SharedError::Cancelled)
                    && segment.leave().is_ok()
                    && root.used.lock().is_ok_and(|locked| locked.acquired().is_some())
                    && segment.leave().is_ok();
                root.child.store(1 + u32::from(is_nobody), SeqCst);
            }
            child => {
                assert_eq!(ended, Ok(()), "the parent waits on");
                ends(child);
            }
        }
    });
    until("it is about to wait", || root.stage.load(SeqCst) != 0);
    until("it sleeps", || {
        let stat = std::fs::read_to_string(format!("/proc/{waiter}/stat")).unwrap_or_default();
        sleeps() && stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"))
    });
    // SAFETY: the call takes numbers, and `waiter` is a child that this process has not reaped.
    unsafe { libc::kill(waiter, libc::SIGUSR1) };
    until("the copy knows", || root.child.load(SeqCst) != 0);
    assert_eq!(root.child.load(SeqCst), 2, "the copy is told that nothing was got; uses: {uses}");
    waiter
}

/// Does the same for a wait that sleeps at once.
#[track_caller]
fn copied(
    segment: &Segment<Root>,
    uses: bool,
    wait: impl FnOnce() -> Result<(), SharedError>,
) -> libc::pid_t {
    copied_when(segment, uses, wait, || true)
}

/// Runs a test of a waiter that is copied: once with a copy that uses nothing else in the handler,
/// and once with one that does, and so is a participant again when the handler returns.
fn with_both_copies(test: impl Fn(&Segment<Root>, bool)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for uses in [false, true] {
        test(&segment(), uses);
    }
}

#[test]
fn a_copy_of_who_waits_for_a_mutex_does_not_have_it() {
    with_both_copies(|segment, uses| {
        let root = segment.root();
        let held = root.mutex.lock().unwrap().acquired().expect("nobody died");
        let waiter = copied(segment, uses, || root.mutex.lock().map(drop));
        drop(held);
        ends(waiter);
        assert!(!root.mutex.is_locked());
    });
}

#[test]
fn a_copy_of_a_waiting_reader_reads_nothing() {
    with_both_copies(|segment, uses| {
        let root = segment.root();
        let written = root.rate.write().unwrap();
        let reader = copied(segment, uses, || root.rate.read().map(drop));
        drop(written);
        ends(reader);
        assert_eq!(root.rate.try_write().map(drop), Ok(()));
    });
}

#[test]
fn a_copy_of_a_waiting_writer_releases_nothing() {
    with_both_copies(|segment, uses| {
        let root = segment.root();
        let read = root.rate.read().unwrap();
        let writer = copied(segment, uses, || {
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
    });
}

#[test]
fn a_copy_of_who_waits_for_units_takes_none() {
    with_both_copies(|segment, uses| {
        let root = segment.root();
        let waiter = copied(segment, uses, || root.slots.acquire(1).map(drop));
        assert!(root.slots.add(1).unwrap());
        ends(waiter);
        assert_eq!((root.slots.free(), root.slots.total()), (1, 1));
    });
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
    with_both_copies(|segment, uses| {
        let root = segment.root();
        let waiter = copied(segment, uses, || waits_for_change(root));
        *root.mutex.lock().unwrap().acquired().expect("nobody died") = 1;
        root.changed.notify_all();
        ends(waiter);
        assert_eq!(root.mutex.try_lock().map(drop), Ok(()));
    });
}

fn waits_for_change(root: &Root) -> Result<(), SharedError> {
    let guard = root.mutex.lock()?.acquired().expect("nobody died");
    root.stage.store(2, SeqCst);
    let waited = root.changed.wait_while(guard, |number| *number == 0)?;
    assert_eq!(*waited.acquired().expect("nobody died"), 1);
    Ok(())
}

/// Shows the same of a copy that is made while its participant waits to give units back.
#[test]
fn a_copy_of_who_gives_units_back_gives_none() {
    with_both_copies(|segment, uses| {
        let root = segment.root();
        assert!(root.slots.add(1).unwrap());
        let mine = root.mutex.lock().unwrap().acquired().expect("nobody died");
        // Both begin with a mutex, and that with the word which names its owner.
        let [owned, word] =
            [core::ptr::from_ref(&root.mutex).cast(), core::ptr::from_ref(&root.slots).cast()]
                // SAFETY: all access these words as atomics, and they live as long as the segment.
                .map(|word: *const AtomicU32| unsafe { &*word });
        let sleeps = || match root.stage.load(SeqCst) {
            2 => {
                assert_eq!(word.swap(owned.load(SeqCst), SeqCst), 0, "nobody uses the semaphore");
                root.stage.store(3, SeqCst);
                false
            }
            stage => stage == 3 && word.load(SeqCst) & WAITERS != 0,
        };
        let gives_back = || {
            let permit = root.slots.acquire(1)?.permit();
            root.stage.store(2, SeqCst);
            until("somebody has the semaphore's mutex", || root.stage.load(SeqCst) == 3);
            drop(permit);
            if FORKED.load(SeqCst) == 0 { Err(SharedError::Cancelled) } else { Ok(()) }
        };
        let waiter = copied_when(segment, uses, gives_back, sleeps);
        // The waiter looks again within a second.
        word.store(0, SeqCst);
        ends(waiter);
        assert_eq!((root.slots.free(), root.slots.total()), (1, 1));
        drop(mine);
    });
}

/// What a thread has named by a wait inside another one is not named by a child, which has waited for
/// nothing.
#[test]
fn a_forked_child_names_nothing_that_its_parent_has_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let segment = segment();
    let root = segment.root();
    let briefly = Duration::from_millis(1);
    let outer = root.mutex.lock().unwrap().acquired().expect("nobody died");
    let outer = root.changed.wait_timeout(outer, briefly).unwrap().mutex;
    let inner = root.used.lock().unwrap().acquired().expect("nobody died");
    let inner = root.changed.wait_timeout(inner, briefly).unwrap().mutex;
    let child = fork(|| {
        until("the parent has released it", || root.stage.load(SeqCst) == 1);
        drop(root.used.lock().unwrap());
        segment.leave().expect("it waits for nothing");
    });
    drop(inner);
    root.stage.store(1, SeqCst);
    ends(child);
    drop(outer);
    segment.leave().expect("it holds nothing");
}

/// Shows the same of a copy that is made when the waiter was notified, and waits for the mutex.
#[test]
fn a_copy_of_who_takes_the_mutex_back_does_not_have_it() {
    with_both_copies(|segment, uses| {
        let root = segment.root();
        // The first of the two words of a mutex: has somebody set its flag to sleep there?
        let word = core::ptr::from_ref(&root.mutex).cast::<AtomicU32>();
        // SAFETY: a shared mutex begins with this word, which all access as an atomic.
        let awaited = || unsafe { &*word }.load(SeqCst) & WAITERS != 0;
        let mut held = None;
        let sleeps = || match &mut held {
            Some(_) => awaited(),
            none if root.stage.load(SeqCst) == 2 => {
                // It waits for the condition, since it has released the mutex.
                let mut guard = root.mutex.lock().unwrap().acquired().expect("nobody died");
                *guard = 1;
                root.changed.notify_all();
                *none = Some(guard);
                false
            }
            _ => false,
        };
        let waiter = copied_when(segment, uses, || waits_for_change(root), sleeps);
        drop(held);
        ends(waiter);
        assert_eq!(root.mutex.try_lock().map(drop), Ok(()));
    });
}
