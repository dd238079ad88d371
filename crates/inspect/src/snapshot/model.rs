//! The snapshot as data, and as JSON.
//!
//! `docs/json.md` names the fields. Threads and locks refer to each other by
//! thread id and address.

use crate::proc::asleep::Asleep;
use crate::python::PythonStack;
use crate::stack::Stack;
use serde::Serialize;

/// A process at one moment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The process that is shown.
    pub process: SnapshotProcess,
    /// The source of the facts.
    pub source: SnapshotSource,
    /// All threads, by their ids.
    pub threads: Vec<SnapshotThread>,
    /// All objects that a thread waits for, by address; with the source `ledger` also those that
    /// are only held.
    pub locks: Vec<SnapshotLock>,
    /// Threads that wait for each other.
    pub cycles: Vec<JudgedCycle>,
    /// The stacks at which locks were acquired, each once: holders name them by index, from 0.
    /// Empty with the source `memory`.
    pub stacks: Vec<Stack>,
    /// What could not be read, why, and what helps.
    pub limits: Vec<String>,
    /// What a language runtime's own tool shows more, and the command; null where there is none.
    pub advice: Option<String>,
    /// Whether the wait of every thread could be looked at; if not, there may be a deadlock that is
    /// not among `cycles`.
    pub complete: bool,
}

/// The process that it is about.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotProcess {
    /// Its id where the command runs.
    pub pid: u32,
    /// Its id for itself, if it is in another PID namespace.
    pub own_pid: Option<u32>,
    /// The name that it has.
    pub name: String,
    /// The words of its command line.
    pub command: Vec<String>,
}

/// The source of the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SnapshotSource {
    /// `/proc` and the process's memory: all waits, and of the held locks those that somebody waits
    /// for.
    Memory,
    /// The ledger of a process under `lockstead run`: all held locks.
    Ledger,
}

/// One thread of a process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotThread {
    /// Its id where the command runs.
    pub tid: u32,
    /// Its id for itself, if it is in another PID namespace.
    pub own_tid: Option<u32>,
    /// The name that it has.
    pub name: String,
    /// What the thread is there for, where a runtime gives all its threads one name and the stack
    /// tells: `V8 platform worker`.
    pub role: Option<String>,
    /// The kernel's letter for its state.
    pub state: char,
    /// The present activity of the thread.
    #[serde(flatten)]
    pub activity: ThreadActivity,
    /// Its call stack; null where it was not read: `--all` reads also those of threads that neither
    /// wait nor hold.
    pub stack: Option<Stack>,
    /// Its frames of Python, if it runs any; null also where they cannot be read.
    pub python: Option<PythonStack>,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum ThreadActivity {
    /// It waits in a futex call, or in a wait that the ledger tells of.
    Waiting {
        /// The object that it waits for.
        wait: ThreadWait,
    },
    /// It sleeps in another system call.
    Asleep {
        /// The name of the system call.
        call: String,
        /// What for, and what can end that.
        #[serde(flatten)]
        on: Asleep,
    },
    /// It runs, or waits for a processor.
    Running,
    /// A signal, a debugger or a fault stopped it.
    Stopped,
    /// It has ended, and its process has not.
    Ended,
    /// The kernel does not tell.
    Unknown {
        /// The function of the kernel that it sleeps in, if that may be read.
        kernel_function: Option<String>,
    },
}

/// A wait in a futex call, or one that a ledger tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadWait {
    /// The object that it waits for.
    pub target: WaitTarget,
    /// Whether it wants to share the lock, to read.
    pub shared: bool,
    /// The time at which the wait ends by itself; null if it never does.
    pub until: Option<WaitEnd>,
    /// How long it has lasted; null where only the memory tells of it.
    pub waited_ns: Option<u64>,
    /// The address of the futex word, of several the first; null where the ledger tells of the
    /// wait.
    pub word: Option<u64>,
    /// The value that the word was compared with.
    pub expected: Option<u32>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitTarget {
    /// It waits for one of `locks`.
    Lock {
        /// The address of the lock.
        address: u64,
    },
    /// The end of a thread.
    Join {
        /// The id of that thread.
        thread: u32,
    },
    /// It cannot be told.
    Unknown {
        /// What is known of it, a sentence.
        why: String,
    },
}

/// The end of a timed wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitEnd {
    /// `realtime` or `monotonic`; null for a span of which the start is not known.
    pub clock: Option<&'static str>,
    /// Seconds of that clock, or of the span; null where it could not be read.
    pub seconds: Option<i64>,
    /// Nanoseconds from the snapshot to the end; negative when it is over.
    pub left_ns: Option<i64>,
}

/// An object that threads wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotLock {
    /// The address of its first byte.
    pub address: u64,
    /// `mutex`, `rwlock`, `spin lock`, `stream lock`, `semaphore`, `condition variable`, `barrier`,
    /// or what it seems to be.
    pub kind: String,
    /// `recursive`, `robust` and so on.
    pub attributes: Vec<String>,
    /// The name of the lock.
    pub name: String,
    /// The threads that hold the lock, as far as that is known.
    #[serde(flatten)]
    pub held: LockHeld,
    /// The ids of the threads that wait for it.
    pub waiting: Vec<u32>,
    /// The ids of threads that may hold it: its address is on their stacks. None of them counts as
    /// a holder, and no cycle leads through them. Empty where the holder is known.
    pub may_hold: Vec<u32>,
}

/// The holders of an object, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "held", rename_all = "snake_case")]
pub enum LockHeld {
    /// Threads of the process hold it.
    By {
        /// The threads that hold it, and how.
        holders: Vec<LockHolder>,
    },
    /// Readers hold it, and who they are is not known.
    Readers {
        /// How many hold it.
        count: u32,
    },
    /// The id that stands in the lock is of no thread of the process.
    Elsewhere {
        /// The id that stands in the lock.
        owner: u32,
        /// The reason, a sentence.
        why: String,
        /// The index of the stack where it was acquired, if that is known.
        acquired: Option<usize>,
    },
    /// Nobody can hold it: a condition variable, a barrier.
    Never,
    /// It cannot be told.
    Unknown {
        /// The reason, a sentence.
        why: String,
    },
}

/// A thread that holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockHolder {
    /// The id of the thread.
    pub thread: u32,
    /// Whether it holds the lock with others, to read.
    pub shared: bool,
    /// How long so far, if that was recorded.
    pub held_ns: Option<u64>,
    /// Whether that time is exact; otherwise the lock was held at most so long, and less by no more
    /// than some tens of milliseconds.
    pub exact: bool,
    /// The index in `stacks` of where it was acquired, if that was recorded.
    pub acquired: Option<usize>,
    /// What shows that the thread holds it.
    pub evidence: HolderEvidence,
    /// The ground for that, a sentence; null where the lock or the ledger names the thread.
    pub rests_on: Option<String>,
    /// The variable that is the guard of the lock, where debug information tells.
    pub guard: Option<String>,
}

/// What shows that a thread holds a lock, the strongest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HolderEvidence {
    /// The lock's own word, or the ledger, names the thread.
    #[default]
    Word,
    /// The landing pad of one of its frames would release the lock: the code that would run if the
    /// call, in which the frame waits, threw an exception. In Python: it acquired the lock in a
    /// function that releases it in `finally`.
    Pad,
    /// One of its frames is inside a statement that holds the lock; or the code behind its call
    /// would release the lock, and one of its variables is a guard of it.
    Guard,
    /// It was seen to acquire the lock and not to release it, and its code would release it. Of
    /// Python's locks: it was seen to acquire the lock.
    Seen,
    /// The code behind the call that one of its frames is in would release the lock, and the call
    /// has no landing pad; or a landing pad would, and the lock may have been given back by hand
    /// meanwhile; or it was seen to acquire the lock, and nothing else shows it; or it would put a
    /// unit into a semaphore, which others may do as well.
    /// In Python: it acquired the lock in a function that has not released it.
    Likely,
}

impl HolderEvidence {
    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            HolderEvidence::Word => "word",
            HolderEvidence::Pad => "pad",
            HolderEvidence::Guard => "guard",
            HolderEvidence::Seen => "seen",
            HolderEvidence::Likely => "likely",
        }
    }
}

impl LockHolder {
    /// Returns a thread that holds a lock alone by what the lock's word says, and nothing more is
    /// known.
    #[must_use]
    pub fn alone(thread: u32) -> LockHolder {
        LockHolder {
            thread,
            shared: false,
            held_ns: None,
            exact: false,
            acquired: None,
            evidence: HolderEvidence::Word,
            rests_on: None,
            guard: None,
        }
    }
}

/// Threads that wait for each other in a cycle: each for the next one, the last
/// for the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgedCycle {
    /// Whether it is a deadlock.
    pub verdict: CycleVerdict,
    /// The ids of the threads, in the order of waiting: each waits for the next one, the last for
    /// the first.
    pub threads: Vec<u32>,
}

/// What a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CycleVerdict {
    /// All its threads slept, and the locks stayed with their holders, while it was read.
    Deadlock,
    /// It is like a deadlock, but one of its holders is only likely to be one.
    Probable,
    /// One of its waits ends by itself.
    Timed,
    /// Its threads ran while they were looked at.
    Unconfirmed,
}

impl Snapshot {
    /// Returns the thread with this id.
    #[must_use]
    pub fn thread(&self, tid: u32) -> Option<&SnapshotThread> {
        let at = self.threads.binary_search_by_key(&tid, |thread| thread.tid).ok()?;
        self.threads.get(at)
    }

    /// Returns the lock at this address.
    #[must_use]
    pub fn lock(&self, address: u64) -> Option<&SnapshotLock> {
        let at = self.locks.binary_search_by_key(&address, |lock| lock.address).ok()?;
        self.locks.get(at)
    }

    /// Tells whether there is a deadlock that was proved.
    #[must_use]
    pub fn is_deadlocked(&self) -> bool {
        self.has(CycleVerdict::Deadlock)
    }

    /// Tells whether there is a cycle of this kind.
    #[must_use]
    pub fn has(&self, verdict: CycleVerdict) -> bool {
        self.cycles.iter().any(|cycle| cycle.verdict == verdict)
    }
}

impl SnapshotThread {
    /// Returns the wait it is in.
    #[must_use]
    pub fn wait(&self) -> Option<&ThreadWait> {
        match &self.activity {
            ThreadActivity::Waiting { wait } => Some(wait),
            _ => None,
        }
    }

    /// Returns the wait it is in for something in the kernel that others hold: a lock of a file, a
    /// semaphore of System V.
    #[must_use]
    pub fn kernel_lock(&self) -> Option<&Asleep> {
        match &self.activity {
            ThreadActivity::Asleep { on, .. } if on.is_lock() => Some(on),
            _ => None,
        }
    }
}
