//! The functions that `check.h` declares of the mutex and of the wait for a condition, and those of
//! `check-fair.h`: the same for a mutex whose calls wait by another policy. One lock may be used
//! by both kinds of calls, and so both are of one kind to the rules.

use super::calls::{acquire, attempt};
use super::report::SourcePlace;
use super::rules::{may_release, may_wait_with, me, usable};
use super::table::{CheckedKind, with};
use crate::mutex::{lock_how, nowhere};
use crate::own::enter;
use crate::{lks_cond, lks_fair_mutex, lks_mutex};
use core::ffi::c_char;
use lockstead_core::policy::Fair;
use lockstead_core::{Off, Policy, RawMutex, Standard};
use lockstead_linux::Linux;

type Mutex<Y> = RawMutex<Linux, Off, Y>;

/// Acquires a mutex, checked.
///
/// # Safety
/// `mutex` is null or a mutex (CAPI-OBJECT), and the argument is what `how` takes.
unsafe fn lock<Y: Policy>(
    mutex: *const Mutex<Y>,
    subclass: u32,
    (how, argument): (u32, u64),
    call: &str,
    at: SourcePlace,
) -> i32 {
    enter();
    let address = mutex.addr();
    if !usable(address, CheckedKind::Mutex, call, &at) && address == 0 {
        return -libc::EINVAL;
    }
    acquire((address, false, me()), subclass, (how, call), at, || {
        // SAFETY: CAPI-OBJECT: it is not null, and so a mutex; the argument is what `how` takes. The
        // caller keeps both.
        unsafe { lock_how(&*mutex, how, argument) }
    })
}

/// Tries to acquire a mutex, checked.
///
/// # Safety
/// `mutex` is null or a mutex (CAPI-OBJECT).
unsafe fn trylock<Y: Policy>(mutex: *const Mutex<Y>, call: &str, at: SourcePlace) -> i32 {
    enter();
    if !usable(mutex.addr(), CheckedKind::Mutex, call, &at) {
        return 0;
    }
    attempt((mutex.addr(), false, me()), at, || {
        // SAFETY: CAPI-OBJECT: `usable` refuses null, so it is a mutex; the caller keeps it.
        i32::from(unsafe { (*mutex).try_lock(nowhere()) })
    })
}

/// Releases a mutex, checked.
///
/// # Safety
/// `mutex` is null or a mutex (CAPI-OBJECT).
unsafe fn unlock<Y: Policy>(mutex: *const Mutex<Y>, call: &str, at: &SourcePlace) {
    if usable(mutex.addr(), CheckedKind::Mutex, call, at)
        && may_release((mutex.addr(), false, me()), call, at)
    {
        // SAFETY: CAPI-HELD: a mutex that the calling thread holds, as was asked just now.
        unsafe { (*mutex).unlock() };
    }
}

/// Waits on a condition variable, checked.
///
/// # Safety
/// Both are null or what they are called (CAPI-OBJECT), and the argument is what `how` takes.
unsafe fn cond_wait<Y: Policy>(
    cond: *const lks_cond,
    mutex: *const Mutex<Y>,
    (how, argument): (u32, u64),
    call: &str,
    at: SourcePlace,
) -> i32 {
    enter();
    let hold = (mutex.addr(), false, me());
    if !usable(cond.addr(), CheckedKind::Cond, call, &at)
        || !usable(hold.0, CheckedKind::Mutex, call, &at)
        || !may_wait_with(hold, call, &at)
    {
        return -libc::EINVAL;
    }
    // SAFETY: CAPI-OBJECT, CAPI-HELD: both are live and the mutex is held, as was asked just now;
    // the argument is what `how` takes (the caller).
    let result = unsafe { (*cond).wait_how(&*mutex, how, argument) };
    with(|table| table.acquired(hold, 0, false, at));
    result
}

/// Defines the functions of one type of mutex, and its wait for a condition.
macro_rules! checked {
    ($mutex:ident, by $policy:ty: $lock:ident $locks:literal, $trylock:ident $tries:literal,
     $unlock:ident $unlocks:literal, $wait:ident $waits:literal) => {
        #[doc = concat!("Does what `", $locks, "` and its forms do, checked.")]
        ///
        /// # Safety
        /// As the inline function that it stands for; `file` is a string.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $lock(
            mutex: *const $mutex,
            how: u32,
            argument: u64,
            subclass: u32,
            file: *const c_char,
            line: u32,
        ) -> i32 {
            // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
            let at = unsafe { SourcePlace::new(file, line) };
            // SAFETY: CAPI-OBJECT: null or a mutex, which is nothing but the core's, and what `how`
            // takes; the caller keeps it.
            unsafe { lock(mutex.cast::<Mutex<$policy>>(), subclass, (how, argument), $locks, at) }
        }

        #[doc = concat!("Does what `", $tries, "` does, checked.")]
        ///
        /// # Safety
        /// As the inline function that it stands for; `file` is a string.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $trylock(mutex: *const $mutex, file: *const c_char, line: u32) -> i32 {
            // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
            let at = unsafe { SourcePlace::new(file, line) };
            // SAFETY: CAPI-OBJECT: null or a mutex, which is nothing but the core's; the caller keeps it.
            unsafe { trylock(mutex.cast::<Mutex<$policy>>(), $tries, at) }
        }

        #[doc = concat!("Does what `", $unlocks, "` does, checked.")]
        ///
        /// # Safety
        /// As the inline function that it stands for; `file` is a string.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $unlock(mutex: *const $mutex, file: *const c_char, line: u32) {
            // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
            let at = unsafe { SourcePlace::new(file, line) };
            // SAFETY: CAPI-OBJECT: null or a mutex, which is nothing but the core's; the caller keeps it.
            unsafe { unlock(mutex.cast::<Mutex<$policy>>(), $unlocks, &at) }
        }

        #[doc = concat!("Does what `", $waits, "` and its forms do, checked.")]
        ///
        /// # Safety
        /// As the inline function that it stands for; `file` is a string.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $wait(
            cond: *const lks_cond,
            mutex: *const $mutex,
            how: u32,
            argument: u64,
            file: *const c_char,
            line: u32,
        ) -> i32 {
            // SAFETY: CAPI-FILE: `file` is a string or null; `check.h` keeps it.
            let at = unsafe { SourcePlace::new(file, line) };
            // SAFETY: CAPI-OBJECT: null or what they are called, the mutex nothing but the core's, and
            // what `how` takes; the caller keeps it.
            unsafe { cond_wait(cond, mutex.cast::<Mutex<$policy>>(), (how, argument), $waits, at) }
        }
    };
}

checked! {
    lks_mutex, by Standard:
    lks_check_mutex_lock "lks_mutex_lock", lks_check_mutex_trylock "lks_mutex_trylock",
    lks_check_mutex_unlock "lks_mutex_unlock", lks_check_cond_wait "lks_cond_wait"
}
checked! {
    lks_fair_mutex, by Fair:
    lks_check_fair_lock "lks_fair_mutex_lock", lks_check_fair_trylock "lks_fair_mutex_trylock",
    lks_check_fair_unlock "lks_fair_mutex_unlock", lks_check_cond_wait_fair "lks_cond_wait_fair"
}
