//! What one spinner has: its node, its sense of time, its look at the word.

use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::attached::Node;
use crate::platform::{Nanos, OnCpu, Platform, Wait};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::word::Word;

/// The node of a slot.
pub(super) type QueueNode<P> = Node<<P as Platform>::U32, <P as Platform>::U64>;

/// Whether the thread of this node was seen to run lately.
pub(super) fn beats<P: Platform>(node: &QueueNode<P>, now: Nanos, stale: u64) -> bool {
    now.since(Nanos(node.beat.load(Ordering::Relaxed))) <= stale
}

/// The caller's node while it may use it (Q4); gives it back when dropped.
pub(super) struct Seat<P: Platform> {
    pub(super) me: Slot,
    pub(super) node: &'static QueueNode<P>,
}

impl<P: Platform> Seat<P> {
    pub(super) fn take(me: Slot) -> Option<Self> {
        let node = &P::participant(me).attached.node;
        if node.busy.load(Ordering::Relaxed) != 0 {
            return None;
        }
        // A handler that runs between these two lines leaves `busy` clear and
        // the node perhaps linked, which the next look notices.
        node.busy.store(1, Ordering::Relaxed);
        // ord: OSQ-9: a handler of this thread that finds the node in use finds `busy` set.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        let seat = Seat { me, node };
        // Dropping the seat clears `busy` again.
        if node.idle() { Some(seat) } else { None }
    }
}

impl<P: Platform> Drop for Seat<P> {
    fn drop(&mut self) {
        // ord: OSQ-9: `busy` is cleared behind the last use of the node.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.node.busy.store(0, Ordering::Relaxed);
    }
}

/// In `beat`: joined, and has not looked at the clock yet. Counts as alive, so
/// that a spinner in a short section never pays for the clock.
pub(super) const FRESH: u64 = u64::MAX;

/// A spinner's sense of time: when to stop.
pub(super) struct Pace {
    /// When to give up, and when the clock was last read; unknown before the
    /// first reading.
    clock: Option<(Nanos, Nanos)>,
    turns: u32,
    /// Turns since the start.
    spent: u32,
    /// Turns until the next look, and the most there may be: a turn takes from
    /// 5 to 60 ns on processors of today, so the limit follows the clock.
    pub(super) pauses: u32,
    most: u32,
}

impl Pace {
    pub(super) fn start<Y: Policy>() -> Self {
        Pace { clock: None, turns: 0, spent: 0, pauses: Y::FIRST, most: Y::TURNS }
    }

    /// Whether the spinner that gives up at `until` has spun for so long that it asks for
    /// the owner.
    fn asks<Y: Policy>(until: Nanos, now: Nanos) -> bool {
        until.since(now) + Y::ASK <= Y::SPIN
    }

    /// Pauses once; false when it is time to leave.
    pub(super) fn turn<P: Platform, Y: Policy>(
        &mut self,
        node: &QueueNode<P>,
        how: &Wait<'_, P>,
        owner: Option<Slot>,
    ) -> bool {
        P::relax_for(self.pauses);
        self.turns += self.pauses;
        self.spent = self.spent.saturating_add(self.pauses);
        self.pauses = self.most.min(Y::FIRST.max(self.spent / Y::PARTS));
        if self.turns >= Y::TURNS {
            let now = P::now();
            let (until, last) = self.clock.unwrap_or((now.after(Y::SPIN), now));
            let passed = now.since(last);
            if now >= until
                || passed > Y::GAP
                || how.deadline.is_some_and(|deadline| now >= deadline)
                || how.cancelled()
                || Self::asks::<Y>(until, now)
                    && owner.is_some_and(|owner| P::on_cpu(owner) == OnCpu::No)
            {
                return false;
            }
            if let Some(most) = (Y::LOOK * u64::from(self.turns)).checked_div(passed) {
                self.most = most.clamp(1, 256) as u32;
            }
            self.clock = Some((until, now));
            self.turns = 0;
            node.beat.store(now.0, Ordering::Relaxed);
        }
        true
    }
}

/// How spinning ended.
pub(crate) enum Spun {
    /// With the lock; the word as the acquisition left it.
    Took(Word),
    /// The caller should sleep instead.
    Left,
    /// The same; and it has set W, which is loose, for sleepers that the queue
    /// answered for.
    LeftLoose,
}

/// One look of a spinner at the word. Read before every read-modify-write: a
/// shared line stays shared until there is something to win.
pub(super) fn look<P: Platform, Y: Policy>(word: &P::U64) -> Word {
    if Y::READ_FIRST {
        return Word(word.load(Ordering::Relaxed));
    }
    // Changes nothing, whatever it finds.
    let found = word.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
    Word(found.unwrap_or_else(|found| found))
}
