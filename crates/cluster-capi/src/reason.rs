//! Errors as C has them: a negative `errno`, and a text for people.

use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use lockstead_cluster::ClusterError;
use std::ffi::CString;

thread_local! {
    /// What the last call of this thread that failed says.
    static REASON: RefCell<CString> = RefCell::default();
}

/// Returns why the thread's last call failed that did; empty: none has.
#[unsafe(no_mangle)]
extern "C" fn lks_cluster_reason() -> *const c_char {
    // A thread that is ending has no texts any more.
    REASON.try_with(|reason| reason.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Keeps a text for [`lks_cluster_reason`], and returns the `errno` as calls do.
pub(crate) fn refuse(errno: c_int, text: &str) -> c_int {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    let _ = REASON.try_with(|reason| reason.replace(text));
    -errno
}

/// Returns what a call that came to this returns.
pub(crate) fn code(outcome: Result<(), ClusterError>) -> c_int {
    outcome.map_or_else(|error| failed(&error), |()| 0)
}

/// Keeps the text of an error, and returns its `errno` as calls do.
pub(crate) fn failed(error: &ClusterError) -> c_int {
    refuse(errno(error), &error.to_string())
}

fn errno(error: &ClusterError) -> c_int {
    match error {
        ClusterError::Options(_) => libc::EINVAL,
        ClusterError::Unreachable { .. } => libc::EHOSTUNREACH,
        ClusterError::Refused { code, message }
            if [7, 16].contains(code) || message.contains("authentication failed") =>
        {
            libc::EACCES
        }
        ClusterError::Local(_) => libc::EAGAIN,
        ClusterError::Lost(_) => libc::ESTALE,
        ClusterError::Removed => libc::EIDRM,
        ClusterError::Held => libc::EBUSY,
        ClusterError::TimedOut => libc::ETIMEDOUT,
        // As of the locks in memory: a fired token is to a wait what a signal is.
        ClusterError::Interrupted | ClusterError::Cancelled => libc::EINTR,
        ClusterError::NotRecoverable => libc::ENOTRECOVERABLE,
        // Of etcd, and of what no call here does.
        _ => libc::EPROTO,
    }
}
