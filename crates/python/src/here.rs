//! Which thread and which process this is.

use core::sync::atomic::{AtomicU32, Ordering};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::sync::Once;

/// The number of forks between the process that loaded the module and this one, plus one.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Prepares the process: forked children count themselves, and handlers of signals end waits.
pub(crate) fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        extern "C" fn in_child() {
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the function is async-signal-safe, and stays: CPython never unloads extensions.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // Python installs its handlers without `SA_RESTART`. (`signal.siginterrupt` may change that;
        // such a signal is seen after the slice of `wait`.)
        lockstead_linux::shared::handlers_end_calls();
    });
}

/// Returns a number that a forked child does not share with its parent.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Tells whether the calling thread is its process's first, the one in which Python runs the
/// handlers of signals.
pub(crate) fn is_first_thread() -> bool {
    // SAFETY: both calls take nothing and cannot fail.
    unsafe { libc::gettid() == libc::getpid() }
}

/// Lets the process `pid` and its children read this process's memory, where the kernel asks for
/// that (`kernel.yama.ptrace_scope` 1): what `lockstead dump` of one's own process needs.
///
/// `pid` 0 takes it back. Raises `OSError` if the kernel refuses; without Yama nothing needs to be
/// allowed, and nothing happens.
#[pyfunction]
pub(crate) fn allow_tracer(pid: u32) -> PyResult<()> {
    // SAFETY: the call takes numbers only, and no memory of the program's.
    let result = unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(pid), 0, 0, 0) };
    let error = std::io::Error::last_os_error();
    if result == 0 || error.raw_os_error() == Some(libc::EINVAL) {
        return Ok(());
    }
    Err(PyOSError::new_err(error.to_string()))
}
