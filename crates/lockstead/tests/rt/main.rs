//! Behaviour of the real-time mutexes.

mod forms;
mod misuse;
mod priority;
mod recursive;
mod signals;

#[path = "../common/watchdog.rs"]
mod watchdog;

use std::time::{Duration, Instant};
use watchdog::Watchdog;

/// Runs `body` and returns the message of its panic.
fn panic_of<R>(body: impl FnOnce() -> R) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let payload = caught.err().expect("this call must panic");
    payload.downcast_ref::<String>().cloned().expect("a formatted message")
}

/// Waits until `probe` is true, at most 30 seconds.
fn until(what: &str, mut probe: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !probe() {
        assert!(Instant::now() < end, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn tid() -> u32 {
    // SAFETY: `gettid` takes no argument and cannot fail.
    u32::try_from(unsafe { libc::gettid() }).expect("a number")
}

/// Waits until the thread sleeps in the kernel.
fn until_asleep(tid: u32) {
    until("the thread sleeps", || {
        std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
    });
}
