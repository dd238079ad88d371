//! The functions that `check-ww.h` declares: the wait/wound mutex and its contexts.

use super::contexts::{Call, Way};
use super::report::{Place, Rule};
use super::rules::{may_release, me, report, settle, usable};
use super::table::Kind;
use super::with;
use crate::lks_ww_mutex;
use crate::own::enter;
use crate::wait::INTERRUPTIBLE;
use crate::ww::{lks_ww_ctx_fini, lks_ww_ctx_init, lks_ww_mutex_trylock_slow};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use lockstead_core::ww::{Class, Context};
use lockstead_linux::Linux;

type Ctx = Context<Linux>;

/// Whether there is something at the address; `what` it should be.
fn is_there(address: usize, what: &str, call: &str, at: &Place) -> bool {
    if address != 0 {
        return true;
    }
    report(Some(Rule {
        what: "null pointer",
        detail: format!("{call} was given a null pointer for a {what}"),
        at: at.clone(),
    }))
}

/// The class of a lock that begins; with none this is not known.
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
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    with(|table| table.contexts.lock_begins(mutex.addr(), class.addr(), &at));
}

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
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let call = Call { name: "lks_ww_ctx_init", thread: me(), at: &at };
    if !is_there(ctx.addr(), "context", call.name, &at)
        || !is_there(class.addr(), "class", call.name, &at)
        || !settle(with(|table| table.contexts.may_begin(ctx.addr(), class.addr(), &call)))
    {
        return -libc::EINVAL;
    }
    // SAFETY: not null: memory for a context, and a class (the caller).
    let result = unsafe { lks_ww_ctx_init(&mut *ctx, &*class) };
    if result == 0 {
        with(|table| table.contexts.begins(ctx.addr(), class.addr(), &call));
    }
    result
}

/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_done(ctx: *const Ctx, file: *const c_char, line: u32) {
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let call = Call { name: "lks_ww_ctx_done", thread: me(), at: &at };
    if is_there(ctx.addr(), "context", call.name, &at) {
        settle(with(|table| table.contexts.done(ctx.addr(), &call)));
    }
}

/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_end(ctx: *const Ctx, file: *const c_char, line: u32) {
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let call = Call { name: "lks_ww_ctx_fini", thread: me(), at: &at };
    if !is_there(ctx.addr(), "context", call.name, &at) {
        return;
    }
    let asked = with(|table| {
        let held = table.contexts.may_end(ctx.addr(), &call)?;
        table.unreleased(&held, &call).map_or(Ok(()), Err)
    });
    if settle(asked) {
        with(|table| table.contexts.ends(ctx.addr(), &at));
        // SAFETY: a context of this thread that has not ended, as was asked just now.
        lks_ww_ctx_fini(unsafe { &*ctx });
    }
}

/// Asks the rules before a lock is asked for; 0 or what the call returns at once.
fn before(mutex: *const lks_ww_mutex, ctx: usize, way: Way, call: &Call<'_>) -> i32 {
    let lock = mutex.addr();
    if !usable(lock, Kind::Ww, call.name, call.at) {
        return -libc::EINVAL;
    }
    let asked = with(|table| {
        let name = table.name(lock);
        if ctx == 0 {
            table.contexts.may_ask_alone((lock, &name), call)?;
        } else {
            table.contexts.may_ask(ctx, (lock, &name), way, call)?;
        }
        if way == Way::Try || table.contexts.holds(ctx, lock) {
            return Ok(Vec::new());
        }
        if let Some(held) = table.holder(lock, Some(call.thread)) {
            return Err(Rule {
                what: "recursive locking",
                detail: format!(
                    "{}: thread {} holds the {name} already, since {}, in another context or in \
                     none",
                    call.name, call.thread, held.at
                ),
                at: call.at.clone(),
            });
        }
        // In a context it backs off before its locks: these are in no order.
        let among = |held: &super::table::Held| ctx == 0 || !held.is_ww;
        Ok(table.ask_among((lock, false, call.thread), 0, call.at, among))
    });
    match asked {
        Some(Err(rule)) => {
            report(Some(rule));
            -libc::EINVAL
        }
        Some(Ok(orders)) => {
            orders.iter().for_each(|order| eprint!("{order}"));
            0
        }
        None => 0,
    }
}

fn took(ctx: usize, hold: (usize, bool, u32), tried: bool, at: &Place) {
    with(|table| {
        table.acquired(hold, 0, tried, at.clone());
        table.contexts.acquired(ctx, hold.0, at);
    });
}

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
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let slow = slow != 0;
    let name = if slow { "lks_ww_mutex_lock_slow" } else { "lks_ww_mutex_lock" };
    let call = Call { name, thread: me(), at: &at };
    // Slowly and alone is as any mutex.
    let way = if slow && !ctx.is_null() { Way::Slow } else { Way::Plain };
    let refused = before(mutex, ctx.addr(), way, &call);
    if refused != 0 {
        return refused;
    }
    let hold = (mutex.addr(), false, call.thread);
    if ctx.is_null() && how != INTERRUPTIBLE {
        super::cycles::close(hold, &at);
    }
    // SAFETY: a lock, and a context of this thread or null, as was asked just now.
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
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let call = Call { name: "lks_ww_mutex_trylock", thread: me(), at: &at };
    if before(mutex, ctx.addr(), Way::Try, &call) != 0 {
        return 0;
    }
    // SAFETY: a lock, and a context of this thread or null, as was asked just now.
    let taken = unsafe { lks_ww_mutex_trylock_slow(&*mutex, ctx.as_ref()) };
    if taken != 0 {
        took(ctx.addr(), (mutex.addr(), false, call.thread), true, &at);
    }
    taken
}

/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_ww_unlock(
    mutex: *const lks_ww_mutex,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: a string (the caller).
    let at = unsafe { Place::new(file, line) };
    let call = "lks_ww_mutex_unlock";
    let thread = me();
    if usable(mutex.addr(), Kind::Ww, call, &at)
        && may_release((mutex.addr(), false, thread), call, &at)
    {
        with(|table| table.contexts.released(mutex.addr(), thread));
        // SAFETY: a lock that the calling thread holds, as was asked just now.
        unsafe { (*mutex).unlock() };
    }
}
