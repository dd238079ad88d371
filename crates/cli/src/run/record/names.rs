//! Looks up what the numbers of a process mean that has ended, for its recording.

use super::drain::{Drained, SeenThread};
use super::file::open;
use super::lives::SeenLock;
use crate::recording::{
    Chunk, EncodedChunk, FrameNames, LockNames, ProcessNames, RecordingFile, StackFrames,
    ThreadFacts,
};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::Names;
use lockstead_inspect::report::names::{FIRST, type_name};
use lockstead_inspect::stack::Frame;
use lockstead_inspect::symbols::Symbolizer;
use lockstead_ledger::hello::LIBRARY;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

/// Writes the names of processes, and returns which threads have lost how many events.
pub(super) fn work(ended: &Receiver<Drained>, file: &Mutex<RecordingFile>) -> Vec<(String, u64)> {
    let mut losses = Vec::new();
    let mut names: Option<Symbolizer> = None;
    for drained in ended {
        let maps = drained.process.maps();
        let names = match &mut names {
            // What it has read of files serves for all processes.
            Some(names) => {
                names.update(maps);
                names
            }
            None => names.insert(Symbolizer::new(Modules::saved(maps))),
        };
        let table = describe(&drained, names);
        let program = drained.process.name();
        for thread in table.threads.iter().filter(|thread| thread.lost != 0) {
            let name = thread.name.as_deref().unwrap_or("without a name");
            losses.push((format!("thread {name} ({}) of {program}", thread.tid), thread.lost));
        }
        if table.without_ring != 0 {
            losses.push((format!("threads without a ring of {program}"), table.without_ring));
        }
        let table = EncodedChunk::new(&Chunk::Names(table));
        open(file).write(&table);
    }
    losses
}

fn describe(drained: &Drained, names: &mut Symbolizer) -> ProcessNames {
    let ledger = drained.process.ledger.view();
    let mut frames = Frames::default();
    let stacks = drained.stacks.iter().filter_map(|&stack| {
        let stored = ledger.stack(stack)?;
        let returns: Vec<u64> = stored.returns().collect();
        let walked = Names::stack(names, &returns, stored.end);
        let of_program = walked.frames.iter().filter(|frame| !is_ours(frame));
        let frames = of_program.map(|frame| frames.place(frame)).collect();
        Some(StackFrames { stack, frames })
    });
    let stacks = stacks.collect();
    let mut locks: Vec<LockNames> = drained
        .locks
        .iter()
        .map(|(&(lock, generation), seen)| LockNames {
            lock,
            generation,
            name: lock_name(seen, names),
            kind: type_name(seen.facts.kind, seen.facts.attributes),
            address: seen.facts.address,
        })
        .collect();
    locks.sort_by_key(|lock| (lock.lock, lock.generation));
    let threads = drained.threads.values().map(|seen| named(seen, drained, names)).collect();
    ProcessNames {
        process: drained.number,
        ended: drained.ended,
        threads,
        locks,
        stacks,
        frames: frames.list,
        without_ring: drained.without_ring,
    }
}

fn lock_name(seen: &SeenLock, names: &mut Symbolizer) -> String {
    let name = Names::lock(names, &seen.facts);
    if seen.may_be_later { format!("{name}, or an earlier lock at its address") } else { name }
}

fn named(seen: &SeenThread, drained: &Drained, names: &mut Symbolizer) -> ThreadFacts {
    let mut facts = seen.facts.clone();
    let start = || match seen.start {
        0 if seen.is_first => Some(FIRST.to_owned()),
        0 => drained.process.first_name.clone(),
        address => names.function(address),
    };
    facts.name = facts.name.take().or_else(start);
    facts
}

/// Tells whether a frame is that of the library, in which threads begin.
fn is_ours(frame: &Frame) -> bool {
    frame.module.as_deref().is_some_and(|module| module.ends_with(LIBRARY))
}

/// The frames of all stacks, each once.
#[derive(Default)]
struct Frames {
    list: Vec<FrameNames>,
    places: HashMap<FrameNames, u32>,
}

impl Frames {
    fn place(&mut self, frame: &Frame) -> u32 {
        let function = frame.function.clone();
        let named = FrameNames {
            name: function.unwrap_or_else(|| frame.site()),
            file: frame.file.clone(),
            line: frame.line.filter(|_| frame.file.is_some()),
            module: frame.module.clone(),
        };
        let next = self.list.len() as u32;
        *self.places.entry(named).or_insert_with_key(|named| {
            self.list.push(named.clone());
            next
        })
    }
}
