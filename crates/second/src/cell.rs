//! Plain shared fields, whose data races loom finds.

use crate::shelf::Handle;
use crate::world::world;
use std::cell::UnsafeCell;

/// A plain field. The checker reports a data race on it.
pub struct Cell<T> {
    handle: std::cell::Cell<Handle>,
    value: UnsafeCell<T>,
}

impl<T> Cell<T> {
    /// Returns a cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Cell { handle: std::cell::Cell::new(Handle::NEW), value: UnsafeCell::new(value) }
    }

    /// Reads through a shared pointer.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        if !std::thread::panicking() {
            let world = world();
            world.fields.item(world.number, &self.handle).1.life.with(|_| ());
        }
        f(self.value.get())
    }

    /// Writes through an exclusive pointer.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        if !std::thread::panicking() {
            let world = world();
            world.fields.item(world.number, &self.handle).1.life.with_mut(|_| ());
        }
        f(self.value.get())
    }
}

impl<T: Copy> Cell<T> {
    /// Returns the value, a copy.
    pub fn get(&self) -> T {
        // SAFETY: loom has found no access that races with this one, and all threads of a
        // scenario share one thread of the operating system.
        self.with(|value| unsafe { *value })
    }

    /// Replaces the value by this one.
    pub fn set(&self, value: T) {
        // SAFETY: loom has found no access that races with this one, and all threads of a
        // scenario share one thread of the operating system.
        self.with_mut(|place| unsafe { *place = value });
    }
}
