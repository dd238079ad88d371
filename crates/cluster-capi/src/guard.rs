//! The mutex, and what is done while it is held.

use crate::cancel::lks_cluster_cancel;
use crate::options::text;
use crate::reason::{code, failed, refuse};
use crate::session::{lks_cluster_session, nanoseconds};
use core::ffi::{CStr, c_char, c_int};
use lockstead_cluster::{
    ClusterError, Inconsistent, Locked, Moment, Mutex, MutexGuard, Patience, Session,
};
use std::sync::{PoisonError, RwLock, TryLockError};
use std::time::{Duration, Instant};

/// The ownership of a lock, for C.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[derive(Debug)]
pub struct lks_cluster_guard {
    held: RwLock<Held>,
    session: Session,
}

#[derive(Debug)]
enum Held {
    Consistent(MutexGuard),
    /// The last owner died, and what it left was not called consistent.
    Inconsistent(Inconsistent<MutexGuard>),
    /// A call that failed has ended it: its place is gone.
    Over,
}

impl lks_cluster_guard {
    /// Calls with the guard.
    fn with<T>(
        &self,
        work: impl FnOnce(&MutexGuard) -> Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        match &*self.held.read().unwrap_or_else(PoisonError::into_inner) {
            Held::Consistent(guard) => work(guard),
            Held::Inconsistent(guard) => work(guard),
            Held::Over => Err(ClusterError::Removed),
        }
    }
}

impl lks_cluster_guard {
    /// Says by the clock until when the lock is held. Another thread may be asking etcd with this guard:
    /// then the session's word counts, for which nobody waits.
    fn check(&self) -> Result<Moment, ClusterError> {
        match self.held.try_read() {
            Err(TryLockError::WouldBlock) => self.session.check(),
            Ok(held) => held.check(),
            Err(TryLockError::Poisoned(held)) => held.into_inner().check(),
        }
    }
}

impl Held {
    fn check(&self) -> Result<Moment, ClusterError> {
        match self {
            Held::Consistent(guard) => guard.check(),
            Held::Inconsistent(guard) => guard.check(),
            Held::Over => Err(ClusterError::Removed),
        }
    }
}

/// The ways to wait, as `enum lks_cluster_how` of the header has them.
const FOREVER: u32 = 0;
const TRY: u32 = 1;
const TIMEOUT: u32 = 2;
const UNTIL: u32 = 3;
const INTERRUPTIBLE: u32 = 4;
const KILLABLE: u32 = 5;

/// Returns the wait that `how` and its argument mean; `None` if they mean nothing.
///
/// # Safety
/// ABROAD-MEMORY and ABROAD-HANDLE hold, for what `argument` is the address of.
unsafe fn patience<'a>(how: u32, argument: u64) -> Option<Patience<'a>> {
    // What is beyond the clock is never.
    let after = |time: Duration| {
        Instant::now().checked_add(time).map_or(Patience::Forever, Patience::Until)
    };
    match how {
        FOREVER => Some(Patience::Forever),
        TRY => Some(Patience::Never),
        TIMEOUT => Some(after(Duration::from_nanos(argument))),
        UNTIL => {
            let deadline = core::ptr::with_exposed_provenance::<libc::timespec>(argument as usize);
            // SAFETY: ABROAD-MEMORY: null, or a time; the caller keeps it.
            let deadline = unsafe { deadline.as_ref() }?;
            let nanoseconds =
                u32::try_from(deadline.tv_nsec).ok().filter(|n| *n < 1_000_000_000)?;
            // A time before the clock began has passed.
            let seconds = u64::try_from(deadline.tv_sec).unwrap_or(0);
            Some(after(Duration::new(seconds, nanoseconds).saturating_sub(monotonic())))
        }
        INTERRUPTIBLE => Some(Patience::Interruptible),
        KILLABLE => {
            let token = core::ptr::with_exposed_provenance::<lks_cluster_cancel>(argument as usize);
            // SAFETY: ABROAD-HANDLE: null, or a token that outlives the wait; the caller keeps it.
            let token = unsafe { token.as_ref() };
            Some(token.map_or(Patience::Forever, |token| Patience::Cancel(&token.0)))
        }
        _ => None,
    }
}

/// Returns the time of `CLOCK_MONOTONIC`.
fn monotonic() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a `timespec` that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// Acquires the mutex `name` and writes its guard to `guard`, or null where it was not acquired.
///
/// # Safety
/// ABROAD-MEMORY holds, and ABROAD-HANDLE.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_mutex_acquire(
    session: &lks_cluster_session,
    name: *const c_char,
    how: u32,
    argument: u64,
    place: *const c_char,
    guard: &mut *mut lks_cluster_guard,
) -> c_int {
    *guard = core::ptr::null_mut();
    // SAFETY: ABROAD-MEMORY: null or a string; the caller keeps it.
    let name = match unsafe { text(name, "the name") } {
        Ok(Some(name)) if !name.is_empty() => name,
        Ok(_) => return refuse(libc::EINVAL, "a lock has a name"),
        Err(error) => return failed(&error),
    };
    // It is only shown, and a source file may have any name.
    let place = if place.is_null() {
        String::new()
    } else {
        // SAFETY: ABROAD-MEMORY: a string; the caller keeps it.
        unsafe { CStr::from_ptr(place) }.to_string_lossy().into_owned()
    };
    // SAFETY: ABROAD-MEMORY and ABROAD-HANDLE, which the caller keeps until this call returns.
    let Some(patience) = (unsafe { patience(how, argument) }) else {
        return refuse(libc::EINVAL, "there is no such way to wait, or its time is none");
    };
    let (result, held) = match Mutex::new(&session.session, &name).lock_as(patience, &place) {
        Ok(Locked::Acquired(got)) => (0, Held::Consistent(got)),
        Ok(Locked::OwnerDied(got)) => {
            let text = "the last owner died while it had the lock; repair what it left, and call \
                        lks_cluster_guard_consistent";
            (refuse(libc::EOWNERDEAD, text), Held::Inconsistent(got))
        }
        Ok(Locked::NotRecoverable) => return failed(&ClusterError::NotRecoverable),
        Err(error) => return failed(&error),
    };
    let session = session.session.clone();
    *guard = Box::into_raw(Box::new(lks_cluster_guard { held: RwLock::new(held), session }));
    result
}

/// Returns the fencing token; zero once a call that failed has ended the guard.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_guard_token(guard: &lks_cluster_guard) -> u64 {
    guard.with(|guard| Ok(guard.token())).unwrap_or(0)
}

/// Returns the moment until which the lock is held for sure; zero if it is lost.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_guard_deadline(guard: &lks_cluster_guard) -> u64 {
    guard.check().map_or(0, |deadline| deadline.nanoseconds())
}

/// Returns the nanoseconds until then; zero if it is lost.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_guard_safe_for(guard: &lks_cluster_guard) -> u64 {
    guard.check().map_or(0, |deadline| nanoseconds(deadline.remaining()))
}

/// Says by the clock whether the lock is still held.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_guard_check(guard: &lks_cluster_guard) -> c_int {
    code(guard.check().map(drop))
}

/// Asks etcd whether the lock is still held.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_guard_confirm(guard: &lks_cluster_guard) -> c_int {
    code(guard.with(|guard| guard.confirm().map(drop)))
}

/// Writes a key of etcd if the lock is held at that revision.
///
/// # Safety
/// ABROAD-MEMORY holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_guard_put(
    guard: &lks_cluster_guard,
    key: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: ABROAD-MEMORY: each is null or a string; the caller keeps it.
    match unsafe { (text(key, "the key"), text(value, "the value")) } {
        (Ok(Some(key)), Ok(Some(value))) if !key.is_empty() => {
            code(guard.with(|guard| guard.txn().put(&key, &value).commit().map(drop)))
        }
        (Err(error), _) | (_, Err(error)) => failed(&error),
        _ => refuse(libc::EINVAL, "a write takes a key and a value"),
    }
}

/// Says that what a dead owner left is in order again.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_guard_consistent(guard: &lks_cluster_guard) -> c_int {
    let mut held = guard.held.write().unwrap_or_else(PoisonError::into_inner);
    match core::mem::replace(&mut *held, Held::Over) {
        Held::Inconsistent(inconsistent) => match inconsistent.mark_consistent() {
            Ok(guard) => {
                *held = Held::Consistent(guard);
                0
            }
            // The next owner is told in this one's stead.
            Err(error) => failed(&error),
        },
        Held::Consistent(guard) => {
            *held = Held::Consistent(guard);
            refuse(libc::EINVAL, "no owner died")
        }
        Held::Over => failed(&ClusterError::Removed),
    }
}

/// Releases a lock whose owner died so that the next one is told, and ends the guard.
///
/// # Safety
/// ABROAD-HANDLE holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_guard_leave(guard: *mut lks_cluster_guard) -> c_int {
    // SAFETY: ABROAD-HANDLE: nobody uses the guard any more; the caller keeps it.
    match unsafe { taken(guard) } {
        Held::Inconsistent(inconsistent) => code(inconsistent.leave_to_the_next()),
        Held::Consistent(guard) => code(guard.unlock()),
        Held::Over => failed(&ClusterError::Removed),
    }
}

/// Releases the lock and ends the guard.
///
/// # Safety
/// ABROAD-HANDLE holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_guard_unlock(guard: *mut lks_cluster_guard) -> c_int {
    // SAFETY: ABROAD-HANDLE: nobody uses the guard any more; the caller keeps it.
    match unsafe { taken(guard) } {
        Held::Inconsistent(inconsistent) => code(inconsistent.give_up()),
        Held::Consistent(guard) => code(guard.unlock()),
        Held::Over => failed(&ClusterError::Removed),
    }
}

/// Returns what a guard of C held, and frees the guard.
///
/// # Safety
/// ABROAD-HANDLE holds, and this is the call that ends the guard.
unsafe fn taken(guard: *mut lks_cluster_guard) -> Held {
    if guard.is_null() {
        return Held::Over;
    }
    // SAFETY: ABROAD-HANDLE: it came from `lks_cluster_mutex_acquire`, and nobody uses it any more; the
    // caller keeps it.
    let guard = unsafe { Box::from_raw(guard) };
    guard.held.into_inner().unwrap_or_else(PoisonError::into_inner)
}
