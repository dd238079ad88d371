//! The functions that `kernel-lockdep.h` declares: what the program says of its locks itself.

use super::report::{ReportedViolation, SourcePlace};
use super::rules::{can_be, me, settle};
use super::table::{CheckTable, with};
use core::ffi::{c_char, c_void};
use lockstead_rules::Rule;

/// How a lock is held, as `enum lks_held__` has it.
const NOT_HELD: u32 = 0;
const FOR_READING: u32 = 2;
const FOR_WRITING: u32 = 3;

/// Tells whether the calling thread holds the lock.
#[unsafe(no_mangle)]
extern "C" fn lks_check_is_held(lock: *const c_void) -> i32 {
    let me = me();
    // A signal handler that has interrupted the table cannot be told no.
    let held = with(|table| table.holder(lock.addr(), Some(me)).is_some());
    i32::from(held.unwrap_or(true))
}

/// Reports that the calling thread does not hold the lock as the program says it does there.
///
/// # Safety
/// `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_assert(
    lock: *const c_void,
    how: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    if can_be(lock.addr(), "lock", "an assertion", &at) {
        let me = me();
        settle(with(|table| asserted(table, lock.addr(), how, me, &at)));
    }
}

fn asserted(
    table: &CheckTable,
    lock: usize,
    how: u32,
    me: u32,
    at: &SourcePlace,
) -> Result<(), ReportedViolation> {
    if table.has_no_owner(lock) {
        return Ok(());
    }
    let mine = table.holder(lock, Some(me));
    let fits = match how {
        NOT_HELD => mine.is_none(),
        FOR_READING => mine.is_some_and(|held| held.reads()),
        FOR_WRITING => mine.is_some_and(|held| !held.reads()),
        _ => mine.is_some(),
    };
    if fits {
        return Ok(());
    }
    let name = table.name(lock);
    let said = match how {
        NOT_HELD => "may not hold it",
        FOR_READING => "holds it for reading",
        FOR_WRITING => "holds it for writing",
        _ => "holds it",
    };
    let seen = match (mine, table.holder(lock, None)) {
        (Some(held), _) => {
            let way = if held.reads() { " for reading" } else { "" };
            format!("it holds it{way} since {}", held.at())
        }
        (None, Some(held)) => format!("thread {} holds it since {}", held.thread, held.at()),
        (None, None) => "nobody does".into(),
    };
    let detail = format!("the {name}: the code here says that thread {me} {said}, but {seen}");
    Err(ReportedViolation::new(Rule::HoldAsserted, detail, at))
}

/// Puts a lock into the class of a key.
#[unsafe(no_mangle)]
extern "C" fn lks_check_class(lock: *const c_void, key: *const c_void) {
    if !lock.is_null() && !key.is_null() {
        with(|table| table.classify(lock.addr(), key.addr()));
    }
}
