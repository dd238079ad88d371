//! What cannot be known of a futex word, in words.
//!
//! # Role
//! Many locks do not say who holds them. Which kind it is can often be told
//! from the functions on the thread's stack; that decides which sentence is
//! said, never who is called the holder.

use super::{of_stack, table};
use crate::proc::futex::{FutexWait, FutexWaitKind};
use crate::slots;
use crate::stack::Stack;

/// Returns kind and sentence of a once that was recognised by its word.
#[must_use]
pub fn once() -> (String, String) {
    (table::ONCE.name.into(), table::ONCE.why.into())
}

/// Returns what kind of object it seems to be, and why no more is known.
#[must_use]
pub fn describe(wait: &FutexWait, stack: &Stack, inside_libc: bool) -> (String, String) {
    let named = |parts: &[&str]| {
        stack
            .frames
            .iter()
            .filter_map(|frame| frame.function.as_deref())
            .any(|function| parts.iter().any(|part| function.contains(part)))
    };
    let text = |(kind, why): (&str, &str)| (kind.to_owned(), why.to_owned());
    let by_bits = slots::is_lockstead(wait);
    let is_own = named(&["lockstead_core::", "lockstead_linux::"]);
    if is_own && slots::is_for_owned(wait) {
        return text((
            "lockstead lock",
            "a lock of the crate lockstead names its owner by a slot of a table, which was not \
             found in the program: the holder cannot be told",
        ));
    }
    if is_own {
        return text((
            "lockstead lock",
            "a lock of the crate lockstead that names no owner, or a wait for one that can be \
             cancelled: the holder cannot be told",
        ));
    }
    if let Some(known) = of_stack(stack) {
        return text((known.name, known.why));
    }
    let java = stack.frames.iter().any(|f| f.module.as_deref().is_some_and(is_java));
    text(match wait.operation {
        _ if java => {
            ("Java thread", "a thread of the Java machine: its monitors cannot be seen from here")
        }
        FutexWaitKind::Several { .. } => (
            "several futex words",
            "the thread waits for any of several words: which lock that is cannot be told",
        ),
        FutexWaitKind::LockPi | FutexWaitKind::RequeuePi => (
            "priority-inheritance futex",
            "a priority-inheritance futex of no known lock; its owner has no name here",
        ),
        FutexWaitKind::Wait { .. } if by_bits => (
            "futex word",
            "a futex word of no known lock; the thread hears the wake-ups that one of the crate \
             lockstead would send, but neither its functions nor its table of owners were found \
             in the program: who will wake it cannot be told",
        ),
        FutexWaitKind::Wait { .. } if inside_libc => (
            "futex word of the C library",
            "the C library sleeps here on an object of no known shape: who will wake it cannot be \
             told",
        ),
        FutexWaitKind::Wait { .. } if wait.expected == 2 => (
            "futex word",
            "a futex word without an owner, as Rust's std::sync::Mutex has: the holder cannot be \
             told",
        ),
        FutexWaitKind::Wait { .. } => {
            ("futex word", "a futex word of no known lock: who will wake it cannot be told")
        }
    })
}

/// The sleep that glibc puts a thread into when the kernel has refused it a
/// priority-inheritance mutex.
pub const REFUSED: &str = "the C library lets this thread sleep for ever, as it does when the \
                           kernel refuses a priority-inheritance mutex because taking it would \
                           close a deadlock: which mutex cannot be told";

fn is_java(module: &str) -> bool {
    module.ends_with("/libjvm.so")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::futex::WaitLimit;
    use crate::stack::{Frame, StackEnd};

    fn describe_in(function: Option<&str>, operation: FutexWaitKind, expected: u32) -> String {
        let frame = Frame { function: function.map(Into::into), ..Frame::default() };
        let stack = Stack { frames: vec![frame], end: StackEnd::Bottom };
        let wait = FutexWait {
            address: 64,
            expected,
            operation,
            private: true,
            limit: WaitLimit::None,
            other: 0,
        };
        describe(&wait, &stack, false).1
    }

    #[test]
    fn the_function_decides_and_else_the_word() {
        let wait = FutexWaitKind::Wait { bits: !0 };
        let mutex = "<std::sys::sync::mutex::futex::Mutex>::lock_contended";
        assert!(describe_in(Some(mutex), wait, 2).contains("std::sync::Mutex has no owner"));
        assert!(describe_in(None, wait, 2).contains("as Rust's std::sync::Mutex has"));
        assert!(describe_in(None, wait, 7).contains("of no known lock"));
        assert!(describe_in(Some("runtime.futex.abi0"), wait, 0).contains("Go runtime"));
        let own = Some("<lockstead_core::mutex::RawMutex>::lock_slow");
        assert!(describe_in(own, FutexWaitKind::Wait { bits: !3 }, 5).contains("names no owner"));
        assert!(
            describe_in(own, FutexWaitKind::Wait { bits: !7 }, 5).contains("table, which was not")
        );
        // Others may choose the same bits.
        let bits = describe_in(None, FutexWaitKind::Wait { bits: !7 }, 5);
        assert!(bits.contains("of no known lock") && bits.contains("neither its functions"));
    }
}
