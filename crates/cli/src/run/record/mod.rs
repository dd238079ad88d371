//! `--record`: takes the events of the processes out of their rings, as they run, and writes them to
//! a file.
//!
//! # Role
//! Two threads beside the one that watches. One empties the rings, again and again, and writes what
//! it finds. The other one looks up the names of processes that have ended; the first waits for it
//! only while it writes what is encoded already. Rings are emptied more often the fuller they were.
//!
//! # Cost
//! While no ring has anything, three loads a ring each [`SLOWEST`].

mod drain;
mod file;
mod flags;
mod lives;
mod names;

pub(super) use flags::RecordFlags;

use super::pace;
use super::processes::Observed;
use crate::clock;
use crate::recording::{Chunk, EncodedChunk, RecordedRun, RecordingFile, Written};
use drain::Drained;
use file::SharedFile;
use lockstead_render::failure::Failure;
use lockstead_render::table::count;
use lockstead_render::words::{clean, plural};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

/// The longest time between two looks at the rings.
const SLOWEST: Duration = Duration::from_millis(8);
/// The shortest time between two looks at the rings.
const FASTEST: Duration = Duration::from_micros(250);

/// The threads with the most losses that are named.
const NAMED: usize = 3;

/// What the supervisor tells.
enum Told {
    Began(Arc<Observed>),
    Ended(Arc<Observed>),
}

/// The events of a run on their way to a file.
pub(super) struct Recorder {
    path: PathBuf,
    to: Sender<Told>,
    thread: JoinHandle<io::Result<RecordingOutcome>>,
}

/// A recording before the program runs.
pub(super) struct BegunRecording {
    path: PathBuf,
    file: RecordingFile,
}

/// Creates the file in which a run of this command is to be recorded, if it is.
///
/// # Errors
/// The file cannot be written.
pub(super) fn begin(
    flags: &RecordFlags,
    command: &[OsString],
) -> Result<Option<BegunRecording>, Failure> {
    let Some(path) = flags.file.clone() else { return Ok(None) };
    let created = RecordingFile::create(&path, flags.limit);
    let mut file = created.map_err(|e| Failure::option("--record", path.display(), e))?;
    let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    file.write(&EncodedChunk::new(&Chunk::Begin(RecordedRun {
        lockstead: env!("CARGO_PKG_VERSION").into(),
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        began: clock::now(),
        date: u64::try_from(date.as_nanos()).unwrap_or(u64::MAX),
    })));
    Ok(Some(BegunRecording { path, file }))
}

/// What a recording came to.
struct RecordingOutcome {
    written: Written,
    /// The threads that have lost events, and how many.
    losses: Vec<(String, u64)>,
}

impl Recorder {
    /// Starts the threads that record.
    pub(super) fn start(begun: BegunRecording) -> Recorder {
        let BegunRecording { path, file } = begun;
        let (to, told) = mpsc::channel();
        let thread = thread::spawn(move || work(&told, file));
        Recorder { path, to, thread }
    }

    /// Records a process from now on.
    pub(super) fn begin(&self, process: &Arc<Observed>) {
        process.is_recorded.store(true, Relaxed);
        // The thread ends only after the sender.
        let _ = self.to.send(Told::Began(process.clone()));
    }

    /// Takes the rest of a process of which nothing more is to be seen.
    pub(super) fn end(&self, process: &Arc<Observed>) {
        let _ = self.to.send(Told::Ended(process.clone()));
    }

    /// Waits until all is written, and returns what to say of it.
    ///
    /// # Errors
    /// What could not be written, in words.
    pub(super) fn finish(self) -> Result<String, String> {
        let Recorder { path, to, thread } = self;
        drop(to);
        let path = path.display();
        let outcome = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")));
        let outcome = outcome.map_err(|error| format!("cannot write {path}: {error}"))?;
        Ok(format!("recorded {} in {path}{}", outcome.events(), outcome.lost()))
    }
}

impl RecordingOutcome {
    fn events(&self) -> String {
        let Written { totals, bytes } = self.written;
        let megabytes = bytes as f64 / 1e6;
        format!("{} ({megabytes:.1} MB)", plural(totals.events, "event", "events"))
    }

    /// Returns what is missing, in words.
    fn lost(&self) -> String {
        let totals = self.written.totals;
        let mut text = format!(", lost {}", count(totals.lost as f64));
        if !self.losses.is_empty() {
            let named = self.losses.iter().take(NAMED);
            let named: Vec<_> =
                named.map(|(name, lost)| format!("{name}: {}", count(*lost as f64))).collect();
            let more = self.losses.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(", {more} more threads") };
            text += &format!(" ({}{more})", named.join(", "));
        }
        if totals.cut != 0 {
            text += &format!(
                "; {} more had no room in the file, see --record-limit",
                count(totals.cut as f64)
            );
        }
        text
    }
}

fn work(told: &Receiver<Told>, file: RecordingFile) -> io::Result<RecordingOutcome> {
    pace::wake_soon();
    let file: SharedFile = Arc::new(Mutex::new(file));
    let (to_names, ended) = mpsc::channel();
    let namer = {
        let file = file.clone();
        thread::spawn(move || names::work(&ended, &file))
    };
    let mut live: Vec<Drained> = Vec::new();
    let mut count = 0;
    let mut pause = FASTEST;
    loop {
        let news = if live.is_empty() {
            told.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            told.recv_timeout(pause)
        };
        match news {
            Ok(Told::Began(process)) => {
                live.push(Drained::new(process, count, &file));
                count += 1;
            }
            Ok(Told::Ended(process)) => {
                let at = live.iter().position(|drained| drained.is_of(&process));
                if let Some(at) = at {
                    let mut drained = live.swap_remove(at);
                    drained.finish(&file);
                    // The thread ends only after the sender.
                    let _ = to_names.send(drained);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let fullest = live.iter_mut().map(|drained| drained.drain(&file)).max().unwrap_or(0);
        pause = match fullest {
            17.. => FASTEST,
            5..=16 => (pause / 2).max(FASTEST),
            0 => (pause * 2).min(SLOWEST),
            1..=4 => pause,
        };
    }
    for mut drained in live {
        drained.finish(&file);
        let _ = to_names.send(drained);
    }
    drop(to_names);
    let mut losses: Vec<(String, u64)> =
        namer.join().map_err(|_| io::Error::other("a thread failed"))?;
    losses.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let losses = losses.into_iter().map(|(name, count)| (clean(&name), count)).collect();
    let file = Arc::into_inner(file).ok_or_else(|| io::Error::other("the file is in use"))?;
    let file = file.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(RecordingOutcome { written: file.finish()?, losses })
}
