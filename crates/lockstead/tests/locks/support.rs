//! What the tests share.

#[path = "../common/watchdog.rs"]
mod watchdog;
#[path = "../common/watched.rs"]
mod watched;

pub(crate) use watchdog::Watchdog;
pub(crate) use watched::Watched;

/// Runs `body` and returns the message of its panic.
pub(crate) fn panic_of<R>(body: impl FnOnce() -> R) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let payload = caught.err().expect("this call must panic");
    payload.downcast_ref::<String>().cloned().expect("a formatted message")
}

/// Calls `probe` until it is true.
pub(crate) fn eventually(mut probe: impl FnMut() -> bool) {
    while !probe() {
        std::thread::yield_now();
    }
}
