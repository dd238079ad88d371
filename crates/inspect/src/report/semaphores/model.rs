//! What a program's semaphores are used for, as data: fields in `docs/json.md`.

use crate::report::site::Site;
use crate::stack::Stack;
use serde::Serialize;

/// The semaphores of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Semaphores {
    /// One entry for all semaphores of one origin: those that could be mutexes, those
    /// that could not, those of which too little was seen.
    pub origins: Vec<Origin>,
    /// Calls for semaphores of which nothing is said here, for there was no room.
    pub not_recorded: u64,
}

/// Whether a semaphore could be a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It behaves as one.
    Mutex,
    /// It does not.
    NoMutex,
    /// Too little was seen.
    Unclear,
}

/// Why a semaphore could not be a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
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
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Nobody used it.
    NeverUsed,
    /// Nobody took it.
    NeverTaken,
    /// Nobody gave it back.
    NeverGiven,
    /// Threads used it of which lockstead knows nothing.
    UnknownThreads,
}

/// The semaphores of one origin.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    /// What they are called.
    pub name: String,
    /// What those are called together that were initialised there; `None` of a
    /// variable, which has a name of its own.
    #[serde(skip)]
    pub class: Option<String>,
    /// Whether they could be mutexes.
    pub verdict: Verdict,
    /// Why they could not.
    pub reasons: Vec<Reason>,
    /// Acts that show the same, at places beyond those of `reasons`.
    pub more_acts: u64,
    /// Why it cannot be said, if it cannot.
    pub missing: Option<Missing>,
    /// What to do next.
    pub next: Vec<String>,
    /// How many semaphores.
    pub semaphores: u64,
    /// The file of the program.
    pub exe: Option<String>,
    /// Processes that had them.
    pub processes: Vec<u32>,
    /// With how many tokens they begin; `null` if the initialisation was not seen.
    pub value: Option<u32>,
    /// The most with which one of them begins.
    pub largest_value: Option<u32>,
    /// The highest count that was seen.
    pub highest: u32,
    /// Opened by name.
    pub named: bool,
    /// Where they are initialised or opened.
    pub initialised_at: Option<Stack>,
    /// The same in few words.
    pub initialised: Option<String>,
    /// How often one was taken.
    pub taken: u64,
    /// How often one was given.
    pub given: u64,
    /// Attempts that found no token.
    pub refused: u64,
    /// How often a thread waited for one and got it.
    pub contended: u64,
    /// `contended` over `taken`.
    pub contended_percent: f64,
    /// How long threads waited so.
    pub waited_ns: u64,
    /// The longest of these waits.
    pub longest_wait_ns: u64,
    /// Waits that gave up at a deadline.
    pub timed_out: u64,
    /// Waits that a signal handler ended.
    pub interrupted: u64,
    /// How often somebody asked for the count.
    pub count_reads: u64,
    /// More than one thread took them.
    pub several_threads: bool,
    /// Semaphores that somebody had at their end, or at that of the process.
    pub left_taken: u64,
    /// Calls of threads of which nothing is known.
    pub unknown_calls: u64,
    /// Where they are taken, most often first.
    pub taken_at: Vec<Site>,
    /// Where they are given, likewise.
    pub given_at: Vec<Site>,
    /// A place where the count is asked for.
    pub count_read_at: Option<String>,
}

/// One reason.
#[derive(Clone, Debug, Serialize)]
pub struct Reason {
    /// Which.
    pub reason: Why,
    /// Of how many semaphores it is true.
    pub semaphores: u64,
    /// What shows it, at each place the first time.
    pub acts: Vec<Act>,
}

/// Something that a program did.
#[derive(Clone, Debug, Serialize)]
pub struct Act {
    /// How often.
    pub count: u64,
    /// Where, in few words.
    pub at: Option<String>,
    /// Where.
    pub stack: Option<Stack>,
    /// By which thread.
    pub thread: Thread,
    /// Who had it then, if anybody did.
    pub other: Option<Thread>,
    /// Where that one had taken it, in few words.
    pub other_at: Option<String>,
    /// Where that was.
    pub other_stack: Option<Stack>,
    /// The count that it came to, or the signal; 0 where there is none.
    pub number: u32,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its number; 0 if that is not known.
    pub tid: u32,
    /// Its name, or the function that it began with.
    pub name: Option<String>,
}
