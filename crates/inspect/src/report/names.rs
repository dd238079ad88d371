//! What a report asks of whoever knows the names of a process, and the words
//! it makes itself: what a lock is called by its kind.

use super::account::is_running;
use crate::stack::{Frame, Stack};
use crate::symbols::{python_lock, site};
use lockstead_ledger::lock::{LockRecord, ObjectKind, attribute};
use lockstead_ledger::publish::WaitKind;
use lockstead_ledger::thread::ThreadRecord;
use lockstead_ledger::{Ledger, lock::RecordLife};
use std::sync::atomic::Ordering::Relaxed;

/// The place where the first thread of a program begins, as far as its author knows.
pub const FIRST: &str = "main";

/// What is known of a lock for the sake of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFacts {
    /// The address at which it lies, or lay.
    pub address: u64,
    /// What kind of object it is.
    pub kind: ObjectKind,
    /// The bits of its attributes ([`attribute`]).
    pub attributes: u16,
    /// The how-manieth of its class, from 1; 0 when that is not known.
    pub serial: u32,
    /// The index in the ledger of the module it lies in plus one; 0 for others.
    pub module: u32,
    /// The thread on whose stack it lies, if it does.
    pub on_stack_of: Option<String>,
    /// Return addresses of its initialisation, innermost first; none for a
    /// static initialiser.
    pub init: Vec<u64>,
    /// Return addresses of its first use.
    pub first: Vec<u64>,
    /// Others may have used it before that.
    pub late: bool,
    /// The name that the program has given it.
    pub given: Option<String>,
    /// Whether a mutex lies where another pair of a condition and a mutex in front of it would have
    /// its own; `None` if that is not known.
    pub is_of_second_pair: Option<bool>,
    /// What it is called, where that says more than the kind.
    pub noun: Option<&'static str>,
}

impl LockFacts {
    /// Returns what it is called in prose.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        self.noun.unwrap_or_else(|| noun(self.kind))
    }
}

impl LockFacts {
    /// Returns what a ledger says of the lock of this record.
    #[must_use]
    pub fn of(ledger: &Ledger<'_>, record: &LockRecord) -> LockFacts {
        let (kind, _, attributes) = record.shape();
        let address = record.address.load(Relaxed);
        let returns = |id| ledger.stack(id).map_or(Vec::new(), |stack| stack.returns().collect());
        LockFacts {
            address,
            kind,
            attributes,
            serial: record.serial.load(Relaxed),
            module: record.module.load(Relaxed),
            on_stack_of: on_stack_of(ledger, address),
            init: returns(record.init_stack.load(Relaxed)),
            first: returns(record.first_stack.load(Relaxed)),
            late: false,
            given: given_name(ledger, record),
            is_of_second_pair: is_of_second_pair(ledger, kind, address),
            noun: None,
        }
    }
}

/// Tells whether a mutex lies where another pair of a condition and a mutex in front of this one's
/// pair would have its own.
fn is_of_second_pair(ledger: &Ledger<'_>, kind: ObjectKind, address: u64) -> Option<bool> {
    const MUTEX: u64 = size_of::<libc::pthread_mutex_t>() as u64;
    const CONDITION: u64 = size_of::<libc::pthread_cond_t>() as u64;
    let before = match kind {
        ObjectKind::Condition => MUTEX,
        ObjectKind::Mutex => MUTEX + CONDITION,
        _ => return None,
    };
    let first = address.checked_sub(before).and_then(|at| ledger.find_lock(at));
    let first = first.and_then(|index| ledger.lock(index));
    Some(first.is_some_and(|lock| lock.shape().0 == ObjectKind::Mutex))
}

/// Returns the name that the program has given a lock of which its library tells.
#[must_use]
pub fn given_name(ledger: &Ledger<'_>, record: &LockRecord) -> Option<String> {
    let index = record.extension.load(Relaxed) as usize;
    let bytes = ledger.extensions().get(index).filter(|_| index != 0)?.name_bytes();
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    (length != 0).then(|| String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Returns the thread whose stack holds this address. Only of those that run: the stacks of the
/// others are gone.
fn on_stack_of(ledger: &Ledger<'_>, address: u64) -> Option<String> {
    let of = ledger.threads().find(|thread| {
        let record = thread.record;
        let [low, high] = [&record.stack_low, &record.stack_high].map(|end| end.load(Relaxed));
        is_running(thread) && low != 0 && (low..high).contains(&address)
    })?;
    let tid = of.record.tid.load(Relaxed);
    let name = thread_name(of.record);
    let first = (tid == ledger.header().pid.load(Relaxed)).then(|| FIRST.to_owned());
    Some(name.or(first).unwrap_or_else(|| tid.to_string()))
}

/// Knows the names of one process. Failing to know one is an answer: a frame
/// with an address alone.
pub trait Names {
    /// Returns the stack with these return addresses, innermost first, that ended for the reason
    /// with this number.
    fn stack(&mut self, returns: &[u64], end: u32) -> Stack;

    /// Returns the function that begins at this address.
    fn function(&mut self, address: u64) -> Option<String>;

    /// Returns what to call a lock: by its symbol, or by where it came from.
    fn lock(&mut self, facts: &LockFacts) -> String;
}

/// Returns what several locks of one origin are called together: `mutexes from cache_new() at
/// cache.c:41`.
pub fn class_name(names: &mut dyn Names, facts: &LockFacts) -> String {
    let plural = match facts.kind {
        ObjectKind::Mutex | ObjectKind::ToldMutex => "mutexes",
        ObjectKind::RwLock | ObjectKind::ToldRwLock => "rwlocks",
        ObjectKind::Spin => "spin locks",
        ObjectKind::Semaphore | ObjectKind::ToldSemaphore => "semaphores",
        ObjectKind::Condition | ObjectKind::ToldCondition => "conditions",
        ObjectKind::Barrier => "barriers",
        ObjectKind::ToldOnce => "onces",
        ObjectKind::Futex => "futex words",
        ObjectKind::Unknown => "locks",
    };
    if let Some(called) = python_lock(&names.stack(&facts.init, 0)) {
        return called.to_owned();
    }
    let mut origin = |returns: &[u64]| site(&names.stack(returns, 0)).map(Frame::site);
    if let Some(site) = origin(&facts.init) {
        format!("{plural} from {site}")
    } else if let Some(site) = origin(&facts.first) {
        format!("{plural} {} in {site}", if facts.late { "used" } else { "first used" })
    } else {
        format!("{plural} of unknown origin")
    }
}

/// Returns what a kind is called in one word, as in the JSON.
#[must_use]
pub fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Mutex | ObjectKind::ToldMutex => "mutex",
        ObjectKind::RwLock | ObjectKind::ToldRwLock => "rwlock",
        ObjectKind::Spin => "spin",
        ObjectKind::Semaphore | ObjectKind::ToldSemaphore => "semaphore",
        ObjectKind::Condition | ObjectKind::ToldCondition => "condition",
        ObjectKind::Barrier => "barrier",
        ObjectKind::ToldOnce => "once",
        ObjectKind::Futex => "futex",
        ObjectKind::Unknown => "unknown",
    }
}

/// Returns the attributes of a lock, in words.
#[must_use]
pub fn attribute_names(attributes: u16) -> Vec<&'static str> {
    // All reader-writer locks of lockstead are like that.
    let own = attributes & attribute::SLOT != 0;
    let attributes = if own { attributes & !attribute::WRITERS_FIRST } else { attributes };
    [
        (attribute::SLOT, "lockstead"),
        (attribute::RECURSIVE, "recursive"),
        (attribute::ERRORCHECK, "error-checking"),
        (attribute::ADAPTIVE, "adaptive"),
        (attribute::ROBUST, "robust"),
        (attribute::INHERIT, "priority-inheriting"),
        (attribute::PROTECT, "priority-ceiling"),
        (attribute::SHARED, "process-shared"),
        (attribute::WRITERS_FIRST, "writers-first"),
        (attribute::C11, "C11"),
    ]
    .into_iter()
    .filter_map(|(bit, name)| (attributes & bit != 0).then_some(name))
    .collect()
}

/// Returns what a kind is called in prose.
#[must_use]
pub fn noun(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Spin => "spin lock",
        ObjectKind::Unknown => "lock",
        named => kind_name(named),
    }
}

/// Returns what a way of waiting is called in findings and exports.
#[must_use]
pub fn way_name(how: WaitKind) -> &'static str {
    match how.kind() {
        WaitKind::MUTEX => "mutex",
        WaitKind::WRITE => "write",
        WaitKind::READ => "read",
        WaitKind::SPIN => "spin",
        WaitKind::JOIN => "join",
        WaitKind::CONDITION => "condition",
        WaitKind::SEMAPHORE => "semaphore",
        WaitKind::BARRIER => "barrier",
        WaitKind::FUTEX => "futex",
        _ => "unknown",
    }
}

/// Returns the type of a lock as a reader would say it: `recursive mutex`.
#[must_use]
pub fn type_name(kind: ObjectKind, attributes: u16) -> String {
    let mut words = attribute_names(attributes);
    words.push(noun(kind));
    words.join(" ")
}

/// Returns the name of a thread as the kernel has it, where that was noted.
#[must_use]
pub fn thread_name(record: &ThreadRecord) -> Option<String> {
    let mut bytes = [0; 16];
    for (half, word) in bytes.chunks_mut(8).zip(&record.name) {
        half.copy_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    (length != 0).then(|| String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// Returns what a life of a lock is called in the JSON.
#[must_use]
pub fn life_name(life: RecordLife) -> &'static str {
    match life {
        RecordLife::Grave => "destroyed",
        RecordLife::MassGrave => "several destroyed",
        RecordLife::Live | RecordLife::Destroyed | RecordLife::Gone | RecordLife::Unused => "live",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_says_its_attributes() {
        let all = attribute::KNOWN | attribute::RECURSIVE | attribute::ROBUST;
        assert_eq!(type_name(ObjectKind::Mutex, all), "recursive robust mutex");
        assert_eq!(type_name(ObjectKind::Mutex, attribute::KNOWN), "mutex");
        assert_eq!(type_name(ObjectKind::RwLock, attribute::WRITERS_FIRST), "writers-first rwlock");
        assert_eq!(type_name(ObjectKind::Spin, 0), "spin lock");
    }
}
