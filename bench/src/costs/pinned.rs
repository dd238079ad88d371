//! Threads that stay on their processors.

use crate::Error;
use std::io;
use std::sync::Barrier;
use std::thread;

/// Keeps the calling thread on these processors.
pub(crate) fn pin(cpus: &[usize]) -> Result<(), Error> {
    // SAFETY: by ZEROED-BITS zero is a valid value of this plain C structure.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        // SAFETY: the number is that of a processor that the set was asked for.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the pointer is to a local variable of the size that is given.
    if unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } == 0 {
        return Ok(());
    }
    Err(Error::Process {
        what: "cannot keep a thread on one processor",
        source: io::Error::last_os_error(),
    })
}

/// Runs `f` in a thread on a processor.
pub(super) fn alone<T: Send>(cpu: usize, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| pin(&[cpu]).map(|()| f()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs two at once, each in a thread on its processor; both or none begins.
pub(super) fn both<A: Send, B: Send>(
    (here, there): (usize, usize),
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> Result<(A, B), Error> {
    let gate = Barrier::new(2);
    // A thread that cannot be pinned still works: the other one waits for it.
    thread::scope(|scope| {
        let one = scope.spawn(|| {
            let pinned = pin(&[here]);
            gate.wait();
            (pinned, one())
        });
        let other = scope.spawn(|| {
            let pinned = pin(&[there]);
            gate.wait();
            (pinned, other())
        });
        let one = one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        one.0.and(other.0).map(|()| (one.1, other.1))
    })
}
