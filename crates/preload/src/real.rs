//! Finds the functions that the program's calls go on to: the next ones after ours
//! in the order of symbol look-up, glibc's unless something else interposes.
//!
//! # Role
//! Resolved once, all together, before the first of them is needed, into one
//! table that the thunks reach with one load. Nothing is looked up on a lock's
//! path. Look-ups of names that exist neither allocate nor take a lock of the
//! program's kind; a look-up that fails does allocate (the error text), which
//! is why no name is asked for that the oldest supported glibc, 2.34, lacks,
//! and newer ones only after a look at the version.

use crate::arch;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::without_provenance_mut;
use core::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// A C function's address; the type at the use says which. Zero before
/// [`resolve`].
#[repr(transparent)]
#[derive(Debug)]
pub struct RealFunction(AtomicUsize);

impl RealFunction {
    /// Returns the address; zero before [`resolve`].
    #[inline(always)]
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.load(Relaxed)
    }
}

macro_rules! table {
    ($($(#[$when:meta])* $name:ident $(@ $version:literal)?
        : fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The table. The fields are named like the functions.
        #[repr(C)]
        #[derive(Debug)]
        #[allow(missing_docs, reason = "each field is documented by its name")]
        #[allow(non_snake_case, reason = "the names are glibc's")]
        pub struct Real { $($(#[$when])* pub $name: RealFunction,)* }

        /// The table of this process.
        pub static REAL: Real = Real { $($(#[$when])* $name: RealFunction(AtomicUsize::new(0)),)* };

        impl Real {
            fn fill(&self) {
                $($(#[$when])* {
                    let name = concat!(stringify!($name), "\0").as_bytes();
                    let version: &[u8] = concat!($($version,)? "\0").as_bytes();
                    // ord: PRE-2 (release): the function.
                    self.$name.0.store(look_up(name, version), Release);
                })*
            }

            /// The names of the table, in its order.
            pub const NAMES: &'static [&'static str] = &[$($(#[$when])* stringify!($name)),*];
        }

        /// The functions themselves, to be called.
        ///
        /// Safety of each: as of the function in glibc's documentation, and
        /// [`resolve`] has run.
        #[allow(missing_docs, reason = "each function is documented by its name")]
        #[allow(non_snake_case, reason = "the names are glibc's")]
        #[allow(clippy::missing_safety_doc, reason = "said once, above")]
        pub mod call {
            use super::*;
            $(
                $(#[$when])*
                #[inline(always)]
                pub unsafe fn $name() -> unsafe extern "C" fn($($argument),*) $(-> $result)? {
                    // SAFETY: INTERPOSE-RESOLVED, kept by the caller: the entry is the address
                    // of a C function of this type.
                    unsafe { core::mem::transmute(REAL.$name.address()) }
                }
            )*
        }
    };
}

/// The address of any lock: its layout is glibc's affair.
pub type LockPointer = *mut c_void;
type TimePointer = *const libc::timespec;
type ThreadHandle = libc::pthread_t;
type Handler = Option<unsafe extern "C" fn()>;

table! {
    pthread_mutex_init: fn(LockPointer, *const c_void) -> c_int;
    pthread_mutex_destroy: fn(LockPointer) -> c_int;
    pthread_mutex_lock: fn(LockPointer) -> c_int;
    pthread_mutex_trylock: fn(LockPointer) -> c_int;
    pthread_mutex_timedlock: fn(LockPointer, TimePointer) -> c_int;
    pthread_mutex_clocklock: fn(LockPointer, c_int, TimePointer) -> c_int;
    pthread_mutex_unlock: fn(LockPointer) -> c_int;
    pthread_mutex_consistent: fn(LockPointer) -> c_int;
    pthread_mutex_setprioceiling: fn(LockPointer, c_int, *mut c_int) -> c_int;

    pthread_cond_init @ "GLIBC_2.3.2": fn(LockPointer, *const c_void) -> c_int;
    pthread_cond_destroy @ "GLIBC_2.3.2": fn(LockPointer) -> c_int;
    pthread_cond_signal @ "GLIBC_2.3.2": fn(LockPointer) -> c_int;
    pthread_cond_broadcast @ "GLIBC_2.3.2": fn(LockPointer) -> c_int;
    pthread_cond_wait @ "GLIBC_2.3.2": fn(LockPointer, LockPointer) -> c_int;
    pthread_cond_timedwait @ "GLIBC_2.3.2": fn(LockPointer, LockPointer, TimePointer) -> c_int;
    pthread_cond_clockwait: fn(LockPointer, LockPointer, c_int, TimePointer) -> c_int;

    pthread_rwlock_init: fn(LockPointer, *const c_void) -> c_int;
    pthread_rwlock_destroy: fn(LockPointer) -> c_int;
    pthread_rwlock_rdlock: fn(LockPointer) -> c_int;
    pthread_rwlock_tryrdlock: fn(LockPointer) -> c_int;
    pthread_rwlock_timedrdlock: fn(LockPointer, TimePointer) -> c_int;
    pthread_rwlock_clockrdlock: fn(LockPointer, c_int, TimePointer) -> c_int;
    pthread_rwlock_wrlock: fn(LockPointer) -> c_int;
    pthread_rwlock_trywrlock: fn(LockPointer) -> c_int;
    pthread_rwlock_timedwrlock: fn(LockPointer, TimePointer) -> c_int;
    pthread_rwlock_clockwrlock: fn(LockPointer, c_int, TimePointer) -> c_int;
    pthread_rwlock_unlock: fn(LockPointer) -> c_int;

    pthread_spin_init: fn(LockPointer, c_int) -> c_int;
    pthread_spin_destroy: fn(LockPointer) -> c_int;
    pthread_spin_lock: fn(LockPointer) -> c_int;
    pthread_spin_trylock: fn(LockPointer) -> c_int;
    pthread_spin_unlock: fn(LockPointer) -> c_int;

    pthread_barrier_init: fn(LockPointer, *const c_void, u32) -> c_int;
    pthread_barrier_destroy: fn(LockPointer) -> c_int;
    pthread_barrier_wait: fn(LockPointer) -> c_int;

    sem_init: fn(LockPointer, c_int, u32) -> c_int;
    sem_destroy: fn(LockPointer) -> c_int;
    sem_wait: fn(LockPointer) -> c_int;
    sem_trywait: fn(LockPointer) -> c_int;
    sem_timedwait: fn(LockPointer, TimePointer) -> c_int;
    sem_clockwait: fn(LockPointer, c_int, TimePointer) -> c_int;
    sem_post: fn(LockPointer) -> c_int;
    sem_open: fn(*const c_char, c_int, u32, u32) -> LockPointer;
    sem_close: fn(LockPointer) -> c_int;

    mtx_init: fn(LockPointer, c_int) -> c_int;
    mtx_destroy: fn(LockPointer);
    mtx_lock: fn(LockPointer) -> c_int;
    mtx_trylock: fn(LockPointer) -> c_int;
    mtx_timedlock: fn(LockPointer, TimePointer) -> c_int;
    mtx_unlock: fn(LockPointer) -> c_int;
    cnd_init: fn(LockPointer) -> c_int;
    cnd_destroy: fn(LockPointer);
    cnd_signal: fn(LockPointer) -> c_int;
    cnd_broadcast: fn(LockPointer) -> c_int;
    cnd_wait: fn(LockPointer, LockPointer) -> c_int;
    cnd_timedwait: fn(LockPointer, LockPointer, TimePointer) -> c_int;

    pthread_create: fn(*mut ThreadHandle, *const c_void, ThreadRoutine, *mut c_void) -> c_int;
    pthread_join: fn(ThreadHandle, *mut *mut c_void) -> c_int;
    pthread_tryjoin_np: fn(ThreadHandle, *mut *mut c_void) -> c_int;
    pthread_timedjoin_np: fn(ThreadHandle, *mut *mut c_void, TimePointer) -> c_int;
    pthread_clockjoin_np: fn(ThreadHandle, *mut *mut c_void, c_int, TimePointer) -> c_int;
    pthread_detach: fn(ThreadHandle) -> c_int;
    pthread_exit: fn(*mut c_void);
    pthread_setname_np: fn(ThreadHandle, *const c_char) -> c_int;
    pthread_testcancel: fn();
    pthread_self: fn() -> ThreadHandle;
    pthread_key_create: fn(*mut u32, Option<Destructor>) -> c_int;
    pthread_key_delete: fn(u32) -> c_int;
    pthread_getspecific: fn(u32) -> *mut c_void;
    pthread_setspecific: fn(u32, *const c_void) -> c_int;
    tss_create: fn(*mut u32, Option<Destructor>) -> c_int;
    tss_delete: fn(u32);
    tss_get: fn(u32) -> *mut c_void;
    tss_set: fn(u32, *const c_void) -> c_int;
    thrd_create: fn(*mut ThreadHandle, ThrdRoutine, *mut c_void) -> c_int;
    thrd_join: fn(ThreadHandle, *mut c_int) -> c_int;
    thrd_detach: fn(ThreadHandle) -> c_int;
    thrd_exit: fn(c_int);

    __register_atfork: fn(Handler, Handler, Handler, *mut c_void) -> c_int;
    __cxa_finalize: fn(*mut c_void);
    _Fork: fn() -> c_int;
    dlclose: fn(*mut c_void) -> c_int;
    prctl: fn(c_int, usize, usize, usize, usize) -> c_int;
    syscall: fn(c_long) -> c_long;

    #[cfg(feature = "check")]
    free: fn(*mut c_void);
    #[cfg(feature = "check")]
    realloc: fn(*mut c_void, usize) -> *mut c_void;
    #[cfg(feature = "check")]
    reallocarray: fn(*mut c_void, usize, usize) -> *mut c_void;
    #[cfg(feature = "check")]
    malloc_usable_size: fn(*mut c_void) -> usize;
    #[cfg(feature = "check")]
    mmap: fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
    #[cfg(feature = "check")]
    mmap64: fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
    #[cfg(feature = "check")]
    munmap: fn(*mut c_void, usize) -> c_int;
    #[cfg(feature = "check")]
    mremap: fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
    #[cfg(feature = "check")]
    exit: fn(c_int);
    #[cfg(feature = "check")]
    quick_exit: fn(c_int);
    #[cfg(feature = "check")]
    _exit: fn(c_int);
    #[cfg(feature = "check")]
    _Exit: fn(c_int);

    #[cfg(feature = "check")]
    sem_getvalue: fn(LockPointer, *mut c_int) -> c_int;
    #[cfg(feature = "check")]
    sigaction: fn(c_int, *const c_void, *mut c_void) -> c_int;
    #[cfg(feature = "check")]
    signal: fn(c_int, usize) -> usize;
    #[cfg(feature = "check")]
    bsd_signal: fn(c_int, usize) -> usize;
    #[cfg(feature = "check")]
    ssignal: fn(c_int, usize) -> usize;
    #[cfg(feature = "check")]
    sysv_signal: fn(c_int, usize) -> usize;
    #[cfg(feature = "check")]
    sigset: fn(c_int, usize) -> usize;

    // Jumped to, whatever their types.
    #[cfg(feature = "check")]
    swapcontext: fn();
    #[cfg(feature = "check")]
    setcontext: fn();
    #[cfg(feature = "check")]
    __longjmp_chk: fn();
    #[cfg(feature = "check")]
    siglongjmp: fn();
    #[cfg(feature = "check")]
    _longjmp: fn();
    #[cfg(feature = "check")]
    longjmp: fn();
    #[cfg(feature = "check")]
    sleep: fn();
    #[cfg(feature = "check")]
    usleep: fn();
    #[cfg(feature = "check")]
    nanosleep: fn();
    #[cfg(feature = "check")]
    clock_nanosleep: fn();
    #[cfg(feature = "check")]
    thrd_sleep: fn();
    #[cfg(feature = "check")]
    pause: fn();
    #[cfg(feature = "check")]
    sigsuspend: fn();
    #[cfg(feature = "check")]
    sigwait: fn();
    #[cfg(feature = "check")]
    sigwaitinfo: fn();
    #[cfg(feature = "check")]
    sigtimedwait: fn();
    #[cfg(feature = "check")]
    poll: fn();
    #[cfg(feature = "check")]
    ppoll: fn();
    #[cfg(feature = "check")]
    select: fn();
    #[cfg(feature = "check")]
    pselect: fn();
    #[cfg(feature = "check")]
    epoll_wait: fn();
    #[cfg(feature = "check")]
    epoll_pwait: fn();
    #[cfg(feature = "check")]
    fsync: fn();
    #[cfg(feature = "check")]
    fdatasync: fn();
    #[cfg(feature = "check")]
    msync: fn();
    #[cfg(feature = "check")]
    sync: fn();
    #[cfg(feature = "check")]
    syncfs: fn();
    #[cfg(feature = "check")]
    flock: fn();
    #[cfg(feature = "check")]
    lockf: fn();
    #[cfg(feature = "check")]
    tcdrain: fn();
    #[cfg(feature = "check")]
    connect: fn();
    #[cfg(feature = "check")]
    accept: fn();
    #[cfg(feature = "check")]
    accept4: fn();
    #[cfg(feature = "check")]
    recv: fn();
    #[cfg(feature = "check")]
    recvfrom: fn();
    #[cfg(feature = "check")]
    recvmsg: fn();
    #[cfg(feature = "check")]
    recvmmsg: fn();
    #[cfg(feature = "check")]
    send: fn();
    #[cfg(feature = "check")]
    sendto: fn();
    #[cfg(feature = "check")]
    sendmsg: fn();
    #[cfg(feature = "check")]
    sendmmsg: fn();
    #[cfg(feature = "check")]
    getaddrinfo: fn();
    #[cfg(feature = "check")]
    wait: fn();
    #[cfg(feature = "check")]
    waitpid: fn();
    #[cfg(feature = "check")]
    waitid: fn();
    #[cfg(feature = "check")]
    wait3: fn();
    #[cfg(feature = "check")]
    wait4: fn();
    #[cfg(feature = "check")]
    system: fn();
    #[cfg(feature = "check")]
    __poll_chk: fn();
    #[cfg(feature = "check")]
    __ppoll_chk: fn();
    #[cfg(feature = "check")]
    __recv_chk: fn();
    #[cfg(feature = "check")]
    __recvfrom_chk: fn();
}

/// The function that a POSIX thread starts with.
pub type ThreadRoutine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// The function that is called with a thread's value of a key when the thread ends.
pub type Destructor = unsafe extern "C" fn(*mut c_void);
/// The function that a C11 thread starts with.
pub type ThrdRoutine = unsafe extern "C" fn(*mut c_void) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The type of `dlvsym`, which not every libc has: the library looks it up, so that it can be
/// loaded (and stay inert) where the function is missing.
type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
type LibcVersion = unsafe extern "C" fn() -> *const c_char;

/// Where functions are looked up: after this library (glibc's `RTLD_NEXT`), or, where that was loaded
/// when all others had been, from the program on. It is loaded for itself alone then, so that it is
/// not found.
static SEARCH: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Has [`resolve`] search from the program on: 0 is glibc's `RTLD_DEFAULT`.
pub fn search_from_the_program() {
    SEARCH.store(0, Relaxed);
}

static RESOLVED: AtomicBool = AtomicBool::new(false);
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// The version before the one that the table asks for, of the functions that
/// have two.
const OLD: &[u8] = b"GLIBC_2.2.5\0";

/// Returns the next function with this name, and this version unless that is empty.
/// Both end in a zero byte. Zero if there is none.
///
/// Another library that interposes gives its functions no version, and a
/// look-up by version would pass over it: the thread sanitizer would see a
/// mutex locked twice that a condition wait has released. So the version only
/// decides where the plain look-up has come to the old function.
///
/// Not inlined, so that the caller that the look-up starts after is certainly
/// this library.
#[inline(never)]
fn look_up(name: &[u8], version: &[u8]) -> usize {
    let search = without_provenance_mut(SEARCH.load(Relaxed));
    // SAFETY: the caller passes a name that ends in a zero byte.
    let plain = unsafe { dlsym(search, name.as_ptr().cast()) as usize };
    if version.len() > 1 && arch::HAS_OLD_FUNCTIONS {
        // SAFETY: the name is a static C string.
        let dlvsym = unsafe { dlsym(search, c"dlvsym".as_ptr()) as usize };
        if dlvsym != 0 {
            // SAFETY: libc's function of this name has this type; the caller passes strings that
            // end in a zero byte.
            unsafe {
                let dlvsym: Dlvsym = core::mem::transmute(dlvsym);
                let of = |version: &[u8]| {
                    dlvsym(search, name.as_ptr().cast(), version.as_ptr().cast()) as usize
                };
                if plain == of(OLD) {
                    return of(version);
                }
            }
        }
    }
    plain
}

/// Fills the table, unless that has been done. The constructor does; the
/// constructor of another library may have come before it with a lock call.
/// Two threads that meet here write the same values.
pub fn resolve() {
    // ord: PRE-2 (acquire): the table.
    if RESOLVED.load(Acquire) {
        return;
    }
    REAL.fill();
    if libc_minor() >= 35 {
        // ord: PRE-2 (release): the function.
        FIND_OBJECT.store(look_up(b"_dl_find_object\0", b"\0"), Release);
    }
    // ord: PRE-2 (release): the whole table.
    RESOLVED.store(true, Release);
}

/// Tells whether [`resolve`] has run.
#[inline]
#[must_use]
pub fn resolved() -> bool {
    // ord: PRE-2 (acquire): the table.
    RESOLVED.load(Acquire)
}

/// Returns the address of glibc's `_dl_find_object`, where there is one (2.35 and later); 0.
#[must_use]
pub fn find_object() -> usize {
    // ord: PRE-2 (acquire): the function.
    FIND_OBJECT.load(Acquire)
}

/// Returns the 36 of glibc 2.36; a large number for a version that is no longer 2, zero
/// for another libc.
#[must_use]
pub fn libc_minor() -> c_long {
    let version = look_up(b"gnu_get_libc_version\0", b"\0");
    if version == 0 {
        return 0;
    }
    // SAFETY: glibc's function of this name has this type, and returns a static C string.
    unsafe {
        let version: LibcVersion = core::mem::transmute(version);
        minor_of(CStr::from_ptr(version()).to_bytes())
    }
}

fn minor_of(version: &[u8]) -> c_long {
    let mut parts = version.split(|&byte| byte == b'.');
    let mut number =
        || {
            parts.next().unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).fold(
                0 as c_long,
                |number, &digit| {
                    number.saturating_mul(10).saturating_add(c_long::from(digit - b'0'))
                },
            )
        };
    match number() {
        2 => number(),
        0 | 1 => 0,
        _ => c_long::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_table_exists() {
        resolve();
        assert!(resolved());
        // The entries lie in the table in the order of their names.
        let entries: &[RealFunction; Real::NAMES.len()] =
            // SAFETY: the table consists of that many entries and nothing else.
            unsafe { &*(&raw const REAL).cast() };
        const { assert!(size_of::<Real>() == Real::NAMES.len() * size_of::<RealFunction>()) };
        for (name, entry) in Real::NAMES.iter().zip(entries) {
            assert_ne!(entry.address(), 0, "{name}");
        }
        // SAFETY: `resolved` has found the function, which takes no argument.
        assert_ne!(unsafe { call::pthread_self()() }, 0);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(minor_of(b"2.36"), 36);
        assert_eq!(minor_of(b"2.35-0ubuntu3"), 35);
        assert_eq!(minor_of(b"2.4.1"), 4);
        assert_eq!(minor_of(b"3.0"), c_long::MAX);
        assert_eq!(minor_of(b""), 0);
        assert!(libc_minor() >= 34);
    }
}
