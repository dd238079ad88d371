//! The mutex over etcd, for the classes of `lockstead.cluster`.
//!
//! # Protocol
//! All that may ask etcd is called without the interpreter's lock. A wait of the first thread, in which Python
//! runs the handlers of signals, asks ten times a second whether one has raised, and is cancelled then: it
//! leaves no place in the queue.

use crate::error::{NotRecoverable, OwnerDied};
use crate::here;
use lockstead_cluster::{
    ClientOptions, ClusterError as Error, Inconsistent, Locked, MutexGuard, Patience,
    SessionOptions, TlsFiles,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyConnectionError, PyException, PyPermissionError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex as StdMutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

create_exception!(
    lockstead.cluster,
    ClusterError,
    PyException,
    "Something went wrong with locks over etcd; the text says what, and what to do."
);
create_exception!(
    lockstead.cluster,
    Lost,
    ClusterError,
    "The lease has ended, or may have, or the lock was taken away by force: nothing that was held is \
     one's own any more."
);

/// Adds the classes and exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ClusterError", py.get_type::<ClusterError>())?;
    module.add("ClusterLost", py.get_type::<Lost>())?;
    module.add_class::<ClusterSession>()?;
    module.add_class::<ClusterGuard>()
}

/// Returns the exception for an error.
#[cold]
fn exception(error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Options(_) => PyValueError::new_err(text),
        Error::Unreachable { .. } => PyConnectionError::new_err(text),
        Error::Refused { code, message }
            if [7, 16].contains(code) || message.contains("authentication failed") =>
        {
            PyPermissionError::new_err(text)
        }
        Error::Lost(_) | Error::Removed => Lost::new_err(text),
        Error::NotRecoverable => NotRecoverable::new_err(text),
        _ => ClusterError::new_err(text),
    }
}

fn seconds(what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err(format!("{what}: a number of seconds from 0")))
}

/// Calls without the interpreter's lock.
fn detached<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(call).map_err(|error| exception(&error))
}

/// A lease of etcd, and the thread that renews it.
#[pyclass(frozen, name = "ClusterSession", module = "lockstead._lockstead")]
pub(crate) struct ClusterSession {
    /// There until the end.
    session: Option<lockstead_cluster::Session>,
}

impl ClusterSession {
    fn session(&self) -> &lockstead_cluster::Session {
        self.session.as_ref().expect("there until the end")
    }
}

impl Drop for ClusterSession {
    fn drop(&mut self) {
        // The last copy ends the lease: a request, for which other threads need not wait.
        let session = self.session.take();
        Python::attach(|py| py.detach(|| drop(session)));
    }
}

#[pymethods]
impl ClusterSession {
    #[new]
    #[pyo3(signature = (endpoints, user, password, cacert, cert, key, root, ttl, margin, patience))]
    #[expect(clippy::too_many_arguments, reason = "Python's part has them by their names")]
    fn new(
        py: Python<'_>,
        endpoints: &str,
        user: Option<String>,
        password: Option<String>,
        cacert: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<PathBuf>,
        root: String,
        ttl: f64,
        margin: f64,
        patience: f64,
    ) -> PyResult<ClusterSession> {
        let mut client = ClientOptions::of(endpoints).map_err(|error| exception(&error))?;
        client.user = match (user, password) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, None) => None,
            _ => {
                let text = "a user takes a password, and a password a user";
                return Err(PyValueError::new_err(text));
            }
        };
        let certificate = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                let text = "a certificate takes its key, and a key its certificate";
                return Err(PyValueError::new_err(text));
            }
        };
        client.tls = TlsFiles { authorities: cacert, client: certificate };
        client.patience = seconds("patience", patience)?;
        let (ttl, margin) = (seconds("ttl", ttl)?, seconds("margin", margin)?);
        let options = SessionOptions { client, ttl, margin, root, ..SessionOptions::default() };
        let session = detached(py, || lockstead_cluster::Session::open(options))?;
        Ok(ClusterSession { session: Some(session) })
    }

    /// Acquires the mutex `name`; `None` if the time was over. With `told` an owner's death is no
    /// exception.
    fn _acquire(
        &self,
        py: Python<'_>,
        name: &str,
        block: bool,
        timeout: Option<f64>,
        told: bool,
    ) -> PyResult<Option<ClusterGuard>> {
        // What is beyond the clock is never.
        let end = |seconds: f64| {
            let time = Duration::try_from_secs_f64(seconds.max(0.0)).ok()?;
            Instant::now().checked_add(time)
        };
        if timeout.is_some_and(f64::is_nan) {
            return Err(PyValueError::new_err("timeout: None, or a number of seconds"));
        }
        let until = timeout.and_then(end);
        let raised = StdMutex::new(None);
        let goes_on = || {
            Python::attach(|py| py.check_signals())
                .map_err(|error| {
                    *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error)
                })
                .is_ok()
        };
        let sees_signals = here::is_first_thread();
        let place = place(py);
        let mutex = lockstead_cluster::Mutex::new(self.session(), name);
        let got = py.detach(|| {
            let patience = match (block, until) {
                (false, _) => Patience::Never,
                (true, until) if sees_signals => Patience::While { until, goes_on: &goes_on },
                (true, Some(until)) => Patience::Until(until),
                (true, None) => Patience::Forever,
            };
            let got = mutex.lock_as(patience, &place);
            match got {
                Ok(Locked::OwnerDied(guard)) if !told => {
                    // Whoever comes next is told, too, until somebody recovers.
                    guard.leave_to_the_next().map(|()| None)
                }
                got => got.map(Some),
            }
        });
        match got {
            Ok(Some(Locked::Acquired(guard))) => Ok(Some(ClusterGuard::new(Held::Whole(guard)))),
            Ok(Some(Locked::OwnerDied(guard))) => {
                Ok(Some(ClusterGuard::new(Held::Inconsistent(guard))))
            }
            Ok(Some(Locked::NotRecoverable)) => Err(exception(&Error::NotRecoverable)),
            Ok(None) => Err(OwnerDied::new_err(
                "the last owner died while it had the lock: look at what it protects inside `with \
                 mutex.recover():`",
            )),
            Err(Error::Held | Error::TimedOut) => Ok(None),
            Err(error) => {
                // What a handler has raised comes first, whatever giving up came to.
                let raised = raised.into_inner().unwrap_or_else(PoisonError::into_inner);
                Err(raised.unwrap_or_else(|| exception(&error)))
            }
        }
    }

    /// Ends the lease: what is still held is lost, and whoever takes it is told that its owner died.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let session = self.session().clone();
        detached(py, || session.close())
    }

    /// Returns the number of the lease, as etcd has it.
    #[getter]
    fn lease(&self) -> i64 {
        self.session().lease()
    }

    /// Returns the seconds for which what is held is one's own for sure; 0.0: it is lost.
    #[getter]
    fn safe_for(&self) -> f64 {
        self.session().health().safe_for.as_secs_f64()
    }

    /// Returns the seconds for which no endpoint has answered; None: one does.
    #[getter]
    fn unreachable_for(&self) -> Option<f64> {
        self.session().health().unreachable_for.map(|time| time.as_secs_f64())
    }

    /// Tells whether the lease is lost.
    #[getter]
    fn lost(&self) -> bool {
        self.session().check().is_err()
    }

    /// Raises `Lost` unless the lease is held, by the clock and without a request.
    fn check(&self) -> PyResult<()> {
        self.session().check().map(drop).map_err(|error| exception(&error))
    }

    /// Waits for the loss of the lease; says whether it is lost.
    #[pyo3(signature = (timeout = None))]
    fn wait_lost(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let end = timeout.map(|time| seconds("timeout", time)).transpose()?;
        let end = end.map(|time| Instant::now() + time);
        let lost = self.session().lost();
        loop {
            let slice = Duration::from_millis(100);
            // Also in a child, in which nobody tells of a loss.
            if self.session().check().is_err() {
                return Ok(true);
            }
            let left = end.map_or(slice, |end| end.saturating_duration_since(Instant::now()));
            if py.detach(|| lost.wait_timeout(left.min(slice))).is_some() {
                return Ok(true);
            }
            py.check_signals()?;
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(false);
            }
        }
    }
}

/// Returns `FILE:LINE` of the Python code that calls; empty where that cannot be told.
fn place(py: Python<'_>) -> String {
    let asked = || -> PyResult<String> {
        let sys = py.import("sys")?;
        let mut frame = sys.getattr("_getframe")?.call1((0,))?;
        // Past the package's own frames.
        loop {
            let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
            let outer = frame.getattr("f_back")?;
            if !file.ends_with("lockstead/cluster.py") || outer.is_none() {
                let line: u32 = frame.getattr("f_lineno")?.extract()?;
                return Ok(format!("{file}:{line}"));
            }
            frame = outer;
        }
    };
    asked().unwrap_or_default()
}

enum Held {
    Whole(MutexGuard),
    Inconsistent(Inconsistent<MutexGuard>),
    /// Released, or ended by a call that failed.
    Over,
}

/// The ownership of a mutex; given back at the end of a `with`, by `release()`, or when it is forgotten.
#[pyclass(frozen, name = "Guard", module = "lockstead.cluster")]
pub(crate) struct ClusterGuard {
    held: RwLock<Held>,
}

impl ClusterGuard {
    fn new(held: Held) -> ClusterGuard {
        ClusterGuard { held: RwLock::new(held) }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&MutexGuard) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        detached(py, || match &*self.held.read().unwrap_or_else(PoisonError::into_inner) {
            Held::Whole(guard) => work(guard),
            Held::Inconsistent(guard) => work(guard),
            Held::Over => Err(Error::Removed),
        })
    }

    /// Asks what is held without the interpreter's lock, for who has it may be waiting for an answer.
    fn is(&self, py: Python<'_>, question: impl FnOnce(&Held) -> bool + Send) -> bool {
        py.detach(|| question(&self.held.read().unwrap_or_else(PoisonError::into_inner)))
    }

    fn taken(&self) -> Held {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut held, Held::Over)
    }
}

#[pymethods]
impl ClusterGuard {
    /// Returns the fencing token: a number that grows from each owner of the lock to the next.
    #[getter]
    fn token(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |guard| Ok(guard.token()))
    }

    /// Returns the moment until which the lock is held for sure, in seconds of `time.CLOCK_BOOTTIME`;
    /// raises `Lost`.
    #[getter]
    fn deadline(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(
            py,
            |guard| Ok(Duration::from_nanos(guard.check()?.nanoseconds()).as_secs_f64()),
        )
    }

    /// Returns the seconds until then; 0.0: the lock is lost.
    #[getter]
    fn safe_for(&self, py: Python<'_>) -> f64 {
        self.with(py, |guard| Ok(guard.safe_for().as_secs_f64())).unwrap_or(0.0)
    }

    /// Tells whether the lock is lost, or released.
    #[getter]
    fn lost(&self, py: Python<'_>) -> bool {
        self.with(py, |guard| guard.check().map(drop)).is_err()
    }

    /// Tells whether its last owner died, and what it left was not declared consistent.
    #[getter]
    fn owner_died(&self, py: Python<'_>) -> bool {
        self.is(py, |held| matches!(held, Held::Inconsistent(_)))
    }

    /// Raises `Lost` unless the lock is still held, by the clock and without a request.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |guard| guard.check().map(drop))
    }

    /// Asks etcd, which knows also of removals by force; raises `Lost`.
    fn confirm(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |guard| guard.confirm().map(drop))
    }

    /// Writes a key of the same etcd if the lock is held at that revision, else raises `Lost`.
    fn put(&self, py: Python<'_>, key: &str, value: &str) -> PyResult<()> {
        self.with(py, |guard| guard.txn().put(key, value).commit().map(drop))
    }

    /// Declares that what the lock protects is in order, after an owner's death.
    fn mark_consistent(&self, py: Python<'_>) -> PyResult<()> {
        let marked = py.detach(|| {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            match std::mem::replace(&mut *held, Held::Over) {
                Held::Inconsistent(guard) => {
                    *held = Held::Whole(guard.mark_consistent()?);
                    Ok(true)
                }
                Held::Whole(guard) => {
                    *held = Held::Whole(guard);
                    Ok(false)
                }
                Held::Over => Err(Error::Removed),
            }
        });
        match marked {
            Ok(true) => Ok(()),
            Ok(false) => Err(PyValueError::new_err("no owner died")),
            Err(error) => Err(exception(&error)),
        }
    }

    /// Releases the lock; raises `Lost` if it was not held until then. After an owner's death that nobody
    /// has repaired the next owner is told.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let released = py.detach(|| match self.taken() {
            Held::Whole(guard) => guard.unlock().map(|()| true),
            Held::Inconsistent(guard) => guard.leave_to_the_next().map(|()| true),
            Held::Over => Ok(false),
        });
        match released {
            Ok(true) => Ok(()),
            Ok(false) => Err(PyValueError::new_err("the lock was released already")),
            Err(error) => Err(exception(&error)),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Releases, unless that was done inside. An exception on its way is not replaced.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.is(py, |held| matches!(held, Held::Over)) {
            return Ok(());
        }
        let released = self.release(py);
        if kind.is_none() { released } else { Ok(()) }
    }
}

impl Drop for ClusterGuard {
    fn drop(&mut self) {
        let held = self.taken();
        if !matches!(held, Held::Over) {
            // Forgotten: the release is a request, for which other threads need not wait.
            Python::attach(|py| {
                py.detach(|| match held {
                    Held::Inconsistent(guard) => drop(guard.leave_to_the_next()),
                    held => drop(held),
                });
            });
        }
    }
}
