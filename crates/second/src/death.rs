//! The end of a participant at any of its steps, and another one in its place.
//!
//! A thread that ends here unwinds to where its program began, which does nothing that others could
//! see, and then makes the steps of the machine: what the invariants DEATH-MARK, DEATH-NAMED-WORD and
//! DEATH-LOST-WAKE of the core's `robust/machine.rs` say, each a step of its own between which others
//! go on. It leaves the queues in which it slept, one after the other, and may swallow a wake-up in
//! each; its life word is marked; one of those that sleep there is woken; then one of those that
//! sleep on the word that it had named.

use crate::needs::{begin_anew, needs};
use crate::participants::Participant;
use crate::place::Place;
use crate::world::{World, world};
use crate::{U32, U64, watch};
use lockstead_core::robust::life::{LIFE_DEAD, LIFE_NUMBER};
use std::ptr::NonNull;

/// Makes the steps of the machine after the participant of the calling thread has ended. Has the
/// scenario take note of it by `mourn` when its life word is marked. Returns whether another one
/// comes in its place.
pub(crate) fn end(world: &World, mourn: &dyn Fn(), again: bool) -> bool {
    let (me, people) = (world.me(), &world.participants);
    watch::rise(world);
    while watch::leave_one(world) {}
    watch::take(world, me);
    world.changed();
    let Participant { life, named, deferred, .. } = people.with(me, |it| it.clone());
    let unmarked = world.happens(|left| &mut left.unmarked);
    match life {
        Some(place) if !unmarked => {
            U64::mark_low(world, place.number(), LIFE_DEAD);
            world.aside(mourn);
            place.peek_all(world);
            watch::rouse(world, place, 1);
        }
        _ => world.aside(mourn),
    }
    let named = named.map(|(_, place)| place).or(deferred).filter(|_| !unmarked);
    if let Some(named) = named
        && named.peek_all(world) as u32 & LIFE_NUMBER == 0
    {
        watch::rouse(world, named, 1);
    }
    if let Some(life) = life {
        // The step in which it becomes known that it has ended: `has_ended` looks there, too.
        life.peek_all(world);
    }
    people.with(me, |it| {
        *it = Participant { thrown: it.thrown, gone: true, life, ..Participant::default() };
    });
    world.changed();
    let comes = again && !unmarked && life.is_some() && world.happens(|left| &mut left.respawns);
    people.with(me, |it| it.gone = !comes);
    comes
}

/// Tells whether the participant of the thread with this number, from 1, has ended: the answer of a
/// machine that always knows.
pub(crate) fn has_ended(number: u32) -> bool {
    let world = world();
    let thread = (number as usize).wrapping_sub(1);
    if thread >= world.threads {
        return false;
    }
    if let Some(life) = world.participants.with(thread, |it| it.life) {
        life.peek_all(&world);
    }
    world.participants.with(thread, |it| it.gone)
}

/// Makes the calling thread the participant with this life word from now on, and may be killed
/// before any of its steps.
pub fn embody(life: &U64) {
    let world = world();
    if needs().ends == 0 {
        begin_anew(|needs| (needs.ends, needs.choices) = (4, true));
    }
    let life = Place::low(life);
    world.participants.with(world.me(), |it| (it.mortal, it.life) = (true, Some(life)));
}

/// Makes the calling thread no participant any longer, and no life word is marked should it be
/// killed. Whether it may be is as before.
pub fn disembody() {
    let world = world();
    world.participants.with(world.me(), |it| it.life = None);
}

/// Names where somebody is woken when the calling thread ends. Returns what was named before.
pub(crate) fn at_death_wake(word: Option<NonNull<U32>>) -> Option<NonNull<U32>> {
    let world = world();
    world.may_end();
    // SAFETY: the core, which names the word, keeps it where it is until it names another
    // (DEATH-NAMED-WORD).
    let named = word.map(|word| (word.cast(), Place::narrow(unsafe { word.as_ref() })));
    let before = world.participants.with(world.me(), |it| std::mem::replace(&mut it.named, named));
    before.map(|(word, _)| word.cast())
}

/// Names where somebody is woken when the calling thread ends and has named nothing. Returns false,
/// and nothing has changed, where the machine is not to offer that.
pub(crate) fn defer_wake(word: &U32) -> bool {
    let world = world();
    let offered = world.config.defers_wakes;
    if offered {
        world.participants.with(world.me(), |it| it.deferred = Some(Place::narrow(word)));
    }
    offered
}
