//! Which lock a futex word belongs to, where the lock does not say so itself.
//!
//! # Role
//! Rust's std, parking_lot, abseil, folly, C++20 and many others sleep on bare
//! words. Whose sleep it is can be told from the functions on the thread's stack,
//! and often where the lock lies as well. `dump`, `run` and the report at the end
//! all ask here, so that they say the same.
//!
//! # Reading a stack
//! From the innermost frame outwards, and through functions of lock libraries
//! only: where the program's own code begins, what stands above it has called
//! that code and says nothing of the word. A name that only says how a thread
//! sleeps (a parker, a semaphore of the thread) is replaced by one above it that
//! says what for.
//!
//! # What this never does
//! It names no owner. Who holds the lock is found elsewhere, by evidence.

mod key;
mod table;
mod unknown;

pub use unknown::{REFUSED, describe, once};

use crate::memory::ReadableMemory;
use crate::proc::futex::FutexWait;
use crate::stack::{Frame, Stack, is_glibc};
use crate::symbols::{is_lock_wrapper, plain};
use key::KeyPlace;

/// What a thread that sleeps on a futex word wants of the object behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FutexRole {
    /// It wants a lock for itself alone: one thread holds it, or several that share it.
    Exclusive,
    /// It wants to share a lock: a writer holds it, or waits for it.
    Shared,
    /// It waits until another thread says so: nobody holds anything.
    Event,
    /// It waits for the end of an initialiser that another thread runs.
    Once,
    /// That is not known.
    Unknown,
}

impl FutexRole {
    /// Tells whether some thread holds what such a thread waits for.
    #[must_use]
    pub fn is_lock(self) -> bool {
        matches!(self, FutexRole::Exclusive | FutexRole::Shared)
    }
}

/// A kind of object that threads sleep for on futex words.
#[derive(Debug, PartialEq, Eq)]
pub struct FutexUse {
    /// The library or language that it is from: `Rust std`, `parking_lot`, `abseil`.
    pub family: &'static str,
    /// The name that a report gives it: `Rust std::sync::Mutex`.
    pub name: &'static str,
    /// What the sleeper wants of it.
    pub role: FutexRole,
    /// What cannot be known of it, and why: a sentence for a report.
    pub why: &'static str,
    /// Where the object lies, seen from the word.
    key: KeyPlace,
    /// Whether a name above it on the stack says more.
    weight: NameWeight,
}

impl FutexUse {
    /// Returns the address of the object of a thread that sleeps in this way; `None` where it is
    /// not known, or what memory says of it cannot be true.
    #[must_use]
    pub fn key(&self, wait: &FutexWait, memory: &dyn ReadableMemory) -> Option<u64> {
        self.key.of(wait.address, memory)
    }

    /// Returns the address of the object of a word that was recorded: `address` is the word's, or,
    /// if it was found `beside` the word, what stood there.
    #[must_use]
    pub fn key_recorded(&self, address: u64, beside: bool) -> Option<u64> {
        match (self.key, beside) {
            (KeyPlace::Parked(_), true) => self.key.recorded(0, address),
            (KeyPlace::Parked(_), false) | (_, true) => None,
            (_, false) => self.key.recorded(address, 0),
        }
    }
}

/// How much a name on a stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameWeight {
    /// It says how the thread sleeps; what for, a name above it says.
    Sleep,
    /// It says what the thread sleeps for.
    Object,
    /// It says what an event below it is used for.
    Use,
}

/// Returns what the innermost functions of a stack sleep for; `None` where they do not tell.
#[must_use]
pub fn of_stack(stack: &Stack) -> Option<&'static FutexUse> {
    let mut found: Option<&'static FutexUse> = None;
    for frame in &stack.frames {
        match of_frame(frame) {
            Some(next) if found.is_none_or(|known| replaces(next, known)) => found = Some(next),
            Some(_) => {}
            None if is_between(frame) => {}
            None => break,
        }
    }
    found
}

/// Tells whether a name further out says more than the one that is known.
fn replaces(next: &FutexUse, known: &FutexUse) -> bool {
    match known.weight {
        NameWeight::Sleep => true,
        NameWeight::Object => known.role == FutexRole::Event && next.weight == NameWeight::Use,
        NameWeight::Use => false,
    }
}

fn of_frame(frame: &Frame) -> Option<&'static FutexUse> {
    let name = normal(frame.function.as_deref()?);
    let inside = || {
        let is_glibc = frame.module.as_deref().is_some_and(is_glibc);
        if is_glibc { None } else { table::find_inside_program(&name) }
    };
    table::find(&name).or_else(inside)
}

/// Tells whether a function may stand between the sleep and the one that names it.
fn is_between(frame: &Frame) -> bool {
    let own = || frame.function.as_deref().map(normal).is_some_and(|name| table::is_inside(&name));
    // In a program without the C library beside it, its wrapper has no file of its own.
    is_lock_wrapper(frame) || frame.function.as_deref() == Some("syscall") || own()
}

/// Returns a name in the form in which the table has it: without return type, brackets around a
/// type of Rust, and the namespaces that abseil's versions put in.
fn normal(function: &str) -> String {
    let name = plain(function);
    let name = name.trim_start_matches('<');
    let Some(rest) = name.strip_prefix("absl::") else { return name.to_owned() };
    match rest.split_once("::") {
        Some((version, rest)) if version.starts_with("lts_") || version.starts_with("debian") => {
            format!("absl::{rest}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
