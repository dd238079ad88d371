//! The functions that `check-ww.h` declares: the wait/wound mutex and its contexts.

use super::contexts::{ContextCall, RequestWay};
use super::report::{ReportedViolation, SourcePlace};
use super::rules::{can_be, may_release, me, settle, told, usable, wait};
use super::table::{CheckTable, CheckedKind, OwnedLock, with};
use crate::lks_ww_mutex;
use crate::own::enter;
use crate::wait::INTERRUPTIBLE;
use crate::ww::{lks_ww_ctx_fini, lks_ww_ctx_init, lks_ww_mutex_trylock_slow};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use lockstead_core::ww::{Class, Context};
use lockstead_linux::Linux;
use lockstead_rules::Rule;

type Ctx = Context<Linux>;

/// Notes the class of a lock that begins; without a class none is known.
///
/// # Safety
/// `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_class(
    mutex: *const lks_ww_mutex,
    class: *const c_void,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    with(|table| table.contexts.lock_begins(mutex.addr(), class.addr(), &at));
}

/// Begins a context, checked.
///
/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_begin(
    ctx: *mut MaybeUninit<Ctx>,
    class: *const Class<Linux>,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = ContextCall { name: "lks_ww_ctx_init", thread: me(), at: &at };
    if !can_be(ctx.addr(), "context", call.name, &at)
        || !can_be(class.addr(), "class", call.name, &at)
        || !settle(with(|table| table.contexts.may_begin(ctx.addr(), class.addr(), &call)))
    {
        return -libc::EINVAL;
    }
    // SAFETY: CAPI-OBJECT: not null: memory for a context, and a class (the caller).
    let result = unsafe { lks_ww_ctx_init(&mut *ctx, &*class) };
    if result == 0 {
        with(|table| table.contexts.begins(ctx.addr(), class.addr(), &call));
    }
    result
}

/// Says that a context needs no further lock, checked.
///
/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_done(ctx: *const Ctx, file: *const c_char, line: u32) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = ContextCall { name: "lks_ww_ctx_done", thread: me(), at: &at };
    if can_be(ctx.addr(), "context", call.name, &at) {
        settle(with(|table| table.contexts.done(ctx.addr(), &call)));
    }
}

/// Ends a context, checked.
///
/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_end(ctx: *const Ctx, file: *const c_char, line: u32) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = ContextCall { name: "lks_ww_ctx_fini", thread: me(), at: &at };
    if !can_be(ctx.addr(), "context", call.name, &at) {
        return;
    }
    let asked = with(|table| {
        let held = table.contexts.may_end(ctx.addr(), &call)?;
        unreleased(table, &held, &call).map_or(Ok(()), Err)
    });
    if settle(asked) {
        with(|table| table.contexts.ends(ctx.addr(), &at));
        // SAFETY: CAPI-OBJECT: a context of this thread that has not ended, as was asked just now.
        lks_ww_ctx_fini(unsafe { &*ctx });
    }
}

/// Returns why a context may not end that holds locks.
fn unreleased(
    table: &CheckTable,
    held: &[usize],
    call: &ContextCall<'_>,
) -> Option<ReportedViolation> {
    let first = table.holder(*held.first()?, Some(call.thread))?;
    let (count, name, since) = (held.len(), table.name(first.address), first.at());
    let detail = format!(
        "ends a context that holds {count} lock(s), the {name} since {since}: release them before"
    );
    Some(call.breaks(Rule::EndedHolding, &detail))
}

/// Asks the rules before a lock is asked for; 0 or what the call returns at once.
fn before(mutex: *const lks_ww_mutex, ctx: usize, way: RequestWay, call: &ContextCall<'_>) -> i32 {
    let lock = mutex.addr();
    if !usable(lock, CheckedKind::Ww, call.name, call.at) {
        return -libc::EINVAL;
    }
    let asked = with(|table| {
        let name = table.name(lock);
        if ctx == 0 {
            table.contexts.may_ask_alone((lock, &name), call)?;
        } else {
            table.contexts.may_ask(ctx, (lock, &name), way, call)?;
        }
        if way == RequestWay::Try || table.contexts.holds(ctx, lock) {
            return Ok(Vec::new());
        }
        if let Some(held) = table.holder(lock, Some(call.thread)) {
            let since = held.at();
            let detail =
                format!("holds the {name} already, since {since}, in another context or in none");
            return Err(call.breaks(Rule::Recursion, &detail));
        }
        // In a context it backs off before its locks: these are in no order.
        let ordered = |held: &OwnedLock| ctx == 0 || !held.is_ww;
        Ok(table.ask((lock, false, call.thread), 0, call.at, ordered))
    });
    if settle(told(asked)) { 0 } else { -libc::EINVAL }
}

fn took(ctx: usize, hold: (usize, bool, u32), tried: bool, at: &SourcePlace) {
    with(|table| {
        table.acquired(hold, 0, tried, at.clone());
        table.contexts.acquired(ctx, hold.0, at);
    });
}

/// Acquires a wait/wound mutex, checked.
///
/// # Safety
/// As the inline functions that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_lock(
    mutex: *const lks_ww_mutex,
    ctx: *const Ctx,
    how: u32,
    slow: i32,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let slow = slow != 0;
    let name = if slow { "lks_ww_mutex_lock_slow" } else { "lks_ww_mutex_lock" };
    let call = ContextCall { name, thread: me(), at: &at };
    // Slowly and alone is as any mutex.
    let way = if slow && !ctx.is_null() { RequestWay::Slow } else { RequestWay::Plain };
    let refused = before(mutex, ctx.addr(), way, &call);
    if refused != 0 {
        return refused;
    }
    let hold = (mutex.addr(), false, call.thread);
    if ctx.is_null() && how != INTERRUPTIBLE {
        wait(hold, &at);
    }
    // SAFETY: CAPI-OBJECT: a lock, and a context of this thread or null, as was asked just now.
    let (lock, context) = unsafe { (&*mutex, ctx.as_ref()) };
    let result = lock.lock(context, how == INTERRUPTIBLE, (slow, name));
    match result {
        0 => took(ctx.addr(), hold, false, &at),
        code if code == -libc::EDEADLK => {
            with(|table| table.contexts.refused(ctx.addr(), hold.0, &at));
        }
        _ => {}
    }
    result
}

/// Tries to acquire a wait/wound mutex, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_trylock(
    mutex: *const lks_ww_mutex,
    ctx: *const Ctx,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = ContextCall { name: "lks_ww_mutex_trylock", thread: me(), at: &at };
    if before(mutex, ctx.addr(), RequestWay::Try, &call) != 0 {
        return 0;
    }
    // SAFETY: CAPI-OBJECT: a lock, and a context of this thread or null, as was asked just now.
    let taken = unsafe { lks_ww_mutex_trylock_slow(&*mutex, ctx.as_ref()) };
    if taken != 0 {
        took(ctx.addr(), (mutex.addr(), false, call.thread), true, &at);
    }
    taken
}

/// Releases a wait/wound mutex, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_unlock(
    mutex: *const lks_ww_mutex,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = "lks_ww_mutex_unlock";
    let thread = me();
    if usable(mutex.addr(), CheckedKind::Ww, call, &at)
        && may_release((mutex.addr(), false, thread), call, &at)
    {
        with(|table| table.contexts.released(mutex.addr(), thread));
        // SAFETY: CAPI-HELD: a lock that the calling thread holds, as was asked just now.
        unsafe { (*mutex).unlock() };
    }
}
