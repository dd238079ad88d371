//! The functions that `check.h` declares, but for those of `mutexes`.
//!
//! Each asks the rules first. A call that breaks one, in a program that is told to go
//! on, does nothing and fails where it can say so.

use super::report::SourcePlace;
use super::rules::{may_release, may_wait, me, unheld, usable, wait as will_wait};
use super::table::{CheckedKind, with};
use crate::mutex::{lks_atomic_dec_and_mutex_lock, nowhere};
use crate::own::enter;
use crate::refuse::refuse;
use crate::wait::{self, FOREVER};
use crate::{lks_cond, lks_mutex, lks_rwlock, lks_semaphore, names};
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::AtomicI32;
use lockstead_core::LockError;
use lockstead_rules::Rule;

/// Acquires by `take`, between the rules before and the note afterwards.
pub(super) fn acquire(
    hold: (usize, bool, u32),
    level: u32,
    (how, call): (u32, &str),
    at: SourcePlace,
    take: impl FnOnce() -> i32,
) -> i32 {
    if !may_wait(hold, level, call, &at) && how == FOREVER {
        // It would wait for itself.
        refuse(LockError::Recursive, call, "lock", hold.0);
    }
    if how == FOREVER {
        will_wait(hold, &at);
    }
    let result = take();
    if result == 0 {
        with(|table| table.acquired(hold, level, false, at));
    } else if how == FOREVER {
        let full = result == -libc::EAGAIN;
        let why = if full { LockError::TooManyReaders } else { LockError::OwnerLost };
        refuse(why, call, "lock", hold.0);
    }
    result
}

/// Tries by `take`, which says 1 for yes.
pub(super) fn attempt(
    hold: (usize, bool, u32),
    at: SourcePlace,
    take: impl FnOnce() -> i32,
) -> i32 {
    let taken = take();
    if taken != 0 {
        with(|table| table.acquired(hold, 0, true, at));
    }
    taken
}

/// Introduces a lock and initialises its words, unless a rule refuses it.
///
/// # Safety
/// `lock` is null or memory for a lock of this kind; the strings are null or strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_init(
    lock: *mut c_void,
    kind: u32,
    permits: u32,
    name: *const c_char,
    file: *const c_char,
    line: u32,
) -> i32 {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (kind, at) = (CheckedKind::of(kind), unsafe { SourcePlace::new(file, line) });
    let address = lock.addr();
    let sound = address != 0 || usable(address, kind, "init", &at);
    if !sound || !unheld(address, Rule::InitialisedHeld, "init", &at) {
        return -libc::EINVAL;
    }
    if permits > lockstead_core::MAX_SLOTS {
        return -libc::EINVAL;
    }
    let name = (!name.is_null()).then(|| {
        // SAFETY: CAPI-FILE: `name` is not null, so a string; `check.h` keeps it.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().trim_start_matches('&').to_owned()
    });
    with(|table| table.introduce(address, kind, name, &at));
    let words = match kind {
        CheckedKind::Ww => 4,
        CheckedKind::RwLock => 2,
        _ => 1,
    };
    // SAFETY: CAPI-OBJECT: memory for one lock of this kind, of so many words (the caller).
    unsafe {
        lock.cast::<u64>().write(permits.into());
        for word in 1..words {
            lock.cast::<u64>().add(word).write(0);
        }
    }
    0
}

/// Notes that a lock was destroyed, unless a rule refuses it.
///
/// # Safety
/// `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_destroy(
    lock: *const c_void,
    kind: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let (kind, at) = (CheckedKind::of(kind), unsafe { SourcePlace::new(file, line) });
    let address = lock.addr();
    if usable(address, kind, "destroy", &at) && unheld(address, Rule::DestroyedHeld, "destroy", &at)
    {
        names::forget(address);
        with(|table| table.lock(address, kind, &at).destroyed = Some(at.clone()));
    }
}

/// Decrements a count and acquires the mutex if it has come to zero, checked.
///
/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_dec_and_lock(
    count: *const AtomicI32,
    mutex: *const lks_mutex,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let call = "lks_atomic_dec_and_mutex_lock";
    if !usable(mutex.addr(), CheckedKind::Mutex, call, &at) {
        return 0;
    }
    let hold = (mutex.addr(), false, me());
    may_wait(hold, 0, call, &at);
    // SAFETY: CAPI-OBJECT: they are a live count and a live mutex; the caller keeps it.
    let (count, mutex) = unsafe { (&*count, &*mutex) };
    attempt(hold, at, || lks_atomic_dec_and_mutex_lock(count, mutex))
}

/// Takes a permit of a semaphore, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_semaphore_down(
    semaphore: *const lks_semaphore,
    how: u32,
    argument: u64,
    file: *const c_char,
    line: u32,
) -> i32 {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    if !usable(semaphore.addr(), CheckedKind::Semaphore, "lks_semaphore_down", &at) {
        return -libc::EINVAL;
    }
    // SAFETY: CAPI-OBJECT: a semaphore, and the argument what `how` takes (the caller).
    unsafe { (*semaphore).down_how(how, argument) }
}

/// Tries to take a permit of a semaphore, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_semaphore_trylock(
    semaphore: *const lks_semaphore,
    file: *const c_char,
    line: u32,
) -> i32 {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    if !usable(semaphore.addr(), CheckedKind::Semaphore, "lks_semaphore_down_trylock", &at) {
        return 1;
    }
    // SAFETY: CAPI-OBJECT: `usable` refuses null, so it is a live semaphore; the caller keeps it.
    i32::from(unsafe { !(*semaphore).0.try_down(nowhere()) })
}

/// Gives a permit to a semaphore, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_semaphore_up(
    semaphore: *const lks_semaphore,
    file: *const c_char,
    line: u32,
) -> i32 {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    if !usable(semaphore.addr(), CheckedKind::Semaphore, "lks_semaphore_up", &at) {
        return -libc::EINVAL;
    }
    // SAFETY: CAPI-OBJECT: `usable` refuses null, so it is a live semaphore; the caller keeps it.
    unsafe { (*semaphore).up() }
}

/// Acquires a reader-writer lock, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rwlock_lock(
    lock: *const lks_rwlock,
    reads: i32,
    how: u32,
    argument: u64,
    file: *const c_char,
    line: u32,
) -> i32 {
    // SAFETY: the caller keeps the contract of this function, which is that of the other one.
    unsafe { lks_check_rwlock_lock_nested(lock, reads, how, argument, 0, file, line) }
}

/// Acquires a reader-writer lock inside another one of its class, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rwlock_lock_nested(
    lock: *const lks_rwlock,
    reads: i32,
    how: u32,
    argument: u64,
    subclass: u32,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let (address, reads) = (lock.addr(), reads != 0);
    let call = if reads { "lks_rwlock_read" } else { "lks_rwlock_write" };
    if !usable(address, CheckedKind::RwLock, call, &at) && address == 0 {
        return -libc::EINVAL;
    }
    // SAFETY: CAPI-OBJECT: it is not null, and so a lock; the caller keeps it.
    let lock = unsafe { &*lock };
    acquire((address, reads, me()), subclass, (how, call), at, || {
        // SAFETY: CAPI-OBJECT: the argument is what `how` takes; the caller keeps it.
        let Some(how) = (unsafe { wait::wait(how, argument) }) else { return -libc::EINVAL };
        wait::code(if reads {
            lock.0.read_lazily(|| how, 0, nowhere())
        } else {
            lock.0.write_lazily(|| how, 0, nowhere())
        })
    })
}

/// Tries to acquire a reader-writer lock, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rwlock_trylock(
    lock: *const lks_rwlock,
    reads: i32,
    file: *const c_char,
    line: u32,
) -> i32 {
    enter();
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let (address, reads) = (lock.addr(), reads != 0);
    let call = if reads { "lks_rwlock_tryread" } else { "lks_rwlock_trywrite" };
    if !usable(address, CheckedKind::RwLock, call, &at) {
        return 0;
    }
    // SAFETY: CAPI-OBJECT: it is not null, and so a lock; the caller keeps it.
    let lock = unsafe { &lock.as_ref().expect("usable").0 };
    attempt((address, reads, me()), at, || {
        i32::from(if reads { lock.try_read(nowhere()) } else { lock.try_write(nowhere()) })
    })
}

/// Releases a reader-writer lock, checked.
///
/// # Safety
/// As the inline function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rwlock_unlock(
    lock: *const lks_rwlock,
    reads: i32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let (address, reads) = (lock.addr(), reads != 0);
    let call = if reads { "lks_rwlock_unread" } else { "lks_rwlock_unwrite" };
    if usable(address, CheckedKind::RwLock, call, &at)
        && may_release((address, reads, me()), call, &at)
    {
        // SAFETY: CAPI-HELD: a lock that the calling thread has in this way, as was asked just now.
        unsafe { if reads { (*lock).0.unlock_read() } else { (*lock).0.unlock_write() } }
    }
}

/// Turns the hold of a writer into that of a reader, checked.
///
/// # Safety
/// As the function that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_rwlock_downgrade(
    lock: *const lks_rwlock,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    let (address, call) = (lock.addr(), "lks_rwlock_downgrade");
    let hold = (address, false, me());
    if usable(address, CheckedKind::RwLock, call, &at) && may_release(hold, call, &at) {
        with(|table| table.acquired((address, true, hold.2), 0, false, at));
        // SAFETY: CAPI-HELD: a lock that the calling thread has for writing, as was asked just now.
        unsafe { (*lock).0.downgrade() };
    }
}

/// Notifies a condition variable, checked.
///
/// # Safety
/// As the inline functions that it stands for; `file` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_check_cond_notify(
    cond: *const lks_cond,
    all: i32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
    let at = unsafe { SourcePlace::new(file, line) };
    if usable(cond.addr(), CheckedKind::Cond, "lks_cond_notify", &at) {
        // SAFETY: CAPI-OBJECT: it is not null, and so a condition variable; the caller keeps it.
        let cond = unsafe { &(*cond).0 };
        if all == 0 { cond.notify_one() } else { cond.notify_all() }
    }
}
