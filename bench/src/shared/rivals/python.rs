//! `multiprocessing.Lock`, tried by a program of Python's own.

use super::row::RivalRow;
use super::trials::AfterKill;
use crate::{Error, Session};
use serde::Deserialize;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(super) const NAME: &str = "multiprocessing.Lock";

/// The program that tries it, and prints [`PythonTold`].
const PROGRAM: &str = include_str!("python.py");

/// All of it takes some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program prints.
#[derive(Deserialize)]
struct PythonTold {
    version: String,
    pair_ns: f64,
    after_kill: AfterKill,
    known_ms: Option<f64>,
    excludes_threads: bool,
    survives_child: bool,
}

/// Returns the row, or why there is none.
pub(super) fn row(ours_ns: f64, session: &Session<'_>) -> Result<Result<RivalRow, String>, Error> {
    let started = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err("there is no python3 in PATH".into()));
        }
        Err(source) => return Err(Error::Process { what: "cannot start python3", source }),
    };
    let ended = await_end(&mut child, session);
    if !matches!(ended, Ok(true)) {
        // It may have ended by itself in this moment.
        let _ = child.kill();
    }
    let said = child.wait_with_output();
    if !ended? {
        return Ok(Err(format!("python3 did not end within {} s", PATIENCE.as_secs())));
    }
    let said = said.map_err(|source| Error::Process { what: "cannot wait for python3", source })?;
    if !said.status.success() {
        let text = String::from_utf8_lossy(&said.stderr);
        let last = text.lines().last().unwrap_or("it said nothing");
        return Ok(Err(format!("python3 ended with {}: {last}", said.status)));
    }
    Ok(match serde_json::from_slice::<PythonTold>(&said.stdout) {
        Ok(told) => Ok(told.row(ours_ns)),
        Err(error) => Err(format!("what python3 printed is not understood: {error}")),
    })
}

/// Tells whether it ended in time.
fn await_end(child: &mut Child, session: &Session<'_>) -> Result<bool, Error> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(true),
            Ok(None) if session.stopped() => return Err(Error::Interrupted),
            Ok(None) if begin.elapsed() > PATIENCE => return Ok(false),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(source) => {
                return Err(Error::Process { what: "cannot wait for python3", source });
            }
        }
    }
}

impl PythonTold {
    fn row(self, ours_ns: f64) -> RivalRow {
        RivalRow {
            version: Some(self.version),
            after_kill: self.after_kill,
            known_ms: self.known_ms,
            excludes_threads: Some(self.excludes_threads),
            survives_child: Some(self.survives_child),
            ..RivalRow::new(NAME, self.pair_ns, self.pair_ns / ours_ns)
        }
    }
}
