//! What locks of Python's interpreter are called, by what the ledger has of them.
//!
//! # Role
//! A process that has ended can no longer be asked. Where its locks came from still tells: the
//! interpreter makes each kind in a function of its own, and of the C library's mutexes and
//! conditions only the GIL's lie in its variable `_PyRuntime`.

use super::Variable;
use crate::stack::{Frame, Stack};
use std::path::Path;

/// The innermost frames of the interpreter that are asked.
const FRAMES: usize = 4;

/// Returns what an object is that was initialised there, if the interpreter makes its locks so.
#[must_use]
pub fn python_lock(initialised: &Stack) -> Option<&'static str> {
    let own = initialised.visible().take(FRAMES).take_while(|frame| is_interpreter(frame));
    let own: Vec<&Frame> = own.collect();
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
    // that, which it exports, or by a copy of that. From 3.13 on it may be a thread's word for waits.
    let is_bare = matches!(functions[..], [None, ..] | [Some("PyThread_allocate_lock"), None, ..])
        && own.first().is_some_and(|frame| makes_semaphores(frame));
    known.or(is_bare.then_some("lock of CPython"))
}

/// Tells whether a frame is of an interpreter all of whose semaphores are locks, by its file's name.
fn makes_semaphores(frame: &Frame) -> bool {
    let version = version(Path::new(frame.module.as_deref().unwrap_or_default()));
    let minor = version.strip_prefix(" 3.").and_then(|minor| minor.parse::<u32>().ok());
    minor.is_some_and(|minor| minor < 13)
}

/// Returns what a mutex or condition is that lies in a variable of a file, if that is the GIL.
pub(super) fn gil(kind: &str, variable: &Variable, file: &Path) -> Option<Variable> {
    let is_its = variable.name == "_PyRuntime" && !matches!(kind, "semaphore" | "futex");
    let name = format!("the GIL of CPython{}", version(file));
    is_its.then_some(Variable { name, offset: 0, module: None })
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

fn is_interpreter(frame: &Frame) -> bool {
    let module = frame.module.as_deref().unwrap_or_default();
    let name = module.rsplit('/').next().unwrap_or_default();
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
        assert_eq!(made("/usr/bin/python3.14", &[None, None]), None);
        assert_eq!(made("/usr/bin/python-tool", &[None, None]), None);
    }

    #[test]
    fn mutexes_in_the_state_of_the_runtime_are_the_gil() {
        let variable = Variable { name: "_PyRuntime".into(), offset: 392, module: None };
        let named = |kind, file| gil(kind, &variable, Path::new(file)).map(|it| it.to_string());
        assert_eq!(named("mutex", "/usr/bin/python3.11"), Some("the GIL of CPython 3.11".into()));
        let library = "/opt/lib/libpython3.9.so.1.0";
        assert_eq!(named("condition", library), Some("the GIL of CPython 3.9".into()));
        assert_eq!(named("mutex", "/usr/bin/python3"), Some("the GIL of CPython".into()));
        assert_eq!(named("semaphore", "/usr/bin/python3"), None);
    }
}
