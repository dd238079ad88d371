//! Threads that sleep, as the lists of an execution have them.

use crate::place::Place;
use lockstead_core::WaitOutcome;

/// One that sleeps on a word, or was woken and has not gone on yet.
pub(crate) struct Sleeper {
    pub(crate) thread: usize,
    pub(crate) address: usize,
    /// The address whose waking cancels the wait.
    pub(crate) cancel: Option<usize>,
    pub(crate) deadline: Option<u64>,
    /// How it was woken, if it was.
    pub(crate) woken: Option<WaitOutcome>,
    /// Whether it may go on: its bell was rung, too.
    pub(crate) called: bool,
}

impl Sleeper {
    /// Tells whether it is this thread, and nobody has woken it.
    pub(crate) fn sleeps(&self, thread: usize) -> bool {
        self.thread == thread && self.woken.is_none()
    }

    /// Returns its timer, if it sleeps and has one.
    pub(crate) fn timer(&mut self) -> Option<Timer<'_>> {
        let deadline = self.deadline.filter(|_| self.woken.is_none())?;
        Some(Timer { deadline, woken: &mut self.woken, called: &mut self.called })
    }
}

/// How a watcher stands in a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    /// It has left, or nobody is ever woken there.
    No,
    Yes,
    Woken,
}

/// One that sleeps on several words, comes to their queues, or leaves them.
pub(crate) struct Watcher {
    pub(crate) thread: usize,
    pub(crate) queues: Vec<(Place, Queued)>,
    /// Whether it has come to all of them, and sleeps if nobody has woken it.
    pub(crate) asleep: bool,
    pub(crate) deadline: Option<u64>,
    /// How it was woken, if it was.
    pub(crate) woken: Option<WaitOutcome>,
    /// Whether it may go on: its bell was rung, too.
    pub(crate) called: bool,
}

impl Watcher {
    /// Tells whether it is this thread, and nobody has woken it.
    pub(crate) fn sleeps(&self, thread: usize) -> bool {
        self.thread == thread && self.asleep && self.woken.is_none()
    }

    /// Returns its timer, if it sleeps and has one.
    pub(crate) fn timer(&mut self) -> Option<Timer<'_>> {
        let sleeps = self.asleep && self.woken.is_none();
        let deadline = self.deadline.filter(|_| sleeps)?;
        Some(Timer { deadline, woken: &mut self.woken, called: &mut self.called })
    }

    /// Returns the first queue in which it stands.
    pub(crate) fn first(&self) -> Option<(usize, Place)> {
        let at = self.queues.iter().position(|(_, queued)| *queued == Queued::Yes)?;
        Some((at, self.queues[at].0))
    }

    /// Wakes it in the queues of this address, if it stands in one.
    pub(crate) fn wake(&mut self, address: usize) {
        for (_, queued) in self.queues.iter_mut().filter(|at| is_at(at, address)) {
            *queued = Queued::Woken;
            self.woken = Some(WaitOutcome::Woken);
        }
    }

    /// Tells whether it stands in a queue of this address.
    pub(crate) fn is_at(&self, address: usize) -> bool {
        self.queues.iter().any(|at| is_at(at, address))
    }
}

fn is_at(&(place, queued): &(Place, Queued), address: usize) -> bool {
    queued == Queued::Yes && place.address() == address
}

/// The timer of one that sleeps.
pub(crate) struct Timer<'a> {
    pub(crate) deadline: u64,
    woken: &'a mut Option<WaitOutcome>,
    called: &'a mut bool,
}

impl Timer<'_> {
    /// Ends the sleep because its time is over and nothing else can happen.
    pub(crate) fn fire(self) {
        *self.woken = Some(WaitOutcome::TimedOut);
        *self.called = true;
    }
}
