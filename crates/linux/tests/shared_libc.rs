//! Robust mutexes of the libc beside ours, in the same threads, and deaths that the
//! kernel does not report.

mod common;
mod segment;

use common::{Watchdog, in_threads, until};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use lockstead_core::robust::{Got, RobustError};
use lockstead_linux::shared::{self, Busy, JoinError};
use segment::{Child, Segment, hold, lose_list};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The tests of this file measure nothing, but share two processors: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const LONG: Duration = Duration::from_secs(20);

fn alone(seconds: u64) -> (Watchdog, std::sync::MutexGuard<'static, ()>) {
    (Watchdog::new(seconds), ALONE.lock().unwrap_or_else(|e| e.into_inner()))
}

/// A robust mutex of the libc.
#[derive(Clone, Copy)]
struct Theirs(*mut libc::pthread_mutex_t);

impl Theirs {
    /// Places a mutex in words of the segment, of which it takes eight.
    fn new(segment: &Segment, word: usize) -> Self {
        const { assert!(size_of::<libc::pthread_mutex_t>() <= 64) };
        Self::at(segment.word(word).as_ptr().cast())
    }

    fn at(mutex: *mut libc::pthread_mutex_t) -> Self {
        // SAFETY: `mutex` points to room for a mutex, which nobody uses yet.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            assert_eq!(libc::pthread_mutex_init(mutex, &attributes), 0);
        }
        Theirs(mutex)
    }

    /// Locks it within 20 seconds. Tells whether its owner had died.
    ///
    /// Looks every second: where a thread is killed between its release and its
    /// wake-up, and another one takes the mutex in between, glibc's sleepers sleep on.
    fn lock(self) -> Result<bool, i32> {
        let end = Instant::now() + LONG;
        let result = loop {
            // SAFETY: `at` has initialised the mutex; the time lives on this stack.
            let result = unsafe {
                let mut soon: libc::timespec = core::mem::zeroed();
                libc::clock_gettime(libc::CLOCK_REALTIME, &mut soon);
                soon.tv_sec += 1;
                libc::pthread_mutex_timedlock(self.0, &soon)
            };
            if result != libc::ETIMEDOUT || Instant::now() > end {
                break result;
            }
        };
        match result {
            0 => Ok(false),
            libc::EOWNERDEAD => {
                // SAFETY: `at` has initialised the mutex, and the calling thread has just got it.
                unsafe { libc::pthread_mutex_consistent(self.0) };
                Ok(true)
            }
            error => Err(error),
        }
    }

    fn unlock(self) {
        // SAFETY: `at` has initialised the mutex, and the calling thread holds it.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0) }, 0);
    }
}

/// Adds to two words that only a lock keeps the same.
fn add(segment: &Segment, pair: usize) {
    for word in [pair, pair + 1] {
        segment.word(word).store(segment.word(word).load(Relaxed) + 1, Relaxed);
    }
}

/// Makes the two words of a pair the same; tells whether they were.
fn mend(segment: &Segment, pair: usize) -> bool {
    let (one, other) = (segment.word(pair).load(Relaxed), segment.word(pair + 1).load(Relaxed));
    segment.word(pair + 1).store(one, Relaxed);
    one == other
}

/// Uses locks of both kinds, taken and released in changing orders.
fn interleave(segment: &Segment, theirs: [Theirs; 2]) {
    let ours = |lock: usize| match segment.lock_within(lock, LONG) {
        Ok(got) => {
            let fine = mend(segment, 500 + 2 * lock);
            assert!(fine || got == Got::OwnerDied, "torn, and nobody has died");
            segment.word(601).fetch_add(u64::from(got == Got::OwnerDied), Relaxed);
            segment.lock(lock).mark_consistent(&segment.party());
        }
        Err(error) => panic!("ours: {error:?}"),
    };
    let take = |kind: usize| {
        let died = theirs[kind].lock().unwrap_or_else(|error| panic!("theirs: {error}"));
        let fine = mend(segment, 510 + 2 * kind);
        assert!(fine || died, "torn, and nobody has died");
        segment.word(602).fetch_add(u64::from(died), Relaxed);
    };
    for round in 0u32.. {
        let (first, second) = ((round & 1) as usize, (round >> 1 & 1) as usize);
        // Theirs before ours, to have one order.
        take(0);
        if round & 4 != 0 {
            take(1);
        }
        ours(0);
        add(segment, 510);
        add(segment, 500);
        if first == 0 {
            assert!(segment.unlock(0));
        }
        if round & 4 != 0 {
            add(segment, 512);
            theirs[1].unlock();
        }
        if second == 0 {
            ours(1);
            add(segment, 502);
            assert!(segment.unlock(1));
        }
        if first != 0 {
            assert!(segment.unlock(0));
        }
        theirs[0].unlock();
        if round % 64 == 0 {
            // The slot is given up and taken again, between mutexes of the libc.
            take(1);
            let _ = shared::leave(segment.handle());
            ours(1);
            assert!(segment.unlock(1));
            theirs[1].unlock();
        }
        segment.word(600).fetch_add(1, Relaxed);
    }
}

#[test]
fn both_kinds_survive_the_same_threads() {
    let _alone = alone(300);
    let segment = Segment::new();
    let theirs = [Theirs::new(&segment, 100), Theirs::new(&segment, 108)];
    let kills = 400;
    let found = |word: usize, died: bool| segment.word(word).fetch_add(died.into(), Relaxed);
    let worker = || Child::new(|| interleave(&segment, theirs));
    let mut workers = [worker(), worker()];
    for kill in 0..kills {
        let before = segment.word(600).load(Relaxed);
        until("the workers work", || segment.word(600).load(Relaxed) > before + 50);
        std::thread::sleep(Duration::from_micros(kill * 37 % 1000));
        let at = kill as usize % 2;
        core::mem::replace(&mut workers[at], worker()).kill_and_wait();
        if kill % 10 != 9 {
            continue;
        }
        // All are dead: what they had is found.
        for worker in core::mem::replace(&mut workers, [worker(), worker()]) {
            worker.kill_and_wait();
        }
        for number in 0..2 {
            let got = segment.lock_within(number, LONG).expect("ours");
            found(601, got == Got::OwnerDied);
            assert!(mend(&segment, 500 + 2 * number) || got == Got::OwnerDied);
            segment.lock(number).mark_consistent(&segment.party());
            assert!(segment.unlock(number));
        }
        for (number, mutex) in theirs.iter().enumerate() {
            let died = mutex.lock().expect("theirs");
            found(602, died);
            assert!(mend(&segment, 510 + 2 * number) || died);
            mutex.unlock();
        }
    }
    for worker in workers {
        worker.kill_and_wait();
    }
    let (ours, theirs) = (segment.word(601).load(Relaxed), segment.word(602).load(Relaxed));
    println!("{kills} kills; dead owners found of ours {ours}, of theirs {theirs}");
    assert!(ours > 0 && theirs > 0, "no kill has hit anybody");
}

#[test]
fn more_mutexes_of_the_libc_than_the_kernel_walks_hide_a_death_until_it_is_asked_for() {
    let _alone = alone(120);
    for (count, hidden) in [(2000, false), (2100, true)] {
        let segment = Segment::new();
        let child = Child::new(|| {
            segment.party();
            // Private to the process: the kernel walks them all the same.
            for mutex in vec![[0u64; 8]; count].leak() {
                assert_eq!(Theirs::at(mutex.as_mut_ptr().cast()).lock(), Ok(false));
            }
            assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
            segment.word(1).store(1, SeqCst);
            until("killed", || false);
        });
        until("the child has the lock", || segment.word(1).load(SeqCst) == 1);
        child.kill_and_wait();
        assert_eq!(segment.record(1).current().is_alive(), hidden, "{count} mutexes");
        assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
    }
}

#[test]
fn a_thread_with_too_many_mutexes_of_the_libc_is_told_so() {
    let _alone = alone(60);
    let segment = Segment::new();
    in_threads(1, &|| {
        let mutexes: Vec<_> = vec![[0u64; 8]; 2100]
            .leak()
            .iter_mut()
            .map(|mutex| Theirs::at(mutex.as_mut_ptr().cast()))
            .collect();
        assert!(mutexes.iter().all(|mutex| mutex.lock() == Ok(false)));
        assert_eq!(shared::join(segment.address()).err(), Some(JoinError::ListTooLong));
        mutexes.iter().for_each(|mutex| mutex.unlock());
        assert!(shared::join(segment.address()).is_ok());
    });
}

#[test]
fn nobody_that_lives_is_found_to_have_ended() {
    let _alone = alone(60);
    let segment = Segment::new();
    let child = Child::new(|| {
        hold(&segment);
        lose_list();
        // As daemons do; the record lock does not mind.
        for file in 3..4096 {
            // SAFETY: closes what is open, which this process does not use any more.
            unsafe { libc::close(file) };
        }
        // SAFETY: a forked child that ends, which drops what it has inherited.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(0);
            }
            libc::waitpid(child, null_mut(), 0);
        }
        segment.word(1).store(2, SeqCst);
        until("killed", || false);
    });
    until("the child has the lock", || segment.word(1).load(SeqCst) == 2);
    let asked = segment.lock_within(0, Duration::from_millis(3500));
    assert_eq!(asked, Err(RobustError::TimedOut), "asked three times");
    child.kill_and_wait();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
}

#[test]
fn a_forked_child_does_not_stand_for_its_parent() {
    let _alone = alone(60);
    let segment = Segment::new();
    let child = Child::new(|| {
        hold(&segment);
        lose_list();
        // SAFETY: the child of the fork waits below until it is killed, and does not return.
        let grandchild = unsafe { libc::fork() };
        if grandchild == 0 {
            segment.word(2).store(u64::from(std::process::id()), SeqCst);
            until("killed", || false);
        }
        segment.word(1).store(2, SeqCst);
        until("killed", || false);
    });
    until("the child has the lock", || {
        segment.word(1).load(SeqCst) == 2 && segment.word(2).load(SeqCst) != 0
    });
    child.kill_and_wait();
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
    // SAFETY: the word names the grandchild, which sleeps until it is killed here.
    unsafe { libc::kill(segment.word(2).load(SeqCst) as libc::pid_t, libc::SIGKILL) };
}

/// Runs where `process_mrelease` takes the memory of a killed child away before it runs: on one
/// processor, the child last. Returns false where the kernel does not allow it.
fn kill_and_take_memory(child: Child) -> Result<bool, i32> {
    // SAFETY: the structure is plain bits, and calls that take numbers or live variables.
    unsafe {
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        let mut before: libc::cpu_set_t = core::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut before);
        let cpu = libc::sched_getcpu().max(0) as usize;
        libc::CPU_SET(cpu, &mut one);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one);
        libc::sched_setaffinity(child.0, size_of::<libc::cpu_set_t>(), &one);
        let idle: libc::sched_param = core::mem::zeroed();
        libc::sched_setscheduler(child.0, libc::SCHED_IDLE, &idle);
        let handle = libc::syscall(libc::SYS_pidfd_open, child.0, 0);
        libc::kill(child.0, libc::SIGKILL);
        let result = libc::syscall(libc::SYS_process_mrelease, handle, 0);
        let error = *libc::__errno_location();
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &before);
        libc::close(handle as libc::c_int);
        child.wait();
        match (result, error) {
            (0, _) => Ok(true),
            // It has run in between.
            (_, libc::ESRCH) => Ok(false),
            (_, error) => Err(error),
        }
    }
}

#[test]
fn a_process_whose_memory_was_taken_before_it_ended_is_noticed() {
    let _alone = alone(120);
    for exclusive in [true, false] {
        let mut taken = 0;
        for _ in 0..20 {
            let segment = Segment::with(exclusive);
            let child = Child::new(|| {
                hold(&segment);
                until("killed", || false);
            });
            until("the child has the lock", || segment.word(1).load(SeqCst) == 1);
            match kill_and_take_memory(child) {
                Err(error) => {
                    eprintln!("skipped: process_mrelease fails with error {error}");
                    return;
                }
                Ok(false) => continue,
                Ok(true) => taken += 1,
            }
            let tried = segment.lock(0).try_lock(&segment.party());
            if exclusive {
                assert_eq!(tried, Ok(Got::OwnerDied), "its list was in the segment");
                continue;
            }
            if tried == Err(RobustError::TimedOut) {
                assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
                println!("the kernel did not see the list; the oracle did");
                break;
            }
            assert_eq!(tried, Ok(Got::OwnerDied));
        }
        println!("memory taken {taken} times, exclusive: {exclusive}");
        if taken == 0 {
            eprintln!("skipped: the child always ended before its memory could be taken");
        }
    }
}

#[test]
fn an_exclusive_head_moves_between_segments() {
    let _alone = alone(60);
    let segments = [Segment::with(true), Segment::with(true), Segment::new()];
    in_threads(1, &|| {
        // Theirs is in use: an exclusive head would displace it.
        let mut mutex = [0u64; 8];
        let mutex = Theirs::at(mutex.as_mut_ptr().cast());
        assert_eq!(mutex.lock(), Ok(false));
        let refused = shared::join(segments[0].address()).err();
        assert_eq!(refused, Some(JoinError::ListInUse));
        mutex.unlock();
    });
    for (leaves, kept) in [(0, [1, 2]), (1, [0, 2]), (2, [0, 1])] {
        let word = segments[0].word(1);
        word.store(0, SeqCst);
        let child = Child::new(|| {
            for segment in &segments {
                segment.party();
            }
            assert_eq!(shared::leave(segments[leaves].handle()), Ok(()));
            for at in kept {
                assert_eq!(segments[at].lock_within(0, LONG), Ok(Got::Clean));
            }
            word.store(1, SeqCst);
            until("killed", || false);
        });
        until("the child has its locks", || word.load(SeqCst) == 1);
        child.kill_and_wait();
        for at in kept {
            let (lock, party) = (segments[at].lock(0), segments[at].party());
            assert_eq!(lock.try_lock(&party), Ok(Got::OwnerDied), "{leaves} left, {at} kept");
            assert!(lock.mark_consistent(&party) && lock.unlock(&party));
        }
        for segment in &segments {
            assert_eq!(shared::leave(segment.handle()), Ok(()));
        }
    }
}

#[test]
fn mutexes_of_the_libc_are_robust_again_after_an_exclusive_segment() {
    let _alone = alone(60);
    let (exclusive, segment) = (Segment::with(true), Segment::new());
    let child = Child::new(|| {
        let mutex = Theirs::new(&segment, 64);
        exclusive.party();
        assert_eq!(shared::leave(exclusive.handle()), Ok(()));
        assert_eq!(mutex.lock(), Ok(false));
    });
    assert_eq!(child.wait(), 0);
    let mutex = Theirs(segment.word(64).as_ptr().cast());
    assert_eq!(mutex.lock(), Ok(true), "its owner has ended");
    mutex.unlock();
}

/// The list leads to it from somewhere that is not found.
#[test]
fn a_slot_behind_too_many_mutexes_of_the_libc_is_kept() {
    let _alone = alone(60);
    let segment = Segment::new();
    in_threads(1, &|| {
        segment.party();
        let mut room = vec![[0u64; 8]; 2100];
        let mutexes: Vec<_> =
            room.iter_mut().map(|mutex| Theirs::at(mutex.as_mut_ptr().cast())).collect();
        assert!(mutexes.iter().all(|mutex| mutex.lock() == Ok(false)));
        assert_eq!(shared::leave(segment.handle()), Err(Busy::Refused));
        assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean), "still a member");
        assert!(segment.unlock(0));
        mutexes.iter().for_each(|mutex| mutex.unlock());
        assert_eq!(shared::leave(segment.handle()), Ok(()));
    });
}

#[test]
fn a_thread_that_ends_behind_too_many_mutexes_of_the_libc_tells_of_it_itself() {
    let _alone = alone(60);
    let segment = Segment::new();
    in_threads(1, &|| {
        segment.party();
        for mutex in vec![[0u64; 8]; 2100].leak() {
            assert_eq!(Theirs::at(mutex.as_mut_ptr().cast()).lock(), Ok(false));
        }
        assert_eq!(segment.lock_within(0, LONG), Ok(Got::Clean));
    });
    assert!(!segment.record(1).current().is_alive(), "nobody has asked yet");
    assert_eq!(segment.lock_within(0, LONG), Ok(Got::OwnerDied));
}
