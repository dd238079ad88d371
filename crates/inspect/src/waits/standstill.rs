//! Whether all threads of a process wait, and whether anything outside it can end that.
//!
//! # Role
//! No single wait for an event is a fault: who could end it is another thread's affair.
//! But where *all* threads wait, none with a deadline, that other thread is asleep as
//! well, and only the world outside is left. What that may be is told from the kernel:
//! - a futex word in memory of the process alone is woken by its own threads;
//! - a pipe whose other end no other process has is written by its own threads, unless
//!   it has a name, by which anybody may open it;
//! - a signal does nothing where the program has no handler and no thread asks for it,
//!   but end the process, or stop it for a while.
//!
//! # What is never called a standstill
//! A wait for a peer on the network, a device, a terminal, a file to be opened, a child,
//! another process that has the other end, or a signal that is asked for; a timer of the
//! process, a ring of requests at the kernel, another process that has the same memory, for
//! either may wake what waits in it; a thread that is stopped, or that the kernel does not show.
//! Somebody may well be about to do what is waited for, and to wait for it is what servers are
//! there for.

use crate::maps::Maps;
use crate::memory::ProcessMemory;
use crate::proc::asleep::{SleepSurroundings, WaitEnds, asleep, processes};
use crate::proc::futex::{FutexWait, FutexWaitKind};
use crate::proc::status::StatusFile;
use crate::proc::task::SleepingCall;
use std::fs;

/// What can still end a standstill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enders {
    /// Nothing outside the process but what ends the process.
    Nobody,
    /// Signals, or other processes.
    Others,
    /// The end of a child, for which threads of the process wait, and what may end that.
    Child,
}

/// Signals that a thread causes itself, by a fault: who waits causes none.
const OF_FAULTS: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];
/// The signals that the C library has for itself: cancellation and changes of user.
const OF_LIBRARY: [libc::c_int; 2] = [32, 33];

/// Returns what can end the waits of the threads of a process, which are in these calls and have
/// been for some time; `None` where that may be anything. `tid` is one of the threads: of a main
/// thread that has ended before others the kernel shows nothing.
#[must_use]
pub fn enders(pid: u32, tid: u32, calls: &[SleepingCall]) -> Option<Enders> {
    if calls.is_empty() || has_timers(tid) || has_relatives(pid, tid) {
        return None;
    }
    let maps = Maps::of(tid).ok()?;
    let memory = ProcessMemory::new(tid);
    let around = SleepSurroundings::default();
    let mut enders = if hears_signals(tid) { Enders::Others } else { Enders::Nobody };
    let mut has_children = false;
    for call in calls {
        let inside = match FutexWait::decode(call) {
            Some(wait) if wait.timed() => return None,
            Some(FutexWait { operation: FutexWaitKind::Several { .. }, .. }) => false,
            Some(wait) => {
                wait.private || maps.find(wait.address).is_some_and(|mapping| !mapping.shared)
            }
            None => {
                let on = asleep(pid, call, &memory, &around);
                if on.timed {
                    return None;
                }
                match on.ends {
                    WaitEnds::Inside => true,
                    // Its own second request for what it holds, or another process.
                    WaitEnds::Holders { processes } => {
                        !processes.is_empty()
                            && processes.iter().all(|other| other.pid == pid && other.why.is_none())
                    }
                    WaitEnds::Child => {
                        has_children = true;
                        false
                    }
                    WaitEnds::Processes { .. }
                    | WaitEnds::Signal
                    | WaitEnds::Time
                    | WaitEnds::Outside => {
                        return None;
                    }
                }
            }
        };
        if !inside {
            enders = Enders::Others;
        }
    }
    Some(if has_children { Enders::Child } else { enders })
}

/// Tells whether a timer of the process is armed, or that may not be read.
fn has_timers(tid: u32) -> bool {
    match fs::read(format!("/proc/{tid}/timers")) {
        Ok(text) => !text.is_empty(),
        // A kernel without the file does not tell.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Tells whether a handler of the program would run if a signal came.
fn hears_signals(tid: u32) -> bool {
    let status = StatusFile::read(&format!("/proc/{tid}/status")).ok();
    let caught = status.and_then(|status| status.caught());
    let known =
        OF_FAULTS.iter().chain(&OF_LIBRARY).fold(0, |all, signal| all | 1_u64 << (signal - 1));
    caught.is_none_or(|caught| caught & !known != 0)
}

/// Tells whether there may be another process with the same memory, or the kernel's own threads act
/// for this one: both may wake what waits in it.
fn has_relatives(pid: u32, tid: u32) -> bool {
    /// The kernel's number for a comparison of address spaces.
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let order =
        |other: u32| unsafe { libc::syscall(libc::SYS_kcmp, tid, other, KCMP_VM, 0_u64, 0_u64) };
    // Not only children: one may have been made as a child of the parent, or have lost its own.
    let Some(mut others) = processes() else { return true };
    // Where the process may not be compared with itself, nothing is told of the others.
    order(tid) != 0 || others.any(|other| other != pid && order(other) == 0) || has_ring(tid)
}

/// Tells whether it has a ring of requests at the kernel, which may end in wake-ups. Its descriptor
/// may have been closed, or its memory never mapped, but hardly both.
fn has_ring(tid: u32) -> bool {
    const RING: &str = "anon_inode:[io_uring]";
    let Ok(entries) = fs::read_dir(format!("/proc/{tid}/fd")) else { return true };
    let mut links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let maps = fs::read_to_string(format!("/proc/{tid}/maps"));
    links.any(|link| link.to_str() == Some(RING)) || maps.map_or(true, |maps| maps.contains(RING))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::futex::FUTEX;

    fn futex(operation: u64, limit: u64) -> SleepingCall {
        let word = 0_u32;
        let address = (&raw const word) as u64;
        let arguments = [address, operation, 0, limit, 0, u64::from(u32::MAX)];
        SleepingCall { number: FUTEX, arguments, sp: 0, pc: 0 }
    }

    #[test]
    fn what_ends_by_itself_or_with_a_child_is_no_standstill() {
        let pid = std::process::id();
        let sleep = SleepingCall { number: libc::SYS_nanosleep, arguments: [0; 6], sp: 0, pc: 0 };
        assert_eq!(enders(pid, pid, &[]), None);
        assert_eq!(enders(pid, pid, &[futex(128, 0), sleep]), None);
        assert_eq!(enders(pid, pid, &[futex(128, 0x1000)]), None);
        assert_eq!(enders(u32::MAX, u32::MAX, &[futex(128, 0)]), None);
        let child = SleepingCall { number: libc::SYS_wait4, arguments: [0; 6], sp: 0, pc: 0 };
        assert_eq!(enders(pid, pid, &[child, futex(128, 0)]), Some(Enders::Child));
        assert_eq!(enders(pid, pid, &[child, sleep]), None);
    }

    #[test]
    fn who_asks_for_a_signal_or_has_a_peer_serves() {
        let pid = std::process::id();
        let asks =
            SleepingCall { number: libc::SYS_rt_sigsuspend, arguments: [0; 6], sp: 0, pc: 0 };
        assert_eq!(enders(pid, pid, &[futex(128, 0), asks]), None);
        let queue = SleepingCall { number: libc::SYS_msgrcv, ..asks };
        assert_eq!(enders(pid, pid, &[futex(128, 0), queue]), None);
        assert!(enders(pid, pid, &[futex(128, 0)]).is_some());
    }
}
