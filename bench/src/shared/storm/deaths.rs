//! The ways in which a worker dies.

use crate::Error;
use crate::shared::process::{WorkerProcess, wait_for_child};
use std::io;
use std::time::Duration;

/// A way in which a worker dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Death {
    /// A signal kills it: SIGKILL.
    Kill,
    /// SIGKILL kills it, and its memory is gone before its threads have ended.
    Reap,
    /// It becomes another program, by a call of one of its threads.
    Exec,
}

/// Kills a process, and takes its private memory away before its threads come to look at it, as the
/// reaper of the out-of-memory killer does. Returns whether that was in time. Of the list of robust
/// locks that lies there the kernel sees nothing then.
///
/// For that all its threads come to the processor of the caller, which runs before them. The
/// kernel has them end as fast as others afterwards.
pub(super) fn kill_and_take_memory(worker: &WorkerProcess) -> io::Result<bool> {
    let threads = worker.threads();
    let everywhere = affinity()?;
    // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
    let here = unsafe { libc::sched_getcpu() }.max(0) as usize;
    // SAFETY: the structure is plain bits, and the number is that of a processor.
    let one = unsafe {
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(here, &mut one);
        one
    };
    move_to(0, &one);
    for &thread in &threads {
        move_to(thread, &one);
        schedule(thread, libc::SCHED_IDLE);
    }
    let taken = worker.kill_and_release();
    for &thread in &threads {
        schedule(thread, libc::SCHED_OTHER);
        move_to(thread, &everywhere);
    }
    move_to(0, &everywhere);
    taken
}

fn affinity() -> io::Result<libc::cpu_set_t> {
    // SAFETY: by ZEROED-BITS and CALL-LOCALS the structure is plain, live, and filled in by the
    // call.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) {
            0 => Ok(set),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Moves a thread, which may have ended meanwhile, to these processors.
fn move_to(thread: libc::pid_t, set: &libc::cpu_set_t) {
    // SAFETY: by CALL-LOCALS the set is live for the call, which reads it.
    unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), set) };
}

/// Gives a thread, which may have ended meanwhile, a scheduling policy.
fn schedule(thread: libc::pid_t, policy: libc::c_int) {
    // SAFETY: by ZEROED-BITS and CALL-LOCALS the structure is plain and live for the call, which
    // reads it.
    unsafe {
        let usual: libc::sched_param = core::mem::zeroed();
        libc::sched_setscheduler(thread, policy, &raw const usual);
    }
}

/// Tries whether memory can be taken from who is killed.
///
/// # Errors
/// [`Error::NotHere`] if not.
pub(super) fn probe() -> Result<(), Error> {
    let refused = |why: String| Error::NotHere { option: "--reap", why };
    for _ in 0..TRIALS {
        let child = wait_for_child().map_err(|error| refused(error.to_string()))?;
        match kill_and_take_memory(&child) {
            Ok(true) => return Ok(()),
            Ok(false) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => {
                return Err(refused(format!("the kernel refuses process_mrelease: {error}")));
            }
        }
    }
    Err(refused("processes end before their memory can be taken".into()))
}

/// The number of kills that [`probe`] tries.
const TRIALS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_killed_loses_its_memory_where_the_kernel_can_do_that() {
        match probe() {
            Ok(()) => {
                let mut child = wait_for_child().expect("a child");
                kill_and_take_memory(&child).expect("it went before");
                let status = child.reap();
                assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
            }
            Err(error) => {
                eprintln!("skipped: {error}");
                assert!(error.to_string().contains("--reap"), "{error}");
            }
        }
    }
}
