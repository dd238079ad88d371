//! Stands before `pthread_key_*` and `tss_*`: keys of values that each thread has for itself.
//!
//! # Role
//! By the destructor of a key the library learns that a thread ends, after all that the
//! thread does in other destructors. The C library has 1,024 keys, which a program may
//! want all of. So the library's key is the program's too, once there is no other: then
//! the program's values of it lie among the thread's [`words`](crate::tls), and the
//! destructor of both is `ends`.
//!
//! Until then the key is one that the program does not have, and its functions say so.
//!
//! # Invariants
//! - **KEY-HAS-RECORD** Where a thread has a record, the C library has it as the value of our key,
//!   and where it has a value of the program's, some value: so that the destructor runs.
//! - **KEY-LENT-TIME** A value of the program's counts as long as the key is lent for the same
//!   time as when it was set: what is left when a key is deleted nobody finds again.

use super::c11::answer;
use crate::ending;
use crate::key::{NONE, OURS, watch_end};
use crate::real::{self, Destructor, call};
use crate::site::CallSite;
use crate::tls::{self, ThreadWords};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

crate::thunk! {
    pthread_key_create(2) => create;
    __pthread_key_create(2) => create;
    pthread_key_delete(1) => delete;
    tss_create(2) => create_c11;
    tss_delete(1) => delete_c11;
}

/// Whether the key is the program's as well: see [`is_lent`]. No two times have the same
/// number.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// What is added to [`LENT`] for the key to be lent: while that is done, and then.
const BEGIN: usize = 1;
const DONE: usize = 1;
/// What is added for it to be free again.
const FREE: usize = 2;

/// Tells whether a number in [`LENT`] is of a time at which the key is lent.
fn is_lent(time: usize) -> bool {
    time & 3 == 2
}

/// The destructor that the program has given the key; 0: none.
static DESTRUCTOR: AtomicUsize = AtomicUsize::new(0);

/// glibc keeps the values of so many keys in the thread itself, and allocates for others.
const INLINE: u32 = 32;

/// Creates the library's key. Returns false where there is none that can be used.
///
/// # Safety
/// The real functions are known, and nobody else is here.
#[must_use]
pub unsafe fn make() -> bool {
    let mut key = NONE;
    // SAFETY: the caller promises that the real functions are known; the destructor is of the
    // type that the function takes.
    let made = unsafe {
        let ends = core::mem::transmute::<unsafe extern "C" fn(), Destructor>(ends);
        call::pthread_key_create()(&raw mut key, Some(ends)) == 0
    };
    if made && key < INLINE {
        OURS.store(key, Relaxed);
        return true;
    }
    if made {
        // SAFETY: the key was made above, and nobody knows it.
        unsafe { call::pthread_key_delete()(key) };
    }
    false
}

/// Deletes the library's key: it has none afterwards. Nobody else is in the library.
pub fn give_up() {
    let key = OURS.swap(NONE, Relaxed);
    if key != NONE {
        // SAFETY: `make` has made it by the real functions, and nobody uses it any more.
        unsafe { call::pthread_key_delete()(key) };
    }
}

/// Returns the address of the key's destructor.
#[must_use]
pub fn destructor() -> usize {
    ends as unsafe extern "C" fn() as usize
}

/// Lends the key to the program, which has got none from the C library.
fn lend(destructor: usize) -> Option<u32> {
    let (free, ours) = (LENT.load(Relaxed), OURS.load(Relaxed));
    if ours == NONE || free & 3 != 0 {
        return None;
    }
    // ord: PRE-7 (acquire): nobody lends it meanwhile.
    LENT.compare_exchange(free, free + BEGIN, Acquire, Relaxed).ok()?;
    DESTRUCTOR.store(destructor, Relaxed);
    // ord: PRE-7 (release): the destructor.
    LENT.store(free + BEGIN + DONE, Release);
    Some(ours)
}

/// Takes the key back from the program; says whether it was lent.
fn take_back() -> bool {
    let lent = LENT.load(Relaxed);
    // ord: PRE-7 (release): as for whoever lends it next.
    is_lent(lent) && LENT.compare_exchange(lent, lent + FREE, Release, Relaxed).is_ok()
}

/// Returns the calling thread's words, if this is our key: `None` if it is another one, or the
/// thread's keys are not the C library's.
#[inline]
fn own(key: u32) -> Option<&'static ThreadWords> {
    if key == OURS.load(Relaxed) { tls::own() } else { None }
}

/// Returns the program's value, with the time that it is of.
fn value(words: &ThreadWords) -> (*mut c_void, usize) {
    // ord: PRE-7 (acquire): the destructor.
    let lent = LENT.load(Acquire);
    let counts = is_lent(lent) && words.value_of.load(Relaxed) == lent;
    (if counts { words.value.load(Relaxed) } else { null_mut() }, lent)
}

/// Sets the program's value. Returns false if the key is not the program's.
fn set_value(words: &ThreadWords, value: *const c_void) -> bool {
    let lent = LENT.load(Relaxed);
    if is_lent(lent) {
        words.value.store(value.cast_mut(), Relaxed);
        words.value_of.store(lent, Relaxed);
        if words.record.load(Relaxed).is_null() {
            // So that the destructor runs (KEY-HAS-RECORD).
            watch_end(&raw const OURS as usize);
        }
    }
    is_lent(lent)
}

unsafe extern "C" fn create(key: *mut u32, destructor: Option<Destructor>, _: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_key_create()(key, destructor) };
    if answer == libc::EAGAIN
        && let Some(ours) = lend(destructor.map_or(0, |function| function as usize))
    {
        // SAFETY: INTERPOSE-ARGUMENTS: the program passes a place for a key.
        unsafe { key.write(ours) };
        return 0;
    }
    answer
}

unsafe extern "C" fn create_c11(
    key: *mut u32,
    destructor: Option<Destructor>,
    _: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::tss_create()(key, destructor) };
    if answer != answer::SUCCESS
        && let Some(ours) = lend(destructor.map_or(0, |function| function as usize))
    {
        // SAFETY: INTERPOSE-ARGUMENTS: the program passes a place for a key.
        unsafe { key.write(ours) };
        return answer::SUCCESS;
    }
    answer
}

unsafe extern "C" fn delete(key: u32, _: &CallSite) -> c_int {
    real::resolve();
    if key == OURS.load(Relaxed) {
        return if take_back() { 0 } else { libc::EINVAL };
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { call::pthread_key_delete()(key) }
}

unsafe extern "C" fn delete_c11(key: u32, _: &CallSite) {
    real::resolve();
    if key == OURS.load(Relaxed) {
        take_back();
        return;
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { call::tss_delete()(key) }
}

unsafe extern "C" fn get(key: u32) -> *mut c_void {
    real::resolve();
    match own(key) {
        Some(words) => value(words).0,
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        None => unsafe { call::pthread_getspecific()(key) },
    }
}

unsafe extern "C" fn set(key: u32, value: *const c_void) -> c_int {
    real::resolve();
    match own(key) {
        Some(words) if set_value(words, value) => 0,
        Some(_) => libc::EINVAL,
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        None => unsafe { call::pthread_setspecific()(key, value) },
    }
}

unsafe extern "C" fn set_c11(key: u32, value: *const c_void) -> c_int {
    real::resolve();
    match own(key) {
        Some(words) if set_value(words, value) => answer::SUCCESS,
        Some(_) => answer::ERROR,
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        None => unsafe { call::tss_set()(key, value) },
    }
}

/// Exports functions that mostly only jump to the real ones, which are short: all but
/// those of our key.
macro_rules! beside_ours {
    ($($name:ident: $real:ident => $of_ours:path;)*) => { $(
        crate::beside_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name: $real unless OURS => $of_ours
        }
    )* };
}

beside_ours! {
    pthread_getspecific: pthread_getspecific => get;
    __pthread_getspecific: pthread_getspecific => get;
    pthread_setspecific: pthread_setspecific => set;
    __pthread_setspecific: pthread_setspecific => set;
    tss_get: tss_get => get;
    tss_set: tss_set => set_c11;
}

crate::destructor_frame! {
    /// Runs as the destructor of our key. The program's own, of the value that it has there, runs
    /// with nothing of ours live, and can be unwound through.
    ends => programs, ending::key_destructor
}

/// The program's destructor, or 0, and the value for it, in two registers.
#[repr(C)]
struct Ending {
    destructor: usize,
    value: *mut c_void,
}

unsafe extern "C" fn programs(found: *mut c_void) -> Ending {
    let Some(words) = tls::own() else { return Ending { destructor: 0, value: null_mut() } };
    let (mut value, lent) = value(words);
    let of_ours = words.record.load(Relaxed).cast() == found
        || found.cast_const() == (&raw const OURS).cast();
    if value.is_null() && !of_ours && is_lent(lent) {
        // Set by a way that does not lead through here.
        value = found;
    }
    words.value.store(null_mut(), Relaxed);
    let destructor = if value.is_null() { 0 } else { DESTRUCTOR.load(Relaxed) };
    Ending { destructor, value }
}
