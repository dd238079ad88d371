//! The `with` statements that a thread is inside of.
//!
//! # How
//! A `with` keeps the way out, `__exit__` of its lock, on the stack of its frame until it is left.
//! Its block is entered only when `__enter__` has returned: what lies on the stack below
//! the innermost block that the frame is in belongs to statements that have been entered. A
//! statement that still waits for its lock is not among them, in any version, though
//! 3.9 to 3.11 and 3.14 put the way out on the stack before they wait.
//!
//! # What is left out
//! `Condition.wait` gives back the lock of its condition while it waits: a thread in it does not
//! hold that, though the statement around it goes on.

use super::frames::RawFrame;
use super::locks::{self, receiver};
use super::model::{PythonGuard, PythonLock};
use super::objects::Objects;

/// Returns the statements that a thread with these frames is inside of, innermost first.
pub(super) fn guards(objects: &Objects<'_>, frames: &[RawFrame]) -> Vec<PythonGuard> {
    let mut found: Vec<PythonGuard> = Vec::new();
    let mut given_back = Vec::new();
    for frame in frames {
        match locks::condition_lock(objects, frame) {
            Some(Some(lock)) => given_back.push(lock),
            // Which lock it has given back is not known.
            Some(None) => return found,
            None => {}
        }
        let kept = frame.kept(objects);
        let exits = kept.iter().enumerate().rev();
        let held = exits.filter_map(|(at, &value)| {
            let object = bound(objects, value).or_else(|| {
                let below = kept.get(at + 1).copied().filter(|_| is_exit(objects, value));
                below.filter(|_| objects.layout.marked)
            })?;
            lock_of(objects, object)
        });
        for lock in held.filter(|lock| !given_back.contains(&lock.object)) {
            if found.iter().all(|guard| guard.lock.key != lock.key) {
                let doubtful = frame.code.names(objects, "release");
                found.push(PythonGuard { lock, frame: frame.shown(), doubtful });
            }
        }
    }
    found
}

/// Returns the object whose `__exit__` a value is, bound to it.
fn bound(objects: &Objects<'_>, value: u64) -> Option<u64> {
    /// The function and the object of a method.
    const FUNCTION: u64 = 16;
    const OBJECT: u64 = 24;
    let reader = objects.reader;
    match objects.type_name(value)?.as_ref() {
        "builtin_function_or_method" => {
            // The description of a function of C begins with its name.
            let name = reader.pointer(reader.pointer(value, FUNCTION)?, 0)?;
            (reader.c_string(name, 16)? == "__exit__").then(|| receiver(objects, value))?
        }
        "method" => {
            let function = reader.pointer(value, FUNCTION)?;
            is_exit(objects, function).then(|| reader.pointer(value, OBJECT))?
        }
        _ => None,
    }
}

/// Tells whether a function, not bound to an object, is the `__exit__` of a lock or of
/// `threading.Condition`.
fn is_exit(objects: &Objects<'_>, function: u64) -> bool {
    /// The name of a method of C.
    const NAME: u64 = 24;
    let (reader, layout) = (objects.reader, objects.layout);
    let text = |offset: u64| objects.text(reader.pointer(function, offset)?);
    match objects.type_name(function).as_deref() {
        Some("method_descriptor") => text(NAME).as_deref() == Some("__exit__"),
        Some("function") => {
            let qualified = text(layout.function_qualified);
            let file = reader
                .pointer(function, layout.function_code)
                .and_then(|code| objects.text(reader.pointer(code, layout.code.file)?));
            // That of another class may give back something else.
            qualified.as_deref() == Some("Condition.__exit__")
                && file.is_some_and(|file| file.ends_with("threading.py"))
        }
        _ => false,
    }
}

/// Returns the lock that an object is, or that of a condition.
fn lock_of(objects: &Objects<'_>, object: u64) -> Option<PythonLock> {
    locks::lock(objects, object)
        .or_else(|| locks::lock(objects, objects.attribute(object, "_lock")?))
}
