//! Whether all threads of a process wait, and whether anything outside it can end that.
//!
//! # Role
//! No single wait for an event is a fault: who could end it is another thread's affair.
//! But where *all* threads wait, none with a deadline, that other thread is asleep as
//! well, and only the world outside is left. What that may be is told from the kernel:
//! - a futex word in memory of the process alone is woken by its own threads;
//! - a pipe whose other end no other process has is written by its own threads;
//! - a signal does nothing where the program has no handler and no thread asks for it,
//!   but end the process, or stop it for a while.
//!
//! # What is never called a standstill
//! A wait for a peer on the network, a device, a terminal, a file to be opened, or a
//! child; a timer of the process that is armed; a thread that is stopped, or that the
//! kernel does not show. Somebody may well be about to do what is waited for.

use crate::maps::Maps;
use crate::memory::ProcessMemory;
use crate::proc::asleep::{Ends, asleep};
use crate::proc::futex::{FutexWait, Operation};
use crate::proc::status::Status;
use crate::proc::task::Call;
use std::fs;

/// What can still end a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enders {
    /// Nothing outside the process but what ends the process.
    Nobody,
    /// Signals, or other processes.
    Others,
}

/// Signals that a thread causes itself, by a fault: who waits causes none.
const OF_FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];
/// Those that the C library has for itself: cancellation and changes of user.
const OF_LIBRARY: [libc::c_int; 2] = [32, 33];

/// What can end the waits of the threads of a process, which are in these calls and have been for
/// some time; `None` where that may be anything.
#[must_use]
pub fn enders(pid: u32, calls: &[Call]) -> Option<Enders> {
    if calls.is_empty() || has_timers(pid) {
        return None;
    }
    let maps = Maps::of(pid).ok()?;
    let memory = ProcessMemory::new(pid);
    let mut enders =
        if hears_signals(pid) || has_relatives(pid) { Enders::Others } else { Enders::Nobody };
    for call in calls {
        let inside = match FutexWait::decode(call) {
            Some(wait) if wait.timed() => return None,
            Some(FutexWait { operation: Operation::Several { .. }, .. }) => false,
            Some(wait) => {
                wait.private || maps.find(wait.address).is_some_and(|mapping| !mapping.shared)
            }
            None => {
                let on = asleep(pid, call, &memory);
                if on.timed {
                    return None;
                }
                match on.ends {
                    Ends::Inside => true,
                    // Its own second request for what it holds, or another process.
                    Ends::Holders { processes } => {
                        !processes.is_empty()
                            && processes.iter().all(|other| other.pid == pid && other.why.is_none())
                    }
                    Ends::Processes { .. } | Ends::Signal => false,
                    Ends::Child | Ends::Time | Ends::Outside => return None,
                }
            }
        };
        if !inside {
            enders = Enders::Others;
        }
    }
    Some(enders)
}

/// Whether a timer of the process is armed, or that may not be read.
fn has_timers(pid: u32) -> bool {
    match fs::read(format!("/proc/{pid}/timers")) {
        Ok(text) => !text.is_empty(),
        // A kernel without the file does not tell.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Whether a handler of the program would run if a signal came.
fn hears_signals(pid: u32) -> bool {
    let status = Status::read(&format!("/proc/{pid}/status")).ok();
    let caught = status.and_then(|status| u64::from_str_radix(status.text("SigCgt")?, 16).ok());
    let known =
        OF_FAULTS.iter().chain(&OF_LIBRARY).fold(0, |all, signal| all | 1_u64 << (signal - 1));
    caught.is_none_or(|caught| caught & !known != 0)
}

/// Whether there may be another process with the same memory, or the kernel's own threads act for
/// this one: both may wake what waits in it.
fn has_relatives(pid: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let has_children = tasks.flatten().any(|task| {
        let children = fs::read_to_string(task.path().join("children"));
        children.map_or(true, |list| list.split_whitespace().any(|child| shares_memory(pid, child)))
    });
    has_children || has_ring(pid)
}

fn shares_memory(pid: u32, child: &str) -> bool {
    /// The kernel's number for a comparison of address spaces.
    const KCMP_VM: libc::c_int = 1;
    let Ok(child) = child.parse::<libc::pid_t>() else { return true };
    // SAFETY: takes numbers.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, pid, child, KCMP_VM, 0, 0) };
    // Equal, or not to be told.
    order <= 0
}

/// Whether it has a ring of requests at the kernel, which may end in wake-ups.
fn has_ring(pid: u32) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let mut links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link.to_str() == Some("anon_inode:[io_uring]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::futex::FUTEX;

    fn futex(operation: u64, limit: u64) -> Call {
        let word = 0_u32;
        let address = (&raw const word) as u64;
        let arguments = [address, operation, 0, limit, 0, u64::from(u32::MAX)];
        Call { number: FUTEX, arguments, sp: 0, pc: 0 }
    }

    #[test]
    fn what_ends_by_itself_or_from_afar_is_no_standstill() {
        let pid = std::process::id();
        let sleep = Call { number: libc::SYS_nanosleep, arguments: [0; 6], sp: 0, pc: 0 };
        assert_eq!(enders(pid, &[]), None);
        assert_eq!(enders(pid, &[futex(128, 0), sleep]), None);
        assert_eq!(enders(pid, &[futex(128, 0x1000)]), None);
        assert_eq!(enders(u32::MAX, &[futex(128, 0)]), None);
        let child = Call { number: libc::SYS_wait4, arguments: [0; 6], sp: 0, pc: 0 };
        assert_eq!(enders(pid, &[child]), None);
    }

    #[test]
    fn signals_may_end_what_asks_for_them() {
        let pid = std::process::id();
        let asks = Call { number: libc::SYS_rt_sigsuspend, arguments: [0; 6], sp: 0, pc: 0 };
        assert_eq!(enders(pid, &[futex(128, 0), asks]), Some(Enders::Others));
        assert!(enders(pid, &[futex(128, 0)]).is_some());
    }
}
