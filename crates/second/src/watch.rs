//! Sleeping on several words, waking, and what is woken when a participant ends: what the invariants
//! DEATH-NAMED-WORD to DEATH-BY-ADDRESS of the core's `robust/machine.rs` promise, and no more.
//!
//! To queue at a word is a look at its newest value, with which the queue is joined in one step; to
//! leave a queue is another one. A wake-up looks at the word as well, and takes sleepers off the
//! queue in the same step. As in `futex` these looks are read-modify-writes to loom, and whoever
//! sleeps yields.

use crate::needs::{begin_anew, needs};
use crate::place::Place;
use crate::sleeper::{Queued, Watcher};
use crate::world::{World, world};
use crate::{Model, U32};
use lockstead_core::robust::WatchedWord;
use lockstead_core::{WaitBounds, WaitOutcome};

/// What is compared, and where it is slept.
#[derive(Clone, Copy)]
struct Watched {
    place: Place,
    /// Whether the high half of the word is meant.
    high: bool,
    expected: u32,
    /// Whether a wake-up there ends the sleep.
    queues: bool,
}

impl Watched {
    fn new(watch: &WatchedWord<'_, Model>) -> Self {
        let (place, high, expected, queues) = match *watch {
            WatchedWord::Word(word, expected) => (Place::narrow(word), false, expected, true),
            WatchedWord::Low(word, expected) => (Place::low(word), false, expected, true),
            WatchedWord::High(word, expected) => (Place::low(word), true, expected, false),
            WatchedWord::Seen(word, expected) => (Place::narrow(word), false, expected, false),
        };
        Watched { place, high, expected, queues }
    }
}

/// How a sleep on several words ended.
pub(crate) enum SleepEnded {
    /// A wake-up ended it, at the word with this index last.
    At(usize),
    /// The sleep ended as this says.
    As(WaitOutcome),
}

/// Sleeps while all words hold what is expected. The cancellation word comes first, if there is one.
pub(crate) fn wait_any(
    watches: &[WatchedWord<'_, Model>],
    how: &WaitBounds<'_, Model>,
) -> SleepEnded {
    let world = world();
    let me = world.me();
    assert!(me < world.threads, "setting up and checking must not wait");
    if !needs().choices {
        begin_anew(|needs| needs.choices = true);
    }
    world.signal_may_come();
    let cancel = how.cancel.map(|word| Watched {
        place: Place::narrow(word),
        high: false,
        expected: 0,
        queues: true,
    });
    world.watchers.borrow_mut().push(Watcher {
        thread: me,
        queues: Vec::new(),
        asleep: false,
        deadline: how.deadline.map(|deadline| deadline.0),
        woken: None,
        called: false,
    });
    let mut ended = None;
    for watched in cancel.into_iter().chain(watches.iter().map(Watched::new)) {
        world.may_end();
        let value = watched.place.peek_all(&world);
        let value = if watched.high { value >> 32 } else { value };
        if value as u32 != watched.expected {
            ended = Some(WaitOutcome::Changed);
            break;
        }
        let queued = if watched.queues { Queued::Yes } else { Queued::No };
        mine(&world, |watcher| watcher.queues.push((watched.place, queued)));
    }
    let ended = ended.or_else(|| begin(&world, how)).unwrap_or_else(|| sleep(&world));
    while let Some((at, place)) = mine(&world, |watcher| watcher.first()) {
        world.may_end();
        leave(&world, at, place);
    }
    let watcher = take(&world, me).expect("it is there until here");
    world.changed();
    match watcher.queues.iter().rposition(|(_, queued)| *queued == Queued::Woken) {
        Some(index) => SleepEnded::At(index),
        // With nobody's wake-up, a sleep that ends as if by one ends for no reason.
        None if ended == WaitOutcome::Woken => SleepEnded::As(WaitOutcome::Changed),
        None => SleepEnded::As(ended),
    }
}

/// Does something to what the list says of the calling thread.
fn mine<R>(world: &World, change: impl FnOnce(&mut Watcher) -> R) -> R {
    let me = world.me();
    let mut watchers = world.watchers.borrow_mut();
    change(watchers.iter_mut().find(|watcher| watcher.thread == me).expect("it watches"))
}

/// Has the calling thread sleep no more, if it is on the list: it goes on to leave the queues.
pub(crate) fn rise(world: &World) {
    let me = world.me();
    if let Some(it) = world.watchers.borrow_mut().iter_mut().find(|w| w.thread == me) {
        it.asleep = false;
    }
}

/// Takes a thread off the list, if it is there.
pub(crate) fn take(world: &World, thread: usize) -> Option<Watcher> {
    let mut watchers = world.watchers.borrow_mut();
    let at = watchers.iter().position(|watcher| watcher.thread == thread)?;
    Some(watchers.remove(at))
}

/// Has the calling thread leave the first queue in which it stands. Returns whether there was one.
pub(crate) fn leave_one(world: &World) -> bool {
    let me = world.me();
    let first = world.watchers.borrow().iter().find(|w| w.thread == me).and_then(Watcher::first);
    if let Some((at, place)) = first {
        leave(world, at, place);
    }
    first.is_some()
}

fn leave(world: &World, at: usize, place: Place) {
    place.peek_all(world);
    mine(world, |watcher| {
        let queued = &mut watcher.queues[at].1;
        if *queued == Queued::Yes {
            *queued = Queued::No;
        }
    });
}

/// Returns how a wait that queues everywhere ends without a sleep; `None` if it sleeps.
fn begin(world: &World, how: &WaitBounds<'_, Model>) -> Option<WaitOutcome> {
    let spurious = world.happens(|left| &mut left.spurious);
    let interrupted = !spurious && how.interruptible && world.happens(|left| &mut left.interrupts);
    let over = how.deadline.is_some_and(|deadline| deadline.0 <= world.now());
    match mine(world, |watcher| watcher.woken) {
        Some(_) => Some(WaitOutcome::Woken),
        None if over => Some(WaitOutcome::TimedOut),
        None if spurious => Some(WaitOutcome::Changed),
        None if interrupted => Some(WaitOutcome::Interrupted),
        None => None,
    }
}

/// Sleeps until woken, or until the timer fires.
fn sleep(world: &World) -> WaitOutcome {
    let me = world.me();
    let deadline = mine(world, |watcher| {
        watcher.asleep = true;
        watcher.deadline
    });
    let (mut looks, mut seen) = (0, None);
    loop {
        if let Some(woken) = mine(world, |watcher| watcher.woken.filter(|_| watcher.called)) {
            world.hear_bell(me);
            mine(world, |watcher| watcher.asleep = false);
            return woken;
        }
        // A timer that fires now, or an end that comes now, could have come when the thread looked
        // last, unless something has changed since.
        if seen.replace(world.changes()) != Some(world.changes()) {
            world.may_end();
            if let Some(deadline) = deadline
                && world.happens(|left| &mut left.timeouts)
            {
                mine(world, |watcher| watcher.asleep = false);
                world.pass_to(deadline);
                return WaitOutcome::TimedOut;
            }
        }
        world.sleep_on(&mut looks);
    }
}

/// Wakes up to `count` of those that queue at `address`, whichever. Returns how many.
pub(crate) fn wake_shared(place: Place, count: u32) -> u32 {
    if std::thread::panicking() {
        return 0;
    }
    let world = world();
    world.signal_may_come();
    world.may_end();
    place.peek_all(&world);
    rouse(&world, place, count)
}

/// Wakes up to `count` of those that queue at a place, in the step in which the caller has changed
/// or looked at the word there. Of several, who is woken is a choice.
pub(crate) fn rouse(world: &World, place: Place, count: u32) -> u32 {
    let address = place.address();
    let mut woken = Vec::new();
    while woken.len() < count as usize {
        let at = || -> Vec<usize> {
            let watchers = world.watchers.borrow();
            watchers.iter().filter(|w| w.is_at(address)).map(|w| w.thread).collect()
        };
        let mut left = at().len();
        if left == 0 {
            break;
        }
        let some = count as usize - woken.len() < left;
        while some && left > 1 && world.choose() {
            left -= 1;
        }
        // (Nobody comes or goes while the dice are thrown, as loom finds no reason to switch there.)
        let queue = at();
        let Some(&thread) = queue.get(if some { queue.len().saturating_sub(left) } else { 0 })
        else {
            break;
        };
        let mut watchers = world.watchers.borrow_mut();
        watchers.iter_mut().find(|w| w.thread == thread).expect("it queues").wake(address);
        woken.push(thread);
    }
    for &thread in &woken {
        world.ring_bell(thread);
        if let Some(it) = world.watchers.borrow_mut().iter_mut().find(|w| w.thread == thread) {
            it.called = it.woken.is_some();
        }
        world.changed();
    }
    woken.len() as u32
}

/// Adds to a word and wakes, in one step.
pub(crate) fn add_and_wake(word: &U32, add: u32, count: u32) {
    word.fetch_add(add, std::sync::atomic::Ordering::Relaxed);
    rouse(&world(), Place::narrow(word), count);
}
