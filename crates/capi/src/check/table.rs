//! What is known of the locks and of the threads that hold them. Behind one mutex of the standard
//! library.
//!
//! # Invariants
//! - **CAPI-INSIDE** While `INSIDE` is set the thread is in here; a signal handler that
//!   interrupts it passes through unchecked, so that the mutex is not taken twice.
//! - **CAPI-SHORT** The mutex is not held while a lock is waited for.

use super::contexts::Contexts;
use super::report::SourcePlace;
use core::cell::Cell;
use core::fmt;
use lockstead_lockdep::book::{self, Book, BookHold, BookWant, ReportWords};
use lockstead_lockdep::{Level, ThreadId};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static TABLE: Mutex<Option<CheckTable>> = Mutex::new(None);

/// Does something with what is known, unless the thread is at that already (CAPI-INSIDE).
pub(super) fn with<R>(work: impl FnOnce(&mut CheckTable) -> R) -> Option<R> {
    if INSIDE.with(|inside| inside.replace(true)) {
        return None;
    }
    let done = work(TABLE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default());
    INSIDE.with(|inside| inside.set(false));
    Some(done)
}

/// The kinds of locks, as `enum lks_kind__` has them, and those of `rt.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CheckedKind {
    Mutex,
    Semaphore,
    RwLock,
    Cond,
    Once,
    Ww,
    Rt,
    RtRecursive,
}

impl CheckedKind {
    pub(super) fn of(code: u32) -> CheckedKind {
        match code {
            0 => CheckedKind::Mutex,
            1 => CheckedKind::Semaphore,
            2 => CheckedKind::RwLock,
            3 => CheckedKind::Cond,
            4 => CheckedKind::Once,
            _ => CheckedKind::Ww,
        }
    }
}

impl fmt::Display for CheckedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CheckedKind::Mutex => "mutex",
            CheckedKind::Semaphore => "semaphore",
            CheckedKind::RwLock => "reader-writer lock",
            CheckedKind::Cond => "condition variable",
            CheckedKind::Once => "once",
            CheckedKind::Ww => "wait/wound mutex",
            CheckedKind::Rt => "real-time mutex",
            CheckedKind::RtRecursive => "recursive real-time mutex",
        })
    }
}

/// A lock that was seen.
#[derive(Debug)]
pub(super) struct SeenLock {
    pub(super) kind: CheckedKind,
    name: Option<String>,
    /// Its number in the book.
    number: u32,
    pub(super) destroyed: Option<SourcePlace>,
}

/// A lock as a thread has it or asks for it: the address, whether for reading, and the thread.
pub(super) type LockOfThread = (usize, bool, u32);

/// A lock that a thread has.
#[derive(Clone, Debug)]
pub(super) struct OwnedLock {
    pub(super) address: usize,
    pub(super) thread: u32,
    /// Whether it is a wait/wound mutex.
    pub(super) is_ww: bool,
    hold: BookHold<SourcePlace>,
}

impl OwnedLock {
    /// Returns whether it is held for reading.
    pub(super) fn reads(&self) -> bool {
        self.hold.shared
    }

    /// Returns where it was acquired.
    pub(super) fn at(&self) -> &SourcePlace {
        &self.hold.site
    }
}

#[derive(Default)]
pub(super) struct CheckTable {
    known: HashMap<usize, SeenLock>,
    /// What all threads hold, in the order of acquisition: each from after the lock was acquired
    /// until before it is released. In programs under check these are few.
    held: Vec<OwnedLock>,
    /// What threads wait for without end.
    wants: Vec<(u32, BookWant<SourcePlace>)>,
    pub(super) contexts: Contexts,
    /// Keys of the classes of locks that nobody has used yet, by address.
    keys: HashMap<usize, usize>,
    /// Locks of one place of initialisation, or of first use, are of one class.
    book: Book<SourcePlace, SourcePlace>,
}

impl CheckTable {
    /// Returns the lock at an address; it is of this kind from now on, if it was not seen before.
    pub(super) fn lock(
        &mut self,
        address: usize,
        kind: CheckedKind,
        at: &SourcePlace,
    ) -> &mut SeenLock {
        if !self.known.contains_key(&address) {
            let key = self.keys.get(&address).copied();
            self.introduce(address, kind, None, at);
            if let Some(key) = key {
                self.classify(address, key);
            }
        }
        self.known.get_mut(&address).expect("just introduced")
    }

    /// Notes that a lock begins at an address.
    pub(super) fn introduce(
        &mut self,
        address: usize,
        kind: CheckedKind,
        name: Option<String>,
        at: &SourcePlace,
    ) {
        self.keys.remove(&address);
        let number = self.book.introduce(at.clone());
        let fresh = SeenLock { kind, name, number, destroyed: None };
        if let Some(before) = self.known.insert(address, fresh) {
            self.book.forget(before.number);
        }
    }

    /// Puts the lock at an address into the class of a key. One that somebody holds stays in its
    /// class: what is noted of the hold is of that.
    pub(super) fn classify(&mut self, address: usize, key: usize) {
        if self.holder(address, None).is_some() {
            return;
        }
        match self.known.get_mut(&address) {
            Some(seen) => {
                self.book.forget(seen.number);
                seen.number = self.book.introduce(SourcePlace::of_key(key));
            }
            None => {
                self.keys.insert(address, key);
            }
        }
    }

    /// Returns whether this is a lock of a kind that nobody owns.
    pub(super) fn has_no_owner(&self, address: usize) -> bool {
        let kind = self.known.get(&address).map(|known| known.kind);
        matches!(kind, Some(CheckedKind::Semaphore | CheckedKind::Cond))
    }

    /// Returns what the lock is called.
    pub(super) fn name(&self, address: usize) -> String {
        match self.known.get(&address) {
            Some(SeenLock { kind, name: Some(name), .. }) => {
                format!("{kind} `{name}` at {address:#x}")
            }
            Some(SeenLock { kind, .. }) => format!("{kind} at {address:#x}"),
            None => format!("lock at {address:#x}"),
        }
    }

    /// Returns somebody's hold of the lock, or this thread's.
    pub(super) fn holder(&self, address: usize, thread: Option<u32>) -> Option<&OwnedLock> {
        let fits = |held: &&OwnedLock| {
            held.address == address && thread.is_none_or(|thread| held.thread == thread)
        };
        self.held.iter().rev().find(fits)
    }

    /// Notes that a thread has a lock.
    pub(super) fn acquired(
        &mut self,
        part: LockOfThread,
        level: u32,
        tried: bool,
        site: SourcePlace,
    ) {
        let (address, shared, thread) = part;
        let known = self.known.get(&address);
        let number = known.map_or(0, |known| known.number);
        let is_ww = known.is_some_and(|known| known.kind == CheckedKind::Ww);
        self.wants_nothing(thread);
        let hold = BookHold { number, level, shared, tried, site };
        self.held.push(OwnedLock { address, thread, is_ww, hold });
    }

    /// Notes that a thread has a lock no more; returns false if it had not.
    pub(super) fn released(&mut self, (address, reads, thread): LockOfThread) -> bool {
        let fits = |held: &OwnedLock| {
            held.address == address && held.reads() == reads && held.thread == thread
        };
        let at = self.held.iter().rposition(fits);
        at.map(|at| self.held.remove(at)).is_some()
    }

    /// Notes that a thread's wait is over.
    pub(super) fn wants_nothing(&mut self, thread: u32) {
        self.wants.retain(|(waits, _)| *waits != thread);
    }

    /// Forgets what a thread holds that has ended, and returns it.
    pub(super) fn left_by(&mut self, thread: u32) -> Vec<OwnedLock> {
        self.wants_nothing(thread);
        self.held.extract_if(.., |held| held.thread == thread).collect()
    }

    fn want(
        &self,
        part: LockOfThread,
        level: u32,
        at: &SourcePlace,
    ) -> Option<BookWant<SourcePlace>> {
        let number = self.known.get(&part.0)?.number;
        Some(BookWant { number, level, shared: part.1, site: at.clone() })
    }

    /// Adds that a thread asks for a lock, and tells of the orders that can deadlock which this has
    /// brought to light. Those locks have an order before it that `ordered` names.
    pub(super) fn ask(
        &mut self,
        part: LockOfThread,
        level: u32,
        at: &SourcePlace,
        ordered: impl Fn(&OwnedLock) -> bool,
    ) -> Vec<String> {
        let Some(want) = self.want(part, level, at) else { return Vec::new() };
        let mine = self.held.iter().filter(|held| held.thread == part.2);
        let (ordered, held): (Vec<bool>, Vec<_>) =
            mine.map(|held| (ordered(held), held.hold.clone())).unzip();
        let found = self.book.ask((ThreadId(part.2), false), &held, &want, |at| ordered[at]);
        let can_deadlock = found.iter().filter(|finding| finding.level > Level::Order);
        can_deadlock.map(|finding| book::inversion(&self.book, finding, self)).collect()
    }

    /// Publishes that the thread waits without end, and tells of the deadlock that this closes.
    ///
    /// A wait in a context does not come here: the context may be told to back off.
    pub(super) fn wait(&mut self, part: LockOfThread, at: &SourcePlace) -> Option<String> {
        self.wants_nothing(part.2);
        let want = self.want(part, 0, at)?;
        self.wants.push((part.2, want));
        let wants = |thread: ThreadId| {
            self.wants.iter().find(|(waits, _)| *waits == thread.0).map(|(_, want)| want.clone())
        };
        let holders = |want: &BookWant<SourcePlace>| {
            let blocking = self.held.iter().filter(|held| held.hold.blocks(want));
            blocking.map(|held| (ThreadId(held.thread), held.hold.clone())).collect()
        };
        let members = book::closing_cycle(ThreadId(part.2), &wants, &holders)?;
        Some(book::deadlock(&members, self))
    }
}

impl ReportWords<SourcePlace> for CheckTable {
    fn lock(&self, number: u32) -> String {
        let lock = self.known.iter().find(|(_, known)| known.number == number);
        lock.map_or_else(
            || "a lock that is no more".into(),
            |(&address, _)| format!("the {}", self.name(address)),
        )
    }

    fn thread(&self, thread: ThreadId) -> String {
        thread.0.to_string()
    }

    fn place(&self, text: &mut String, what: &str, site: &SourcePlace) {
        *text += &format!("    {what} at {site}\n");
    }
}
