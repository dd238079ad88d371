//! Who waits lends the holder its priority.

use super::{Watchdog, tid, until};
use lockstead::Mutex;
use lockstead::rt::{RtMutex, RtRecursiveMutex, inherits};
use std::sync::mpsc;
use std::time::Duration;

/// Gives the calling thread this priority under `SCHED_FIFO`; 0: the ordinary class.
fn become_fifo(priority: i32) -> std::io::Result<()> {
    let class = if priority > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads `parameters`, which live, for the calling thread (0).
    match unsafe { libc::sched_setscheduler(0, class, &parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Tells whether this test may have such priorities; says why not.
fn allowed() -> bool {
    let tried = std::thread::spawn(|| become_fifo(40)).join().expect("no panic");
    if let Err(error) = &tried {
        eprintln!(
            "skipped: SCHED_FIFO is not allowed here ({error}); run as root, or raise RLIMIT_RTPRIO"
        );
    }
    if !inherits() {
        eprintln!("skipped: the kernel lends no priorities here");
    }
    tried.is_ok() && inherits()
}

/// Returns the priority that the kernel runs a thread with now: from 1 for `SCHED_FIFO`, 0 or less
/// otherwise.
fn effective(tid: u32) -> i64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("a thread");
    let rest = stat.rsplit(") ").next().expect("fields behind the name");
    // Field 18, and the state behind the name is field 3: -1 minus the priority.
    let shown: i64 = rest.split(' ').nth(15).expect("field 18").parse().expect("a number");
    -1 - shown
}

/// A lock as the tests use it.
trait Lock: Sync {
    fn hold(&self, meanwhile: &mut dyn FnMut());
    fn hold_within(&self, time: Duration) -> bool;
}

impl Lock for RtMutex<()> {
    fn hold(&self, meanwhile: &mut dyn FnMut()) {
        let _guard = self.lock();
        meanwhile();
    }
    fn hold_within(&self, time: Duration) -> bool {
        self.lock_timeout(time).is_ok()
    }
}

impl Lock for RtRecursiveMutex<()> {
    fn hold(&self, meanwhile: &mut dyn FnMut()) {
        let _guard = self.lock();
        meanwhile();
    }
    fn hold_within(&self, time: Duration) -> bool {
        self.lock_timeout(time).is_ok()
    }
}

impl Lock for Mutex<()> {
    fn hold(&self, meanwhile: &mut dyn FnMut()) {
        let _guard = self.lock();
        meanwhile();
    }
    fn hold_within(&self, time: Duration) -> bool {
        self.lock_timeout(time).is_ok()
    }
}

/// Has an ordinary thread hold `lock` while this calls `meanwhile` with its number.
fn held_by_an_ordinary_thread(lock: &dyn Lock, meanwhile: impl FnOnce(u32)) {
    let (held, is_held) = mpsc::channel();
    let (over, is_over) = mpsc::channel::<()>();
    std::thread::scope(|s| {
        s.spawn(move || {
            lock.hold(&mut || {
                held.send(tid()).expect("the test waits");
                // Ends with an error when the test drops its end.
                let _ = is_over.recv();
            });
            // With the lock goes what was lent.
            assert!(effective(tid()) <= 0, "{}", effective(tid()));
        });
        let holder = is_held.recv().expect("held");
        assert!(effective(holder) <= 0, "an ordinary thread: {}", effective(holder));
        meanwhile(holder);
        drop(over);
    });
}

#[test]
fn the_holder_has_the_highest_priority_of_those_who_wait() {
    if !allowed() {
        return;
    }
    let _watchdog = Watchdog::new("the_holder_has_the_highest_priority_of_those_who_wait");
    for lock in [&RtMutex::new(()) as &dyn Lock, &RtRecursiveMutex::new(())] {
        std::thread::scope(|s| {
            held_by_an_ordinary_thread(lock, |holder| {
                for priority in [10, 40, 20] {
                    s.spawn(move || {
                        become_fifo(priority).expect("allowed before");
                        lock.hold(&mut || {});
                    });
                    let highest = i64::from(priority.max(if priority == 20 { 40 } else { 0 }));
                    until("the holder is lent the priority", || effective(holder) == highest);
                }
            });
        });
    }
}

#[test]
fn a_wait_that_gives_up_takes_back_what_it_lent() {
    if !allowed() {
        return;
    }
    let _watchdog = Watchdog::new("a_wait_that_gives_up_takes_back_what_it_lent");
    let lock = RtMutex::new(());
    held_by_an_ordinary_thread(&lock, |holder| {
        std::thread::scope(|s| {
            let waiter = s.spawn(|| {
                become_fifo(40).expect("allowed before");
                lock.hold_within(Duration::from_millis(300))
            });
            until("the holder is lent the priority", || effective(holder) == 40);
            assert!(!waiter.join().expect("no panic"));
        });
        until("the holder is an ordinary thread again", || effective(holder) <= 0);
    });
}

#[test]
fn priorities_are_lent_along_chains_of_locks() {
    if !allowed() {
        return;
    }
    let _watchdog = Watchdog::new("priorities_are_lent_along_chains_of_locks");
    let (near, far) = (RtMutex::new(()), RtMutex::new(()));
    std::thread::scope(|s| {
        held_by_an_ordinary_thread(&far, |holder| {
            let (held, is_held) = mpsc::channel();
            let (near, far) = (&near, &far);
            s.spawn(move || {
                near.hold(&mut || {
                    held.send(()).expect("the test waits");
                    far.hold(&mut || {});
                });
            });
            is_held.recv().expect("held");
            s.spawn(move || {
                become_fifo(30).expect("allowed before");
                near.hold(&mut || {});
            });
            until("the holder is lent the priority", || effective(holder) == 30);
        });
    });
}

/// Tests the test: what is shown of the other locks is not shown of this one.
#[test]
fn an_ordinary_mutex_lends_nothing() {
    if !allowed() {
        return;
    }
    let _watchdog = Watchdog::new("an_ordinary_mutex_lends_nothing");
    let lock = Mutex::new(());
    held_by_an_ordinary_thread(&lock, |holder| {
        std::thread::scope(|s| {
            let waiter = s.spawn(|| {
                become_fifo(40).expect("allowed before");
                lock.hold_within(Duration::from_millis(200))
            });
            while !waiter.is_finished() {
                assert!(effective(holder) <= 0);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
    });
}
