//! Semaphores and message queues of System V.
//!
//! # Role
//! A set of semaphores knows for each the process that changed it last. Where a
//! semaphore serves as a lock, that is the one which has it; nobody else says who.

use super::{Asleep, Ends, Other};
use crate::memory::Memory;
use crate::proc::task::Call;
use std::fs;

/// Bytes of a `struct sembuf`: number, change, flags.
const OPERATION: u64 = 6;
/// The kernel's own limit is no lower than any that is in use.
const MOST: u64 = 500;

/// Objects of another IPC namespace have numbers that mean others here.
fn is_here(pid: u32) -> bool {
    let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/ipc")).ok();
    of("self").is_some_and(|here| of(&pid.to_string()) == Some(here))
}

fn control(set: i32, number: i32, command: i32) -> Option<i32> {
    // SAFETY: both commands take numbers only, and answer with one.
    let answer = unsafe { libc::semctl(set, number, command) };
    (answer >= 0).then_some(answer)
}

/// What a thread waits for in `semop` or `semtimedop`.
pub(super) fn semaphore(pid: u32, call: &Call, memory: &dyn Memory) -> Asleep {
    let [set, operations, count, ..] = call.arguments;
    let set = set.cast_signed() as i32;
    let blocking = (0..count.min(MOST)).find_map(|at| {
        let mut bytes = [0; OPERATION as usize];
        let read = memory.read(operations.checked_add(at * OPERATION)?, &mut bytes).ok()?;
        let number = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let change = i32::from(i16::from_ne_bytes([bytes[2], bytes[3]]));
        let value = control(set, number, libc::GETVAL)?;
        let blocks = change < 0 && value < -change || change == 0 && value != 0;
        (read == bytes.len() && blocks).then_some((number, change))
    });
    let here = is_here(pid);
    let what = match blocking.filter(|_| here) {
        Some((number, 0)) => format!("semaphore {number} of System V set {set} to become 0"),
        Some((number, _)) => format!("semaphore {number} of System V set {set}"),
        None => format!("a semaphore of System V set {set}"),
    };
    let last = blocking.filter(|_| here).and_then(|(number, _)| control(set, number, libc::GETPID));
    let last = last.and_then(|pid| u32::try_from(pid).ok()).filter(|&pid| pid != 0);
    let named = |pid| {
        let why = "changed it last; a semaphore has no other owner".to_owned();
        Other { why: Some(why), ..Other::new(pid) }
    };
    Asleep::on(what, Ends::Holders { processes: last.map(named).into_iter().collect() })
}

/// What a thread waits for in `msgrcv` or `msgsnd`.
pub(super) fn queue(pid: u32, queue: u64, receives: bool) -> Asleep {
    let queue = queue.cast_signed() as i32;
    let noun = if receives { "a message in" } else { "room in" };
    let what = format!("{noun} System V message queue {queue}");
    // SAFETY: zeroes are a value of it, and the call fills it or fails.
    let mut state: libc::msqid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: the state lives in this frame.
    let answer = unsafe { libc::msgctl(queue, libc::IPC_STAT, &raw mut state) };
    let last = if receives { state.msg_lspid } else { state.msg_lrpid };
    let last = u32::try_from(last).ok().filter(|&last| last != 0 && answer == 0 && is_here(pid));
    let verb = if receives { "sent to it last" } else { "received from it last" };
    let named = |pid| Other { why: Some(verb.into()), ..Other::new(pid) };
    Asleep::on(what, Ends::Processes { processes: last.map(named).into_iter().collect() })
}
