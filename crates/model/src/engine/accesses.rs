//! What an access to an atomic does, once it is the turn of its thread.

use super::{Engine, ExecutionStop, Phase};
use crate::atom::Atom;
use crate::choices::Lean;
use crate::config::AccessKind;
use crate::fingerprint::mix;
use crate::memory::{ModelMemory, Touched};
use crate::report::{FailureKind, ModelStep, Site};
use crate::space::Space;
use std::sync::atomic::Ordering;

/// What others see of an access, and so whether they may go before it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visible {
    /// Others see the access.
    Yes,
    /// Only this thread touches the location.
    No,
    /// Only whoever has a lock touches the location.
    Guarded,
    /// The execution is over.
    Over,
}

impl Engine {
    /// Returns the location of `atom`.
    pub(crate) fn locate(&mut self, atom: &Atom) -> usize {
        if atom.generation.get() == self.generation {
            return atom.location.get() as usize;
        }
        let place = self.name(atom.address());
        let Some(location) = self.memory.register(place) else {
            self.fail(FailureKind::Misuse("a model may use at most 96 atomics".into()));
            return 0;
        };
        atom.generation.set(self.generation);
        atom.location.set(location as u32);
        location
    }

    /// Returns a name for a fresh location at `address`.
    fn name(&mut self, address: usize) -> u64 {
        let Some(place) = self.space.place(address) else {
            self.fail(FailureKind::Misuse(
                "model memory must lie in the shared value, on a thread's stack or in a slot"
                    .into(),
            ));
            return 0;
        };
        Space::key(place)
    }

    /// Notes that the current thread touches `atom`.
    pub(crate) fn touch(&mut self, atom: &Atom) -> Visible {
        let location = self.locate(atom);
        if self.stop.is_some() {
            return Visible::Over;
        }
        if matches!(self.phase, Phase::Setup | Phase::After) || self.aside {
            return Visible::No;
        }
        if let Some(owned) = self.guarded(atom.address()) {
            if !owned {
                self.fail(FailureKind::Misuse("guarded memory is touched without the lock".into()));
            }
            return if owned { Visible::Guarded } else { Visible::Over };
        }
        let me = self.current;
        match self.memory.touched(location) {
            Touched::Shared => return Visible::Yes,
            Touched::By(other) if other == me => return Visible::No,
            Touched::Nobody | Touched::By(_) => {}
        }
        let key = self.memory.key(location);
        if !self.config.reduce || self.shared.contains(&key) {
            self.memory.touch(location, Touched::Shared);
            return Visible::Yes;
        }
        if self.memory.touched(location) == Touched::Nobody {
            self.memory.touch(location, Touched::By(me));
            return Visible::No;
        }
        self.shared.insert(key);
        self.stop = Some(ExecutionStop::Restart);
        Visible::Over
    }

    /// Begins a step. Returns whether the thread may take it at all.
    pub(crate) fn begin(&mut self, address: usize) -> bool {
        if self.freed.iter().any(|range| range.contains(&address)) {
            self.fail(FailureKind::UseAfterFree);
        }
        self.step()
    }

    fn ordering(&self, site: Site, access: AccessKind, order: Ordering) -> Ordering {
        self.config.orderings.as_ref().map_or(order, |replace| replace(site, access, order))
    }

    fn note(&mut self, site: Site, atom: &Atom, wide: bool, step: ModelStep) {
        self.event(site, step, atom.address(), wide);
    }

    /// Picks one of the stores with an index from the newest, which comes first, to `oldest`, of
    /// those that are `wanted`. A store with a value of `loads` is only read. Returns whether it is
    /// another than the first one, too.
    fn pick(
        &mut self,
        location: usize,
        oldest: u16,
        loads: impl Fn(u64) -> bool,
        wanted: impl Fn(&ModelMemory, u16) -> bool,
    ) -> (u16, bool) {
        let newest = self.memory.last_index(location);
        let mut indices = std::mem::take(&mut self.indices);
        indices.clear();
        indices.push(newest);
        if self.budget.stale > 0 {
            indices.extend((oldest..newest).rev().filter(|&index| wanted(&self.memory, index)));
        }
        self.memory.keep_least(location, &mut indices, loads);
        let chosen = self.choose(indices.len(), Lean::First(140));
        if chosen != 0 && self.budget.stale != u32::MAX {
            self.budget.stale -= 1;
        }
        let index = indices[chosen];
        self.indices = indices;
        (index, chosen != 0)
    }

    pub(crate) fn load(&mut self, atom: &Atom, order: Ordering, site: Site, wide: bool) -> u64 {
        let (me, location) = (self.current, self.locate(atom));
        let order = self.ordering(site, AccessKind::Load, order);
        let oldest = self.memory.oldest(me, location, order);
        let (index, stale) = self.pick(location, oldest, |_| true, |_, _| true);
        let (value, id) = self.memory.read(me, location, index, order);
        self.learn(id);
        self.note(site, atom, wide, ModelStep::Load { value, stale });
        value
    }

    pub(crate) fn store(
        &mut self,
        atom: &Atom,
        value: u64,
        order: Ordering,
        site: Site,
        wide: bool,
    ) {
        let location = self.locate(atom);
        let order = self.ordering(site, AccessKind::Store, order);
        let oldest = self.memory.oldest(self.current, location, order);
        let open = |memory: &ModelMemory, index| memory.open(location, index);
        let (behind, _) = self.pick(location, oldest, |_| false, open);
        self.learn(u64::from(behind));
        self.put(location, behind, value, order, false);
        self.note(site, atom, wide, ModelStep::Store { value });
    }

    fn put(&mut self, location: usize, behind: u16, value: u64, order: Ordering, glued: bool) {
        let me = self.current;
        let changes =
            self.memory.newest(location) != value || behind != self.memory.last_index(location);
        if changes && !self.aside {
            self.changes += 1;
            self.threads[me].own += 1;
        }
        self.learn(1);
        let id = mix(self.threads[me].history, me as u64);
        if !self.memory.write(me, location, behind, value, order, id, glued) {
            self.fail(FailureKind::Misuse("too many stores between two others".into()));
        }
    }

    pub(crate) fn update(
        &mut self,
        atom: &Atom,
        order: Ordering,
        site: Site,
        wide: bool,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let location = self.locate(atom);
        let order = self.ordering(site, AccessKind::Update, order);
        let oldest = self.memory.oldest(self.current, location, order);
        let open = |memory: &ModelMemory, index| memory.open(location, index);
        let (index, _) = self.pick(location, oldest, |_| false, open);
        self.replace(atom, index, order, site, wide, change)
    }

    /// Replaces the value of the store with `index`.
    fn replace(
        &mut self,
        atom: &Atom,
        index: u16,
        order: Ordering,
        site: Site,
        wide: bool,
        change: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let (me, location) = (self.current, self.locate(atom));
        let (from, id) = self.memory.read(me, location, index, order);
        self.learn(id);
        let to = change(from);
        self.put(location, index, to, order, true);
        self.note(site, atom, wide, ModelStep::Exchange { from, to });
        from
    }

    #[expect(clippy::too_many_arguments, reason = "a compare-exchange has that many")]
    pub(crate) fn compare_exchange(
        &mut self,
        atom: &Atom,
        mask: u64,
        wanted: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
        site: Site,
        wide: bool,
    ) -> Result<u64, u64> {
        let (me, location) = (self.current, self.locate(atom));
        let order = self.ordering(site, AccessKind::Exchange, success);
        let failed = self.ordering(site, AccessKind::FailedExchange, failure);
        let least = self.memory.oldest(me, location, order);
        let least_failed = self.memory.oldest(me, location, failed);
        let fits = |value| value & mask == wanted;
        let oldest = least.min(least_failed);
        let (index, stale) = self.pick(
            location,
            oldest,
            |value| !fits(value),
            |memory, index| {
                if fits(memory.value(location, index)) {
                    index >= least && memory.open(location, index)
                } else {
                    index >= least_failed
                }
            },
        );
        if fits(self.memory.value(location, index)) {
            return Ok(self.replace(atom, index, order, site, wide, |old| old & !mask | new));
        }
        let (found, id) = self.memory.read(me, location, index, failed);
        self.learn(id);
        self.note(site, atom, wide, ModelStep::FailedExchange { found, wanted, stale });
        Err(found)
    }
}
