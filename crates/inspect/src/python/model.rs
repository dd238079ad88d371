//! What is known of Python's threads, as data.

use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// One level of a call stack of Python.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PythonFrame {
    /// The name of the function; from 3.11 on with its class in front.
    pub function: String,
    /// The source file, as the code names it.
    pub file: String,
    /// The number of the line in `file`; null where the code has none.
    pub line: Option<u32>,
}

impl PythonFrame {
    /// Returns the frame in few words: `left() at app.py:12`.
    #[must_use]
    pub fn site(&self) -> String {
        let file = Path::new(&self.file).file_name().and_then(|name| name.to_str());
        let file = file.unwrap_or(&self.file);
        let called = if self.function.starts_with('<') { "" } else { "()" };
        match self.line {
            Some(line) => format!("{}{called} at {file}:{line}", self.function),
            None => format!("{}{called} in {file}", self.function),
        }
    }

    /// Tells whether the code is of the interpreter's own library, by the path of its file:
    /// `/usr/lib/python3.12/queue.py`.
    #[must_use]
    pub fn is_library(&self) -> bool {
        let is_home = |folder: &str| {
            let minor = folder.strip_prefix("python3.");
            minor.is_some_and(|minor| minor.starts_with(|first: char| first.is_ascii_digit()))
        };
        let mut folders = self.file.split('/').skip_while(|folder| !is_home(folder));
        let inside = folders.next().is_some();
        let first = folders.next().unwrap_or_default();
        self.file.starts_with("<frozen ")
            || inside && !["site-packages", "dist-packages", ""].contains(&first)
    }
}

/// The call stack of a thread in Python, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PythonStack {
    /// The frames, innermost first.
    pub frames: Vec<PythonFrame>,
    /// Whether there are more frames, which were not looked at.
    pub cut: bool,
}

impl PythonStack {
    /// Returns the place that the program's author knows, and what of the interpreter's library was
    /// called there: the innermost frame of neither, if all are of the library.
    #[must_use]
    pub fn place(&self) -> Option<(&PythonFrame, Option<&PythonFrame>)> {
        match self.frames.iter().position(|frame| !frame.is_library()) {
            Some(at) => {
                Some((&self.frames[at], at.checked_sub(1).map(|inner| &self.frames[inner])))
            }
            None => self.frames.first().map(|innermost| (innermost, None)),
        }
    }
}

/// A lock of Python's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonLock {
    /// The address of the object.
    pub object: u64,
    /// The address by which the lock is known to those who see threads sleep: of its semaphore,
    /// or of a byte in the object.
    pub key: u64,
    /// It is a `threading.RLock`, which names its owner.
    pub recursive: bool,
    /// Some thread has it.
    pub locked: bool,
    /// The owner's `pthread_self`, of a `threading.RLock` that is locked.
    pub owner: Option<u64>,
}

impl PythonLock {
    /// Returns what it is called: `threading.Lock`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        if self.recursive { "threading.RLock" } else { "threading.Lock" }
    }
}

/// What a thread waits for in the interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonWait {
    /// A `threading.Lock` or `threading.RLock`.
    Lock(PythonLock),
    /// Something that another thread does: a condition, an event, an item of a queue.
    Event {
        /// The kind of it: `threading.Condition`, `queue.Queue`.
        kind: String,
        /// The address of the object.
        object: u64,
    },
    /// The end of the thread with this number for itself.
    Join(u32),
    /// The GIL at this address.
    Gil(u64),
}

impl PythonWait {
    /// Returns what is waited for: `threading.Lock`, `queue.Queue`, `the GIL`.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            PythonWait::Lock(lock) => lock.kind(),
            PythonWait::Event { kind, .. } => kind,
            PythonWait::Join(_) => "the end of a thread",
            PythonWait::Gil(_) => "the GIL",
        }
    }

    /// Returns the address of the object that is waited for, if it is one of the program's.
    #[must_use]
    pub fn object(&self) -> Option<u64> {
        match self {
            PythonWait::Lock(lock) => Some(lock.object),
            PythonWait::Event { object, .. } => Some(*object),
            PythonWait::Join(_) | PythonWait::Gil(_) => None,
        }
    }
}

/// What shows that a thread has a lock of Python's, or may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PythonEvidence {
    /// It is inside a `with` statement of the lock.
    Guard,
    /// It acquired it in a function whose handler of exceptions would release it.
    Pad,
    /// It acquired it in a function that has not released it.
    Likely,
    /// It may have it.
    Perhaps,
    /// It would release it, whatever happens, and was not seen to acquire it: this contradicts all
    /// others.
    WouldRelease,
    /// It would release it, or may: whoever acquired it may wait for that. This contradicts all but
    /// those that are inside a `with`.
    MayRelease,
}

/// What a thread has to do with a lock that others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonClaim {
    /// The key of the lock.
    pub lock: u64,
    /// The kind of what shows it.
    pub evidence: PythonEvidence,
    /// The ground, a sentence; empty where the thread only may have it.
    pub rests_on: String,
}

/// A generator that holds a lock and that no thread goes through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseGenerator {
    /// The key of the lock.
    pub lock: u64,
    /// The thread that has it in a variable.
    pub thread: u32,
    /// The place where it is suspended.
    pub frame: PythonFrame,
}

/// A thread of Python.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonThread {
    /// The answer of `pthread_self` in the thread.
    pub ident: u64,
    /// The frames of the thread.
    pub stack: PythonStack,
    /// What it has to do with locks that others wait for; nothing of a thread that ran meanwhile.
    pub claims: Vec<PythonClaim>,
    /// What it waits for, if the interpreter tells.
    pub wait: Option<PythonWait>,
}

/// The state of a GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gil {
    /// The address of its record.
    pub address: u64,
    /// The thread that has it, by the number that it has for itself.
    pub holder: Option<u32>,
}

/// The interpreter of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PythonLook {
    /// The threads, by the numbers that they have for themselves.
    pub threads: BTreeMap<u32, PythonThread>,
    /// The GIL of each interpreter; several may have one.
    pub gils: Vec<Gil>,
    /// The generators that hold a lock and that no thread goes through.
    pub loose: Vec<LooseGenerator>,
    /// There are more threads or interpreters than are looked at.
    pub cut: bool,
}

/// The holder of a lock of Python's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PythonHolder {
    /// The lock names this thread.
    Word(u32),
    /// This thread has it by the evidence, with the ground, a sentence.
    By(u32, PythonEvidence, String),
    /// These threads may have it.
    MayHold(Vec<u32>),
    /// It cannot be told.
    Unknown,
}

impl PythonLook {
    /// Returns the thread with this `pthread_self`.
    #[must_use]
    pub fn by_ident(&self, ident: u64) -> Option<u32> {
        self.threads.iter().find(|(_, thread)| thread.ident == ident).map(|(&tid, _)| tid)
    }

    /// Returns who has a lock.
    #[must_use]
    pub fn holder(&self, lock: &PythonLock) -> PythonHolder {
        if lock.recursive {
            let owner = lock.owner.and_then(|ident| self.by_ident(ident));
            return owner.map_or(PythonHolder::Unknown, PythonHolder::Word);
        }
        if !lock.locked {
            return PythonHolder::Unknown;
        }
        let claims = self.threads.iter().flat_map(|(&tid, thread)| {
            let claims = thread.claims.iter().filter(|claim| claim.lock == lock.key);
            claims.map(move |claim| (tid, claim))
        });
        let claims: Vec<(u32, &PythonClaim)> = claims.collect();
        let loose = self.loose.iter().filter(|loose| loose.lock == lock.key);
        let loose: Vec<u32> = loose.map(|loose| loose.thread).collect();
        let is_owner = |(_, claim): &&(u32, &PythonClaim)| {
            use PythonEvidence::{Guard, Likely, Pad};
            matches!(claim.evidence, Guard | Pad | Likely)
        };
        let owners: Vec<_> = claims.iter().filter(is_owner).collect();
        let contradicted = claims.iter().any(|(tid, claim)| {
            let is_another = owners.first().is_some_and(|(owner, _)| owner != tid);
            let in_with = owners.iter().any(|(_, it)| it.evidence == PythonEvidence::Guard);
            is_another
                && match claim.evidence {
                    PythonEvidence::WouldRelease => true,
                    PythonEvidence::MayRelease => !in_with,
                    _ => false,
                }
        });
        if let [(tid, claim)] = owners[..]
            && !contradicted
            && loose.is_empty()
        {
            return PythonHolder::By(*tid, claim.evidence, claim.rests_on.clone());
        }
        let mut all: Vec<u32> = claims.iter().map(|(tid, _)| *tid).chain(loose).collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { PythonHolder::Unknown } else { PythonHolder::MayHold(all) }
    }

    /// Returns the GIL whose record lies around an address.
    #[must_use]
    pub fn gil(&self, address: u64) -> Option<&Gil> {
        self.gils.iter().find(|gil| super::gil::covers(gil.address, address))
    }
}
