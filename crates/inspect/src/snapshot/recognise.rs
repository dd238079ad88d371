//! From a futex wait to the object behind it.
//!
//! # Role
//! Puts two kinds of evidence together: the code that made the call, and the
//! shape of the memory that it sleeps on. A glibc lock is believed only of a
//! call from inside glibc, or in a program that has glibc inside itself; a call
//! through its function `syscall` is somebody else's.
//!
//! Where a function of the library on the stack has a name, only what that
//! function waits for is looked for. That decides for conditions and barriers,
//! and for a reader-writer lock without a writer: their functions have names in
//! every library, and their shapes ask too little. The functions that sleep for
//! mutexes, semaphores and onces often have none.

use crate::futexes::{self, FutexUse};
use crate::glibc::mutex::GlibcMutex;
use crate::glibc::others::{self, Ownerless};
use crate::glibc::rwlock::GlibcRwLock;
use crate::glibc::thread::{self, StreamLock};
use crate::memory::ReadableMemory;
use crate::owners::shape::AwaitedLock;
use crate::proc::futex::FutexWait;
use crate::slots::OwnLock;
use crate::stack::Stack;
use std::ops::Range;

/// The code that made the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallingCode {
    /// Code of the C library that is no mere system call.
    Library,
    /// The program has no C library beside it: it may be inside.
    Whole,
    /// Other code made the call.
    Other,
}

/// What a thread waits for, with owners by the numbers that they have for
/// themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundWait {
    /// A mutex of the C library.
    Mutex(GlibcMutex),
    /// The lock of a stream.
    Stream(StreamLock),
    /// A reader-writer lock of glibc.
    RwLock(GlibcRwLock),
    /// The end of the thread with this number.
    Join(u32),
    /// An object without an owner.
    Ownerless(Ownerless),
    /// A mutex that the kernel has refused; which, is not known.
    Refused,
    /// A lock of the crate lockstead that names an owner.
    Own(OwnLock),
    /// Nothing known, with its kind and the reason.
    Unknown {
        /// The kind of lock that the word seems to be part of.
        kind: String,
        /// What cannot be told, and why.
        why: String,
    },
}

/// What is known of one waiting thread.
pub(super) struct KnownWait {
    pub(super) wait: FutexWait,
    pub(super) found: FoundWait,
    /// What the functions on its stack say.
    pub(super) known: Option<&'static FutexUse>,
    /// The locks without a named holder that it may be for.
    pub(super) awaited: Vec<AwaitedLock>,
}

/// Returns who made the call, by the innermost frame of the thread's stack.
#[must_use]
pub fn caller(stack: &Stack, has_libc: bool) -> CallingCode {
    let Some(frame) = stack.frames.iter().find(|frame| !frame.inlined) else {
        return CallingCode::Other;
    };
    // The library's own wrapper for calls that it has no function for.
    let bare = frame.function.as_deref() == Some("syscall");
    match (bare, frame.is_libc(), has_libc) {
        (true, ..) => CallingCode::Other,
        (false, true, _) => CallingCode::Library,
        (false, false, false) => CallingCode::Whole,
        (false, false, true) => CallingCode::Other,
    }
}

/// Returns what the thread waits for. `frames`: the part of its stack that is the C library's own,
/// where that is known. `writable`: the word lies in memory that the process may write.
#[must_use]
pub fn recognise(
    wait: &FutexWait,
    stack: &Stack,
    frames: Option<&Range<u64>>,
    caller: CallingCode,
    writable: bool,
    memory: &dyn ReadableMemory,
) -> FoundWait {
    let library = caller == CallingCode::Library;
    let shape = match caller {
        CallingCode::Other => None,
        _ if !writable => None,
        CallingCode::Library | CallingCode::Whole => shape(wait, stack, frames, library, memory),
    };
    shape.unwrap_or_else(|| {
        let (kind, why) = futexes::describe(wait, stack, library);
        FoundWait::Unknown { kind, why }
    })
}

/// What a function of the library waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitSubject {
    /// A mutex; so does a wait for a condition, when it is over.
    Mutex,
    Condition,
    RwLock,
    Barrier,
    Semaphore,
    Join,
    /// Something without an owner, and without a shape of its own.
    Plain,
}

/// Functions of the library by how their names begin, without the underscores in front. Their
/// inner parts are called alike, where the library's own symbols are installed.
const SUBJECTS: &[(&str, WaitSubject)] = &[
    ("pthread_mutex_", WaitSubject::Mutex),
    ("mtx_", WaitSubject::Mutex),
    ("pthread_cond_", WaitSubject::Condition),
    ("cnd_", WaitSubject::Condition),
    ("pthread_rwlock_", WaitSubject::RwLock),
    ("pthread_barrier_", WaitSubject::Barrier),
    ("sem_", WaitSubject::Semaphore),
    ("new_sem_", WaitSubject::Semaphore),
    ("pthread_join", WaitSubject::Join),
    ("pthread_timedjoin", WaitSubject::Join),
    ("pthread_clockjoin", WaitSubject::Join),
    ("thrd_join", WaitSubject::Join),
    ("pthread_once", WaitSubject::Plain),
    ("call_once", WaitSubject::Plain),
    ("lll_lock_wait_private", WaitSubject::Plain),
];

/// Returns what the innermost function that tells waits for.
fn subject(functions: &[&str]) -> Option<WaitSubject> {
    functions.iter().find_map(|function| {
        let name = function.trim_start_matches('_');
        let known = SUBJECTS.iter().find(|(start, _)| name.starts_with(start));
        known.map(|&(_, subject)| subject)
    })
}

fn shape(
    wait: &FutexWait,
    stack: &Stack,
    frames: Option<&Range<u64>>,
    library: bool,
    memory: &dyn ReadableMemory,
) -> Option<FoundWait> {
    // Above the innermost function of the library, everything is the program's.
    let near = stack.frames.iter().take_while(|frame| !library || frame.is_libc());
    let functions: Vec<&str> = near.filter_map(|frame| frame.function.as_deref()).collect();
    let subject = subject(&functions);
    let may = |of: &[WaitSubject]| subject.is_none_or(|subject| of.contains(&subject));
    let is = |of: WaitSubject| library && subject == Some(of);
    if let Some(stream) = StreamLock::behind(wait, library, memory) {
        return Some(FoundWait::Stream(stream));
    }
    if may(&[WaitSubject::Mutex, WaitSubject::Condition]) {
        if library && frames.is_some_and(|frames| thread::sleeps_for_ever(wait, frames)) {
            return Some(FoundWait::Refused);
        }
        if let Some(mutex) = GlibcMutex::behind(wait, memory) {
            return Some(FoundWait::Mutex(mutex));
        }
    }
    if may(&[WaitSubject::Join])
        && let Some(joined) = thread::joined(wait, memory)
    {
        return Some(FoundWait::Join(joined));
    }
    let named = subject == Some(WaitSubject::RwLock);
    if may(&[WaitSubject::RwLock])
        && let Some(lock) = GlibcRwLock::behind(wait, memory)
        && (named || lock.writer.is_some())
    {
        return Some(FoundWait::RwLock(lock));
    }
    let ownerless = match () {
        () if is(WaitSubject::Condition) => others::condition(wait, memory),
        () if is(WaitSubject::Barrier) => others::barrier(wait, memory),
        () if library && may(&[WaitSubject::Semaphore]) => others::semaphore(wait, memory),
        () => None,
    };
    // No function of the library that has a name sleeps for a once in this way.
    let once = || {
        let plain = library && functions.is_empty() && others::is_once(wait, memory);
        plain.then(|| {
            let (kind, why) = futexes::once();
            FoundWait::Unknown { kind, why }
        })
    };
    ownerless.map(FoundWait::Ownerless).or_else(once)
}
