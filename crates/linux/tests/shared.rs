//! Futexes between processes: the same memory at different addresses.

mod common;

use common::{Watchdog, in_child, until};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::WaitOutcome;
use lockstead_linux::futex::{self, Scope, SleepUntil};

const PAGE: usize = 4096;

struct Memory(libc::c_int);

impl Memory {
    fn new() -> Self {
        // SAFETY: the kernel reads the name, which is a static string.
        let file = unsafe { libc::memfd_create(c"lockstead-test".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(file >= 0, "memfd: {}", std::io::Error::last_os_error());
        // SAFETY: the file was made above; `ftruncate` touches no memory.
        assert_eq!(unsafe { libc::ftruncate(file, PAGE as libc::off_t) }, 0);
        Memory(file)
    }

    /// Maps it once more, at another address; stays until the process ends.
    fn map(&self) -> &'static [AtomicU32; 2] {
        // SAFETY: the call makes a new mapping at an address of the kernel's choice, and touches
        // nothing that exists.
        let at = unsafe {
            libc::mmap(
                null_mut(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.0,
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: the page is aligned and zeroed, is never unmapped, and holds atomics alone.
        unsafe { &*at.cast() }
    }
}

fn address(word: &AtomicU32) -> usize {
    word.as_ptr().addr()
}

#[test]
fn a_shared_wake_up_reaches_another_process_and_a_private_one_does_not() {
    let _watchdog = Watchdog::new(60);
    let memory = Memory::new();
    let [word, woken] = memory.map();
    let outside = std::thread::spawn(move || {
        until("the child sleeps and is woken", || {
            assert_eq!(futex::wake(address(word), 1, Scope::Private), 0);
            futex::wake(address(word), 1, Scope::Shared) == 1
        });
        woken.store(1, Ordering::Release);
    });
    in_child("woken by the parent", || {
        let [word, woken] = memory.map();
        let outcome = futex::wait(word, 0, &SleepUntil::WOKEN, Scope::Shared);
        until("the parent says that it was its doing", || woken.load(Ordering::Acquire) == 1);
        outcome == WaitOutcome::Woken
    });
    outside.join().unwrap();
}

#[test]
fn a_shared_sleep_can_be_cancelled_from_another_process() {
    let _watchdog = Watchdog::new(60);
    for refused in [false, true] {
        futex::refuse_waitv(refused);
        let memory = Memory::new();
        let [word, cancel] = memory.map();
        let (tells, told) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            tells.send(common::gettid()).expect("the test asks");
            let until = SleepUntil { cancel: Some(cancel), ..SleepUntil::WOKEN };
            loop {
                let outcome = futex::wait(word, 0, &until, Scope::Shared);
                if cancel.load(Ordering::Relaxed) != 0 {
                    return outcome;
                }
            }
        });
        common::until_thread_sleeps(told.recv().expect("it begins"));
        in_child("cancels", || {
            let [_, cancel] = memory.map();
            cancel.store(1, Ordering::Relaxed);
            futex::wake(address(cancel), 1, Scope::Shared);
            true
        });
        let outcome = sleeper.join().unwrap();
        assert!(matches!(outcome, WaitOutcome::Woken | WaitOutcome::Cancelled), "{outcome:?}");
    }
    futex::refuse_waitv(false);
}
