//! What a process has asked the kernel for before its first lock. One test, since a lock anywhere in this
//! process would ask for the same.

use lockstead_core::biased::Fences;
use lockstead_core::{Off, RawMutex};
use lockstead_linux::Linux;
use std::panic::Location;
use std::thread;

/// Tells for which of the two commands the process has been registered: the kernel refuses them to
/// others.
fn registered() -> [bool; 2] {
    [libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED]
        // SAFETY: the call takes numbers only, and no memory.
        .map(|command| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 })
}

#[test]
fn the_process_is_registered_before_it_has_a_second_thread() {
    // The test itself runs in a second thread, in which the registration would take milliseconds.
    let at_start = registered();
    let mutex = RawMutex::<Linux, Off>::new();
    let lock = || {
        mutex.lock(Location::caller()).expect("it is free");
        // SAFETY: this thread has locked the mutex in the line above.
        unsafe { mutex.unlock() };
    };
    thread::scope(|scope| scope.spawn(lock).join().expect("no panic"));
    let can = [registered()[0], Linux::can_fence()];
    assert_eq!(at_start, can, "what a lock has registered the process for later");
    if can != [true; 2] {
        eprintln!("skipped in part: the kernel, the libc or a filter has these alone: {can:?}");
    }
}
