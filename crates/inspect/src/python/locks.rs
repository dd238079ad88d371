//! Locks of Python's as objects, and what a thread waits for with one.
//!
//! # How a wait is known
//! A thread sleeps on a semaphore. To 3.12, and in the first releases of 3.13, that belongs to a
//! lock object, which the innermost frame of Python has among its variables or on its stack, and
//! which names the semaphore. Later it lies on the thread's own C stack, with the address that is
//! waited for in front of it: of a byte in the lock object, or in the record of a thread.
//!
//! A lock alone says little: `threading.Condition` waits for a new one, which another
//! thread releases to wake it. So the functions of the standard library around the
//! wait decide what it is for.

use super::frames::RawFrame;
use super::model::{PythonLock, PythonWait};
use super::objects::Objects;

/// Every object begins with this.
const HEAD: u64 = 16;
/// The bytes of a thread's C stack above its stack pointer in which the interpreter waits.
const NEAR: u64 = 64 * 1024;
/// Where a record of a thread has its `pthread_self`, and where the event of its end, in 3.13 and
/// 3.14.
const HANDLE_IDENT: u64 = 32;
const HANDLE_ENDS: std::ops::RangeInclusive<u64> = 48..=64;

/// Where a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPlace {
    /// The address of the word.
    pub address: u64,
    /// The thread's stack pointer.
    pub stack: u64,
}

/// Returns the lock that an object is; `None` if it is none.
pub(super) fn lock(objects: &Objects<'_>, object: u64) -> Option<PythonLock> {
    let recursive = match objects.type_name(object)?.as_ref() {
        "_thread.lock" => false,
        "_thread.RLock" => true,
        _ => return None,
    };
    let reader = objects.reader;
    let word = |offset: u64| reader.u64(object.checked_add(offset)?);
    // Which of the two it is changed within 3.13: the size of the type tells.
    let (key, locked, owner) = match (objects.size(object)?, recursive) {
        (40, false) => (word(HEAD)?, reader.u8(object.checked_add(32)?)? == 1, None),
        (48, true) => (word(HEAD)?, word(32)? != 0, Some(word(24)?)),
        (24, false) | (40, true) => {
            let key = object.checked_add(HEAD)?;
            let owner = if recursive { Some(word(24)?) } else { None };
            (key, reader.u8(key)? & 1 == 1, owner)
        }
        _ => return None,
    };
    let owner = owner.filter(|&owner| locked && owner != 0);
    Some(PythonLock { object, key, recursive, locked, owner })
}

/// Returns what the thread with these frames waits for where it sleeps. `by_ident` finds the number
/// of a thread.
pub(super) fn awaited(
    objects: &Objects<'_>,
    frames: &[RawFrame],
    place: WaitPlace,
    by_ident: &dyn Fn(u64) -> Option<u32>,
) -> Option<PythonWait> {
    let innermost = frames.first()?;
    if let Some(thread) = joined(objects, innermost, by_ident) {
        return Some(PythonWait::Join(thread));
    }
    let values = innermost.all(objects);
    let own = by_key(objects, &values, place.address).map(|lock| meant(objects, frames, lock));
    let own = own.or_else(|| {
        simple_queue(objects, &values, |queue| {
            objects.reader.pointer(queue, HEAD) == Some(place.address)
        })
    });
    // Last, for the heap of a thread may lie right above its stack.
    let is_near = place.address.checked_sub(place.stack).is_some_and(|above| above < NEAR);
    own.or_else(|| is_near.then(|| parked(objects, frames, place.address, by_ident)).flatten())
}

/// Returns the lock among the values of a frame, and what they are bound to, that has this key.
fn by_key(objects: &Objects<'_>, values: &[u64], key: u64) -> Option<PythonLock> {
    let found = values.iter().flat_map(|&value| [Some(value), receiver(objects, value)]);
    found.flatten().find_map(|object| lock(objects, object).filter(|lock| lock.key == key))
}

/// Returns what a wait with a lock is for.
fn meant(objects: &Objects<'_>, frames: &[RawFrame], lock: PythonLock) -> PythonWait {
    event(objects, frames, &lock).unwrap_or(PythonWait::Lock(lock))
}

/// Returns what a thread waits for whose semaphore lies on its own stack, with the address behind
/// which it waits in front of it.
fn parked(
    objects: &Objects<'_>,
    frames: &[RawFrame],
    semaphore: u64,
    by_ident: &dyn Fn(u64) -> Option<u32>,
) -> Option<PythonWait> {
    let address = objects.reader.u64(semaphore.checked_sub(8)?)?;
    if let Some(lock) = lock(objects, address.checked_sub(HEAD)?).filter(|it| it.key == address) {
        return Some(meant(objects, frames, lock));
    }
    let values = frames.first()?.all(objects);
    if let Some(lock) = by_key(objects, &values, address) {
        return Some(meant(objects, frames, lock));
    }
    let near = |object: u64| address.checked_sub(object).is_some_and(|offset| offset < 96);
    if let Some(queue) = simple_queue(objects, &values, near) {
        return Some(queue);
    }
    // The record of a thread, whose end is waited for.
    let handle = |value: u64| {
        let record = objects.is(value, "_thread._ThreadHandle");
        let record = record.then(|| objects.reader.pointer(value, HEAD)).flatten()?;
        let is_its_end = HANDLE_ENDS.contains(&address.checked_sub(record)?);
        let ident = objects.reader.u64(record.checked_add(HANDLE_IDENT)?)?;
        is_its_end.then(|| by_ident(ident)).flatten()
    };
    let found = values.iter().copied().flat_map(|value| [Some(value), receiver(objects, value)]);
    found.flatten().find_map(handle).map(PythonWait::Join)
}

/// Returns the object that a method of C is bound to.
pub(super) fn receiver(objects: &Objects<'_>, value: u64) -> Option<u64> {
    const SELF: u64 = 24;
    let bound = objects.is(value, "builtin_function_or_method");
    bound.then(|| objects.reader.pointer(value, SELF)).flatten()
}

fn simple_queue(
    objects: &Objects<'_>,
    values: &[u64],
    is_its: impl Fn(u64) -> bool,
) -> Option<PythonWait> {
    let objects_of = values.iter().flat_map(|&value| [Some(value), receiver(objects, value)]);
    let mut queues = objects_of.flatten().filter(|&it| objects.is(it, "_queue.SimpleQueue"));
    let object = queues.find(|&queue| is_its(queue))?;
    Some(PythonWait::Event { kind: "queue.SimpleQueue".into(), object })
}

/// Returns the thread whose end a thread waits for in `Thread.join`, to 3.12.
fn joined(
    objects: &Objects<'_>,
    innermost: &RawFrame,
    by_ident: &dyn Fn(u64) -> Option<u32>,
) -> Option<u32> {
    if !innermost.code.is_of("threading.py", "_wait_for_tstate_lock") {
        return None;
    }
    let thread = innermost.first(objects)?;
    by_ident(objects.number(objects.attribute(thread, "_ident")?)?)
}

/// Returns the lock of the condition that a frame waits in, if it is one of `Condition.wait`.
pub(super) fn condition_lock(objects: &Objects<'_>, frame: &RawFrame) -> Option<Option<u64>> {
    if !is_condition_wait(objects, frame) {
        return None;
    }
    let condition = frame.first(objects);
    Some(condition.and_then(|condition| objects.attribute(condition, "_lock")))
}

fn is_condition_wait(objects: &Objects<'_>, frame: &RawFrame) -> bool {
    let code = &frame.code;
    code.is_of("threading.py", "wait")
        && match &code.qualified {
            Some(qualified) => qualified == "Condition.wait",
            // Events and barriers have no method that waits by itself.
            None => {
                frame.first(objects).is_some_and(|it| objects.attribute(it, "_waiters").is_some())
            }
        }
}

/// Returns what a wait of `threading.Condition` is for, if it is one: not for the lock that it is
/// called with.
fn event(objects: &Objects<'_>, frames: &[RawFrame], lock: &PythonLock) -> Option<PythonWait> {
    let innermost = frames.first()?;
    if innermost.code.is_of("threading.py", "_shutdown") {
        return Some(PythonWait::Event { kind: "the end of a thread".into(), object: lock.object });
    }
    let own = condition_lock(objects, innermost)?;
    if own == Some(lock.object) || own.is_none() && lock.recursive {
        return None;
    }
    let mut found = ("threading.Condition".to_owned(), innermost.first(objects)?);
    for frame in frames {
        let module = match () {
            () if frame.code.is_in("threading.py") => "threading",
            () if frame.code.is_in("queue.py") => "queue",
            () if frame.code.is_in("concurrent/futures/_base.py") => "concurrent.futures",
            () => break,
        };
        // A function without an object, such as `wait` of the futures, is named by what it calls.
        let object = frame.first(objects);
        let Some((object, kind)) =
            object.and_then(|object| Some((object, objects.type_name(object)?)))
        else {
            continue;
        };
        if PUBLIC.contains(&kind.as_ref()) {
            found = (format!("{module}.{kind}"), object);
        }
    }
    let (kind, object) = found;
    Some(PythonWait::Event { kind, object })
}

/// The classes by which waits are named.
const PUBLIC: &[&str] = &[
    "Condition",
    "Event",
    "Semaphore",
    "BoundedSemaphore",
    "Barrier",
    "Queue",
    "LifoQueue",
    "PriorityQueue",
    "Future",
];
