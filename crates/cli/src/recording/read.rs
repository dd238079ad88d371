//! Reads the file of a recording.

use super::format::{
    Chunk, HolderSample, LONGEST, MAGIC, ProcessFacts, ProcessNames, RecordedRun, RecordedTotals,
    UNFINISHED, VERSION,
};
use lockstead_ledger::events::Event;
use lockstead_render::failure::Failure;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

/// A recording that was read.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The run that was recorded.
    pub(crate) run: RecordedRun,
    /// Its processes, in the order in which they began.
    pub(crate) processes: Vec<RecordedProcess>,
    /// What it came to.
    pub(crate) totals: RecordedTotals,
}

/// A process of a recording.
#[derive(Debug)]
pub(crate) struct RecordedProcess {
    /// What is known of it.
    pub(crate) facts: ProcessFacts,
    /// What its numbers mean.
    pub(crate) names: ProcessNames,
    /// Its events, in the order in which they began.
    pub(crate) events: Vec<Event>,
    /// What looks at the holders of its locks have met.
    pub(crate) samples: Vec<HolderSample>,
}

/// Why a file is no recording that can be read.
enum Unreadable {
    System(io::Error),
    Other,
    Version(u32),
    Cut,
    Damaged(u64),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Unreadable::Cut,
            _ => Unreadable::System(error),
        }
    }
}

/// Reads a whole recording into memory; an event takes some 60 bytes there.
///
/// # Errors
/// The file cannot be read, is no recording, was cut off or damaged, or another version of
/// lockstead has written it.
pub(crate) fn read(path: &Path) -> Result<Recording, Failure> {
    let name = path.display();
    read_all(path).map_err(|why| {
        Failure::Run(match why {
            Unreadable::System(error) => format!("cannot read {name}: {error}"),
            Unreadable::Other => {
                format!("{name} is no recording of `lockstead run --record FILE`")
            }
            Unreadable::Version(found) => format!(
                "{name} is a recording of version {found}, this command reads version {VERSION}: \
                 use the lockstead that has recorded it"
            ),
            Unreadable::Cut => format!(
                "{name} is cut off: the command that recorded it was killed, or the file is not \
                 whole"
            ),
            Unreadable::Damaged(at) => format!("{name} is damaged: byte {at} cannot be right"),
        })
    })
}

fn read_all(path: &Path) -> Result<Recording, Unreadable> {
    let mut from = BufReader::with_capacity(1 << 18, File::open(path)?);
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => Unreadable::Other,
        _ => Unreadable::System(error),
    })?;
    if magic != MAGIC {
        return Err(Unreadable::Other);
    }
    let mut number = [0; 4];
    from.read_exact(&mut number)?;
    let version = u32::from_le_bytes(number);
    if version != VERSION {
        return Err(Unreadable::Version(version));
    }
    let mut at = (MAGIC.len() + number.len()) as u64;
    let mut run = None;
    let mut processes: Vec<RecordedProcess> = Vec::new();
    let mut bytes = Vec::new();
    loop {
        from.read_exact(&mut number)?;
        let length = u32::from_le_bytes(number);
        let damaged = || Unreadable::Damaged(at);
        if length > LONGEST {
            return Err(damaged());
        }
        bytes.clear();
        // Not made as long as is said before it is known that the file has so much.
        if (&mut from).take(length.into()).read_to_end(&mut bytes)? < length as usize {
            return Err(Unreadable::Cut);
        }
        let (chunk, rest) = postcard::take_from_bytes(&bytes).map_err(|_| damaged())?;
        let known = |process: u32| processes.get(process as usize).map(|_| process as usize);
        let process = match &chunk {
            Chunk::Begin(_) | Chunk::Process(_) | Chunk::End(_) => 0,
            Chunk::Events(events) => known(events.process).ok_or_else(damaged)?,
            Chunk::Samples(samples) => known(samples.process).ok_or_else(damaged)?,
            Chunk::Names(names) => known(names.process).ok_or_else(damaged)?,
        };
        if !rest.is_empty() || run.is_none() != matches!(chunk, Chunk::Begin(_)) {
            return Err(damaged());
        }
        at += u64::from(length) + number.len() as u64;
        match chunk {
            Chunk::Begin(begin) => run = Some(begin),
            Chunk::Process(facts) if facts.process as usize == processes.len() => {
                processes.push(RecordedProcess {
                    facts,
                    names: ProcessNames::default(),
                    events: Vec::new(),
                    samples: Vec::new(),
                });
            }
            Chunk::Process(_) => return Err(Unreadable::Damaged(at)),
            Chunk::Events(some) => {
                let mut last = some.from;
                for packed in &some.events {
                    let event = packed.unpack(some.thread, last);
                    let event = event.ok_or(Unreadable::Damaged(at))?;
                    last = event.began.wrapping_add(event.lasted);
                    processes[process].events.push(event);
                }
            }
            Chunk::Samples(some) => processes[process].samples.extend(some.samples),
            Chunk::Names(names) => processes[process].names = names,
            Chunk::End(totals) => {
                if from.read(&mut [0])? != 0 {
                    return Err(Unreadable::Damaged(at));
                }
                let Some(run) = run else { return Err(Unreadable::Damaged(at)) };
                end_before_successors(&mut processes);
                for process in &mut processes {
                    process.events.sort_by_key(|event| (event.began, event.lasted));
                }
                return Ok(Recording { run, processes, totals });
            }
        }
    }
}

/// Ends each process that became another program when that began: that it had ended was seen only
/// afterwards.
fn end_before_successors(processes: &mut [RecordedProcess]) {
    let mut successors: HashMap<u32, u64> = HashMap::new();
    for process in processes.iter_mut().rev() {
        // Of the process itself it is known when the command was told of it.
        let threads = process.names.threads.iter().map(|thread| thread.began);
        let began = threads.filter(|&began| began != 0).fold(process.facts.began, u64::min);
        let Some(latest) = successors.insert(process.facts.pid, began) else {
            continue;
        };
        process.names.ended = process.names.ended.min(latest);
        for thread in &mut process.names.threads {
            thread.ended = thread.ended.map(|ended| ended.min(latest));
        }
        for event in process.events.iter_mut().filter(|event| event.ending == UNFINISHED) {
            event.lasted = event.lasted.min(latest.saturating_sub(event.began));
        }
    }
}
