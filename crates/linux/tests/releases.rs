//! The mutex where its releases cannot be restarted, or are by other means than usual:
//! it excludes, and nobody sleeps for ever.
//!
//! Each case is a process of its own: this program, started again for one test.

#[path = "common/filter.rs"]
mod filter;

use filter::refuse;
use lockstead_core::RawMutex;
use lockstead_linux::{Linux, sections};
use std::cell::UnsafeCell;
use std::panic::Location;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the case to the program that is started again.
const CASE: &str = "LOCKSTEAD_TEST_RELEASES";
const THREADS: u64 = 4;
const ROUNDS: u64 = 3_000;
/// What a case ends with when the system does not let it happen.
const SKIPPED: i32 = 77;

struct Shared {
    lock: RawMutex<Linux>,
    count: UnsafeCell<u64>,
}

// SAFETY: while threads run, they touch the count under the lock only.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared { lock: RawMutex::new(), count: UnsafeCell::new(0) };

/// Has threads fight over the lock, with sections long enough for the others to sleep.
fn fight(expects_sections: bool) {
    // SAFETY: no other thread of the case has begun.
    let before = unsafe { *SHARED.count.get() };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    SHARED.lock.lock(Location::caller()).expect("not recursive");
                    // SAFETY: this thread has locked it above, and only the holder releases it.
                    unsafe { *SHARED.count.get() += 1 };
                    if round % 32 == 0 {
                        let began = Instant::now();
                        while began.elapsed() < Duration::from_micros(60) {}
                    }
                    // SAFETY: this thread has locked it above, and only the holder releases it.
                    unsafe { SHARED.lock.unlock() };
                }
                assert_eq!(!sections().is_null(), expects_sections, "how threads release");
            });
        }
    });
    // SAFETY: all threads that use it have been joined.
    assert_eq!(unsafe { *SHARED.count.get() } - before, THREADS * ROUNDS);
    assert!(!SHARED.lock.is_locked());
}

/// Runs this program for `test` in `case`; `None` if it was skipped there.
fn again(test: &str, case: &str, tunables: &str) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(CASE, case)
        .env("GLIBC_TUNABLES", tunables)
        .stdout(Stdio::null())
        .spawn()
        .expect("started again");
    let deadline = Instant::now() + Duration::from_secs(120);
    let ended = loop {
        if let Some(ended) = child.try_wait().expect("waited for") {
            break ended;
        }
        if Instant::now() > deadline {
            child.kill().expect("ended");
            child.wait().expect("waited for");
            panic!("{case}: sleeps for ever");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    match ended.code() {
        Some(SKIPPED) => println!("skipped: {case}: the system does not allow it"),
        code => assert_eq!(code, Some(0), "{case}: {ended}"),
    }
}

fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

/// Tells whether the libc registers threads here at all.
fn registered() -> bool {
    SHARED.lock.lock(Location::caller()).expect("free");
    // SAFETY: this thread has locked it above, and only the holder releases it.
    unsafe { SHARED.lock.unlock() };
    !sections().is_null()
}

#[test]
fn a_process_that_forbids_itself_to_restart_releases_goes_on() {
    if case().is_none() {
        return again(
            "a_process_that_forbids_itself_to_restart_releases_goes_on",
            "a filter against membarrier",
            "",
        );
    }
    let sections = registered();
    if !refuse(libc::SYS_membarrier, None, libc::EPERM) {
        std::process::exit(SKIPPED);
    }
    fight_with_some(sections);
}

/// A thread that is forbidden the call before its first lock never has sections itself. It must
/// know that others have them, and may overlook it.
#[test]
fn a_thread_that_may_not_restart_releases_looks_again() {
    if case().is_none() {
        return again(
            "a_thread_that_may_not_restart_releases_looks_again",
            "a filter against membarrier for one thread",
            "",
        );
    }
    if !registered() {
        // Nobody releases in sections here, and so no release misses anybody.
        std::process::exit(SKIPPED);
    }
    SHARED.lock.lock(Location::caller()).expect("free");
    let (tell, told) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let filtered = filter::refuse_here(libc::SYS_membarrier, libc::EPERM);
        // SAFETY: the call takes no arguments, and no memory of ours.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        tell.send(filtered.then_some(tid)).expect("heard");
        SHARED.lock.lock(Location::caller()).expect("not recursive");
        // SAFETY: this thread has locked it above, and only the holder releases it.
        unsafe { SHARED.lock.unlock() };
        assert!(sections().is_null(), "it may not register for them");
    });
    let Some(tid) = told.recv().expect("told") else { std::process::exit(SKIPPED) };
    // Past the bound on waiting nothing but a wake-up ends a sleep, or a timer for this purpose.
    let looks = || sleeps_of(tid);
    let deadline = Instant::now() + Duration::from_secs(60);
    while looks() < 200 {
        assert!(Instant::now() < deadline, "the thread relies on being woken: {} sleeps", looks());
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: this thread has locked it above, and only the holder releases it.
    unsafe { SHARED.lock.unlock() };
    waiter.join().expect("ended");
    assert!(!SHARED.lock.is_locked());
}

/// Returns how often a thread has gone to sleep.
fn sleeps_of(tid: libc::c_long) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status"));
    let status = status.expect("the thread lives");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a count")
}

/// Has threads fight of which the first may release in sections; the others join after the refusal,
/// and learn of it at the first sleep.
fn fight_with_some(first: bool) {
    let others = std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            for _ in 0..ROUNDS {
                SHARED.lock.lock(Location::caller()).expect("not recursive");
                // SAFETY: this thread has locked it above, and only the holder releases it.
                unsafe { *SHARED.count.get() += 1 };
                // SAFETY: this thread has locked it above, and only the holder releases it.
                unsafe { SHARED.lock.unlock() };
            }
            sections().is_null()
        });
        for round in 0..ROUNDS {
            SHARED.lock.lock(Location::caller()).expect("not recursive");
            // SAFETY: this thread has locked it above, and only the holder releases it.
            unsafe { *SHARED.count.get() += 1 };
            if round % 32 == 0 {
                std::thread::sleep(Duration::from_micros(60));
            }
            // SAFETY: this thread has locked it above, and only the holder releases it.
            unsafe { SHARED.lock.unlock() };
        }
        counting.join().expect("ended")
    });
    assert_eq!(!sections().is_null(), first, "what a thread has it keeps");
    assert!(others, "who joins when the call is refused releases by an exchange");
    // SAFETY: all threads that use it have been joined.
    assert_eq!(unsafe { *SHARED.count.get() }, 2 * ROUNDS);
}

#[test]
fn a_child_of_fork_restarts_releases_of_its_own_threads() {
    if case().is_none() {
        return again(
            "a_child_of_fork_restarts_releases_of_its_own_threads",
            "a child of fork",
            "",
        );
    }
    let sections = registered();
    fight(sections);
    // SAFETY: the threads have ended; the child runs ordinary code and ends.
    match unsafe { libc::fork() } {
        -1 => std::process::exit(SKIPPED),
        0 => {
            let fought = std::panic::catch_unwind(|| fight(sections));
            // SAFETY: the call ends the child and does not return.
            unsafe { libc::_exit(i32::from(fought.is_err())) };
        }
        child => {
            let mut status = 0;
            // SAFETY: the kernel writes the child's end to a variable on this stack.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the child failed");
        }
    }
}

#[test]
fn threads_that_nobody_registered_release_by_an_exchange() {
    if case().is_none() {
        return again(
            "threads_that_nobody_registered_release_by_an_exchange",
            "a libc that registers no threads",
            "glibc.pthread.rseq=0",
        );
    }
    assert!(!registered(), "the libc was told not to");
    fight(false);
}
