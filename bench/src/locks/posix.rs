//! Peers of the C library.

use super::BenchLock;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Which kind of pthread mutex.
pub trait PthreadKind: Send + Sync + 'static {
    /// The `PTHREAD_MUTEX_…` type.
    const KIND: libc::c_int;
    /// The `PTHREAD_PRIO_…` protocol.
    const PROTOCOL: libc::c_int;
}

/// The default kind.
pub struct Normal;

impl PthreadKind for Normal {
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_NORMAL;
    const PROTOCOL: libc::c_int = libc::PTHREAD_PRIO_NONE;
}

/// The kind that spins before it sleeps; where the C library has none, the
/// default kind.
pub struct Adaptive;

impl PthreadKind for Adaptive {
    #[cfg(target_env = "gnu")]
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_ADAPTIVE_NP;
    #[cfg(not(target_env = "gnu"))]
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_NORMAL;
    const PROTOCOL: libc::c_int = libc::PTHREAD_PRIO_NONE;
}

/// Priority inheritance.
pub struct Inherit;

impl PthreadKind for Inherit {
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_NORMAL;
    const PROTOCOL: libc::c_int = libc::PTHREAD_PRIO_INHERIT;
}

/// `pthread_mutex_t`.
pub struct Pthread<K>(UnsafeCell<libc::pthread_mutex_t>, PhantomData<K>);

// SAFETY: a pthread mutex is made to be used by many threads; the cell is
// touched only through the pthread functions.
unsafe impl<K: PthreadKind> Send for Pthread<K> {}
// SAFETY: as above.
unsafe impl<K: PthreadKind> Sync for Pthread<K> {}

fn succeed(code: libc::c_int, what: &str) {
    assert!(code == 0, "{what}: {}", std::io::Error::from_raw_os_error(code));
}

impl<K: PthreadKind> BenchLock for Pthread<K> {
    fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), PhantomData)
    }

    fn settle(&self) {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before use and destroyed
        // once; the mutex is at its final address and nobody uses it yet.
        unsafe {
            succeed(libc::pthread_mutexattr_init(attributes.as_mut_ptr()), "mutexattr_init");
            let attributes = attributes.as_mut_ptr();
            succeed(libc::pthread_mutexattr_settype(attributes, K::KIND), "mutexattr_settype");
            succeed(
                libc::pthread_mutexattr_setprotocol(attributes, K::PROTOCOL),
                "mutexattr_setprotocol",
            );
            succeed(libc::pthread_mutex_init(self.0.get(), attributes), "mutex_init");
            libc::pthread_mutexattr_destroy(attributes);
        }
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: initialised, and not moved since `settle`.
        let locked = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(locked, 0);
        let result = section();
        // SAFETY: as above; this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        result
    }
}

impl<K> Drop for Pthread<K> {
    fn drop(&mut self) {
        // SAFETY: exclusive access: nobody holds or waits for it.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// `sem_t` with one permit.
pub struct SemT(UnsafeCell<libc::sem_t>);

// SAFETY: a semaphore is made to be used by many threads; the cell is touched
// only through the `sem_` functions.
unsafe impl Send for SemT {}
// SAFETY: as above.
unsafe impl Sync for SemT {}

impl BenchLock for SemT {
    fn new() -> Self {
        // SAFETY: `sem_t` is plain bytes; `settle` initialises it.
        Self(UnsafeCell::new(unsafe { std::mem::zeroed() }))
    }

    fn settle(&self) {
        // SAFETY: at its final address, and nobody uses it yet.
        let code = unsafe { libc::sem_init(self.0.get(), 0, 1) };
        assert!(code == 0, "sem_init: {}", std::io::Error::last_os_error());
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: initialised, and not moved since `settle`. Fails only when a
        // signal handler ran, and then is called again.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
        let result = section();
        // SAFETY: as above.
        unsafe { libc::sem_post(self.0.get()) };
        result
    }
}

impl Drop for SemT {
    fn drop(&mut self) {
        // SAFETY: exclusive access: nobody waits for it.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}
