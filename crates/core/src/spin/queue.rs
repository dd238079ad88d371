//! The queue of spinners: at most one of them spins on the lock's cache line, the others each
//! on a line of their own, and no preempted spinner holds up the rest.
//!
//! # Role
//! The middle path of mutex and semaphore: entered when the fast path has failed, left for
//! sleep. It queues *spinners*, never the lock. A newcomer may still take a free lock past the
//! queue (barging), because a lock that must pass in the order of a queue is slow as soon as
//! threads outnumber processors. Where a policy admits one spinner only, the others may spin
//! *beside* the queue ([`Policy::beside`]).
//!
//! # State
//! The tail is in the lock word ([`Word::tail`]); each participant has one node. This file
//! changes *tail* and *subject* of the word; the first spinner turns *waiters* into *covered*,
//! the last one turns it back.
//!
//! ```text
//!        word.tail ───────────────────────────────┐
//!                                                 ▼
//!   [head] ──next──▶ [waiting] ──next──▶ [left] ◀┄┄ [waiting]
//!   spins on          spins on its       gone;      has swapped the tail,
//!   the word          own state          in place   not yet linked itself
//!
//!            join, first                 lock taken, or gives up
//!   IDLE ─────────────────▶ HEAD ───────────────────────────────▶ IDLE
//!     │ join, behind          ▲ walk
//!     └──────────▶ WAITING ───┤
//!                             ├─ LEFT         its owner sleeps ──▶ IDLE, by a later walk
//!                             └─ PASSED_OVER  was preempted ─────▶ IDLE, by the same walk
//! ```
//!
//! # Protocol
//! To join, a spinner (1) exchanges the tail for itself, (2) swaps itself into the
//! predecessor's `next`, and (3) spins on its own state. If it finds `CLOSED` in step 2, the
//! predecessor has left without waiting for it, and it is the head.
//!
//! A waiting spinner may leave at any moment by `WAITING → LEFT`. Its node stays linked until
//! the head's departure walks over it.
//!
//! The head departs when it has taken the lock or given up spinning. It walks from its own node
//! ([`depart`]): the first successor that waits and was seen to run becomes head; those that
//! left or were preempted are unlinked; at the end of the queue the tail is cleared. Where a
//! successor has announced itself by the tail but not linked itself yet, the walk closes the
//! node and leaves, and the successor finds that out by itself. So no step waits for another
//! thread.
//!
//! # Invariants
//! - **QUEUE-WRITER** A node is written by its owner while it is `IDLE` or `HEAD`, or between
//!   joining and linking. A node that is linked behind a head is unlinked only by the one walk
//!   in progress: there is one head, so one walk.
//! - **QUEUE-IDLE** A node is `IDLE` only while no queue refers to it. A thread whose node is
//!   not idle does not spin.
//! - **QUEUE-HEAD** The queue is not empty ⇒ its first thread is inside an acquiring call.
//!   Hence nothing refers to the memory of a lock that no thread is using; and WORD-TAIL.
//! - **QUEUE-HANDLER** A signal handler that interrupts its own thread's spinning finds `busy`
//!   set and does not touch the node.
//!
//! # Ordering
//! Labels `OSQ-*` in `docs/memory-ordering.md`.
//!
//! # Progress
//! A spinner leaves at the policy's bound, when cancelled, when it was itself preempted, when
//! told that the owner does not run, or when it was barged past too often (`barging.rs`).
//!
//! # Lifetime
//! The lock's memory is touched only inside an acquiring call.
//!
//! # Source
//! Mellor-Crummey and Scott's queue (1991); abandonment and passing over preempted waiters by
//! heartbeat after He, Scherer and Scott, "Preemption adaptivity in time-published queue-based
//! spin locks" (2005). The kernel's optimistic spin queue unlinks itself by waiting for both
//! neighbours, which it may because its spinners are not preempted; closing a node instead of
//! waiting for its successor is ours.

use super::barging::Barging;
use super::beside::spin_beside;
use super::spinner::{FRESH, OwnNode, QueueNode, SpinPace, Spun, beats, look};
use crate::atomic::{Atomic32, Atomic64, Ordering};
use crate::attached::IDLE;
use crate::exchange::exchange;
use crate::platform::{Platform, WaitBounds};
use crate::policy::Policy;
use crate::slot::Slot;
use crate::word::{Subject, Word};

/// The spinner waits in the queue and spins on this state.
const WAITING: u32 = 1;
/// The spinner is first in the queue and spins on the lock word.
const HEAD: u32 = 2;
/// The spinner has gone to sleep; the node is still linked.
const LEFT: u32 = 3;
/// The spinner was preempted and a walk has passed it over; it finds out when it runs again.
const PASSED_OVER: u32 = 4;
// Whoever looks at a state tells it from all others.
const _: () =
    assert!(IDLE < WAITING && WAITING < HEAD && HEAD < LEFT && LEFT < PASSED_OVER, "no two alike");

/// The `next` of a node at which the spinner that links itself is the head. No slot has this
/// number.
const CLOSED: u32 = u32::MAX;

/// Tells whether the last spinner in the queue was seen to run lately. A hint: the queue covers the
/// sleepers, and a spinner that does not run does so late.
pub(crate) fn alive<P: Platform, Y: Policy>(word: Word) -> bool {
    word.tail().filter(|_| Y::COVER).is_some_and(|tail| {
        let tail = P::participant(tail);
        !tail.lost() && beats::<P>(&tail.attached.node, P::now(), Y::STALE)
    })
}

/// The number of attempts to join the queue that follow each other at once. From then on a failed
/// one is a turn of the spinning, with its pause, its bound and its look at the clock.
const TRIES: u32 = 4;

/// The least number of turns of the spin loop between two attempts from then on. It is more than
/// before the first look at the lock, which one spinner at a time takes.
const APART: u32 = 6;

/// Spins for the lock in `word`, in turn.
pub(crate) fn spin<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    me: Slot,
    how: &WaitBounds<'_, P>,
    barging: &mut Barging<P, K, Y>,
) -> Spun {
    let Some(own) = OwnNode::<P>::take(me) else { return Spun::Left };
    let node = own.node;
    node.beat.store(FRESH, Ordering::Relaxed);
    let mut pace = SpinPace::start::<Y>();
    if !Y::QUEUE && Y::joins(None, P::processors()) {
        return spin_beside::<P, K, Y>(word, &own, &mut pace, how, barging);
    }

    let mut seen = Word(word.load(Ordering::Relaxed));
    let mut tries = 0;
    let predecessor = loop {
        if K::free(seen) {
            match exchange::<P, K>(word, seen, K::take(seen, me)) {
                Ok(taken) => return Spun::Took(taken),
                Err(found) => seen = found,
            }
            continue;
        }
        // If `fork` left the tail behind, it left the whole queue behind: a spinner that joined
        // after the fork would be the tail.
        let tail = seen.tail().filter(|&t| !P::participant(t).lost());
        if !Y::joins(tail, P::processors()) {
            return if K::OWNED && Y::beside(P::processors()) {
                spin_beside::<P, K, Y>(word, &own, &mut pace, how, barging)
            } else {
                Spun::Left
            };
        }
        node.state.store(if tail.is_some() { WAITING } else { HEAD }, Ordering::Relaxed);
        let queue = if tail.is_some() { seen } else { seen.closed() };
        let joined = queue.joined(me);
        let joined = if Y::COVER || joined.handoff() { joined } else { joined.uncover() };
        match exchange::<P, K>(word, seen, joined) {
            Ok(_) => break tail,
            Err(found) => seen = found,
        }
        if !fault!(spinner_keeps_a_node_in_no_queue) {
            node.state.store(IDLE, Ordering::Relaxed);
        }
        tries += 1;
        // Hundreds that try at once keep the line from one another, and from the owner.
        if tries > TRIES {
            pace.pauses = pace.pauses.max(APART);
            if !pace.turn::<P, Y>(node, how, K::holder(seen)) {
                return Spun::Left;
            }
            seen = Word(word.load(Ordering::Relaxed));
        }
    };

    if let Some(predecessor) = predecessor {
        link::<P>(predecessor, me);
        if !wait_for_turn::<P, Y>(node, &mut pace, how) {
            return Spun::Left;
        }
    }
    spin_as_head::<P, K, Y>(word, &own, &mut pace, how, barging)
}

/// Links `me` behind `predecessor`, or makes it the head if the predecessor has left.
fn link<P: Platform>(predecessor: Slot, me: Slot) {
    let before = &P::participant(predecessor).attached.node;
    // ord: OSQ-3 acq_rel: release pairs with OSQ-4 (the walk sees a node that
    // is set up), acquire pairs with OSQ-5 (we see the closed node finished).
    let found = before.next.swap(me.get(), Ordering::AcqRel);
    if found != CLOSED || fault!(joiner_overlooks_a_closed_node) {
        return;
    }
    before.unlink();
    P::participant(me).attached.node.state.store(HEAD, Ordering::Relaxed);
}

/// Spins in the queue. Returns true once the caller is the head, false if it has left.
fn wait_for_turn<P: Platform, Y: Policy>(
    node: &QueueNode<P>,
    pace: &mut SpinPace,
    how: &WaitBounds<'_, P>,
) -> bool {
    loop {
        // ord: OSQ-6 acquire, pairs with OSQ-7.
        match node.state.load(Ordering::Acquire) {
            HEAD => return true,
            WAITING => {}
            _ => return false,
        }
        let leaves = !pace.turn::<P, Y>(node, how, None);
        if leaves && fault!(leaver_overlooks_that_it_is_head) {
            node.state.store(LEFT, Ordering::Relaxed);
            return false;
        }
        if leaves
            // ord: OSQ-8: acquire pairs with OSQ-7 when the walk was faster.
            && node
                .state
                .compare_exchange(WAITING, LEFT, Ordering::Relaxed, Ordering::Acquire)
                .is_ok()
        {
            return false;
        }
    }
}

/// Spins on the lock word itself, then departs, with or without the lock.
fn spin_as_head<P: Platform, K: Subject, Y: Policy>(
    word: &P::U64,
    own: &OwnNode<P>,
    pace: &mut SpinPace,
    how: &WaitBounds<'_, P>,
    barging: &mut Barging<P, K, Y>,
) -> Spun {
    let me = own.me;
    loop {
        let seen = look::<P, Y>(word);
        if K::free(seen) {
            let last = seen.tail() == Some(me);
            let left = if last { seen.closed() } else { seen };
            if let Ok(taken) = exchange::<P, K>(word, seen, K::take(left, me)) {
                if last {
                    own.node.unlink();
                    return Spun::Took(taken);
                }
                return match depart::<P, K, Y>(word, me, true) {
                    Spun::Left => Spun::Took(taken),
                    spun => spun,
                };
            }
        } else if barging.looked(word, seen) || !pace.turn::<P, Y>(own.node, how, K::holder(seen)) {
            return depart::<P, K, Y>(word, me, false);
        }
    }
}

/// Leaves the queue as its head: the first live successor becomes head, or the queue ends.
///
/// With `owned` the caller has the lock. Without, it wants to sleep; but it takes the lock after
/// all if that is free at the moment at which the queue ends, because a release that saw the queue
/// woke nobody (WORD-SLEEPERS). If the queue ends and the caller has the lock, the result has the
/// word as it is then: only now does it show the sleepers that the queue covered, for which
/// permits may be left.
fn depart<P: Platform, K: Subject, Y: Policy>(word: &P::U64, me: Slot, owned: bool) -> Spun {
    let mut at = me;
    loop {
        let node = &P::participant(at).attached.node;
        // ord: OSQ-4 acquire, pairs with OSQ-3.
        let mut next = node.next.load(Ordering::Acquire);
        if next == 0 {
            let mut seen = Word(word.load(Ordering::Relaxed));
            while seen.tail() == Some(at) {
                let closed = seen.closed();
                let take = !owned && K::free(closed);
                let after = if take { K::take(closed, me) } else { closed };
                match exchange::<P, K>(word, seen, after) {
                    Ok(after) => {
                        node.unlink();
                        return match K::RELEASE_LOSES && after.waiters() && !seen.unlocks_slowly() {
                            _ if owned || take => Spun::Took(after),
                            true => Spun::LeftLoose,
                            false => Spun::Left,
                        };
                    }
                    Err(found) => seen = found,
                }
            }
            // A spinner is behind us in the tail but not linked yet.
            // ord: OSQ-5: release pairs with OSQ-3 (our last use of the node);
            // acquire, of a failure, pairs with OSQ-3 when it linked meanwhile.
            match node.next.compare_exchange(0, CLOSED, Ordering::Release, Ordering::Acquire) {
                Ok(_) => {
                    if fault!(walk_overlooks_who_joins) {
                        node.unlink();
                    }
                    return Spun::Left;
                }
                Err(linked) => next = linked,
            }
        }
        node.unlink();
        let Some(successor) = Slot::new(next) else { unreachable!("OSQ: a node is closed once") };
        let behind = &P::participant(successor).attached.node;
        let verdict = if beats::<P>(behind, P::now(), Y::STALE) { HEAD } else { PASSED_OVER };
        // ord: OSQ-7 release, pairs with OSQ-6: the new head sees the word as
        // we left it. Failure: it left by itself; acquire pairs with OSQ-8's
        // program order through its link (OSQ-3).
        let turned =
            behind.state.compare_exchange(WAITING, verdict, Ordering::AcqRel, Ordering::Acquire);
        if (turned.is_ok() || fault!(walk_ends_at_a_leaver)) && verdict == HEAD {
            return Spun::Left;
        }
        at = successor;
    }
}
