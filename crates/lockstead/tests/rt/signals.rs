//! Waits that a signal handler ends, although the kernel resumes each wait.

use super::{Watchdog, tid, until_asleep};
use lockstead::Interrupted;
use lockstead::rt::{RtMutex, RtRecursiveMutex};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;

/// How often the handler has run.
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Relaxed);
}

/// Installs the handler of SIGUSR1, which has other calls go on.
fn install() {
    // SAFETY: the structure is plain data, of which zeroes are a value; the handler adds to an
    // atomic.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, core::ptr::null_mut()), 0);
    }
}

fn send(thread: u32, signal: libc::c_int) {
    // SAFETY: a thread of this process, which waits and does not end meanwhile.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, signal) };
}

/// Tells whether the calling thread holds SIGUSR1 off.
fn is_held_off() -> bool {
    // SAFETY: reads the mask into a set of ours, of which zeroes are a value.
    unsafe {
        let mut mask: libc::sigset_t = core::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &mut mask);
        libc::sigismember(&mask, libc::SIGUSR1) == 1
    }
}

#[test]
fn a_handler_ends_the_wait_and_has_run_then() {
    let _watchdog = Watchdog::new("a_handler_ends_the_wait_and_has_run_then");
    install();
    let (mutex, recursive) = (RtMutex::new(()), RtRecursiveMutex::new(()));
    for again in [false, true] {
        let held = (mutex.lock(), recursive.lock());
        let (told, is_told) = mpsc::channel();
        std::thread::scope(|s| {
            s.spawn(|| {
                told.send(tid()).expect("the test waits");
                let before = HANDLED.load(Relaxed);
                let ended = if again {
                    recursive.lock_interruptible().map(drop)
                } else {
                    mutex.lock_interruptible().map(drop)
                };
                assert_eq!(ended, Err(Interrupted));
                assert!(HANDLED.load(Relaxed) > before && !is_held_off());
                told.send(0).expect("the test waits");
            });
            let waiter = is_told.recv().expect("a thread");
            until_asleep(waiter);
            send(waiter, libc::SIGUSR1);
            assert_eq!(is_told.recv(), Ok(0));
        });
        drop(held);
    }
    drop(mutex.lock_interruptible().expect("free"));
    assert!(!is_held_off());
}

#[test]
fn signals_without_a_handler_do_not_end_the_wait() {
    let _watchdog = Watchdog::new("signals_without_a_handler_do_not_end_the_wait");
    let mutex = RtMutex::new(());
    let held = mutex.lock();
    let (told, is_told) = mpsc::channel();
    std::thread::scope(|s| {
        s.spawn(|| {
            told.send(tid()).expect("the test waits");
            drop(mutex.lock_interruptible().expect("nobody handles these signals"));
            told.send(0).expect("the test waits");
        });
        let waiter = is_told.recv().expect("a thread");
        for _ in 0..20 {
            until_asleep(waiter);
            send(waiter, libc::SIGWINCH);
        }
        assert!(is_told.try_recv().is_err(), "it waits on");
        drop(held);
        assert_eq!(is_told.recv(), Ok(0));
    });
}
