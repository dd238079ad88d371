//! What the tests of this crate share.
#![allow(dead_code, reason = "each test program uses a part")]

#[path = "apart.rs"]
mod apart;
#[path = "asking.rs"]
mod asking;

#[allow(unused_imports, reason = "each test program uses a part")]
pub(crate) use {
    apart::apart,
    asking::{ask, become_nobody, beside, pin, sleep, spin, until_asleep, until_thread_sleeps},
};

use core::ffi::c_void;
use core::panic::Location;
use core::ptr::null_mut;
use lockstead_core::{Plain, Platform, RawMutex};
use lockstead_linux::{Cell, Linux};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A number that only a lock keeps right.
pub(crate) struct Counter {
    pub(crate) lock: RawMutex<Linux>,
    value: Cell<u64>,
}

impl Counter {
    pub(crate) const fn new() -> Self {
        Counter { lock: RawMutex::new(), value: Cell::new_const(0) }
    }

    /// Adds one by a load and a store that other threads can come between
    /// unless the lock keeps them out.
    pub(crate) fn add(&self) {
        self.add_slowly(0);
    }

    /// Adds the same, holding the lock for some turns of a spin loop.
    pub(crate) fn add_slowly(&self, turns: u32) {
        self.lock.lock(Location::caller()).expect("no reason to fail");
        (0..turns).for_each(|_| core::hint::spin_loop());
        // SAFETY: this thread holds the lock, which keeps all others out.
        self.value.with_mut(|value| unsafe { value.write_volatile(value.read_volatile() + 1) });
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { self.lock.unlock() };
    }

    /// Returns the number, once nobody adds any more.
    pub(crate) fn total(&self) -> u64 {
        self.lock.lock(Location::caller()).expect("no reason to fail");
        // SAFETY: this thread holds the lock, which keeps all others out.
        let total = self.value.with(|value| unsafe { value.read() });
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { self.lock.unlock() };
        total
    }
}

/// Runs `body` in `count` threads at the same time, until all have ended.
///
/// Bare threads: those of `std` take a lock of `std` when they start, which a
/// forked child may have inherited locked for ever.
pub(crate) fn in_threads(count: usize, body: &(dyn Fn() + Sync)) {
    extern "C" fn start(body: *mut c_void) -> *mut c_void {
        // SAFETY: `in_threads` keeps the reference alive until we are joined.
        let body = unsafe { *body.cast::<&(dyn Fn() + Sync)>() };
        body();
        null_mut()
    }
    let argument = core::ptr::from_ref(&body).cast_mut().cast();
    let threads: Vec<libc::pthread_t> = (0..count)
        .map(|_| {
            let mut thread = 0;
            // SAFETY: `in_threads` keeps the reference alive until the thread is joined.
            let result = unsafe { libc::pthread_create(&mut thread, null_mut(), start, argument) };
            assert_eq!(result, 0, "a thread");
            thread
        })
        .collect();
    for thread in threads {
        // SAFETY: the thread was created above and is joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, null_mut()) }, 0);
    }
}

/// Has `threads` threads add `adds` times each, and asserts that the sum is right.
pub(crate) fn count_with(threads: usize, adds: usize) {
    let counter = Counter::new();
    in_threads(threads, &|| (0..adds).for_each(|_| counter.add()));
    assert_eq!(counter.total(), (threads * adds) as u64);
}

/// Ends the test program if the test has not ended after `seconds`.
pub(crate) struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    pub(crate) fn new(seconds: u64) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let watched = done.clone();
        std::thread::spawn(move || {
            let end = Instant::now() + Duration::from_secs(seconds);
            while !watched.load(Ordering::Relaxed) {
                if Instant::now() > end {
                    // Not by `eprintln`, which the test harness would keep.
                    let message = format!("a test hangs: not done after {seconds} s\n");
                    // SAFETY: the kernel reads a buffer that lives as long as the call.
                    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Watchdog(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until `done`, at most 30 seconds.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !done() {
        assert!(Instant::now() < end, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `body` in a forked child, which must answer true within 30 seconds.
/// Like any child of a program with threads it must not use `std`'s threads.
pub(crate) fn in_child(what: &str, body: impl FnOnce() -> bool) {
    // SAFETY: the child runs `body` and ends without returning here.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(if matches!(right, Ok(true)) { 0 } else { 1 }) };
    }
    let end = Instant::now() + Duration::from_secs(30);
    let mut status = 0;
    // SAFETY: the kernel writes the child's end to a variable on this stack.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > end {
            // SAFETY: the child is our own, and not waited for yet.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &mut status, 0);
            }
            panic!("the child hangs: {what}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child says no: {what}");
}

/// Returns the kernel's number of the calling thread.
pub(crate) fn gettid() -> libc::pid_t {
    // SAFETY: `gettid` takes no argument and touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Sends a signal to a thread of this process, which may have ended.
pub(crate) fn signal(tid: libc::pid_t, number: libc::c_int) {
    // SAFETY: the call takes numbers; a wrong one is an error.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, number) };
}

/// Installs a handler.
pub(crate) fn handle(number: libc::c_int, flags: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: a zeroed action is valid; the handler is a function.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(number, &action, null_mut()), 0);
    }
}

/// Returns the calling thread's slot number.
pub(crate) fn my_slot() -> u32 {
    Linux::me().get()
}
