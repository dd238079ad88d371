//! Locks in the child of a `fork`. A program of its own, so that no thread of
//! another test holds a lock of the allocator or the panic machinery in the
//! moment of the fork. Threads are joined, and not only their scope left: one that is
//! about to end may have a lock of the standard library, for which every thread of a
//! child would wait.

#[path = "common/watched.rs"]
mod watched;

use lockstead::{Mutex, NamedMutex, OnceLock, RwLock, Semaphore};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use watched::Watched;

/// Runs `body` in a forked child and returns its answer. A child that hangs is
/// killed by an alarm, which fails the test.
fn in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `body` and leaves by _exit.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: `alarm` takes a number and has no preconditions.
            unsafe { libc::alarm(20) };
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: the call ends the child at once, without running its destructors.
            unsafe { libc::_exit(i32::from(answer.unwrap_or(false))) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the child is ours, and the kernel writes into `status`, which lives.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(libc::WIFEXITED(status), "the child was killed: status {status:#x}");
            libc::WEXITSTATUS(status) == 1
        }
    }
}

/// Runs `meanwhile` while another thread is between `hold` and its end.
fn while_held<G>(hold: impl FnOnce() -> G + Send, meanwhile: impl FnOnce()) {
    let (held, is_held) = mpsc::channel();
    let (over, is_over) = mpsc::channel::<()>();
    thread::scope(|s| {
        let holder = s.spawn(move || {
            let guard = hold();
            held.send(()).expect("the test waits");
            // Ends with an error when the test drops its end.
            let _ = is_over.recv();
            drop(guard);
        });
        is_held.recv().expect("held");
        meanwhile();
        drop(over);
        holder.join().expect("no panic");
    });
}

fn message(body: impl FnOnce()) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let payload = caught.err();
    payload.and_then(|p| p.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn locks_that_another_thread_holds_are_reported_lost() {
    static CACHE: NamedMutex<u32> = NamedMutex::named("cache", 1);
    static ROUTES: RwLock<u32> = RwLock::new(1);
    while_held(
        || (CACHE.lock(), ROUTES.write()),
        || {
            assert!(in_child(|| {
                let lock = message(|| drop(CACHE.lock()));
                let timed = message(|| drop(CACHE.lock_timeout(Duration::from_secs(3600))));
                let owner = CACHE.owner().expect("held");
                ["lost owner", "`cache`", file!()].iter().all(|part| lock.contains(part))
                    && timed.contains("lost owner")
                    && owner.is_lost()
                    && owner.thread_id().is_none()
                    && CACHE.try_lock().is_none()
            }));
            assert!(in_child(|| {
                message(|| drop(ROUTES.read())).contains("lost owner")
                    && message(|| drop(ROUTES.write())).contains("lost owner")
                    && ROUTES.try_read().is_none()
            }));
        },
    );
    assert_eq!((*CACHE.lock(), *ROUTES.read()), (1, 1), "the parent goes on");
}

fn locks_of_the_forking_thread_stay_its_own() {
    static MUTEX: Mutex<u32> = Mutex::new(1);
    static ROUTES: RwLock<u32> = RwLock::new(1);
    let mut guard = MUTEX.lock();
    let writing = ROUTES.write();
    let answer = in_child(|| {
        *guard += 1;
        let mine = MUTEX.owner().is_some_and(|owner| {
            // SAFETY: `gettid` takes no argument and cannot fail.
            let tid = unsafe { libc::gettid() };
            owner.is_current() && owner.thread_id() == u32::try_from(tid).ok()
        });
        let recursive = message(|| drop(MUTEX.lock())).contains("recursive locking");
        drop(guard);
        drop(writing);
        mine && recursive && *MUTEX.lock() == 2 && *ROUTES.read() == 1
    });
    assert!(answer);
    // `guard` and `writing` were moved into the child's closure and, in the
    // parent, dropped with it.
    assert_eq!((*MUTEX.lock(), *ROUTES.read()), (1, 1));
}

fn free_locks_work_among_the_childs_own_threads() {
    static MUTEX: Mutex<u32> = Mutex::new(0);
    static SLOTS: Semaphore = Semaphore::new(1);
    let hammer = || {
        thread::scope(|s| {
            let threads = [(); 3].map(|()| {
                s.spawn(|| {
                    for _ in 0..500 {
                        *MUTEX.lock() += 1;
                        drop(SLOTS.acquire());
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    };
    hammer();
    assert!(in_child(|| {
        hammer();
        *MUTEX.lock() == 3_000 && SLOTS.permits() == 1
    }));
    assert_eq!(*MUTEX.lock(), 1_500);
}

fn a_lock_with_sleeping_waiters_can_be_released_in_the_child() {
    static MUTEX: Mutex<u32> = Mutex::new(0);
    static WAITERS: [Watched; 3] = [const { Watched::new() }; 3];
    let guard = MUTEX.lock();
    thread::scope(|s| {
        let threads = WAITERS.each_ref().map(|waiter| {
            s.spawn(|| {
                waiter.begins();
                *MUTEX.lock() += 1;
            })
        });
        let begun = Instant::now();
        while !WAITERS.iter().any(Watched::is_handoff_waiter) {
            assert!(begun.elapsed() < Duration::from_secs(30), "nobody asks for the hand-off");
            thread::sleep(Duration::from_millis(1));
        }
        let answer = in_child(|| {
            // In the child this guard is the only one of the lock.
            drop(guard);
            let other = thread::spawn(|| *MUTEX.lock() += 10);
            *MUTEX.lock() += 10;
            other.join().is_ok() && *MUTEX.lock() == 20
        });
        assert!(answer);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    assert_eq!(*MUTEX.lock(), 3);
}

fn an_initialiser_left_behind_is_reported() {
    static CELL: OnceLock<u32> = OnceLock::new();
    let (running, is_running) = mpsc::channel();
    let (over, is_over) = mpsc::channel::<()>();
    thread::scope(|s| {
        let initialiser = s.spawn(move || {
            CELL.get_or_init(|| {
                running.send(()).expect("the test waits");
                let _ = is_over.recv();
                7
            });
        });
        is_running.recv().expect("running");
        assert!(in_child(|| {
            message(|| drop(CELL.get_or_init(|| 8).to_string())).contains("lost initialiser")
        }));
        drop(over);
        initialiser.join().expect("no panic");
    });
    assert_eq!(CELL.get(), Some(&7));
}

/// Makes one test of all, in order: a fork must not happen in the middle of another.
#[test]
fn locks_in_the_child_of_a_fork() {
    locks_that_another_thread_holds_are_reported_lost();
    locks_of_the_forking_thread_stay_its_own();
    free_locks_work_among_the_childs_own_threads();
    a_lock_with_sleeping_waiters_can_be_released_in_the_child();
    an_initialiser_left_behind_is_reported();
}
