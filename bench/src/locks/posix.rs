//! Peers of the C library.

use super::BenchLock;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Which kind of pthread mutex.
pub trait PthreadKind: Send + Sync + 'static {
    /// The type of the mutex: a `PTHREAD_MUTEX_…` constant.
    const KIND: libc::c_int;
    /// The protocol of the mutex: a `PTHREAD_PRIO_…` constant.
    const PROTOCOL: libc::c_int;
    /// Whether several processes may use it.
    const SHARED: bool = false;
    /// Whether the death of an owner is told to the next one.
    const ROBUST: bool = false;
}

/// A mutex of the default kind.
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

/// A mutex with priority inheritance.
pub struct Inherit;

impl PthreadKind for Inherit {
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_NORMAL;
    const PROTOCOL: libc::c_int = libc::PTHREAD_PRIO_INHERIT;
}

/// A mutex for several processes.
pub struct PosixShared;

impl PthreadKind for PosixShared {
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_NORMAL;
    const PROTOCOL: libc::c_int = libc::PTHREAD_PRIO_NONE;
    const SHARED: bool = true;
}

/// A mutex for several processes that tells of dead owners.
pub struct PosixRobust;

impl PthreadKind for PosixRobust {
    const KIND: libc::c_int = libc::PTHREAD_MUTEX_NORMAL;
    const PROTOCOL: libc::c_int = libc::PTHREAD_PRIO_NONE;
    const SHARED: bool = true;
    const ROBUST: bool = true;
}

/// A `pthread_mutex_t` of the kind `K`.
#[repr(transparent)]
pub struct Pthread<K>(UnsafeCell<libc::pthread_mutex_t>, PhantomData<K>);

// SAFETY: a pthread mutex is made to be used by many threads; the cell is
// touched only through the pthread functions.
unsafe impl<K: PthreadKind> Send for Pthread<K> {}
// SAFETY: as for `Send`: the C library's locks are made for use by several threads.
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
            if K::SHARED {
                let shared = libc::PTHREAD_PROCESS_SHARED;
                let code = libc::pthread_mutexattr_setpshared(attributes, shared);
                succeed(code, "mutexattr_setpshared");
            }
            if K::ROBUST {
                let robust = libc::PTHREAD_MUTEX_ROBUST;
                let code = libc::pthread_mutexattr_setrobust(attributes, robust);
                succeed(code, "mutexattr_setrobust");
            }
            succeed(libc::pthread_mutex_init(self.0.get(), attributes), "mutex_init");
            libc::pthread_mutexattr_destroy(attributes);
        }
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: by PEER-SETTLED the lock is initialised and has not moved.
        let locked = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        debug_assert_eq!(locked, 0);
        let result = section();
        // SAFETY: by PEER-SETTLED the lock is initialised, and by PEER-HELD this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        result
    }
}

/// How a robust mutex was got, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Robustly {
    /// It was acquired, as its last owner left it.
    Had,
    /// It was acquired, and its last owner died.
    OwnerDied,
    /// Somebody has it, as long as the caller would wait.
    Busy,
}

impl Pthread<PosixRobust> {
    /// Takes it, waiting as long as it takes.
    ///
    /// # Panics
    /// If the C library refuses.
    pub fn take(&self) -> Robustly {
        // SAFETY: by PEER-SETTLED the lock is initialised and has not moved.
        robustly(unsafe { libc::pthread_mutex_lock(self.0.get()) })
    }

    /// Takes it if nobody has it.
    ///
    /// # Panics
    /// If the C library refuses.
    pub fn try_take(&self) -> Robustly {
        // SAFETY: by PEER-SETTLED the lock is initialised and has not moved.
        robustly(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
    }

    /// Takes it, waiting at most so long, on the system's clock.
    ///
    /// # Panics
    /// If the C library refuses.
    pub fn take_within(&self, time: Duration) -> Robustly {
        let mut end = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: by PEER-SETTLED the mutex is initialised, and by CALL-LOCALS the time is a live
        // local variable.
        robustly(unsafe {
            libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut end);
            let ns = end.tv_nsec as u128 + time.as_nanos();
            end.tv_sec += (ns / 1_000_000_000) as libc::time_t;
            end.tv_nsec = (ns % 1_000_000_000) as _;
            libc::pthread_mutex_timedlock(self.0.get(), &raw const end)
        })
    }

    /// Says for the caller, who has it, that what it protects is in order.
    pub fn mark_consistent(&self) {
        // SAFETY: by PEER-SETTLED the lock is initialised and has not moved.
        succeed(unsafe { libc::pthread_mutex_consistent(self.0.get()) }, "mutex_consistent");
    }

    /// Gives it back for the caller, who has it.
    ///
    /// # Panics
    /// If the C library refuses.
    pub fn give_back(&self) {
        self.try_give_back().expect("who has a mutex may unlock it");
    }

    /// Gives it back if the caller is the one that has it.
    ///
    /// # Errors
    /// The mutex of the C library, which knows the owner.
    #[inline]
    pub fn try_give_back(&self) -> std::io::Result<()> {
        // SAFETY: by PEER-SETTLED the lock is initialised and has not moved.
        match unsafe { libc::pthread_mutex_unlock(self.0.get()) } {
            0 => Ok(()),
            code => Err(std::io::Error::from_raw_os_error(code)),
        }
    }
}

fn robustly(code: libc::c_int) -> Robustly {
    match code {
        0 => Robustly::Had,
        libc::EOWNERDEAD => Robustly::OwnerDied,
        libc::EBUSY | libc::ETIMEDOUT => Robustly::Busy,
        code => panic!("a robust mutex: {}", std::io::Error::from_raw_os_error(code)),
    }
}

impl<K> Drop for Pthread<K> {
    fn drop(&mut self) {
        // SAFETY: by PEER-SETTLED the lock is initialised; exclusive access says that nobody
        // holds it or waits.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

/// `sem_t` with one permit.
pub struct SemT(UnsafeCell<libc::sem_t>);

// SAFETY: a semaphore is made to be used by many threads; the cell is touched
// only through the `sem_` functions.
unsafe impl Send for SemT {}
// SAFETY: as for `Send`: the C library's locks are made for use by several threads.
unsafe impl Sync for SemT {}

impl BenchLock for SemT {
    fn new() -> Self {
        // SAFETY: by ZEROED-BITS `sem_t` is plain bytes; `settle` initialises it.
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
        // SAFETY: by PEER-SETTLED the lock is initialised and has not moved.
        unsafe { libc::sem_post(self.0.get()) };
        result
    }
}

impl Drop for SemT {
    fn drop(&mut self) {
        // SAFETY: by PEER-SETTLED the semaphore is initialised; exclusive access says that nobody
        // waits.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}
