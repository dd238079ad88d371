//! The report as data: what the text, the JSON and the HTML are made from.
//!
//! The JSON is these structs as they stand; `docs/json.md` has its fields, and
//! a change of their meaning raises [`VERSION`].

use super::finding::Finding;
use super::holders::model::HolderReport;
use super::kinds::{LockRole, ThreadKind};
use super::python::{PythonLooks, PythonPlaces};
use super::semaphores::model::Semaphores;
use super::spread::model::LockSpread;
use super::verdict::model::Verdict;
use crate::check::order::RecordedOrder;
use crate::stack::Stack;
use serde::Serialize;

pub use super::site::{ReportSite, SiteCaller};

/// What `schema` says in a report of `lockstead run`.
pub const SCHEMA: &str = "lockstead-run";

/// Version of the fields.
pub const VERSION: u32 = 2;

/// The order in which locks stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Longest total waiting first.
    #[default]
    Wait,
    /// Longest single wait first.
    MaxWait,
    /// Longest total holding first.
    Hold,
    /// The most acquisitions come first.
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

    /// Returns the order with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Sort> {
        Sort::ALL.into_iter().find(|sort| sort.name() == name)
    }

    /// Returns its name, as in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.text()[0]
    }

    /// Returns what it is for, as the help says it.
    #[must_use]
    pub fn help(self) -> &'static str {
        self.text()[1]
    }

    /// Returns what the locks are listed by, in a heading: `total waiting`.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunReport {
    /// The name of this format, `lockstead-run`.
    pub schema: &'static str,
    /// The version of these fields; raised if one of them is removed or changes its meaning.
    pub version: u32,
    /// The version of lockstead.
    pub lockstead: &'static str,
    /// The command that was run.
    pub command: Vec<String>,
    /// How long the run took.
    pub wall_ns: u64,
    /// The number of processors that the command could run on, and so the program; 0 if unknown.
    pub processors: u64,
    /// Processor time of the program, and of its children that it or the command waited for; 0 if
    /// unknown.
    pub cpu_ns: u64,
    /// Processor time that others used meanwhile on the processors that the program could run on,
    /// what a hypervisor took included; null if unknown, as of a run of less than half a second, or
    /// of a process that was attached to.
    pub others_ns: Option<u64>,
    /// The order of `locks`.
    pub sort: Sort,
    /// The most locks listed for a process.
    pub top: usize,
    /// Whether a row stands for all locks of one origin.
    pub by_class: bool,
    /// Whether each lock has a row for itself.
    pub each_lock: bool,
    /// Processes that used a lock, those that waited longest first.
    pub processes: Vec<ProcessReport>,
    /// How many processes acquired none, and waited for nothing else that is seen.
    pub silent_processes: u64,
    /// Whether it was `run --check`: if not, `findings` says nothing of orders and rules.
    pub checked: bool,
    /// What was reported while the program ran.
    pub findings: Vec<Finding>,
    /// Which semaphores could be mutexes, with `--semaphores`.
    pub semaphores: Option<Semaphores>,
    /// Waits that only the kernel told of.
    pub glimpses: Vec<Glimpse>,
}

/// A wait that only the kernel told of, when it was asked now and then: for the lock of a file, a
/// semaphore of System V, a pipe, a futex word of another library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Glimpse {
    /// The process that it is about.
    pub pid: u32,
    /// The program that it runs.
    pub program: String,
    /// The id of the thread.
    pub tid: u32,
    /// What it waited for, and who had that.
    pub what: String,
    /// How long it waited, at least.
    pub waited_ns: u64,
    /// Whether the wait had ended when the process was last looked at, or the process then ended by
    /// itself.
    pub ended: bool,
}

/// What is known of one process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessReport {
    /// Its id where the command runs.
    pub pid: u32,
    /// The id of its parent.
    pub parent: Option<u32>,
    /// The file it ran.
    pub exe: Option<String>,
    /// The arguments that it was called with.
    pub command: Vec<String>,
    /// How it ended, where lockstead saw it: `exit status 0`, `killed by SIGKILL`.
    pub exit: Option<String>,
    /// The time from the first to the last that was seen of it.
    pub lived_ns: u64,
    /// The threads of the process.
    pub threads: ThreadsReport,
    /// Which part of time was spent waiting.
    pub waiting: WaitingShare,
    /// Sums over all locks.
    pub totals: LockTotals,
    /// The locks that were worst, each for itself; also others that have a row of their own.
    pub locks: Vec<LockReport>,
    /// Sums over the locks that are not in `locks`.
    pub more: LockTotals,
    /// Locks that are one row: elements of one array, or from one place; none with `--each-lock`
    /// and `--by-class`.
    pub groups: Vec<LockReport>,
    /// Sums over the locks that are in no row.
    pub more_rows: LockTotals,
    /// Conditions, semaphores and barriers that were waited for, the longest first.
    pub idle: Vec<LockReport>,
    /// Sums over those that are not listed.
    pub more_idle: LockTotals,
    /// How its threads were looked at in Python; null if it has no interpreter, or none of them was
    /// seen waiting.
    pub python: Option<PythonLooks>,
    /// What could not be recorded.
    pub losses: Losses,
    /// What was recorded of the order in which locks were taken, with `--check`.
    pub order: Option<RecordedOrder>,
}

impl ProcessReport {
    /// Returns the rows of the text and of the page.
    #[must_use]
    pub fn rows(&self) -> Vec<&LockReport> {
        let all = self.groups.iter().chain(&self.locks);
        let mut rows: Vec<&LockReport> = all.filter(|lock| lock.row.is_some()).collect();
        rows.sort_by_key(|lock| lock.row);
        rows
    }
}

/// Sums over several locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockTotals {
    /// How many there are.
    pub locks: u64,
    /// How often they were acquired.
    pub acquisitions: u64,
    /// How often one was found taken and waited for with success.
    pub contended: u64,
    /// How long threads waited for them.
    pub waited_ns: u64,
    /// Waits that had not ended when the process did, which are not among the `contended`.
    pub still_waiting: u64,
}

/// Which part of the time of a process's threads was spent waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingShare {
    /// How long all threads lived, added up.
    pub thread_ns: u64,
    /// The part of it spent waiting for mutexes, rwlocks, spin locks and locks of a condition and a
    /// mutex.
    pub waited_ns: u64,
    /// The share of the threads' time, `waited_ns` over `thread_ns`.
    pub waited_percent: f64,
    /// `waited_ns` over `lived_ns`: how many threads waited at a time, on average.
    pub waiting_threads: f64,
    /// The part of `thread_ns` spent waiting for other conditions, semaphores, barriers and ends of
    /// threads.
    pub idled_ns: u64,
    /// The share of the threads' time, `idled_ns` over `thread_ns`.
    pub idled_percent: f64,
    /// Processor time of the process while it was this program: of the program itself up to its
    /// end, of those that it started up to the last look of the command, some 50 ms before their
    /// end; null where the command never looked.
    pub ran_ns: Option<u64>,
    /// How long threads stood ready without a processor, which another thread of the program had, or
    /// another program: up to the last look of the command at each thread, some 0.2 s before its end;
    /// null where the command never looked, or the kernel does not tell.
    pub queued_ns: Option<u64>,
}

impl WaitingShare {
    /// Returns the time that threads were not idle, as far as that is known, in nanoseconds.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.thread_ns.saturating_sub(self.idled_ns).max(self.waited_ns)
    }
}

/// The threads of a process.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadsReport {
    /// How many threads ran.
    pub created: u64,
    /// The most at the same time; at least that many, if more than 64 had ended before others
    /// began.
    pub peak: u64,
    /// The threads that waited longest for locks.
    pub worst: Vec<ThreadReport>,
    /// The threads by the function that they began with, those that ran most first; without those
    /// that had ended when more than 64 others began.
    pub kinds: Vec<ThreadKind>,
}

/// One thread of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadReport {
    /// The kernel's id, in the process's namespace.
    pub tid: u32,
    /// Its name; null if it ran to the end and was never renamed.
    pub name: Option<String>,
    /// The function it began with.
    pub start: Option<String>,
    /// How long it ran.
    pub lived_ns: u64,
    /// How long it waited for locks.
    pub waited_ns: u64,
    /// How long it waited for other things.
    pub idled_ns: u64,
    /// How often it acquired a lock.
    pub acquisitions: u64,
    /// How often it found one taken and waited for it with success.
    pub contended: u64,
    /// Whether it waited for a lock when the process ended.
    pub stuck: bool,
}

/// One lock, or several of one origin.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockReport {
    /// The name of the lock.
    pub name: String,
    /// `mutex`, `rwlock`, `spin`, `semaphore`, `condition`, `barrier`, `once`, `futex` or `unknown`.
    pub kind: &'static str,
    /// `lockstead` (a lock of lockstead's own), `recursive`, `error-checking`, `adaptive`, `robust`, `priority-inheriting`,
    /// `priority-ceiling`, `process-shared`, `writers-first`, `C11`.
    pub attributes: Vec<&'static str>,
    /// Kind and attributes as one would say them: `recursive mutex`; `lock of a condition and a
    /// mutex` of a condition that serves as a lock; of a futex word whose it is, as its stacks tell:
    /// `Rust std::sync::Mutex`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What the mutex of a condition that serves as a lock is called.
    pub mutex: Option<String>,
    /// The address of the lock; null for several locks.
    pub address: Option<u64>,
    /// How many locks this stands for.
    pub locks: u64,
    /// Its row in the text and on the page, from 1; null of a lock that has no row of its own, as one
    /// that is part of a group.
    pub row: Option<u64>,
    /// The place in `groups`, from 0, of the row that it is part of; null of others.
    pub group: Option<u64>,
    /// How the whole is spread among the locks of a group; null of others.
    pub spread: Option<LockSpread>,
    /// `live`; `destroyed`; `several destroyed` of one origin; `several` of one origin
    /// (`--by-class`, and groups). In `idle` all `destroyed` ones of one place are one entry.
    pub life: &'static str,
    /// How often it was acquired; that a wait at a condition takes the mutex back counts there, as one of the
    /// condition. 0 of a futex word, of which only waits are seen; of a condition that serves as a lock, how often
    /// it was signalled since it was first waited for.
    pub acquisitions: u64,
    /// Whether its waits alone are known: an acquisition without a wait was told to nobody, and is
    /// not in `acquisitions`.
    pub waits_only: bool,
    /// How often it was found taken and waited for with success.
    pub contended: u64,
    /// The share that was contended, `contended` over `acquisitions`.
    pub contended_percent: f64,
    /// Waits that gave up at a deadline.
    pub timed_out: u64,
    /// Trylocks that found it taken.
    pub refused: u64,
    /// Its part in the waiting for all locks of the process.
    pub share_percent: f64,
    /// The threads that waited for it when the process ended; their waits up to then are in `wait`.
    pub still_waiting: u64,
    /// Threads that held it then; that time is in `hold` if it was long enough to be known.
    pub still_held: u64,
    /// Times of waiting, all of them.
    pub wait: Durations,
    /// Times of holding, of which `timed` says how many were timed.
    pub hold: Durations,
    /// The places at which threads waited for it, the longest first.
    pub waited_at: Vec<ReportSite>,
    /// Where threads of Python waited for it, as far as looks met them; null if none did.
    pub python: Option<PythonPlaces>,
    /// What its holder did while others waited for it; null of a lock that nobody waited for, or of
    /// a kind of which nothing tells who holds it.
    pub holder: Option<HolderReport>,
    /// What to do about it; null if nobody waited for it, of what stands in `idle`, and with
    /// `--no-verdicts`.
    pub verdict: Option<Verdict>,
    /// The places at which its holders had acquired it, the longest first.
    pub held_at: Vec<ReportSite>,
    /// The places from which its sleepers were woken, of a futex word, the most frequent first.
    pub woken_at: Vec<ReportSite>,
    /// What each kind of threads did with it, those that held or waited longest first; what had not
    /// ended with the process is not in it.
    pub roles: Vec<LockRole>,
    /// The stack of its initialisation.
    pub initialised_at: Option<Stack>,
}

/// Times of waiting or holding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Durations {
    /// How many; of `hold` an estimate, as far as it was not timed.
    pub count: u64,
    /// How long they were altogether.
    pub total_ns: u64,
    /// The median, to within a power of two.
    pub p50_ns: u64,
    /// The 99th percentile, likewise.
    pub p99_ns: u64,
    /// The longest of those that were timed or lasted.
    pub max_ns: u64,
    /// The place where that was.
    pub max_at: Option<String>,
    /// The counts by power of two, from the first one that occurred to the last.
    pub histogram: Vec<DurationBucket>,
    /// How many were timed; the others are counted by those.
    pub timed: u64,
    /// The part of `total_ns` that stands for those that were not timed; 0 of `wait`.
    pub scaled_ns: u64,
    /// Holds whose beginning is an estimate.
    pub coarse: u64,
    /// The part of `total_ns` that they have.
    pub coarse_ns: u64,
}

/// Durations of one power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DurationBucket {
    /// The shortest time that is counted here; the next bucket begins at its double.
    pub from_ns: u64,
    /// How many there are.
    pub count: u64,
}

/// What could not be recorded; all zero normally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Losses {
    /// Locks without a record.
    pub locks: u64,
    /// Locks whose statistics found no room.
    pub statistics: u64,
    /// Stacks that found no room.
    pub stacks: u64,
    /// Threads without a record.
    pub threads: u64,
    /// Files of code without a record: their code has no names.
    pub modules: u64,
    /// Acquisitions of destroyed locks that could not be attributed.
    pub late_acquisitions: u64,
    /// Calls from signal handlers that were passed through unrecorded.
    pub in_handlers: u64,
    /// Held locks beyond what a thread's list takes.
    pub held: u64,
}

impl Losses {
    /// Tells whether nothing was lost.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Losses::default()
    }
}

/// Returns `part` of `whole` in per cent; 0 of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
