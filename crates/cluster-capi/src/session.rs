//! Sessions, and the descriptor that tells of a loss.

use crate::options::{self, lks_cluster_options};
use crate::reason::{code, failed, refuse};
use core::ffi::c_int;
use core::pin::pin;
use lockstead_cluster::Session;
use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// The session of C.
#[allow(non_camel_case_types, reason = "the type's name in C")]
#[derive(Debug)]
pub struct lks_cluster_session {
    pub(crate) session: Session,
    bell: Arc<Bell>,
}

/// An eventfd that is readable once the lease is lost.
#[derive(Debug)]
struct Bell(File);

impl Bell {
    fn new() -> std::io::Result<Bell> {
        // SAFETY: the call takes numbers only, and no memory of the program's.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just made, and that nobody else has.
        Ok(Bell(unsafe { File::from_raw_fd(descriptor) }))
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // It cannot be full: it is written once for each waker, and there is one.
        let _ = (&self.0).write_all(&1_u64.to_ne_bytes());
    }
}

/// Opens a session and writes it to `session`, or null with an error.
///
/// # Safety
/// ABROAD-MEMORY holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_session_open(
    session: &mut *mut lks_cluster_session,
    options: *const lks_cluster_options,
) -> c_int {
    *session = core::ptr::null_mut();
    // SAFETY: ABROAD-MEMORY: the options are null or such; the caller keeps it.
    let opened = unsafe { options::session(options) }.and_then(Session::open);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return failed(&error),
    };
    let bell = match Bell::new() {
        Ok(bell) => Arc::new(bell),
        Err(error) => return refuse(libc::EMFILE, &format!("cannot make an eventfd: {error}")),
    };
    let waker = Waker::from(Arc::clone(&bell));
    // The session keeps the waker, and the future need not be asked again.
    if pin!(opened.lost()).poll(&mut Context::from_waker(&waker)).is_ready() {
        waker.wake();
    }
    *session = Box::into_raw(Box::new(lks_cluster_session { session: opened, bell }));
    0
}

/// Ends a session with all that it holds.
///
/// # Safety
/// ABROAD-HANDLE holds.
#[unsafe(no_mangle)]
unsafe extern "C" fn lks_cluster_session_close(session: *mut lks_cluster_session) -> c_int {
    if session.is_null() {
        return 0;
    }
    // SAFETY: ABROAD-HANDLE: it came from `lks_cluster_session_open`, and nobody uses it any more; the
    // caller keeps it.
    let session = unsafe { Box::from_raw(session) };
    code(session.session.clone().close())
}

/// Returns the number of the lease.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_session_lease(session: &lks_cluster_session) -> i64 {
    session.session.lease()
}

/// Says whether the lease is held.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_session_check(session: &lks_cluster_session) -> c_int {
    code(session.session.check().map(drop))
}

/// Returns the nanoseconds for which what the session holds is its own for sure.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_session_safe_for(session: &lks_cluster_session) -> u64 {
    nanoseconds(session.session.health().safe_for)
}

/// Returns the nanoseconds for which no endpoint has answered; zero if one does.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_session_unreachable_for(session: &lks_cluster_session) -> u64 {
    session.session.health().unreachable_for.map_or(0, |time| nanoseconds(time).max(1))
}

/// Returns a descriptor that is readable once the lease is lost; the session's own.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_session_lost_fd(session: &lks_cluster_session) -> c_int {
    session.bell.0.as_raw_fd()
}

pub(crate) fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
