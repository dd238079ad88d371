//! The report as data: what the text, the JSON and the HTML are made from.
//!
//! The JSON is these structs as they stand; `docs/json.md` has its fields, and
//! a change of their meaning raises [`VERSION`].

use super::finding::Finding;
use super::semaphores::model::Semaphores;
use crate::check::order::Recorded;
use crate::stack::Stack;
use serde::Serialize;

pub use super::site::{Caller, Site};

/// What `schema` says in a report of `lockstead run`.
pub const SCHEMA: &str = "lockstead-run";

/// Version of the fields.
pub const VERSION: u32 = 2;

/// In which order locks stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Longest total waiting first.
    #[default]
    Wait,
    /// Longest single wait first.
    MaxWait,
    /// Longest total holding first.
    Hold,
    /// Most acquisitions first.
    Acquisitions,
    /// Most acquisitions that found the lock taken first.
    Contended,
    /// The worst by waiting, in the order of their names.
    Name,
}

impl Sort {
    /// All orders, as they are listed.
    pub const ALL: [Sort; 6] =
        [Sort::Wait, Sort::MaxWait, Sort::Hold, Sort::Acquisitions, Sort::Contended, Sort::Name];

    /// The order with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Sort> {
        Sort::ALL.into_iter().find(|sort| sort.name() == name)
    }

    /// Its name, as in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.text()[0]
    }

    /// What it is for, as the help says it.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.text()[1]
    }

    /// What the locks are listed by, in a heading: `total waiting`.
    #[must_use]
    pub fn words(self) -> &'static str {
        self.text()[2]
    }

    fn text(self) -> [&'static str; 3] {
        match self {
            Sort::Wait => ["wait", "Total time of waiting", "total waiting"],
            Sort::MaxWait => ["max-wait", "Longest single wait", "longest wait"],
            Sort::Hold => ["hold", "Total time of holding", "total holding"],
            Sort::Acquisitions => ["acquisitions", "Number of acquisitions", "acquisitions"],
            Sort::Contended => [
                "contended",
                "Number of acquisitions that found the lock taken",
                "contended acquisitions",
            ],
            Sort::Name => [
                "name",
                "The worst by waiting, in the order of their names",
                "total waiting, ordered by name",
            ],
        }
    }
}

/// Everything that `lockstead run` has to say when the program has ended.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// Version of lockstead.
    pub lockstead: &'static str,
    /// What was run.
    pub command: Vec<String>,
    /// From the start of the command to its end.
    pub wall_ns: u64,
    /// On how many processors the command could run, and so the program; 0: unknown.
    pub processors: u64,
    /// Processor time of the program, and of its children that somebody waited for; 0: unknown.
    pub cpu_ns: u64,
    /// The order of `processes[].locks`.
    pub sort: Sort,
    /// The most locks listed for a process.
    pub top: usize,
    /// Whether a row stands for all locks of one origin.
    pub by_class: bool,
    /// Processes that used a lock, those that waited most first.
    pub processes: Vec<ProcessReport>,
    /// Processes that used none.
    pub silent_processes: u64,
    /// Whether the order of locks and the rules of their use were checked.
    pub checked: bool,
    /// What was reported while the program ran.
    pub findings: Vec<Finding>,
    /// Which semaphores could be mutexes, with `--semaphores`.
    pub semaphores: Option<Semaphores>,
    /// Waits that no ledger has.
    pub glimpses: Vec<Glimpse>,
}

/// A wait that only the kernel told of, when it was asked now and then: for the lock of a file, a
/// semaphore of System V, a pipe, a futex word of another library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Glimpse {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// The thread, by the kernel's number.
    pub tid: u32,
    /// What it waited for, and who had that: `for the lock of /run/app.lock (flock) (held by ..)`.
    pub what: String,
    /// How long, at least.
    pub waited_ns: u64,
    /// It had ended when the process was last looked at, or the process then ended by itself.
    pub ended: bool,
}

/// One process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// Its id, in the command's namespace.
    pub pid: u32,
    /// Its parent, when that is known.
    pub parent: Option<u32>,
    /// The file it ran.
    pub exe: Option<String>,
    /// Its arguments.
    pub command: Vec<String>,
    /// How it ended: `exit status 0`, `killed by SIGKILL`.
    pub exit: Option<String>,
    /// From the first to the last that was seen of it.
    pub lived_ns: u64,
    /// Its threads.
    pub threads: Threads,
    /// Which part of time was spent waiting.
    pub waiting: Waiting,
    /// Sums over all locks, conditions and the like not included.
    pub totals: Totals,
    /// The worst locks.
    pub locks: Vec<LockReport>,
    /// All other locks together.
    pub more: Totals,
    /// Where threads waited for work, not for a lock: conditions, semaphores,
    /// barriers; the longest first.
    pub idle: Vec<LockReport>,
    /// All others of these together.
    pub more_idle: Totals,
    /// What could not be recorded.
    pub losses: Losses,
    /// In which order its locks were taken, if that was checked and asked for.
    pub order: Option<Recorded>,
}

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Locks that were used.
    pub locks: u64,
    /// Acquisitions.
    pub acquisitions: u64,
    /// Acquisitions that found the lock taken.
    pub contended: u64,
    /// Time of waiting for them.
    pub waited_ns: u64,
    /// Waits that had not ended when the process did.
    pub still_waiting: u64,
}

/// Which part of the time of a process's threads was spent waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waiting {
    /// The time that all threads lived, added up.
    pub thread_ns: u64,
    /// The part of it spent waiting for locks.
    pub waited_ns: u64,
    /// `waited_ns` over `thread_ns`.
    pub waited_percent: f64,
    /// `waited_ns` over the time that the process lived: how many threads
    /// waited for locks at a time, on average.
    pub waiting_threads: f64,
    /// The part of `thread_ns` spent waiting for conditions, semaphores,
    /// barriers and the end of threads.
    pub idled_ns: u64,
    /// `idled_ns` over `thread_ns`.
    pub idled_percent: f64,
    /// Processor time of the process while it was this program; `None` where nobody has looked.
    pub ran_ns: Option<u64>,
}

/// The threads of a process.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Threads {
    /// Threads that ran.
    pub created: u64,
    /// The most at the same time; at least that many, if more than 64 had ended
    /// before others began.
    pub peak: u64,
    /// Those that waited longest for locks.
    pub worst: Vec<ThreadReport>,
}

/// One thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadReport {
    /// The kernel's id, in the process's namespace.
    pub tid: u32,
    /// Its name as the kernel has it.
    pub name: Option<String>,
    /// The function it began with.
    pub start: Option<String>,
    /// How long it ran.
    pub lived_ns: u64,
    /// How long it waited for locks.
    pub waited_ns: u64,
    /// How long it waited for other things.
    pub idled_ns: u64,
    /// Its acquisitions.
    pub acquisitions: u64,
    /// Those that found the lock taken.
    pub contended: u64,
    /// It was waiting for a lock when the process ended.
    pub stuck: bool,
}

/// One lock, or several of one origin.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LockReport {
    /// What it is called.
    pub name: String,
    /// `mutex`, `rwlock`, `spin`, `semaphore`, `condition`, `barrier`,
    /// `unknown`.
    pub kind: &'static str,
    /// Attributes that differ from the default.
    pub attributes: Vec<&'static str>,
    /// Kind and attributes as a reader would say them.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Of a condition that serves as a lock: what the mutex is called that it does so with.
    pub mutex: Option<String>,
    /// Its address; `null` for several.
    pub address: Option<u64>,
    /// How many locks this stands for.
    pub locks: u64,
    /// `live`, `destroyed`, `several destroyed`, or `several` of one origin.
    pub life: &'static str,
    /// Acquisitions.
    pub acquisitions: u64,
    /// Those that found the lock taken.
    pub contended: u64,
    /// `contended` over `acquisitions`.
    pub contended_percent: f64,
    /// Waits that gave up at a deadline.
    pub timed_out: u64,
    /// Trylocks that found the lock taken.
    pub refused: u64,
    /// Its part in the waiting for all locks of the process.
    pub share_percent: f64,
    /// Threads that waited for it when the process ended; their waits up to
    /// then are part of `wait`.
    pub still_waiting: u64,
    /// Threads that held it when the process ended; that time is part of `hold`,
    /// if it was long enough to be known.
    pub still_held: u64,
    /// Times of waiting, exact.
    pub wait: Durations,
    /// Times of holding, partly sampled.
    pub hold: Durations,
    /// Where it was waited, the longest first.
    pub waited_at: Vec<Site>,
    /// Where those that held it had acquired it, the longest first.
    pub held_at: Vec<Site>,
    /// Where it was initialised.
    pub initialised_at: Option<Stack>,
}

/// Many durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The median, to within its power of two.
    pub p50_ns: u64,
    /// The 99th percentile, likewise.
    pub p99_ns: u64,
    /// The longest of those that were timed, or are known to a few milliseconds.
    pub max_ns: u64,
    /// Where the longest was.
    pub max_at: Option<String>,
    /// From the first to the last power of two that occurred.
    pub histogram: Vec<Bucket>,
    /// How many of them were timed. The others are counted by those.
    pub timed: u64,
    /// The part of `total_ns` that stands for those that were not.
    pub scaled_ns: u64,
    /// Those whose beginning is known to a few milliseconds only.
    pub coarse: u64,
    /// The part of `total_ns` that they have.
    pub coarse_ns: u64,
}

/// Durations of one power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The shortest that falls into it; the next bucket begins at the double.
    pub from_ns: u64,
    /// How many did.
    pub count: u64,
}

/// What could not be recorded; all zero normally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Locks without a record.
    pub locks: u64,
    /// Locks whose statistics found no room.
    pub statistics: u64,
    /// Stacks that found no room.
    pub stacks: u64,
    /// Threads without a record.
    pub threads: u64,
    /// Modules without a record: their code has no names.
    pub modules: u64,
    /// Acquisitions of destroyed locks that could not be attributed.
    pub late_acquisitions: u64,
    /// Calls from signal handlers that were passed through unrecorded.
    pub in_handlers: u64,
    /// Held locks beyond what a thread can record.
    pub held: u64,
}

impl Losses {
    /// Whether nothing was lost.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }
}

/// `part` of `whole` in per cent; 0 of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
