//! What a worker process is to do, and its beginning.

use super::process::FIRST_FILE;
use super::{containers, contended, dead, storm};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;

/// The first argument of a worker. Not an option for users: without the files
/// that the parent hands on a worker can do nothing.
pub(in crate::shared) const MARKER: &CStr = c"--lockstead-bench-worker";

/// The second argument, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Job {
    /// One party of a contended lock.
    Contended(contended::Part),
    /// One of those that a storm kills.
    Storm(storm::Part),
    /// Ends at once: what workers of a storm become that call `exec`.
    End,
    /// Takes very many locks and keeps them.
    Dead(dead::Part),
    /// Process 1 of a container.
    Container(containers::Part),
}

impl Job {
    pub(super) fn to_argument(&self) -> CString {
        let text = serde_json::to_string(self).expect("plain fields");
        CString::new(text).expect("JSON has no zero bytes")
    }
}

/// The descriptors that the parent has handed on, in its order.
pub(super) struct Files {
    next: i32,
}

impl Files {
    pub(super) fn next(&mut self) -> OwnedFd {
        let file = self.next;
        self.next += 1;
        // SAFETY: the parent put it there, each is given out once, and nothing
        // else in this process has opened or closed anything before.
        unsafe { OwnedFd::from_raw_fd(file) }
    }
}

/// Does a worker's job if this process was started as one, and says how it
/// ends; `None` in any other process. To be called first thing in `main`.
#[must_use]
pub fn serve() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()?.as_encoded_bytes() != MARKER.to_bytes() {
        return None;
    }
    // Not that of the link by which it was started.
    // SAFETY: a string constant.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lockstead".as_ptr()) };
    let job = arguments.next().unwrap_or_default();
    let outcome = match serde_json::from_slice(job.as_encoded_bytes()) {
        Ok(Job::End) => return Some(ExitCode::from(storm::EXECUTED)),
        Ok(job) => work(job),
        Err(error) => Err(Error::Worker { how: format!("it was told nothing: {error}") }),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstead: a worker process: {error}");
            ExitCode::FAILURE
        }
    })
}

fn work(job: Job) -> Result<(), Error> {
    let files = Files { next: FIRST_FILE };
    match job {
        Job::Contended(part) => contended::work(part, files),
        Job::Storm(part) => {
            let handed = storm::Handed::from_parent(&part, files);
            storm::work(part, handed)
        }
        Job::End => Ok(()),
        Job::Dead(part) => dead::work(part, files),
        Job::Container(part) => containers::work(part, files),
    }
}
