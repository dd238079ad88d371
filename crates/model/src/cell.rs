//! Plain shared fields, whose data races are found.
//!
//! An access is no point of exploration: whether two accesses race depends on
//! what happened before what, not on which came first in the schedule.

use crate::engine::{Engine, halt, with};
use crate::memory::Accesses;
use crate::report::{FailureKind, ModelStep};
use std::cell::UnsafeCell;
use std::panic::Location;

/// A plain field. The checker reports a data race on it.
#[derive(Debug, Default)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// Returns a cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Cell(UnsafeCell::new(value))
    }

    /// Reads through a shared pointer.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get().addr(), false, Location::caller());
        f(self.0.get())
    }

    /// Writes through an exclusive pointer.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get().addr(), true, Location::caller());
        f(self.0.get())
    }
}

impl<T: Copy> Cell<T> {
    /// Returns the value, a copy.
    #[track_caller]
    pub fn get(&self) -> T {
        // SAFETY: `with` has found no access that races with this one, and all
        // threads of a scenario share one thread of the operating system.
        self.with(|value| unsafe { *value })
    }

    /// Replaces the value by this one.
    #[track_caller]
    pub fn set(&self, value: T) {
        // SAFETY: `with_mut` has found no access that races with this one, and all
        // threads of a scenario share one thread of the operating system.
        self.with_mut(|place| unsafe { *place = value });
    }
}

fn access(address: usize, write: bool, site: &'static Location<'static>) {
    let on = with(|engine| {
        if engine.config.merged {
            // Its value is no part of a state.
            engine.fail(FailureKind::Misuse("a merged search knows no plain fields".into()));
        }
        let on = engine.begin(address) && engine.races(address, write);
        let step = if write { ModelStep::PlainWrite } else { ModelStep::PlainRead };
        engine.event(site, step, address, false);
        on
    });
    if !on {
        halt();
    }
}

impl Engine {
    /// Notes an access. Returns false if it races.
    fn races(&mut self, address: usize, write: bool) -> bool {
        let me = self.current;
        let clock = self.memory.view(me).clock;
        let known = self.cells.iter().position(|&(at, _)| at == address);
        let index = known.unwrap_or_else(|| {
            self.cells.push((address, Accesses::default()));
            self.cells.len() - 1
        });
        let fine = self.cells[index].1.note(me, &clock, write);
        if !fine {
            self.fail(FailureKind::Race);
        }
        fine
    }
}
