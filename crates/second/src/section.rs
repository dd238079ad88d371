//! Releases that are restarted, and fences that one thread has all others execute.
//!
//! Each thread has a gate, a word of its own. A section (`Halves::erase_low`) goes through it twice:
//! before its look, and before its store. Whoever restarts the releases of others shuts the gates
//! that stand open, one after the other, and waits for a store that is under way. An access through
//! a gate is acquire and release: what the one that restarts did before is seen by sections that
//! begin later, and their stores by the one that restarts. (So an order beside the section's own
//! hides what a release of the lock lacks, towards the one that restarts.)
//!
//! Where threads have others execute fences, each access of a thread goes through its gate, so that
//! a fence has an order to everything that a thread does but the one access that is under way.

use crate::Model;
use crate::config::{Fault, Membarrier};
use crate::needs::begin_anew;
use crate::world::{World, world};
use lockstead_core::Slot;
use lockstead_core::biased::Fences;
use std::sync::atomic::Ordering;

/// The thread is in no section, or must begin anew.
const SHUT: u32 = 0;
/// The thread has looked, or is about to.
const OPEN: u32 = 1;
/// The thread has passed its gate and stores.
const STORES: u32 = 2;

/// Begins a section of the calling thread.
pub(crate) fn begin(world: &World) {
    let gate = &world.gates[world.me()];
    world.visible(|| gate.swap(OPEN, Ordering::AcqRel));
}

/// Tells whether the calling thread may store, which it does then.
pub(crate) fn commits(world: &World) -> bool {
    let gate = &world.gates[world.me()];
    world.signal_may_come();
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    world.visible(|| gate.compare_exchange(OPEN, STORES, success, failure)).is_ok()
}

/// Ends a section whose thread has stored.
pub(crate) fn end(world: &World) {
    let gate = &world.gates[world.me()];
    // No store: loom would give it no order to an update that came between.
    world.visible(|| gate.swap(SHUT, Ordering::AcqRel));
}

/// Restarts the sections of all others.
pub(crate) fn restart() {
    let world = world();
    if world.config.sections && world.config.fault != Some(Fault::NoRestart) {
        go_through_all(&world, !OPEN);
    }
}

/// Goes through the gates of all others, and leaves the bits of `mask`.
fn go_through_all(world: &World, mask: u32) {
    let me = world.me();
    for gate in world.gates[..world.threads].iter().enumerate().filter(|(t, _)| *t != me) {
        let gate = gate.1;
        let mut found = world.visible(|| gate.fetch_and(mask, Ordering::AcqRel));
        while mask == !OPEN && found == STORES {
            world.relax();
            found = world.visible(|| gate.fetch_and(mask, Ordering::AcqRel));
        }
    }
}

/// Has the calling thread learn of fences that others made it execute, before an access.
pub(crate) fn learn(world: &World) {
    if world.fences && world.me() < world.threads {
        let gate = &world.gates[world.me()];
        world.visible(|| gate.fetch_add(0, Ordering::AcqRel));
    }
}

impl Fences for Model {
    fn can_fence() -> bool {
        let world = world();
        let can = world.config.membarrier != Membarrier::Absent;
        if can && !world.fences {
            begin_anew(|needs| needs.fences = true);
        }
        can
    }

    fn fence_others(_owner: Slot) -> bool {
        let world = world();
        if world.config.membarrier == Membarrier::Denied {
            return false;
        }
        if world.config.fault != Some(Fault::NoFence) {
            go_through_all(&world, !0);
        }
        true
    }
}
