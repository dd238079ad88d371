//! The end of a program whose call could only hang and has no way to say so.

use crate::names;
use lockstead_core::LockError;
use lockstead_core::slot::MAX_SLOTS;

/// Returns what a message calls the lock at `address`.
pub(crate) fn named(kind: &str, address: usize) -> String {
    match names::name(address) {
        Some(name) => format!("{kind} `{name}` at {address:#x}"),
        None => format!("{kind} at {address:#x}"),
    }
}

/// Prints what is wrong with the lock at `address` that `call` wants, and aborts.
#[cold]
#[inline(never)]
pub(crate) fn refuse(error: LockError, call: &str, kind: &str, address: usize) -> ! {
    let lock = named(kind, address);
    match error {
        LockError::Recursive => die(&format!(
            "{call}: recursion: this thread holds the {lock} already, and would wait for \
             itself for ever"
        )),
        LockError::OwnerLost => die(&format!(
            "{call}: lost owner: the {lock} is held by a thread that fork left behind in the \
             parent process. It can never be released here: take it around fork, use only \
             trylock in the child, or exec"
        )),
        LockError::TooManyReaders => die(&format!(
            "{call}: too many readers: {MAX_SLOTS} hold the {lock}, which can count no more. Some \
             of them forget to release"
        )),
        other => unreachable!("{lock}: {other:?} was not asked for"),
    }
}

/// Prints why, and aborts.
#[cold]
pub(crate) fn die(words: &str) -> ! {
    eprintln!("lockstead: {words}");
    std::process::abort()
}
