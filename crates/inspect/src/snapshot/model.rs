//! The snapshot as data, and as JSON.
//!
//! `docs/json.md` names the fields. Threads and locks refer to each other by
//! thread id and address.

use crate::proc::asleep::Asleep;
use crate::stack::Stack;
use serde::Serialize;

/// A process at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Whose.
    pub process: About,
    /// Where the facts come from.
    pub source: Source,
    /// All threads, by their ids.
    pub threads: Vec<Thread>,
    /// All objects that a thread waits for or is known to hold, by address.
    pub locks: Vec<Lock>,
    /// Threads that wait for each other in a cycle.
    pub cycles: Vec<JudgedCycle>,
    /// Where locks were acquired; holders say which of these.
    pub stacks: Vec<Stack>,
    /// What could not be read, and what helps.
    pub limits: Vec<String>,
    /// The wait of every thread could be looked at: if not, there may be a deadlock that is not
    /// among the cycles.
    pub complete: bool,
}

/// The process.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Its id here.
    pub pid: u32,
    /// Its id for itself, where it is in another PID namespace.
    pub own_pid: Option<u32>,
    /// Its name.
    pub name: String,
    /// Its command line.
    pub command: Vec<String>,
}

/// Where the facts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From `/proc` and the process's memory: what threads wait for, but of the
    /// held locks only those that somebody waits for.
    Memory,
    /// From the ledger of a process under `lockstead run`: all held locks.
    Ledger,
}

/// One thread.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// Its id here.
    pub tid: u32,
    /// Its id for itself, where it is in another PID namespace.
    pub own_tid: Option<u32>,
    /// Its name.
    pub name: String,
    /// The kernel's letter for its state.
    pub state: char,
    /// What it does.
    #[serde(flatten)]
    pub activity: Activity,
    /// Where it does that; `None` for a thread whose stack was not read.
    pub stack: Option<Stack>,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    /// It sleeps in a futex call.
    Waiting {
        /// For what.
        wait: Wait,
    },
    /// It sleeps in another system call.
    Asleep {
        /// Name of the call.
        call: String,
        /// What for, and who can end that.
        #[serde(flatten)]
        on: Asleep,
    },
    /// It runs, or waits for a processor.
    Running,
    /// It was stopped: by a signal, a debugger or a fault.
    Stopped,
    /// It has ended; its process has not.
    Ended,
    /// The kernel does not tell.
    Unknown {
        /// The function of the kernel that it sleeps in, if that may be read.
        kernel_function: Option<String>,
    },
}

/// A wait in a futex call, or one that a ledger tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// What for.
    pub target: Target,
    /// To hold it alone, or with others.
    pub shared: bool,
    /// When it ends by itself.
    pub until: Option<Until>,
    /// How long it has lasted, if somebody wrote down when it began.
    pub waited_ns: Option<u64>,
    /// The word slept on; with several, the first. Not known from a ledger.
    pub word: Option<u64>,
    /// What the word was compared with.
    pub expected: Option<u32>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Target {
    /// One of [`Snapshot::locks`].
    Lock {
        /// Its address.
        address: u64,
    },
    /// The end of a thread.
    Join {
        /// Its id here.
        thread: u32,
    },
    /// What cannot be told.
    Unknown {
        /// What is known of it.
        why: String,
    },
}

/// The end of a timed wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Until {
    /// The clock: `realtime` or `monotonic`; `None` for a span, of which it is
    /// not known when it began.
    pub clock: Option<&'static str>,
    /// Seconds of that clock, or of the span; `None` where it could not be read.
    pub seconds: Option<i64>,
    /// Nanoseconds from now until then; negative when it is over.
    pub left_ns: Option<i64>,
}

/// An object that threads wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// Its first byte.
    pub address: u64,
    /// `mutex`, `rwlock`, `semaphore`, `condition variable`, ...
    pub kind: String,
    /// Its attributes: `recursive`, `robust`, ...
    pub attributes: Vec<String>,
    /// What to call it.
    pub name: String,
    /// Who holds it.
    #[serde(flatten)]
    pub held: Held,
    /// Threads that wait for it, by their ids.
    pub waiting: Vec<u32>,
}

/// Who holds an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "held", rename_all = "snake_case")]
pub enum Held {
    /// These threads.
    By {
        /// Who, and how.
        holders: Vec<Holder>,
    },
    /// Readers, of whom only the number is known.
    Readers {
        /// How many.
        count: u32,
    },
    /// A thread that is none of the process's.
    Elsewhere {
        /// The id that stands in the lock.
        owner: u32,
        /// What that may mean.
        why: String,
        /// Where it took it, as an index into [`Snapshot::stacks`].
        acquired: Option<usize>,
    },
    /// It is an object that nobody holds.
    Never,
    /// It cannot be told.
    Unknown {
        /// Why.
        why: String,
    },
}

/// A thread that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Its id here.
    pub thread: u32,
    /// With others, or alone.
    pub shared: bool,
    /// How long it has held it, if somebody wrote down since when.
    pub held_ns: Option<u64>,
    /// That time is exact; otherwise it is at most so long, and less by
    /// no more than some tens of milliseconds.
    pub exact: bool,
    /// Where it took it, if somebody wrote that down: an index into
    /// [`Snapshot::stacks`].
    pub acquired: Option<usize>,
}

impl Holder {
    /// A thread that holds a lock alone, and nothing more is known.
    #[must_use]
    pub fn alone(thread: u32) -> Holder {
        Holder { thread, shared: false, held_ns: None, exact: false, acquired: None }
    }
}

/// Threads that wait for each other in a cycle: each for the next one, the last
/// for the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedCycle {
    /// What it is.
    pub verdict: Verdict,
    /// Ids of the threads, in the order of waiting.
    pub threads: Vec<u32>,
}

/// What a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All of its threads slept, and the locks stayed with their holders, while
    /// it was read.
    Deadlock,
    /// One of its waits ends by itself.
    Timed,
    /// Its threads did not hold still long enough to be sure.
    Unconfirmed,
}

impl Snapshot {
    /// The thread with this id.
    #[must_use]
    pub fn thread(&self, tid: u32) -> Option<&Thread> {
        let at = self.threads.binary_search_by_key(&tid, |thread| thread.tid).ok()?;
        self.threads.get(at)
    }

    /// The lock at this address.
    #[must_use]
    pub fn lock(&self, address: u64) -> Option<&Lock> {
        let at = self.locks.binary_search_by_key(&address, |lock| lock.address).ok()?;
        self.locks.get(at)
    }

    /// Whether there is a deadlock.
    #[must_use]
    pub fn is_deadlocked(&self) -> bool {
        self.cycles.iter().any(|cycle| cycle.verdict == Verdict::Deadlock)
    }
}

impl Thread {
    /// The wait it is in.
    #[must_use]
    pub fn wait(&self) -> Option<&Wait> {
        match &self.activity {
            Activity::Waiting { wait } => Some(wait),
            _ => None,
        }
    }

    /// The wait it is in for something in the kernel that others hold: a lock of a file, a
    /// semaphore of System V.
    #[must_use]
    pub fn kernel_lock(&self) -> Option<&Asleep> {
        match &self.activity {
            Activity::Asleep { on, .. } if on.is_lock() => Some(on),
            _ => None,
        }
    }
}
