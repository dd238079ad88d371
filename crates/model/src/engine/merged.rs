//! States of a sequentially consistent machine, told from each other by what can
//! still matter.
//!
//! # Role
//! The other searches know a state by all that its threads have learnt so far. With
//! deaths at every step there are too many of those. Under
//! [`Config::merged`](crate::Config::merged) memory is sequentially consistent, and a
//! state is
//! - what each location holds;
//! - who queues where, who sleeps, who was woken and where, who dies and how far it is;
//! - of each thread, what it has learnt *since it last said what it keeps*: at the
//!   head of a loop ([`turn`]) and between two operations of a model ([`forget`]).
//!
//! What a thread says there must be true: all its variables but those that it keeps
//! are computed anew before they are used. It is, where a loop of the core calls
//! `RobustMachine::turn`, and a reader can check it line by line. What the rest of the loop
//! learns is kept as it was learnt, so that nothing else need be declared.
//!
//! Memory that only the owner of a lock touches is no reason to branch, other than that
//! the owner may die ([`guard`]).
//!
//! What a model notes for its own checks ([`aside`]) lies in model memory as well, and
//! so belongs to the state; touching it is no step.

use super::{Engine, with};
use crate::fingerprint::mix;
use crate::{U32, U64};
use std::panic::Location;

/// Stands for where the calling thread is, and all that it knows there.
pub(crate) fn here() -> u64 {
    with(|engine| engine.threads[engine.current].history)
}

/// Says that the calling thread knows no more than when it was `here`, but `kept`.
pub(crate) fn turn(here: u64, kept: u64, site: &'static Location<'static>) {
    with(|engine| {
        if engine.config.merged {
            let line = mix(u64::from(site.line()), u64::from(site.column()));
            let file = site.file().bytes().fold(0, |sum, byte| mix(sum, u64::from(byte)));
            let me = engine.current;
            engine.threads[me].history = mix(mix(here, mix(file, line)), kept);
        }
    });
}

/// Says that the calling thread knows nothing any more but that it has come to
/// `place` in its program, a number that no other place of it has. Between two
/// operations of a model under [`Config::merged`](crate::Config::merged).
pub fn forget(place: u64) {
    with(|engine| {
        if engine.config.merged {
            let me = engine.current;
            engine.threads[me].history = mix(place, 11);
        }
    });
}

/// Makes the calling thread the participant with this life word from now on, and may be
/// killed before any of its steps.
pub fn embody(life: &U64) {
    with(|engine: &mut Engine| {
        let me = engine.current;
        engine.threads[me].mortal = true;
        engine.threads[me].life = Some(&raw const life.atom);
    });
}

/// Makes the calling thread no participant any longer, and no life word is marked should it be
/// killed. Whether it may be is as before.
pub fn disembody() {
    with(|engine: &mut Engine| {
        let me = engine.current;
        engine.threads[me].life = None;
    });
}

/// Says that only the participant whose slot, the thread's number from 1, stands in the
/// lower bits of the word at `lock` touches the atomics of `object`. Each thread calls this
/// first of all. It is checked at every access.
pub fn guard<T>(object: *const T, lock: *const U32) {
    with(|engine| {
        let start = object.addr();
        let range = start..start + size_of::<T>();
        if !engine.guards.iter().any(|(other, _)| *other == range) {
            engine.guards.push((range, lock.cast()));
        }
    });
}

impl Engine {
    /// Returns `None` if an address is not guarded; else whether the current thread has the lock.
    pub(crate) fn guarded(&mut self, address: usize) -> Option<bool> {
        let at = self.guards.iter().position(|(range, _)| range.contains(&address))?;
        let lock = self.guards[at].1;
        // SAFETY: `guard` was given a lock of the shared value, which the runner keeps until
        // all threads of an execution have ended.
        let word = self.holds(unsafe { &*lock });
        let slot = lockstead_core::robust::Identity::from_bits(word as u32).map(|who| who.slot());
        Some(slot == Some(self.current as u32 + 1))
    }
}
