//! The functions that `check-once.h` declares. A turn is a hold: who waits for it waits
//! for its thread.

use super::cycles;
use super::report::{Place, Rule};
use super::rules::{may_wait, me, report};
use super::table::Kind;
use super::with;
use crate::lks_once;
use crate::once::{lks_once_begin_slow, lks_once_end_slow};
use crate::own::enter;
use crate::wait::FOREVER;
use core::ffi::c_char;

/// Whether there is a once.
fn usable(once: *const lks_once, call: &str, at: &Place) -> bool {
    let wrong = if once.is_null() {
        Some(("null pointer", format!("{call} was given a null pointer for a once")))
    } else if !once.is_aligned() {
        Some(("not a lock", format!("{call} was given {:#x}, where no once can be", once.addr())))
    } else {
        None
    };
    report(wrong.map(|(what, detail)| Rule { what, detail, at: at.clone() }))
}

/// # Safety
/// As the inline functions that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_once_begin(
    once: *const lks_once,
    how: u32,
    argument: u64,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let (call, hold) = ("lks_once_begin", (once.addr(), false, me()));
    if !usable(once, call, &at) {
        return -libc::EINVAL;
    }
    // SAFETY: a once (the caller).
    let once = unsafe { &*once };
    if once.is_done() {
        return 0;
    }
    // What was known of the address was of a lock before it: a once has no beginning.
    with(|table| {
        if table.lock(hold.0, Kind::Once, &at).kind != Kind::Once {
            table.introduce(hold.0, Kind::Once, None, &at);
        }
    });
    if !may_wait(hold, 0, call, &at) {
        return -libc::EDEADLK;
    }
    if how == FOREVER {
        cycles::close(hold, &at);
    }
    // SAFETY: the argument is what `how` takes (the caller).
    let result = unsafe { lks_once_begin_slow(once, how, argument) };
    with(|table| {
        table.wants_nothing(hold.2);
        if result == 1 {
            table.acquired(hold, 0, false, at);
        }
    });
    result
}

/// # Safety
/// As the inline functions that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_once_end(
    once: *const lks_once,
    done: i32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let call = if done != 0 { "lks_once_done" } else { "lks_once_failed" };
    if !usable(once, call, &at) {
        return;
    }
    let (address, thread) = (once.addr(), me());
    let rule = with(|table| {
        if table.released(address, false, thread) {
            return None;
        }
        let whose = match table.holder(address, None) {
            Some(held) => format!("it is that of thread {}, since {}", held.thread, held.at),
            None => "nobody has begun, or it has ended already".into(),
        };
        Some(Rule {
            what: "end of a turn of another",
            detail: format!(
                "{call}: it is not thread {thread}'s turn at the once at {address:#x}: {whose}"
            ),
            at: at.clone(),
        })
    });
    if report(rule.flatten()) {
        // SAFETY: the calling thread's turn, as was asked just now.
        unsafe { lks_once_end_slow(&*once, done) };
    }
}
