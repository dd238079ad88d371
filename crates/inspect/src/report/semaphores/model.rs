//! What a program's semaphores are used for, as data: fields in `docs/json.md`.

use crate::report::site::ReportSite;
use crate::stack::Stack;
use serde::Serialize;

/// The semaphores of a run.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Semaphores {
    /// One entry for all semaphores that were initialised at one place with a like value (none,
    /// one, several) and of which the same is to be said; those that could be mutexes first.
    pub origins: Vec<SemaphoreOrigin>,
    /// Calls for semaphores of which nothing is in it, because there was no room.
    pub not_recorded: u64,
}

/// Whether a semaphore could be a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SemaphoreVerdict {
    /// It behaves as a mutex.
    Mutex,
    /// It does not behave as a mutex.
    NoMutex,
    /// Too little was seen.
    Unclear,
}

/// Why a semaphore could not be a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NoMutexWhy {
    /// It begins with no token.
    BeginsTaken,
    /// It begins with several.
    BeginsAboveOne,
    /// A thread gave it that had not taken it.
    GivenByAnother,
    /// It was given while it had a token.
    RisesAboveOne,
    /// It was taken while somebody had it.
    TakenTwice,
    /// A signal handler took or gave it.
    InHandler,
    /// Several processes can use it.
    ProcessShared,
    /// It was destroyed while somebody had it.
    DestroyedTaken,
    /// A thread that had it ended.
    ThreadEnded,
}

/// Why it cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MissingEvidence {
    /// Nobody used the semaphore.
    NeverUsed,
    /// Nobody took the semaphore.
    NeverTaken,
    /// Nobody gave it back.
    NeverGiven,
    /// Threads used it of which lockstead knows nothing.
    UnknownThreads,
}

/// The semaphores of one origin.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SemaphoreOrigin {
    /// What it is called, or what they are called together.
    pub name: String,
    /// What those are called together that were initialised there; `None` of a
    /// variable, which has a name of its own.
    #[serde(skip)]
    pub class: Option<String>,
    /// Whether they could be mutexes.
    pub verdict: SemaphoreVerdict,
    /// Why they cannot be; empty of the others.
    pub reasons: Vec<NoMutexReason>,
    /// Acts that show so at places that found no room in `reasons`.
    pub more_acts: u64,
    /// What was not seen of an unclear one.
    pub missing: Option<MissingEvidence>,
    /// What to do next.
    pub next: Vec<String>,
    /// How many it stands for; a copy in a forked child is one more.
    pub semaphores: u64,
    /// The file of the program.
    pub exe: Option<String>,
    /// The processes that had them.
    pub processes: Vec<u32>,
    /// The least tokens with which one begins; null if that was not seen.
    pub value: Option<u32>,
    /// The most tokens with which one begins.
    pub largest_value: Option<u32>,
    /// The highest count that was seen where it matters: at the beginning, and where a thread gave
    /// a token that had not taken it.
    pub highest: u32,
    /// Whether it was opened by name.
    pub named: bool,
    /// The stack of the initialisation, or of `sem_open`.
    pub initialised_at: Option<Stack>,
    /// The same place in few words.
    pub initialised: Option<String>,
    /// How often one was taken.
    pub taken: u64,
    /// How often one was given.
    pub given: u64,
    /// Attempts that found no token.
    pub refused: u64,
    /// How often a thread waited for a token and got it.
    pub contended: u64,
    /// The share that was contended, `contended` over `taken`.
    pub contended_percent: f64,
    /// How long these waits took altogether.
    pub waited_ns: u64,
    /// The longest of these waits.
    pub longest_wait_ns: u64,
    /// Waits that ended at a deadline.
    pub timed_out: u64,
    /// Waits that a signal handler ended.
    pub interrupted: u64,
    /// How often the program asked for the count.
    pub count_reads: u64,
    /// Whether more than one thread of a process took it.
    pub several_threads: bool,
    /// Semaphores that somebody had at their end, or at that of the process.
    pub left_taken: u64,
    /// Calls by threads that lockstead had left already, or had no room for.
    pub unknown_calls: u64,
    /// The places at which they are taken, the most frequent first.
    pub taken_at: Vec<ReportSite>,
    /// The places at which they are given, the most frequent first.
    pub given_at: Vec<ReportSite>,
    /// A place where the program asked for the count.
    pub count_read_at: Option<String>,
}

/// One reason why a semaphore is no mutex.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoMutexReason {
    /// What was seen of it.
    pub reason: NoMutexWhy,
    /// The number of semaphores of which it is true.
    pub semaphores: u64,
    /// What shows it, by stack.
    pub acts: Vec<SemaphoreAct>,
}

/// Something that a program did.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SemaphoreAct {
    /// How often it happened.
    pub count: u64,
    /// The place in few words.
    pub at: Option<String>,
    /// The stack of the place.
    pub stack: Option<Stack>,
    /// The thread that did it first.
    pub thread: SemaphoreThread,
    /// The thread that had taken it then.
    pub other: Option<SemaphoreThread>,
    /// The place at which that one had taken it, in few words.
    pub other_at: Option<String>,
    /// The stack of that.
    pub other_stack: Option<Stack>,
    /// The count that it came to, or the number of the signal; 1 and 2 of memory and names that
    /// processes share, else 0.
    pub number: u32,
}

/// A thread that used a semaphore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SemaphoreThread {
    /// Its id; 0 if that is not known.
    pub tid: u32,
    /// Its name, or the function that it began with.
    pub name: Option<String>,
}
