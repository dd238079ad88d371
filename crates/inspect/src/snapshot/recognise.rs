//! From a futex wait to the object behind it.
//!
//! # Role
//! Puts two kinds of evidence together: the code that made the call, and the
//! shape of the memory that it sleeps on. A glibc lock is believed only of a
//! call from inside glibc, or in a program that has glibc inside itself; a call
//! through its function `syscall` is somebody else's. Where the function is
//! known to wait for something without an owner, no shape is tried.

use super::unknown;
use crate::glibc::mutex::Mutex;
use crate::glibc::others::Ownerless;
use crate::glibc::rwlock::RwLock;
use crate::glibc::thread::{self, StreamLock};
use crate::memory::Memory;
use crate::proc::futex::FutexWait;
use crate::proc::task::Task;
use crate::seats::OwnMutex;
use crate::stack::Stack;

/// Who made the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Code of the C library that is no mere system call.
    Library,
    /// The program has no C library beside it: it may be inside.
    Whole,
    /// Somebody else.
    Other,
}

/// What a thread waits for, with owners by the numbers that they have for
/// themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A mutex.
    Mutex(Mutex),
    /// The lock of a stream.
    Stream(StreamLock),
    /// A reader-writer lock.
    RwLock(RwLock),
    /// The end of the thread with this number.
    Join(u32),
    /// An object without an owner.
    Ownerless(Ownerless),
    /// A mutex that the kernel has refused; which, is not known.
    Refused,
    /// A mutex of the crate lockstead.
    Own(OwnMutex),
    /// Nothing known, with its kind and the reason.
    Unknown {
        /// What it seems to be.
        kind: String,
        /// What cannot be told, and why.
        why: String,
    },
}

/// Who made the call, by the innermost frame of the thread's stack.
#[must_use]
pub fn caller(stack: &Stack, has_libc: bool) -> Caller {
    let Some(frame) = stack.frames.iter().find(|frame| !frame.inlined) else {
        return Caller::Other;
    };
    // The library's own wrapper for calls that it has no function for.
    let bare = frame.function.as_deref() == Some("syscall");
    match (bare, frame.is_libc(), has_libc) {
        (true, ..) => Caller::Other,
        (false, true, _) => Caller::Library,
        (false, false, false) => Caller::Whole,
        (false, false, true) => Caller::Other,
    }
}

/// What the thread waits for. `writable`: the word lies in memory that the
/// process may write.
#[must_use]
pub fn recognise(
    task: &Task,
    wait: &FutexWait,
    stack: &Stack,
    caller: Caller,
    writable: bool,
    memory: &dyn Memory,
) -> Found {
    let shape = match caller {
        Caller::Other => None,
        _ if !writable => None,
        Caller::Library | Caller::Whole => {
            shape(task, wait, stack, caller == Caller::Library, memory)
        }
    };
    shape.unwrap_or_else(|| {
        let (kind, why) = unknown::describe(wait, stack, caller == Caller::Library);
        Found::Unknown { kind, why }
    })
}

/// Functions of the library that wait for something without an owner.
const NO_MUTEX: &[&str] = &["__lll_lock_wait_private", "pthread_once", "call_once"];

fn shape(
    task: &Task,
    wait: &FutexWait,
    stack: &Stack,
    library: bool,
    memory: &dyn Memory,
) -> Option<Found> {
    if let Some(stream) = StreamLock::behind(wait, memory) {
        return Some(Found::Stream(stream));
    }
    // Above the innermost function of the library, everything is the program's.
    let near = stack.frames.iter().take_while(|frame| !library || frame.is_libc());
    let functions: Vec<&str> = near.filter_map(|frame| frame.function.as_deref()).collect();
    if functions.iter().any(|function| NO_MUTEX.contains(function)) {
        return None;
    }
    let sp = task.doing.registers().map_or(0, |(sp, _)| sp);
    if library && thread::sleeps_for_ever(wait, sp) {
        return Some(Found::Refused);
    }
    let owned = Mutex::behind(wait, memory)
        .map(Found::Mutex)
        .or_else(|| thread::joined(wait, memory).map(Found::Join))
        .or_else(|| RwLock::behind(wait, memory).map(Found::RwLock));
    // The shapes of objects without an owner ask for little: too little where
    // the code may be anybody's.
    let plain = || Ownerless::behind(wait, memory).filter(|_| library).map(Found::Ownerless);
    owned.or_else(plain)
}
