//! What the engine knows of a thread.

use crate::atom::Atom;
use corosensei::Yielder;
use lockstead_core::WaitOutcome;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadStatus {
    Ready,
    /// It has ended a turn of a spin loop, and may begin the next.
    Yielded,
    /// Spins in vain until others have made more changes than this.
    Relaxing(u64),
    /// It sleeps, since that many sleeps ago.
    Asleep(Sleeper),
    /// It sleeps in several queues (`entries`).
    Watching,
    Done,
    /// Was killed, and the machine has done what is to be done then.
    Gone,
}

/// A place in a queue of sleepers of one that sleeps in several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SleepEntry {
    pub(crate) address: usize,
    pub(crate) queued: Queued,
}

/// The places of one that sleeps in several queues, in its order.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SleepEntries {
    number: usize,
    places: [SleepEntry; MOST_WATCHES],
}

/// Words on which one can sleep at once.
pub(crate) const MOST_WATCHES: usize = 8;

impl SleepEntries {
    pub(crate) fn push(&mut self, entry: SleepEntry) {
        self.places[self.number] = entry;
        self.number += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.number = 0;
    }
}

impl Deref for SleepEntries {
    type Target = [SleepEntry];

    fn deref(&self) -> &[SleepEntry] {
        &self.places[..self.number]
    }
}

impl DerefMut for SleepEntries {
    fn deref_mut(&mut self) -> &mut [SleepEntry] {
        &mut self.places[..self.number]
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Queued {
    Yes,
    /// No longer, since it was woken.
    Woken,
    /// No longer, or never.
    #[default]
    No,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sleeper {
    pub(crate) address: usize,
    pub(crate) cancel: Option<usize>,
    pub(crate) order: u64,
}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awoken {
    As(WaitOutcome),
    /// A signal handler is to be run.
    ForSignal,
}

#[derive(Clone, Copy)]
pub(crate) struct ModelThread {
    /// Stands for the results of all operations so far.
    pub(crate) history: u64,
    pub(crate) status: ThreadStatus,
    pub(crate) awoken: Option<Awoken>,
    /// How many changes are its own.
    pub(crate) own: u64,
    /// How many changes others had made when it last relaxed.
    pub(super) idle_since: Option<u64>,
    /// The time at which its sleep ends by itself; `u64::MAX` is never.
    pub(crate) deadline: u64,
    pub(crate) handler: Option<*const dyn Fn()>,
    pub(crate) in_handler: bool,
    /// It has looked, and stores next, unless something restarts it.
    pub(crate) in_section: bool,
    pub(crate) yielder: *const Yielder<(), ()>,
    /// The words at which it queues; empty outside of waits.
    pub(crate) entries: SleepEntries,
    /// The word at which the machine wakes a sleeper when the thread ends.
    pub(crate) named: Option<*const Atom>,
    /// The same, when it has named nothing.
    pub(crate) deferred: Option<*const Atom>,
    /// Whether the thread may be killed.
    pub(crate) mortal: bool,
    /// The life word that is marked then.
    pub(crate) life: Option<*const Atom>,
    /// Its next step is that it dies.
    pub(super) doomed: bool,
    /// It has no steps of its own any more.
    pub(super) dying: bool,
    /// Threads that do the same have the same group.
    pub(super) group: usize,
    pub(super) started: bool,
    /// Was chosen to go on after a rest, so that its next operation follows
    /// without another decision: each decision is about one operation, else a
    /// state could be its own successor.
    pub(super) chosen: bool,
    pub(super) site: &'static Location<'static>,
}

impl ModelThread {
    #[track_caller]
    pub(super) fn new() -> Self {
        ModelThread {
            history: 0,
            status: ThreadStatus::Ready,
            awoken: None,
            own: 0,
            idle_since: None,
            deadline: u64::MAX,
            handler: None,
            in_handler: false,
            in_section: false,
            yielder: std::ptr::null(),
            entries: SleepEntries::default(),
            named: None,
            deferred: None,
            mortal: false,
            life: None,
            doomed: false,
            dying: false,
            group: 0,
            started: false,
            chosen: false,
            site: Location::caller(),
        }
    }
}
