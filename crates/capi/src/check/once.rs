//! The functions that `check-once.h` declares. A turn is a hold: who waits for it waits
//! for its thread.

use super::report::{ReportedViolation, SourcePlace};
use super::rules::{can_be, may_wait, me, settle, wait};
use super::table::{CheckedKind, with};
use crate::lks_once;
use crate::once::{lks_once_begin_slow, lks_once_end_slow};
use crate::own::enter;
use crate::wait::FOREVER;
use core::ffi::c_char;
use lockstead_rules::Rule;

/// Begins a turn at a once, checked.
///
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
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let (call, hold) = ("lks_once_begin", (once.addr(), false, me()));
    if !can_be(once.addr(), "once", call, &at) {
        return -libc::EINVAL;
    }
    // SAFETY: CAPI-OBJECT: `can_be` refuses null, so it is a live once; the caller keeps it.
    let once = unsafe { &*once };
    if once.is_done() {
        return 0;
    }
    // What was known of the address was of a lock before it: a once has no beginning.
    with(|table| {
        if table.lock(hold.0, CheckedKind::Once, &at).kind != CheckedKind::Once {
            table.introduce(hold.0, CheckedKind::Once, None, &at);
        }
    });
    if !may_wait(hold, 0, call, &at) {
        return -libc::EDEADLK;
    }
    if how == FOREVER {
        wait(hold, &at);
    }
    // SAFETY: CAPI-OBJECT: the argument is what `how` takes; the caller keeps it.
    let result = unsafe { lks_once_begin_slow(once, how, argument) };
    with(|table| {
        table.wants_nothing(hold.2);
        if result == 1 {
            table.acquired(hold, 0, false, at);
        }
    });
    result
}

/// Ends a turn at a once, checked.
///
/// # Safety
/// As the inline functions that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_once_end(
    once: *const lks_once,
    done: i32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = if done != 0 { "lks_once_done" } else { "lks_once_failed" };
    if !can_be(once.addr(), "once", call, &at) {
        return;
    }
    let (address, thread) = (once.addr(), me());
    let asked = with(|table| {
        if table.released((address, false, thread)) {
            return Ok(());
        }
        let whose = match table.holder(address, None) {
            Some(held) => format!("it is that of thread {}, since {}", held.thread, held.at()),
            None => "nobody has begun, or it has ended already".into(),
        };
        let detail = format!(
            "{call}: it is not thread {thread}'s turn at the once at {address:#x}: {whose}"
        );
        Err(ReportedViolation::new(Rule::EndOfOtherTurn, detail, &at))
    });
    if settle(asked) {
        // SAFETY: CAPI-HELD: it is the calling thread's turn, as was asked just now.
        unsafe { lks_once_end_slow(&*once, done) };
    }
}
