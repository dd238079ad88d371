//! Semaphores and message queues of System V.
//!
//! # Role
//! A set of semaphores knows for each the process that changed it last. Where a
//! semaphore serves as a lock, that is the one which has it; nobody else says who.

use super::model::{Asleep, OtherProcess, WaitEnds};
use crate::memory::ReadableMemory;
use crate::proc::task::SleepingCall;
use std::collections::BTreeMap;
use std::fs;

/// Bytes of a `struct sembuf`: number, change, flags.
const OPERATION: u64 = 6;
/// The kernel's own limit is no lower than any that is in use.
const MOST: u64 = 500;

/// Tells whether the process is in this IPC namespace: objects of another IPC namespace have
/// numbers that mean others here.
fn is_here(pid: u32) -> bool {
    let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/ipc")).ok();
    // Where the kernel has no such namespaces, all processes share the objects.
    of("self").is_none_or(|here| of(&pid.to_string()) == Some(here))
}

fn control(set: i32, number: i32, command: i32) -> Option<i32> {
    // SAFETY: both commands take and return numbers only, and touch no memory of ours.
    let answer = unsafe { libc::semctl(set, number, command) };
    (answer >= 0).then_some(answer)
}

/// Returns the first of several operations, which are done together or not at all, that cannot be
/// done yet.
fn first_blocking(
    operations: impl Iterator<Item = (i32, i32)>,
    value: impl Fn(i32) -> Option<i32>,
) -> Option<(i32, i32)> {
    // Each finds what those before it have left.
    let mut changed: BTreeMap<i32, i32> = BTreeMap::new();
    for (number, change) in operations {
        let now = value(number)? + changed.get(&number).copied().unwrap_or(0);
        if change < 0 && now < -change || change == 0 && now != 0 {
            return Some((number, change));
        }
        *changed.entry(number).or_default() += change;
    }
    None
}

/// Returns what a thread waits for in `semop` or `semtimedop`.
pub(super) fn semaphore(pid: u32, call: &SleepingCall, memory: &dyn ReadableMemory) -> Asleep {
    let [set, operations, count, ..] = call.arguments;
    let set = set.cast_signed() as i32;
    let operation = |at: u64| -> Option<(i32, i32)> {
        let mut bytes = [0; OPERATION as usize];
        let read = memory.read(operations.checked_add(at * OPERATION)?, &mut bytes).ok()?;
        let number = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let change = i32::from(i16::from_ne_bytes([bytes[2], bytes[3]]));
        (read == bytes.len()).then_some((number, change))
    };
    let here = is_here(pid);
    let asked = (0..count.min(MOST)).map_while(operation).take_while(|_| here);
    let blocking = first_blocking(asked, |number| control(set, number, libc::GETVAL));
    let what = match blocking {
        Some((number, 0)) => format!("semaphore {number} of System V set {set} to become 0"),
        Some((number, _)) => format!("semaphore {number} of System V set {set}"),
        None => format!("a semaphore of System V set {set}"),
    };
    let last = blocking.and_then(|(number, _)| control(set, number, libc::GETPID));
    let unknown = |why| Asleep::on(what.clone() + why, WaitEnds::Processes { processes: vec![] });
    match last.map(u32::try_from) {
        // Who has not taken it cannot hold it.
        Some(Ok(0)) => unknown(", which no process that is seen here has changed yet"),
        Some(Ok(last)) => {
            let why = "changed it last; a semaphore has no other owner".to_owned();
            let last = OtherProcess { why: Some(why), ..OtherProcess::new(last) };
            Asleep::on(what, WaitEnds::Holders { processes: vec![last] })
        }
        // It is of another IPC namespace, not for this user to read, or removed already, which ends
        // the wait: nothing says that it serves as a lock.
        Some(Err(_)) | None => unknown(", of which nothing more can be told"),
    }
}

/// Returns what a thread waits for in `msgrcv` or `msgsnd`.
pub(super) fn queue(pid: u32, queue: u64, receives: bool) -> Asleep {
    let queue = queue.cast_signed() as i32;
    let noun = if receives { "a message in" } else { "room in" };
    let what = format!("{noun} System V message queue {queue}");
    // SAFETY: zeroes are a value of it, and the call fills it or fails.
    let mut state: libc::msqid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one structure, which lives in this frame.
    let answer = unsafe { libc::msgctl(queue, libc::IPC_STAT, &raw mut state) };
    let last = if receives { state.msg_lspid } else { state.msg_lrpid };
    let last = u32::try_from(last).ok().filter(|&last| last != 0 && answer == 0 && is_here(pid));
    let verb = if receives { "sent to it last" } else { "received from it last" };
    let named = |pid| OtherProcess { why: Some(verb.into()), ..OtherProcess::new(pid) };
    Asleep::on(what, WaitEnds::Processes { processes: last.map(named).into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SavedMemory;

    #[test]
    fn only_a_semaphore_that_a_process_has_changed_is_taken_for_a_lock() {
        // SAFETY: the calls take and return numbers only, and touch no memory of ours.
        let set = unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) };
        let error = std::io::Error::last_os_error();
        if set < 0 && error.raw_os_error() == Some(libc::ENOSYS) {
            return println!("skipped: the kernel has no semaphores of System V");
        }
        assert!(set >= 0, "{error}");
        let remove = || control(set, 0, libc::IPC_RMID);
        let takes_one = [0_i16, -1, 0].map(i16::to_ne_bytes).concat();
        let memory = SavedMemory::new(0x1000, takes_one);
        let arguments = [set.unsigned_abs().into(), 0x1000, 1, 0, 0, 0];
        let call = SleepingCall { number: libc::SYS_semop, arguments, sp: 0, pc: 0 };
        let waits = || semaphore(std::process::id(), &call, &memory);
        let before = waits();
        let mut there_and_back = [1, -1].map(|change| libc::sembuf {
            sem_num: 0,
            sem_op: change,
            sem_flg: libc::IPC_NOWAIT as i16,
        });
        // SAFETY: the kernel reads two structures, which live in this frame.
        let changed = unsafe { libc::semop(set, there_and_back.as_mut_ptr(), 2) };
        let after = waits();
        let removed = remove();
        let gone = waits();
        assert_eq!((changed, removed), (0, Some(0)));
        assert!(!before.is_lock(), "{before:?}");
        let WaitEnds::Holders { processes } = &after.ends else { panic!("{after:?}") };
        assert_eq!(processes[0].pid, std::process::id(), "{after:?}");
        assert!(!gone.is_lock(), "{gone:?}");
    }

    #[test]
    fn of_several_operations_each_finds_what_those_before_it_have_left() {
        let first = |operations: &[(i32, i32)]| {
            first_blocking(operations.iter().copied(), |number| {
                [1, 0].get(number as usize).copied()
            })
        };
        assert_eq!(first(&[(0, -1), (1, -1)]), Some((1, -1)));
        assert_eq!(first(&[(0, -1), (0, -1)]), Some((0, -1)));
        assert_eq!(first(&[(1, 1), (1, -1), (0, 0)]), Some((0, 0)));
        assert_eq!(first(&[(0, -1), (0, 0)]), None);
        assert_eq!(first(&[(7, -1)]), None);
    }
}
