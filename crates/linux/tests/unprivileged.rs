//! Without a privilege: the locks work, and ask for nothing that is refused.
//!
//! One test, for it waits for all children of its process.

mod common;

use common::{Watchdog, become_nobody, count_with};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use lockstead_linux::features::probe;
use lockstead_linux::owner::{Oracle, set_oracle};
use std::collections::BTreeMap;

/// The system calls of a process and how they ended.
#[derive(Debug, Default)]
struct Calls {
    /// How often each system call was made, by its number.
    made: BTreeMap<i64, u32>,
    /// The system calls that were refused, with the error.
    refused: Vec<(i64, i32)>,
    /// How the process ended.
    status: i32,
}

/// The answers that are not told as refusals: calls that have looked give them.
const ANSWERS: [i32; 5] = [libc::EAGAIN, libc::EINTR, libc::ETIMEDOUT, libc::ENOENT, libc::ESRCH];

/// Runs `body` in a child and looks at each system call of all its threads between the two calls of
/// `getppid` that it must make. Returns `None` if that is not allowed.
fn watch(body: impl FnOnce()) -> Option<Calls> {
    // SAFETY: the child traces itself, runs `body` and ends; it comes back only to the
    // parent.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: only the child runs this; it asks to be traced, and stops or ends itself.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) != 0 {
                libc::_exit(99);
            }
            libc::raise(libc::SIGSTOP);
        }
        let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        // SAFETY: the call ends the child without the parent's exit handlers.
        unsafe { libc::_exit(if right.is_ok() { 0 } else { 1 }) };
    }
    let mut calls = Calls::default();
    let mut current: BTreeMap<i32, i64> = BTreeMap::new();
    let mut looking = false;
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes `status`, which lives until the call returns.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL) };
        assert!(thread > 0, "waitpid: {}", std::io::Error::last_os_error());
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if thread == child {
                calls.status = status;
                return (status != 99 << 8).then_some(calls);
            }
            continue;
        }
        let stop = libc::WSTOPSIG(status);
        let mut signal = 0;
        if stop == libc::SIGTRAP | 0x80 {
            match at_call(thread) {
                Some(Stop::Entry(number)) => {
                    current.insert(thread, number);
                    looking ^= number == libc::SYS_getppid;
                    if looking {
                        *calls.made.entry(number).or_default() += 1;
                    }
                }
                Some(Stop::Exit(result)) if looking => {
                    let number = current.get(&thread).copied().unwrap_or(-1);
                    let error = i32::try_from(-result).unwrap_or(0);
                    if (1..4096).contains(&error) && !ANSWERS.contains(&error) {
                        calls.refused.push((number, error));
                    }
                }
                _ => {}
            }
        } else if stop == libc::SIGSTOP {
            // The first of each thread.
            let options =
                libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
            // SAFETY: the thread is traced by this one and has stopped; the request carries numbers
            // only.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, options) };
        } else if status >> 16 == 0 {
            signal = stop;
        }
        // SAFETY: the request carries numbers only; for a thread that was killed meanwhile it
        // fails.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
    }
}

enum Stop {
    Entry(i64),
    Exit(i64),
}

fn at_call(thread: i32) -> Option<Stop> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes; zeros are valid for the rest, and
    // the union's field is the one that `op` says.
    unsafe {
        let got = libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, info.as_mut_ptr());
        let info = info.assume_init();
        match info.op {
            _ if got <= 0 => None,
            libc::PTRACE_SYSCALL_INFO_ENTRY => Some(Stop::Entry(info.u.entry.nr as i64)),
            libc::PTRACE_SYSCALL_INFO_EXIT => Some(Stop::Exit(info.u.exit.sval)),
            _ => None,
        }
    }
}

fn mark() {
    // SAFETY: `getppid` takes no argument and touches no memory.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

#[test]
fn works_without_privileges_and_is_refused_nothing() {
    let _watchdog = Watchdog::new(100);
    // SAFETY: `geteuid` takes no argument and touches no memory.
    let root = unsafe { libc::geteuid() } == 0;
    let calls = watch(|| {
        assert!(!root || become_nobody(), "privileges can be given up");
        mark();
        // What the first lock asks for, and all that waits ask for.
        for oracle in [Oracle::Chain, Oracle::Table, Oracle::Clock, Oracle::Processor] {
            set_oracle(oracle);
            count_with(4, 300);
        }
        mark();
        assert!(probe().capabilities.iter().all(|capability| !capability.effective || !root));
    });
    let Some(calls) = calls else {
        println!("skipped: this process may not trace its children");
        return;
    };
    assert_eq!(calls.status, 0, "{calls:?}");
    assert!(calls.made.contains_key(&libc::SYS_futex), "nobody waited: {calls:?}");
    assert!(calls.refused.len() <= 1, "refused: {:?}", calls.refused);
    let times = |number| calls.made.get(&number).copied().unwrap_or(0);
    // Whether there is a table is asked once, not by each thread.
    assert_eq!(times(libc::SYS_faccessat), 1, "{calls:?}");
    assert!(times(libc::SYS_bpf) <= 1, "{calls:?}");
}
