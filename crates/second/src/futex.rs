//! Sleeping and waking: what PLATFORM-COMPARE, PLATFORM-WOKEN and PLATFORM-ADDRESS of the core's
//! `platform.rs` promise, and no more.
//!
//! Loom's own ways to block let the one that wakes publish its memory to the one that is woken,
//! which hides what a waiter must not rely on. So a sleeper here yields until the list says that it
//! was woken, and learns nothing by that.
//!
//! The compare of a wait looks at the newest value of the word, and the sleeper is put on the list
//! with no switch between. A wake looks at the same word first, and takes sleepers off the list
//! with no switch between. Both looks are read-modify-writes to loom, so it explores both orders.
//! A timer that fires looks at the word for the same reason.

use crate::config::Fault;
use crate::place::Place;
use crate::sleeper::Sleeper;
use crate::world::{FREED, World, world};
use crate::{Model, U32, U64};
use lockstead_core::{WaitBounds, WaitOutcome};

/// What the hand-off waiter of a lock adds to the address at which it sleeps: it sleeps in the same
/// word as the others, on the other half as it were.
pub(crate) const HANDOFF: usize = 4;

impl Place {
    pub(crate) fn narrow(word: &U32) -> Self {
        Place::Narrow(word.number())
    }

    pub(crate) fn low(word: &U64) -> Self {
        Place::Low(word.number())
    }

    /// Looks at the newest value.
    fn peek(self, world: &World) -> u32 {
        self.peek_all(world) as u32
    }

    /// Looks at the newest value for a thread that begins to wait, whose memory it must still be.
    fn compare(self, world: &World) -> u32 {
        let found = self.peek(world);
        let freed = match self {
            Place::Narrow(number) => U32::is_freed(world, number),
            Place::Low(number) => U64::is_freed(world, number),
        };
        assert!(!freed, "{FREED}");
        found
    }

    /// Looks at the newest value of the whole word.
    pub(crate) fn peek_all(self, world: &World) -> u64 {
        match self {
            Place::Narrow(number) => U32::peek(world, number).into(),
            Place::Low(number) => U64::peek(world, number),
        }
    }
}

/// Waits while the word at `place` holds `expected`.
pub(crate) fn wait(
    place: Place,
    channel: usize,
    expected: u32,
    how: &WaitBounds<'_, Model>,
) -> WaitOutcome {
    let world = world();
    let me = world.me();
    assert!(me < world.threads, "setting up and checking must not wait");
    world.signal_may_come();
    let spurious = world.happens(|left| &mut left.spurious);
    let interrupted = !spurious && how.interruptible && world.happens(|left| &mut left.interrupts);
    if how.deadline.is_some_and(|deadline| deadline.0 <= world.now()) {
        // It compares first all the same, as the kernel does.
        let same = place.compare(&world) == expected;
        return if same { WaitOutcome::TimedOut } else { WaitOutcome::Changed };
    }
    if place.compare(&world) != expected {
        return WaitOutcome::Changed;
    }
    if spurious {
        return WaitOutcome::Woken;
    }
    if interrupted {
        return WaitOutcome::Interrupted;
    }
    if world.config.fault == Some(Fault::SplitWait) {
        place.peek(&world);
    }
    let cancel = how.cancel.map(Place::narrow);
    world.sleepers.borrow_mut().push(Sleeper {
        thread: me,
        address: place.address() + channel,
        cancel: cancel.map(Place::address),
        deadline: how.deadline.map(|deadline| deadline.0),
        woken: None,
        called: false,
    });
    if let Some(cancel) = cancel
        && cancel.peek(&world) != 0
    {
        return rise(&world, WaitOutcome::Cancelled);
    }
    sleep(&world, place, how.deadline.map(|deadline| deadline.0))
}

/// Sleeps until woken, or until the timer fires.
fn sleep(world: &World, place: Place, deadline: Option<u64>) -> WaitOutcome {
    let me = world.me();
    let (mut looks, mut seen) = (0, None);
    loop {
        if world.sleepers.borrow().iter().any(|s| s.thread == me && s.called) {
            world.hear_bell(me);
            return rise(world, WaitOutcome::Woken);
        }
        // A timer that fires now could have fired when the thread looked last, unless something
        // has changed since.
        if let Some(deadline) = deadline
            && seen.replace(world.changes()) != Some(world.changes())
            && world.happens(|left| &mut left.timeouts)
        {
            place.peek(world);
            let outcome = rise(world, WaitOutcome::TimedOut);
            if outcome == WaitOutcome::TimedOut {
                world.pass_to(deadline);
            }
            return outcome;
        }
        world.sleep_on(&mut looks);
    }
}

/// Takes the calling thread off the list. Returns how it was woken, or `outcome` if nobody did.
fn rise(world: &World, outcome: WaitOutcome) -> WaitOutcome {
    let me = world.me();
    let mut sleepers = world.sleepers.borrow_mut();
    let at = sleepers.iter().position(|s| s.thread == me).expect("it slept");
    world.changed();
    sleepers.remove(at).woken.unwrap_or(outcome)
}

/// Wakes up to `count` sleepers at `address`, the longest asleep first. Returns how many.
pub(crate) fn wake(address: usize, count: u32) -> u32 {
    if std::thread::panicking() {
        return 0;
    }
    let world = world();
    world.signal_may_come();
    Place::of(address).peek(&world);
    if world.config.fault == Some(Fault::NoWake) {
        return 0;
    }
    let mut woken = Vec::new();
    for sleeper in world.sleepers.borrow_mut().iter_mut().filter(|s| s.woken.is_none()) {
        if woken.len() as u32 == count {
            break;
        }
        if sleeper.address == address {
            sleeper.woken = Some(WaitOutcome::Woken);
        } else if sleeper.cancel == Some(address) {
            sleeper.woken = Some(WaitOutcome::Cancelled);
        } else {
            continue;
        }
        woken.push(sleeper.thread);
    }
    for &thread in &woken {
        world.ring_bell(thread);
        let mut sleepers = world.sleepers.borrow_mut();
        if let Some(sleeper) = sleepers.iter_mut().find(|s| s.thread == thread) {
            sleeper.called = sleeper.woken.is_some();
        }
        drop(sleepers);
        world.changed();
    }
    woken.len() as u32
}
