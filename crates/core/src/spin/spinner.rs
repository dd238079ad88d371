//! The parts of one spinner: its node, its pace, and its look at the word.

use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::attached::Node;
use crate::platform::{Nanos, OnCpu, Platform, WaitBounds};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::word::Word;

/// The node that is attached to a slot of the platform.
pub(super) type QueueNode<P> = Node<<P as Platform>::U32, <P as Platform>::U64>;

/// Tells whether the thread of this node was seen to run lately.
pub(super) fn beats<P: Platform>(node: &QueueNode<P>, now: Nanos, stale: u64) -> bool {
    now.since(Nanos(node.beat.load(Ordering::Relaxed))) <= stale
}

/// The caller's node while the caller may use it (QUEUE-HANDLER). Dropping this gives it back.
pub(super) struct OwnNode<P: Platform> {
    pub(super) me: Slot,
    pub(super) node: &'static QueueNode<P>,
}

impl<P: Platform> OwnNode<P> {
    /// Takes the node of `me`, the caller. Returns `None` if a queue refers to it (QUEUE-IDLE) or
    /// the thread that this handler has interrupted uses it.
    pub(super) fn take(me: Slot) -> Option<Self> {
        let node = &P::participant(me).attached.node;
        if node.busy.load(Ordering::Relaxed) != 0 && !fault!(handler_uses_the_node_of_its_thread) {
            return None;
        }
        // A handler that runs between these two lines leaves `busy` clear and
        // the node perhaps linked, which the next look notices.
        node.busy.store(1, Ordering::Relaxed);
        // ord: OSQ-9: a handler of this thread that finds the node in use finds `busy` set.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        let own = OwnNode { me, node };
        // Dropping it clears `busy` again.
        if node.idle() || fault!(spinner_uses_a_node_in_a_queue) { Some(own) } else { None }
    }
}

impl<P: Platform> Drop for OwnNode<P> {
    fn drop(&mut self) {
        // ord: OSQ-9: `busy` is cleared behind the last use of the node.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        self.node.busy.store(0, Ordering::Relaxed);
    }
}

/// The `beat` of a spinner that has joined and has not looked at the clock yet. It counts as alive,
/// so that a spinner for a short section never pays for the clock.
pub(super) const FRESH: u64 = u64::MAX;

/// The pace of a spinner: how often it looks, and when it stops.
pub(super) struct SpinPace {
    /// The time at which to give up, and that of the last reading of the clock; `None` before the
    /// first reading.
    clock: Option<(Nanos, Nanos)>,
    turns: u32,
    /// The turns since the start.
    spent: u32,
    /// The turns until the next look.
    pub(super) pauses: u32,
    /// The most turns until a look. A turn takes from 5 to 60 ns on processors of today, so the
    /// limit follows the clock.
    most: u32,
}

impl SpinPace {
    /// Starts the pace of the policy.
    pub(super) fn start<Y: Policy>() -> Self {
        SpinPace { clock: None, turns: 0, spent: 0, pauses: Y::FIRST, most: Y::TURNS }
    }

    /// Tells whether a spinner that gives up at `until` has spun for so long that it asks whether
    /// the owner runs.
    fn asks<Y: Policy>(until: Nanos, now: Nanos) -> bool {
        until.since(now) + Y::ASK <= Y::SPIN
    }

    /// Pauses until the next look. Returns false when it is time to leave.
    pub(super) fn turn<P: Platform, Y: Policy>(
        &mut self,
        node: &QueueNode<P>,
        how: &WaitBounds<'_, P>,
        owner: Option<Slot>,
    ) -> bool {
        P::relax_for(self.pauses);
        self.turns += self.pauses;
        self.spent = self.spent.saturating_add(self.pauses);
        self.pauses = self.most.min(Y::FIRST.max(self.spent / Y::PARTS));
        if self.turns >= Y::TURNS {
            let now = P::now();
            let (until, last) = self.clock.unwrap_or((now.after(Y::SPIN), now));
            let elapsed = now.since(last);
            if now >= until
                || elapsed > Y::GAP
                || how.deadline.is_some_and(|deadline| now >= deadline)
                || how.cancelled()
                || Self::asks::<Y>(until, now)
                    && owner.is_some_and(|owner| P::on_cpu(owner) == OnCpu::No)
            {
                return false;
            }
            if let Some(most) = (Y::LOOK * u64::from(self.turns)).checked_div(elapsed) {
                self.most = most.clamp(1, 256) as u32;
            }
            self.clock = Some((until, now));
            self.turns = 0;
            node.beat.store(now.0, Ordering::Relaxed);
        }
        true
    }
}

/// The way in which spinning ended.
pub(crate) enum Spun {
    /// The caller has the lock; the word as the acquisition left it.
    Took(Word),
    /// The caller should sleep instead.
    Left,
    /// The caller should sleep instead. It has set *waiters*, which is loose, for the sleepers
    /// that the queue covered.
    LeftLoose,
}

/// Looks at the word once, by a load: then a shared cache line stays shared until the lock can be
/// taken. (A policy may have it look by an exchange.)
pub(super) fn look<P: Platform, Y: Policy>(word: &P::U64) -> Word {
    if Y::READ_FIRST {
        return Word(word.load(Ordering::Relaxed));
    }
    // Changes nothing, whatever it finds.
    let found = word.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
    Word(found.unwrap_or_else(|found| found))
}
