//! Violations of the rules of locks: written by the library that checks.
//!
//! # Role
//! The thread that notices a violation leaves a record, once for each rule, call stack
//! and origin of the lock. The command reads the records in the order of their numbers,
//! and prints them. A violation that is repeated is counted.
//!
//! # Protocol
//! The protocol is that of [`order`](crate::order).

use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
pub use lockstead_rules::Rule;

/// The functions that [`Rule::Sleepy`] is about: a violation has the index of one as
/// its number.
pub const BLOCKING: [&str; 42] = [
    "sleep",
    "usleep",
    "nanosleep",
    "clock_nanosleep",
    "thrd_sleep",
    "pause",
    "sigsuspend",
    "sigwait",
    "sigwaitinfo",
    "sigtimedwait",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "fsync",
    "fdatasync",
    "msync",
    "sync",
    "syncfs",
    "flock",
    "lockf",
    "tcdrain",
    "connect",
    "accept",
    "accept4",
    "recv",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "send",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "getaddrinfo",
    "wait",
    "waitpid",
    "waitid",
    "wait3",
    "wait4",
    "system",
];

/// One violation of a rule, as a thread saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenViolation {
    /// The rule that was broken.
    pub rule: Rule,
    /// The index of the lock; 0 if it has no record.
    pub lock: u32,
    /// The generation of the lock at that time.
    pub generation: u32,
    /// The address of the lock.
    pub address: u64,
    /// The stack of the call that broke the rule; 0 if there was none.
    pub stack: u32,
    /// The [serial number](crate::thread::ThreadRecord::serial) of the thread that called; 0
    /// if it is not known.
    pub thread: u32,
    /// The kernel's number of that thread.
    pub tid: u32,
    /// The number of the other thread that has a part in it, such as the owner; 0 if there is
    /// none.
    pub other_tid: u32,
    /// The stack of what that thread, or the same thread, did earlier, such as the
    /// acquisition.
    pub other_stack: u32,
    /// The index of the other lock that has a part in it; 0 if there is none.
    pub other_lock: u32,
    /// The number of a signal, an address or an error, as the rule has it.
    pub number: u64,
    /// Whether the rule is broken only if what was seen before comes again, which nothing
    /// tells.
    pub weak: bool,
}

/// A [`SeenViolation`] in the ledger: a cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct ViolationRecord {
    ready: AtomicU32,
    rule: AtomicU32,
    address: AtomicU64,
    number: AtomicU64,
    lock: AtomicU32,
    generation: AtomicU32,
    stack: AtomicU32,
    thread: AtomicU32,
    tid: AtomicU32,
    other_tid: AtomicU32,
    other_stack: AtomicU32,
    other_lock: AtomicU32,
    weak: AtomicU32,
    /// How often the violation was repeated.
    pub repeated: AtomicU32,
}

const _: () = assert!(size_of::<ViolationRecord>() == 64);

impl ViolationRecord {
    pub(crate) fn write(&self, violation: &SeenViolation) {
        self.address.store(violation.address, Relaxed);
        self.number.store(violation.number, Relaxed);
        for (word, value) in [
            (&self.rule, violation.rule as u32),
            (&self.lock, violation.lock),
            (&self.generation, violation.generation),
            (&self.stack, violation.stack),
            (&self.thread, violation.thread),
            (&self.tid, violation.tid),
            (&self.other_tid, violation.other_tid),
            (&self.other_stack, violation.other_stack),
            (&self.other_lock, violation.other_lock),
            (&self.weak, u32::from(violation.weak)),
        ] {
            word.store(value, Relaxed);
        }
        // ord: LED-9 (release): publishes the record.
        self.ready.store(1, Release);
    }

    /// Returns what the record says; `None` if it is not complete yet, or of a rule that no
    /// library inside a program decides.
    #[must_use]
    pub fn read(&self) -> Option<SeenViolation> {
        // ord: LED-9 (acquire): what was stored before is seen.
        if self.ready.load(Acquire) == 0 {
            return None;
        }
        let rule = Rule::from_number(self.rule.load(Relaxed));
        Some(SeenViolation {
            rule: rule.filter(|rule| rule.story().is_some())?,
            lock: self.lock.load(Relaxed),
            generation: self.generation.load(Relaxed),
            address: self.address.load(Relaxed),
            stack: self.stack.load(Relaxed),
            thread: self.thread.load(Relaxed),
            tid: self.tid.load(Relaxed),
            other_tid: self.other_tid.load(Relaxed),
            other_stack: self.other_stack.load(Relaxed),
            other_lock: self.other_lock.load(Relaxed),
            number: self.number.load(Relaxed),
            weak: self.weak.load(Relaxed) != 0,
        })
    }
}
