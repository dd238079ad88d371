//! The locks that records speak of: each life at an address is a lock of its
//! own, and what tells it from others is kept, for the address may have another
//! lock by the time somebody asks.

use crate::report::names::LockFacts;
use lockstead_ledger::lock::{LockRecord, ObjectKind, RecordLife};
use lockstead_ledger::{Ledger, LedgerPart};
use lockstead_lockdep::ClassId;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Lives that are kept: more than any order graph has locks at a time.
const MOST: usize = 1 << 23;

/// One lock from its initialisation or first use to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockLife {
    /// The index of its record.
    pub index: u32,
    /// The number of this life among those of its address.
    pub generation: u32,
    /// The address at which it lay.
    pub address: u64,
    /// The kind of lock it was.
    pub kind: ObjectKind,
    /// The attributes that its initialisation gave it.
    pub attributes: u16,
    /// The how-manieth of its origin, 0 if that is not known.
    pub serial: u32,
    /// The index of the module it lies in plus one; 0 for others.
    pub module: u32,
    /// The stack of its initialisation, or 0.
    pub init_stack: u32,
    /// The stack of its first use, or 0.
    pub first_stack: u32,
    /// Its record says nothing of it any more: others may have used it before that.
    pub late: bool,
}

impl LockLife {
    /// Returns the life of the lock with this index, if there is one. What was never
    /// claimed is not looked at.
    pub(super) fn of(
        ledger: &Ledger<'_>,
        index: u32,
        generation: u32,
        seen: u32,
    ) -> Option<LockLife> {
        let used = ledger.used(LedgerPart::Locks);
        let record = ledger.lock(index).filter(|_| (index as usize) < used)?;
        Some(LockLife::read(record, index, generation, seen))
    }

    /// Returns what the record says of the lock with this generation; if there is a
    /// later lock at the address by now, that it was used at `seen`.
    fn read(record: &LockRecord, index: u32, generation: u32, seen: u32) -> LockLife {
        let (kind, _, attributes) = record.shape();
        let [serial, module, init_stack, first_stack] =
            [&record.serial, &record.module, &record.init_stack, &record.first_stack]
                .map(|word| word.load(Relaxed));
        let life = LockLife {
            index,
            generation,
            address: record.address.load(Relaxed),
            kind,
            attributes,
            serial,
            module,
            init_stack,
            first_stack,
            late: false,
        };
        if module != 0 || is_of(record, generation) {
            return life;
        }
        LockLife { serial: 0, init_stack: 0, first_stack: seen, late: true, attributes: 0, ..life }
    }

    /// Returns what it is named by.
    #[must_use]
    pub fn facts(&self, ledger: &Ledger<'_>) -> LockFacts {
        let returns = |id| ledger.stack(id).map_or(Vec::new(), |stack| stack.returns().collect());
        let now = ledger.lock(self.index).map(|record| LockFacts::of(ledger, record));
        let given = now.as_ref().and_then(|facts| facts.given.clone());
        let is_of_second_pair = now.as_ref().and_then(|facts| facts.is_of_second_pair);
        let lives = ledger
            .lock(self.index)
            .is_some_and(|record| record.generation.load(Relaxed) == self.generation);
        LockFacts {
            address: self.address,
            kind: self.kind,
            attributes: self.attributes,
            serial: self.serial,
            module: self.module,
            // Whose stack it was is not known of one that is gone.
            on_stack_of: now.filter(|_| lives).and_then(|facts| facts.on_stack_of),
            init: returns(self.init_stack),
            first: returns(self.first_stack),
            noun: None,
            late: self.late,
            given: given.filter(|_| lives),
            is_of_second_pair,
        }
    }

    /// Returns what all locks of its origin have in common.
    fn origin(&self) -> ClassOrigin {
        match (self.module, self.init_stack) {
            (0, 0) if self.first_stack == 0 => ClassOrigin::Alone(self.address, self.generation),
            (0, 0) => ClassOrigin::First(self.kind, self.first_stack),
            (0, init) => ClassOrigin::Init(self.kind, init),
            _ => ClassOrigin::Variable(self.address),
        }
    }
}

/// What makes a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClassOrigin {
    /// It was initialised by a call with this stack.
    Init(ObjectKind, u32),
    /// It was used there first, and nobody saw it initialised.
    First(ObjectKind, u32),
    /// A variable of the program: one of its kind.
    Variable(u64),
    /// Nothing is known of its origin.
    Alone(u64, u32),
}

/// How a life came to be known, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifeKnowledge {
    /// It has the number that it had before.
    Id(u32),
    /// It begins, and the one with this id has ended.
    Begins {
        /// The number that it has from now on.
        id: u32,
        /// The id of the former life of the same index, which has ended.
        ended: Option<u32>,
    },
    /// It has ended, or there is no such lock, or no room.
    Not,
}

/// All lives of a process that a record spoke of.
#[derive(Debug, Default)]
pub struct Lives {
    all: Vec<LockLife>,
    classes: Vec<ClassId>,
    current: HashMap<u32, u32>,
    over: HashMap<u32, u32>,
    origins: HashMap<ClassOrigin, ClassId>,
    /// The number of those for which there was no room.
    pub lost: u64,
}

impl Lives {
    /// Returns the life with this id.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<LockLife> {
        self.all.get(id as usize).copied()
    }

    /// Returns the class of a lock.
    pub(super) fn class(&self, id: u32) -> ClassId {
        self.classes[id as usize]
    }

    /// Returns how many there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Tells whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns all of them, by their ids.
    #[must_use]
    pub fn all(&self) -> &[LockLife] {
        &self.all
    }

    /// Returns the life that is known last of the lock with this index.
    pub(super) fn latest(&self, index: u32) -> Option<u32> {
        self.current.get(&index).copied()
    }

    /// Meets a life that a record speaks of, which was used at the stack `seen`.
    pub(super) fn meet(
        &mut self,
        ledger: &Ledger<'_>,
        index: u32,
        generation: u32,
        seen: u32,
    ) -> LifeKnowledge {
        let is_over = |over: &u32| *over == generation || is_later(*over, generation);
        if self.over.get(&index).is_some_and(is_over) {
            return LifeKnowledge::Not;
        }
        let before = self.latest(index);
        if let Some(id) = before {
            let known = self.all[id as usize].generation;
            if known == generation {
                return LifeKnowledge::Id(id);
            }
            if is_later(known, generation) {
                return LifeKnowledge::Not;
            }
        }
        let Some(life) = LockLife::of(ledger, index, generation, seen) else {
            return LifeKnowledge::Not;
        };
        if self.all.len() >= MOST {
            self.lost += 1;
            return LifeKnowledge::Not;
        }
        let id = self.all.len() as u32;
        let next = ClassId(self.origins.len() as u32);
        self.classes.push(*self.origins.entry(life.origin()).or_insert(next));
        self.all.push(life);
        self.current.insert(index, id);
        LifeKnowledge::Begins { id, ended: before }
    }

    /// Ends the life with this generation, and returns the id that it had.
    pub(super) fn end(&mut self, index: u32, generation: u32) -> Option<u32> {
        let over = self.over.entry(index).or_insert(generation);
        if is_later(generation, *over) {
            *over = generation;
        }
        let id = self.latest(index)?;
        (self.all[id as usize].generation == generation).then_some(id)
    }
}

/// Tells whether a record still says what it said of the lock with this generation: while
/// that lives, and until another one begins there.
fn is_of(record: &LockRecord, generation: u32) -> bool {
    let now = record.generation.load(Relaxed);
    let is_over = !matches!(record.shape().1, RecordLife::Live);
    now == generation || is_over && now == generation.wrapping_add(1)
}

/// Tells whether the generation `one` came after `other`; they may wrap.
fn is_later(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_wrap() {
        assert!(is_later(2, 1) && is_later(1, u32::MAX) && !is_later(1, 1) && !is_later(1, 2));
    }
}
