//! What locks of Python's interpreter are called, by what the ledger has of them.
//!
//! # Role
//! A process that has ended can no longer be asked. Where its locks came from still tells: the
//! interpreter makes each kind in a function of its own, and of the C library's mutexes and
//! conditions only the GIL's lie in its variable `_PyRuntime`.

use super::{LockClues, Variable};
use crate::stack::{Frame, Stack};
use std::path::Path;

/// The innermost frames of the interpreter that are asked.
const FRAMES: usize = 4;

/// Returns what an object is that was initialised there, if the interpreter makes its locks so.
#[must_use]
pub fn python_lock(initialised: &Stack) -> Option<&'static str> {
    let all: Vec<&Frame> = initialised.visible().take(FRAMES).collect();
    let own: Vec<&Frame> = all.iter().copied().take_while(|frame| is_interpreter(frame)).collect();
    let caller = all.get(own.len()).filter(|_| !own.is_empty());
    // A module of the interpreter's that has one kind of object, and that a lock.
    if caller.is_some_and(|frame| file_name(frame).starts_with("_queue.")) {
        return Some("queue.SimpleQueue");
    }
    let functions: Vec<Option<&str>> = own.iter().map(|frame| frame.function.as_deref()).collect();
    let mut named = functions.iter().flatten();
    let known = named.find_map(|&function| match function {
        "newlockobject" | "lock_new_impl" | "thread_PyThread_allocate_lock" => {
            Some("threading.Lock")
        }
        "rlock_new" | "rlock_new_impl" | "newrlockobject" => Some("threading.RLock"),
        // Of its parking lot: a lock's waiters sleep on one of their own, each.
        "_PySemaphore_Init" => Some("wait for a lock of CPython"),
        _ => None,
    });
    // A stripped interpreter tells no more than that its own code made it: by the one function for
    // that, which it exports, or by a copy of that.
    let is_bare = matches!(functions[..], [None, ..] | [Some("PyThread_allocate_lock"), None, ..]);
    let bare = own.first().filter(|_| is_bare).and_then(|frame| bare_lock(frame));
    known.or(bare)
}

/// Returns what a semaphore is that an interpreter without symbols made, by the name of its file.
fn bare_lock(frame: &Frame) -> Option<&'static str> {
    let version = version(Path::new(frame.module.as_deref()?));
    let minor: u32 = version.strip_prefix(" 3.")?.parse().ok()?;
    // From 3.13 on a thread that waits for any of its locks has a semaphore for that.
    Some(if minor < 13 {
        "lock of CPython"
    } else {
        "lock of a stripped CPython, or a wait for one"
    })
}

/// Returns what a mutex or condition is that lies in a variable of a file, if that is a part of the
/// GIL. That has two pairs of a condition and a mutex, one behind the other: for who wants it, and for
/// who has given it back and waits until another has taken it.
pub(super) fn gil(clues: &LockClues<'_>, variable: &Variable, file: &Path) -> Option<Variable> {
    if variable.name != "_PyRuntime" {
        return None;
    }
    let part = match (clues.kind, clues.is_of_second_pair) {
        ("condition", Some(false)) => "",
        ("condition", Some(true)) => ", its hand-over",
        ("mutex", Some(false)) => ", its mutex",
        ("mutex", Some(true)) => ", the mutex of its hand-over",
        ("mutex" | "condition" | "condition variable", None) => ", a part of it",
        _ => return None,
    };
    let name = format!("the GIL of CPython{}{part}", version(file));
    Some(Variable { name, offset: 0, module: None })
}

/// Returns the version that the name of a file says, a space before it.
fn version(file: &Path) -> String {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let numbers = name.split_once("python").map_or("", |(_, rest)| rest);
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
    let numbers: Vec<&str> = numbers[..end].split('.').take(2).collect();
    match numbers[..] {
        [major, minor] if !minor.is_empty() => format!(" {major}.{minor}"),
        _ => String::new(),
    }
}

fn file_name(frame: &Frame) -> &str {
    frame.module.as_deref().unwrap_or_default().rsplit('/').next().unwrap_or_default()
}

fn is_interpreter(frame: &Frame) -> bool {
    let name = file_name(frame);
    name.starts_with("libpython") || name.starts_with("python")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackEnd;

    fn made(module: &str, functions: &[&str]) -> Option<&'static str> {
        let frame = |function: &&str| Frame {
            function: Some((*function).into()),
            module: Some(module.into()),
            ..Frame::default()
        };
        let frames = functions.iter().map(frame).collect();
        python_lock(&Stack { frames, end: StackEnd::Bottom })
    }

    #[test]
    fn locks_are_known_by_the_functions_that_make_them() {
        let python = "/usr/lib/libpython3.12.so.1.0";
        let made_by = ["PyThread_allocate_lock", "newlockobject", "main"];
        assert_eq!(made(python, &made_by), Some("threading.Lock"));
        assert_eq!(made(python, &["rlock_new"]), Some("threading.RLock"));
        assert_eq!(made(python, &["PyThread_allocate_lock", "_buffered_init"]), None);
        assert_eq!(made("/usr/bin/other", &["newlockobject"]), None);
    }

    #[test]
    fn a_module_that_makes_one_kind_of_object_names_its_locks() {
        let frame = |module: &str| Frame { module: Some(module.into()), ..Frame::default() };
        let made = |files: &[&str]| {
            let frames = files.iter().map(|file| frame(file)).collect();
            python_lock(&Stack { frames, end: StackEnd::Bottom })
        };
        let module = "/usr/lib/python3.11/lib-dynload/_queue.cpython-311-x86_64-linux-gnu.so";
        assert_eq!(made(&["/usr/bin/python3.11", module]), Some("queue.SimpleQueue"));
        assert_eq!(made(&[module]), None, "not by the interpreter");
    }

    #[test]
    fn a_stripped_interpreter_tells_that_a_lock_is_its_own() {
        let made = |file: &str, functions: &[Option<&str>]| {
            let frame = |function: &Option<&str>| Frame {
                function: function.map(str::to_owned),
                module: Some(file.into()),
                ..Frame::default()
            };
            let frames = functions.iter().map(frame).collect();
            python_lock(&Stack { frames, end: StackEnd::Bottom })
        };
        let stripped = "/usr/bin/python3.11";
        let by = Some("PyThread_allocate_lock");
        assert_eq!(made(stripped, &[by, None, None]), Some("lock of CPython"));
        assert_eq!(made(stripped, &[None, None]), Some("lock of CPython"));
        assert_eq!(made(stripped, &[by, Some("_buffered_init")]), None);
        let newer = Some("lock of a stripped CPython, or a wait for one");
        assert_eq!(made("/usr/bin/python3.14", &[None, None]), newer);
        assert_eq!(made("/usr/bin/python3.14", &[None, Some("_buffered_init")]), newer);
        assert_eq!(made("/usr/bin/python-tool", &[None, None]), None);
    }

    #[test]
    fn mutexes_and_conditions_in_the_state_of_the_runtime_are_parts_of_the_gil() {
        let variable = Variable { name: "_PyRuntime".into(), offset: 392, module: None };
        let named = |kind, is_of_second_pair, file| {
            let clues = LockClues {
                kind,
                address: 0,
                on_stack_of: None,
                initialised: None,
                first_used: None,
                late: false,
                is_of_second_pair,
                serial: None,
            };
            gil(&clues, &variable, Path::new(file)).map(|found| found.to_string())
        };
        let library = "/opt/lib/libpython3.9.so.1.0";
        for (kind, is_of_second_pair, file, name) in [
            ("condition", Some(false), library, "the GIL of CPython 3.9"),
            ("mutex", Some(false), "/usr/bin/python3.11", "the GIL of CPython 3.11, its mutex"),
            ("condition", Some(true), "/usr/bin/python3", "the GIL of CPython, its hand-over"),
            ("mutex", Some(true), library, "the GIL of CPython 3.9, the mutex of its hand-over"),
            ("mutex", None, library, "the GIL of CPython 3.9, a part of it"),
        ] {
            assert_eq!(named(kind, is_of_second_pair, file).as_deref(), Some(name));
        }
        assert_eq!(named("semaphore", Some(false), library), None);
    }
}
