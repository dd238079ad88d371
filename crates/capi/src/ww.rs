//! The wait/wound mutex for C.

use crate::export::destroy;
use crate::mutex::nowhere;
use crate::own::enter;
use crate::refuse::{die, named, refuse};
use crate::wait::INTERRUPTIBLE;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, Ordering};
use lockstead_core::ww::{Class, Context, ContextPatience, RawWwMutex, WwError};
use lockstead_core::{LockError, WaitBounds};
use lockstead_linux::Linux;

/// The wait/wound mutex of C: the core's, and the context of its holder.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct lks_ww_mutex {
    raw: RawWwMutex<Linux>,
    ctx: AtomicPtr<Context<Linux>>,
}

const _: () = assert!(size_of::<lks_ww_mutex>() == 32 && align_of::<lks_ww_mutex>() == 8);
const _: () = assert!(core::mem::offset_of!(lks_ww_mutex, ctx) == 24);
const _: () = assert!(size_of::<Context<Linux>>() == 24 && size_of::<Class<Linux>>() == 16);

impl lks_ww_mutex {
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Notes that the caller holds the lock, in this context.
    fn took(&self, ctx: Option<&Context<Linux>>) {
        let ctx = ctx.map_or(core::ptr::null(), core::ptr::from_ref);
        self.ctx.store(ctx.cast_mut(), Ordering::Relaxed);
    }

    /// Releases the lock, which the calling thread took in a context that has not ended.
    ///
    /// # Safety
    /// CAPI-HOLDER holds, and CAPI-MEMORY for the context.
    #[cfg(feature = "check")]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: CAPI-HOLDER and CAPI-MEMORY, which the caller keeps: null, or the context that
        // the calling thread took the lock in.
        let ctx = unsafe { self.ctx.load(Ordering::Relaxed).as_ref() };
        // SAFETY: CAPI-HOLDER: the calling thread holds the lock, in `ctx`; the caller keeps it.
        unsafe { self.raw.unlock(ctx) };
    }

    pub(crate) fn lock(
        &self,
        ctx: Option<&Context<Linux>>,
        interruptible: bool,
        (slow, call): (bool, &str),
    ) -> i32 {
        let patience = ContextPatience { interruptible, ..ContextPatience::ENDLESS };
        let outcome = match ctx {
            Some(ctx) if slow => {
                if ctx.acquired() != 0 {
                    die(&format!(
                        "{call}: the context holds {} lock(s), which others may wait for: release \
                         them first",
                        ctx.acquired()
                    ));
                }
                self.raw.lock_slow(ctx, &patience, nowhere())
            }
            Some(ctx) => self.raw.lock_how(ctx, &patience, nowhere()),
            None => {
                let how = WaitBounds { interruptible, ..WaitBounds::FOREVER };
                self.raw.lock_alone(&how, nowhere()).map_err(WwError::Lock)
            }
        };
        match outcome {
            Ok(()) => {
                self.took(ctx);
                0
            }
            Err(WwError::Deadlock) => -libc::EDEADLK,
            Err(WwError::Already) => -libc::EALREADY,
            Err(WwError::Lock(LockError::Interrupted)) => -libc::EINTR,
            Err(WwError::Lock(LockError::OwnerLost)) if interruptible || !slow => -libc::EOWNERDEAD,
            Err(WwError::Lock(LockError::OwnerLost)) => die(&format!(
                "{call}: lost owner: the {} is held by a thread that has ended, or that fork left \
                 behind in the parent process. It can never be released: release all locks, and end \
                 all contexts, before their thread ends",
                named("wait/wound mutex", self.address())
            )),
            Err(WwError::Lock(error)) => refuse(error, call, "wait/wound mutex", self.address()),
        }
    }
}

/// Begins a context of a class. Returns `-EBUSY` if the thread has as many as it can.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lks_ww_ctx_init(
    ctx: &mut MaybeUninit<Context<Linux>>,
    class: &Class<Linux>,
) -> i32 {
    enter();
    match Context::begin(class) {
        Some(fresh) => {
            ctx.write(fresh);
            0
        }
        None => -libc::EBUSY,
    }
}

/// Ends a context that holds nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lks_ww_ctx_fini(ctx: &Context<Linux>) {
    ctx.finish();
}

destroy! { lks_ww_mutex_destroy(lks_ww_mutex); }

/// Takes the lock, in a context or alone.
#[unsafe(no_mangle)]
extern "C" fn lks_ww_mutex_lock_how(
    mutex: &lks_ww_mutex,
    ctx: Option<&Context<Linux>>,
    how: u32,
) -> i32 {
    enter();
    mutex.lock(ctx, how == INTERRUPTIBLE, (false, "lks_ww_mutex_lock"))
}

/// Takes the lock that a context was refused, or a lock alone.
#[unsafe(no_mangle)]
extern "C" fn lks_ww_mutex_lock_slow_how(
    mutex: &lks_ww_mutex,
    ctx: Option<&Context<Linux>>,
    how: u32,
) -> i32 {
    enter();
    mutex.lock(ctx, how == INTERRUPTIBLE, (true, "lks_ww_mutex_lock_slow"))
}

/// Takes the lock if it is free; returns 1 if it did.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lks_ww_mutex_trylock_slow(
    mutex: &lks_ww_mutex,
    ctx: Option<&Context<Linux>>,
) -> i32 {
    enter();
    let taken = mutex.raw.try_lock(ctx, nowhere());
    if taken {
        mutex.took(ctx);
    }
    i32::from(taken)
}

/// Releases the lock where the inline release found more than the owner.
///
/// # Safety
/// CAPI-HOLDER holds; the inline release has erased the context.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_ww_mutex_unlock_slow(mutex: &lks_ww_mutex) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the lock; the caller keeps it.
    unsafe { mutex.raw.unlock_slow() };
}

/// Releases a lock that the calling thread took without a context.
///
/// # Safety
/// CAPI-HOLDER holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_ww_mutex_unlock_alone_slow(mutex: &lks_ww_mutex) {
    // SAFETY: CAPI-HOLDER: the calling thread holds the lock, without a context; the caller keeps it.
    unsafe { mutex.raw.unlock(None) };
}
