//! The functions that `check-rt.h` declares: the rules of the mutex, for those with
//! priority inheritance. Cycles of waits the kernel finds itself.

use super::report::SourcePlace;
use super::rules::{may_release, may_wait, me, unheld, usable};
use super::table::{CheckedKind, with};
use crate::names;
use crate::own::enter;
use crate::rt::{lks_rt_mutex, lks_rt_recursive_mutex};
use core::ffi::{CStr, c_char, c_void};
use lockstead_rules::Rule;

/// A plain or a recursive mutex, at an address that is usable.
#[derive(Clone, Copy)]
enum Either<'a> {
    Plain(&'a lks_rt_mutex),
    Recursive(&'a lks_rt_recursive_mutex),
}

impl<'a> Either<'a> {
    /// Returns the mutex; `None`, after a report, if no such mutex is there.
    ///
    /// # Safety
    /// Null, or a mutex of this kind.
    unsafe fn new(mutex: *const c_void, again: bool, call: &str, at: &SourcePlace) -> Option<Self> {
        if !usable(mutex.addr(), kind(again), call, at) {
            return None;
        }
        // SAFETY: CAPI-OBJECT: as the caller says; not null, which is not usable.
        Some(unsafe {
            if again { Either::Recursive(&*mutex.cast()) } else { Either::Plain(&*mutex.cast()) }
        })
    }

    /// Returns how often the calling thread holds it, as the mutex knows.
    fn depth(self) -> u64 {
        match self {
            Either::Plain(mutex) => u64::from(mutex.0.is_mine()),
            Either::Recursive(mutex) => mutex.depth(),
        }
    }
}

fn kind(again: bool) -> CheckedKind {
    if again { CheckedKind::RtRecursive } else { CheckedKind::Rt }
}

fn call(again: bool, verb: &str) -> String {
    if again { format!("lks_rt_recursive_mutex_{verb}") } else { format!("lks_rt_mutex_{verb}") }
}

/// Forgets the hold of a thread that ended with this mutex.
fn forget_holder(address: usize) {
    with(|table| {
        let thread = table.holder(address, None).map(|held| held.thread);
        thread.map(|thread| table.released((address, false, thread)))
    });
}

/// Introduces a mutex and initialises its words, unless a rule refuses it.
///
/// # Safety
/// `mutex` is null or memory for a mutex of this kind; the strings are null or strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rt_init(
    mutex: *mut c_void,
    again: i32,
    name: *const c_char,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (again, at) = (again != 0, unsafe { SourcePlace::new(file, line) });
    let (address, call) = (mutex.addr(), call(again, "init"));
    if address == 0 && !usable(address, kind(again), &call, &at)
        || !unheld(address, Rule::InitialisedHeld, &call, &at)
    {
        return;
    }
    let name = (!name.is_null()).then(|| {
        // SAFETY: CAPI-FILE: `name` is not null, so a string; `check.h` keeps it.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().trim_start_matches('&').to_owned()
    });
    with(|table| table.introduce(address, kind(again), name, &at));
    // SAFETY: CAPI-OBJECT: memory for one such mutex, of which zeroes are a free one (the caller).
    unsafe { mutex.cast::<u64>().write_bytes(0, if again { 2 } else { 1 }) };
}

/// Notes that a mutex was destroyed, unless a rule refuses it.
///
/// # Safety
/// `file` is null or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rt_destroy(
    mutex: *const c_void,
    again: i32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (again, at) = (again != 0, unsafe { SourcePlace::new(file, line) });
    let (address, call) = (mutex.addr(), call(again, "destroy"));
    if usable(address, kind(again), &call, &at) && unheld(address, Rule::DestroyedHeld, &call, &at)
    {
        names::forget(address);
        with(|table| table.lock(address, kind(again), &at).destroyed = Some(at.clone()));
    }
}

/// Acquires a real-time mutex, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is null or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rt_lock(
    mutex: *const c_void,
    again: i32,
    how: u32,
    argument: u64,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (again, at) = (again != 0, unsafe { SourcePlace::new(file, line) });
    let call = call(again, "lock");
    // SAFETY: CAPI-OBJECT: `mutex` is null or a mutex of the kind that `again` tells; the caller
    // keeps it.
    let Some(either) = (unsafe { Either::new(mutex, again, &call, &at) }) else {
        return -libc::EINVAL;
    };
    let hold = (mutex.addr(), false, me());
    let first = !again || either.depth() == 0;
    // Having it already is said, and then refused by the mutex itself.
    if first {
        may_wait(hold, 0, &call, &at);
    }
    // SAFETY: CAPI-OBJECT: the argument is what `how` takes; the caller keeps it.
    let result = unsafe {
        match either {
            Either::Plain(mutex) => mutex.lock_how(how, argument),
            Either::Recursive(mutex) => mutex.lock_how(how, argument),
        }
    };
    match result {
        0 if first => drop(with(|table| table.acquired(hold, 0, false, at))),
        error if error == -libc::EOWNERDEAD => forget_holder(hold.0),
        _ => {}
    }
    result
}

/// Tries to acquire a real-time mutex, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is null or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rt_trylock(
    mutex: *const c_void,
    again: i32,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (again, at) = (again != 0, unsafe { SourcePlace::new(file, line) });
    // SAFETY: CAPI-OBJECT: `mutex` is null or a mutex of the kind that `again` tells; the caller
    // keeps it.
    let either = unsafe { Either::new(mutex, again, &call(again, "trylock"), &at) };
    let Some(either) = either else { return 0 };
    let first = either.depth() == 0;
    let taken = match either {
        Either::Plain(mutex) => i32::from(mutex.try_lock()),
        Either::Recursive(mutex) => mutex.try_lock(),
    };
    if taken != 0 && first {
        with(|table| table.acquired((mutex.addr(), false, me()), 0, true, at));
    }
    taken
}

/// Releases a real-time mutex, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is null or a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rt_unlock(
    mutex: *const c_void,
    again: i32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (again, at) = (again != 0, unsafe { SourcePlace::new(file, line) });
    let call = call(again, "unlock");
    // SAFETY: CAPI-OBJECT: `mutex` is null or a mutex of the kind that `again` tells; the caller
    // keeps it.
    let Some(either) = (unsafe { Either::new(mutex, again, &call, &at) }) else { return };
    if either.depth() < 2 && !may_release((mutex.addr(), false, me()), &call, &at) {
        return;
    }
    // SAFETY: CAPI-HELD: the calling thread has it: more than once, or as was asked just now.
    unsafe {
        match either {
            Either::Plain(mutex) => mutex.0.unlock(),
            Either::Recursive(mutex) => mutex.unlock(),
        }
    }
}
