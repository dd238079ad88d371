//! The part of `Queue` that is not Python: messages as bytes, waiting for one, waiting for room.

use crate::guarded::Guarded;
use crate::place::Place;
use crate::ring::{self, RingError};
use crate::segment::Segment;
use crate::wait::{self, Limit, Slices};
use lockstead::shared::raw::RawCondvar;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A queue's ring of messages, its mutex and its three conditions.
#[pyclass(frozen, subclass, module = "lockstead._lockstead")]
pub(crate) struct Ring {
    guarded: Guarded,
    /// Conditions: there is a message; there is room; all is done.
    conditions: [Place; 3],
    /// Used with the mutex only, so nobody ever waits for it.
    ring: Mutex<ring::Ring>,
}

fn refused(error: RingError) -> PyErr {
    match error {
        RingError::Io(error) => PyOSError::new_err((error.raw_os_error(), error.to_string())),
        RingError::Damaged => PyValueError::new_err(
            "the queue's file does not make sense: somebody has written over it; remove it, and make \
             the queue anew",
        ),
    }
}

impl Ring {
    fn condition(&self, which: usize) -> &RawCondvar {
        // SAFETY: PLACE-LOCK: `new` has asked for room for each, and Python's part passes their places.
        unsafe { self.conditions[which].at() }
    }

    fn repair(&self) {
        self.with(ring::Ring::repair);
    }

    /// Works on the ring, for who has the queue's mutex.
    fn with<T>(&self, work: impl FnOnce(&mut ring::Ring) -> T) -> T {
        work(&mut self.ring.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters the queue and waits until it is `ready`. Returns false if the time was over; then, and with
    /// an error, the caller has left the queue.
    fn when(
        &self,
        py: Python<'_>,
        which: usize,
        block: bool,
        limit: Limit,
        ready: impl Fn(&mut ring::Ring) -> bool,
    ) -> PyResult<bool> {
        let repair = || self.repair();
        // Who does not wait for the queue waits for the mutex all the same: others have it for moments.
        self.guarded.enter(py, None, &repair)?;
        let mut slices = Slices::new(limit);
        loop {
            if self.with(&ready) {
                return Ok(true);
            }
            if !block || slices.is_over() {
                self.guarded.leave();
                return Ok(false);
            }
            self.guarded.sleep(py, self.condition(which), &mut slices, &repair)?;
        }
    }
}

impl Ring {
    /// Waits until the queue is `ready`, and passes on the notification that it may have used.
    fn glance(
        &self,
        py: Python<'_>,
        which: usize,
        timeout: Option<&Bound<'_, PyAny>>,
        ready: impl Fn(&mut ring::Ring) -> bool,
    ) -> PyResult<bool> {
        let limit = wait::limit(wait::seconds(timeout)?);
        let is_ready = self.when(py, which, true, limit, ready)?;
        if is_ready {
            self.condition(which).notify_one();
            self.guarded.leave();
        }
        Ok(is_ready)
    }
}

#[pymethods]
impl Ring {
    /// Builds the queue. `fd` is the file of the items, which stays the caller's, `path` that of a queue with a name;
    /// neither: a new queue.
    #[new]
    #[pyo3(signature = (segment, mutex, conditions, *, most, fd = None, path = None, mode = 0o600))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        segment: &Segment,
        mutex: u64,
        conditions: [u64; 3],
        most: u64,
        fd: Option<i32>,
        path: Option<PathBuf>,
        mode: u32,
    ) -> PyResult<Ring> {
        let place = |offset| {
            Place::new(&segment.attached, offset, 8)
                .ok_or_else(|| PyValueError::new_err("offsets: those of a queue in the segment"))
        };
        let guarded = Guarded::new(place(mutex)?);
        let [items, room, done] = conditions;
        let conditions = [place(items)?, place(room)?, place(done)?];
        let io = |error: std::io::Error| refused(RingError::Io(error));
        let file = match (fd, path) {
            (None, None) => None,
            (Some(fd), _) => {
                // SAFETY: borrowed for this call; whether it is open the system says.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                Some(File::from(fd.try_clone_to_owned().map_err(io)?))
            }
            (None, Some(path)) => {
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true).truncate(false).mode(mode);
                Some(options.open(path).map_err(io)?)
            }
        };
        let ring = match file {
            None => ring::Ring::anonymous(most),
            Some(file) => {
                // Of several that come first, one makes it. Whoever dies there leaves it for the next.
                guarded.enter(py, None, &|| ())?;
                let mut ring = ring::Ring::open(file, most);
                // The one that died may have been at work on the ring, which was not there to be repaired.
                if let Ok(ring) = &mut ring {
                    ring.repair();
                }
                guarded.leave();
                ring
            }
        };
        let ring = Mutex::new(ring.map_err(refused)?);
        Ok(Ring { guarded, conditions, ring })
    }

    /// Puts a message, waiting for room if `block`, at most `timeout` seconds. Returns whether it did.
    #[pyo3(signature = (message, block, timeout))]
    fn put(
        &self,
        py: Python<'_>,
        message: &[u8],
        block: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let limit = wait::limit(wait::seconds(timeout)?);
        if !self.when(py, 1, block, limit, |ring| !ring.is_full())? {
            return Ok(false);
        }
        let put = self.with(|ring| ring.put(message));
        self.condition(0).notify_one();
        self.guarded.leave();
        put.map(|()| true).map_err(refused)
    }

    /// Takes a message, waiting for one if `block`, at most `timeout` seconds; else `None`.
    #[pyo3(signature = (block, timeout))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        block: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let limit = wait::limit(wait::seconds(timeout)?);
        if !self.when(py, 0, block, limit, |ring| ring.count() != 0)? {
            return Ok(None);
        }
        let taken = self.with(ring::Ring::take);
        self.condition(1).notify_one();
        self.guarded.leave();
        Ok(taken.map_err(refused)?.map(|message| PyBytes::new(py, &message)))
    }

    /// Waits until there is a message, at most `timeout` seconds, and takes none. Returns whether there is.
    #[pyo3(signature = (timeout = None))]
    fn wait_items(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.glance(py, 0, timeout, |ring| ring.count() != 0)
    }

    /// Waits until there is room, at most `timeout` seconds, and puts nothing. Returns whether there is.
    #[pyo3(signature = (timeout = None))]
    fn wait_room(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        self.glance(py, 1, timeout, |ring| !ring.is_full())
    }

    /// Returns how many messages there are.
    fn qsize(&self, py: Python<'_>) -> PyResult<u64> {
        self.guarded.enter(py, None, &|| self.repair())?;
        let count = self.with(|ring| ring.count());
        self.guarded.leave();
        Ok(count)
    }

    /// Returns how many messages there may be; 0: any number.
    fn most(&self) -> u64 {
        self.with(|ring| ring.most())
    }

    /// Declares a message done. Raises `ValueError` if all are.
    fn task_done(&self, py: Python<'_>) -> PyResult<()> {
        self.guarded.enter(py, None, &|| self.repair())?;
        let (done, left) = self.with(|ring| (ring.finish(), ring.unfinished()));
        if left == 0 {
            self.condition(2).notify_all();
        }
        self.guarded.leave();
        if done {
            return Ok(());
        }
        Err(PyValueError::new_err("task_done() called too many times"))
    }

    /// Waits until all messages are declared done, at most `timeout` seconds. Returns whether they are.
    #[pyo3(signature = (timeout = None))]
    fn join(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let limit = wait::limit(wait::seconds(timeout)?);
        let done = self.when(py, 2, true, limit, |ring| ring.unfinished() == 0)?;
        if done {
            self.guarded.leave();
        }
        Ok(done)
    }

    /// Returns the descriptor of the items' file, which stays the queue's.
    fn fileno(&self) -> i32 {
        self.with(|ring| ring.file().as_raw_fd())
    }

    #[getter]
    fn _segment(&self) -> Segment {
        Segment { attached: self.guarded.place().segment.clone() }
    }

    #[getter]
    fn _offsets(&self) -> (u64, [u64; 3]) {
        let [items, room, done] = &self.conditions;
        (self.guarded.place().offset, [items.offset, room.offset, done.offset])
    }
}
