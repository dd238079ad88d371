//! What a program says of itself before it hangs, one fact a line, and how its threads wait for
//! each other until the locks are taken as the case wants them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Counts the threads that have come to where the case wants them.
static STAGE: AtomicU32 = AtomicU32::new(0);

/// Says where a lock lies, and what it is called below.
pub(crate) fn lock<T>(name: &str, lock: &T) {
    println!("LOCK {name} {:#x} {}", std::ptr::from_ref(lock) as usize, size_of::<T>());
}

/// Says that `thread` holds the lock when the program hangs.
pub(crate) fn own(lock: &str, thread: &str) {
    println!("OWN {lock} {thread}");
}

/// Says that `thread` waits for the lock.
pub(crate) fn wait(thread: &str, lock: &str) {
    println!("WAIT {thread} {lock}");
}

/// Says that `thread` waits for what `other` has of a lock, and for nobody else who has it too.
pub(crate) fn behind(thread: &str, other: &str) {
    println!("BEHIND {thread} {other}");
}

/// Says that `thread` took the lock, lost the guard, and will never give the lock back.
pub(crate) fn leak(lock: &str, thread: &str) {
    println!("LEAK {lock} {thread}");
}

/// Says that `thread` waits for the end of `ending`.
pub(crate) fn join(thread: &str, ending: &str) {
    println!("JOIN {thread} {ending}");
}

/// Starts a thread with a name that the kernel knows too.
pub(crate) fn start(name: &str, body: impl FnOnce() + Send + 'static) {
    named(name).spawn(body).expect("a thread");
}

/// Returns what starts a thread of that name.
pub(crate) fn named(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.into())
}

/// Says that this thread has come.
pub(crate) fn arrive() {
    STAGE.fetch_add(1, Ordering::SeqCst);
}

/// Says that this thread has come, and waits until `count` threads have.
pub(crate) fn meet(count: u32) {
    arrive();
    after(count);
}

/// Waits until `count` threads have come.
pub(crate) fn after(count: u32) {
    while STAGE.load(Ordering::SeqCst) < count {
        thread::yield_now();
    }
}

/// Says that all is said, and sleeps for good.
pub(crate) fn end() -> ! {
    println!("END");
    sleep()
}

/// Sleeps for good, in a call that is no wait for a lock.
pub(crate) fn sleep() -> ! {
    loop {
        thread::sleep(Duration::from_secs(100_000));
    }
}
