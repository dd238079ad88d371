//! What lies in the file of a recording.
//!
//! # Layout
//! [`MAGIC`], then [`VERSION`] as four bytes, then chunks one after the other. A chunk is the number
//! of its bytes, as four bytes, and a [`Chunk`] in the encoding of
//! [postcard](https://postcard.jamesmunns.com/wire-format). Numbers of more than one byte outside
//! of chunks have their lowest byte first. `docs/record.md` has the fields.
//!
//! The first chunk is [`Chunk::Begin`], the last one [`Chunk::End`]: a file without it was cut off.
//! Of each process there is [`Chunk::Process`], then its events and samples, as they came, and, when
//! it has ended, [`Chunk::Names`], which says what their numbers mean.

use lockstead_ledger::events::{Event, EventKind};
use serde::{Deserialize, Serialize};

/// What every recording begins with.
pub(crate) const MAGIC: [u8; 8] = *b"lsEvents";

/// The version of the format. A reader reads its own only.
pub(crate) const VERSION: u32 = 1;

/// The most bytes of a chunk.
pub(crate) const LONGEST: u32 = 1 << 28;

/// How a wait ended that lasted when its process ended, beside those of the ledger's
/// [`ending`](lockstead_ledger::events::ending).
pub(crate) const UNFINISHED: u8 = 15;

/// A part of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Chunk {
    /// The run that was recorded.
    Begin(RecordedRun),
    /// A process that has begun.
    Process(ProcessFacts),
    /// Events of one thread, in their order.
    Events(ThreadEvents),
    /// What looks at the holders of locks have met.
    Samples(ProcessSamples),
    /// What the numbers of a process mean.
    Names(ProcessNames),
    /// The end of the file.
    End(RecordedTotals),
}

/// The run of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedRun {
    /// The version of lockstead.
    pub(crate) lockstead: String,
    /// The command that was run.
    pub(crate) command: Vec<String>,
    /// The time of `CLOCK_MONOTONIC` at which it began, in nanoseconds, as are all times.
    pub(crate) began: u64,
    /// The same moment as the time since 1970.
    pub(crate) date: u64,
}

/// A process of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessFacts {
    /// Its number in this file, from 0.
    pub(crate) process: u32,
    /// The kernel's number of the process.
    pub(crate) pid: u32,
    /// The file that it runs.
    pub(crate) program: String,
    /// The time at which it began.
    pub(crate) began: u64,
}

/// Some events of one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadEvents {
    /// The number of the process.
    pub(crate) process: u32,
    /// The serial number of the thread in its process.
    pub(crate) thread: u32,
    /// The time that the first event counts from.
    pub(crate) from: u64,
    /// The events in their order.
    pub(crate) events: Vec<PackedEvent>,
}

/// An event, of a thread that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedEvent {
    /// The number of its kind.
    pub(crate) kind: u8,
    /// The way of the wait or the facts of the hold, as [`Event::how`].
    pub(crate) how: u8,
    /// How a wait ended.
    pub(crate) ending: u8,
    /// The low bits of the lock's generation.
    pub(crate) generation: u8,
    /// The time from the end of the event before to the end of this one.
    pub(crate) after: i64,
    /// How long it lasted.
    pub(crate) lasted: u64,
    /// The index of the lock.
    pub(crate) lock: u32,
    /// The id of the stack.
    pub(crate) stack: u32,
}

impl PackedEvent {
    /// Packs an event behind one that ended at `last`, and returns when this one ended.
    pub(crate) fn pack(event: &Event, last: u64) -> (PackedEvent, u64) {
        let end = event.began.wrapping_add(event.lasted);
        let packed = PackedEvent {
            kind: event.kind as u8,
            how: event.how,
            ending: event.ending,
            generation: event.generation,
            after: end.wrapping_sub(last).cast_signed(),
            lasted: event.lasted,
            lock: event.lock,
            stack: event.stack,
        };
        (packed, end)
    }

    /// Returns the event of this thread, behind one that ended at `last`. `None` if its kind is none,
    /// or it lasted longer than an event can say.
    pub(crate) fn unpack(&self, thread: u32, last: u64) -> Option<Event> {
        let kind = match self.kind {
            1 => EventKind::Wait,
            2 => EventKind::Hold,
            3 => EventKind::Wake,
            _ => return None,
        };
        if self.lasted > Event::LONGEST {
            return None;
        }
        let end = last.wrapping_add(self.after.cast_unsigned());
        Some(Event {
            kind,
            began: end.wrapping_sub(self.lasted),
            lasted: self.lasted,
            how: self.how,
            ending: self.ending,
            lock: self.lock,
            generation: self.generation,
            stack: self.stack,
            thread,
            tid: 0,
        })
    }
}

/// Some samples of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessSamples {
    /// The number of the process.
    pub(crate) process: u32,
    /// The samples in their order.
    pub(crate) samples: Vec<HolderSample>,
}

/// What a look at the holder of a lock has met, while others waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HolderSample {
    /// The time of the look.
    pub(crate) at: u64,
    /// The kernel's number of the holder.
    pub(crate) tid: u32,
    /// The index of the lock.
    pub(crate) lock: u32,
    /// The low bits of the lock's generation.
    pub(crate) generation: u8,
    /// What the holder did.
    pub(crate) doing: HolderDoing,
}

/// What the holder of a lock does at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HolderDoing {
    /// It has a processor.
    Runs,
    /// It could run, and has no processor.
    LacksProcessor,
    /// It sleeps in the system call with this number.
    Sleeps(i64),
    /// It waits for something that the ledger knows.
    Waits,
    /// It is stopped by a signal or a debugger.
    Stopped,
}

/// What the numbers of a process mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessNames {
    /// The number of the process.
    pub(crate) process: u32,
    /// The time at which it ended, or was last looked at.
    pub(crate) ended: u64,
    /// The threads that left events.
    pub(crate) threads: Vec<ThreadFacts>,
    /// The locks of the events.
    pub(crate) locks: Vec<LockNames>,
    /// The stacks of the events.
    pub(crate) stacks: Vec<StackFrames>,
    /// The frames of the stacks, each once.
    pub(crate) frames: Vec<FrameNames>,
    /// Events of threads for which there was no ring.
    pub(crate) without_ring: u64,
}

/// A thread of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadFacts {
    /// Its number among all that the process ever had.
    pub(crate) thread: u32,
    /// The kernel's number of the thread.
    pub(crate) tid: u32,
    /// What it is called, or the function that it began with.
    pub(crate) name: Option<String>,
    /// The time at which it was created.
    pub(crate) began: u64,
    /// The time at which it ended, if that was seen.
    pub(crate) ended: Option<u64>,
    /// The serial number of the thread that created it; 0: unknown.
    pub(crate) creator: u32,
    /// Events that found no room in its ring.
    pub(crate) lost: u64,
    /// Events that found no room in this file.
    pub(crate) cut: u64,
}

/// A lock of a recording, for one of its lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LockNames {
    /// The index in the events.
    pub(crate) lock: u32,
    /// The generation in the events.
    pub(crate) generation: u8,
    /// What it is called.
    pub(crate) name: String,
    /// What it is: `recursive mutex`.
    pub(crate) kind: String,
    /// The address at which it lay.
    pub(crate) address: u64,
}

/// A stack of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StackFrames {
    /// The id in the events.
    pub(crate) stack: u32,
    /// Places in the list of frames, innermost first.
    pub(crate) frames: Vec<u32>,
}

/// One frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FrameNames {
    /// The function, or what is known instead: `libfoo.so+0x12`.
    pub(crate) name: String,
    /// The path of the source file.
    pub(crate) file: Option<String>,
    /// The number of the line in `file`.
    pub(crate) line: Option<u32>,
    /// The program or library that has the function.
    pub(crate) module: Option<String>,
}

/// What a recording came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedTotals {
    /// The number of events in the file.
    pub(crate) events: u64,
    /// The number of events that found no room in the rings of their threads, or had none.
    pub(crate) lost: u64,
    /// The number of events that found no room in the file.
    pub(crate) cut: u64,
}
