//! How a worker process begins: it finds the kind of its job in a list, and does it.

use super::process::{END, HandedFiles, MARKER, WorkerJob};
use super::{containers, contended, dead, storm};
use crate::Error;
use std::process::ExitCode;

/// Does a worker's job if this process was started as one, and says how it
/// ends; `None` in any other process. To be called first thing in `main`.
#[must_use]
pub fn serve() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()?.as_encoded_bytes() != MARKER.to_bytes() {
        return None;
    }
    // Not that of the link by which it was started.
    // SAFETY: prctl reads a constant string, which ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"lockstead".as_ptr()) };
    let (name, job) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    if name.as_encoded_bytes() == END.to_bytes() {
        return Some(ExitCode::from(storm::EXECUTED));
    }
    let work = match name.to_str() {
        Some(contended::ContendedPart::NAME) => work::<contended::ContendedPart>,
        Some(storm::StormPart::NAME) => work::<storm::StormPart>,
        Some(dead::DeadPart::NAME) => work::<dead::DeadPart>,
        Some(containers::ContainerPart::NAME) => work::<containers::ContainerPart>,
        _ => no_job,
    };
    Some(match work(job.as_encoded_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockstead: a worker process: {error}");
            ExitCode::FAILURE
        }
    })
}

fn work<J: WorkerJob>(job: &[u8]) -> Result<(), Error> {
    let told = |error| Error::Worker { how: format!("it was told nothing: {error}") };
    serde_json::from_slice::<J>(job).map_err(told)?.work(HandedFiles::handed_on())
}

fn no_job(_: &[u8]) -> Result<(), Error> {
    Err(Error::Worker { how: "it was told nothing: no job has this name".into() })
}
