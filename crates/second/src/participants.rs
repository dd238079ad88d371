//! What the machine knows of participants, and the dice that end them.
//!
//! Whether a participant ends is asked before each step by which it writes, queues or wakes. To end
//! before a step by which it only learns is the same as to end after it. The answer is a load, as all
//! choices are (see `world`): the same word answers until the thread yields, and says yes from the
//! first time on. (After a yield loom gives no more what was read before.)

use crate::needs::begin_anew;
use crate::place::Place;
use loom::sync::atomic::AtomicU32;
use std::cell::RefCell;
use std::ptr::NonNull;

/// What a thread unwinds with whose participant has ended.
pub(crate) struct Killed;

/// What the machine knows of one thread's participant.
#[derive(Clone, Default)]
pub(crate) struct Participant {
    pub(crate) mortal: bool,
    pub(crate) life: Option<Place>,
    /// The word that it has named, and where that is.
    pub(crate) named: Option<(NonNull<()>, Place)>,
    pub(crate) deferred: Option<Place>,
    /// The die that was thrown last, and how often the thread had yielded then.
    pub(crate) thrown: Option<(usize, u64)>,
    pub(crate) gone: bool,
}

/// What the machine knows of the participants of an execution.
pub(crate) struct Participants {
    list: RefCell<Vec<Participant>>,
    /// The words that tell each thread whether it ends.
    pub(crate) dice: Vec<AtomicU32>,
    /// How many of them a thread has.
    each: usize,
}

impl Participants {
    pub(crate) fn new(threads: usize, each: usize) -> Self {
        let list = RefCell::new(vec![Participant::default(); threads + 1]);
        let dice = (0..threads * each).map(|_| AtomicU32::new(0)).collect();
        Participants { list, dice, each }
    }

    pub(crate) fn with<R>(&self, thread: usize, change: impl FnOnce(&mut Participant) -> R) -> R {
        change(&mut self.list.borrow_mut()[thread])
    }

    /// Returns the die that a thread throws which has yielded so often.
    pub(crate) fn die(&self, thread: usize, yields: u64) -> &AtomicU32 {
        let at = self.with(thread, |it| {
            let at = match it.thrown {
                Some((at, before)) if before == yields => at,
                Some((at, _)) => at + 1,
                None => 0,
            };
            it.thrown = Some((at, yields));
            at
        });
        if at >= self.each {
            begin_anew(|needs| needs.ends = (2 * needs.ends).max(4));
        }
        &self.dice[thread * self.each + at]
    }
}
