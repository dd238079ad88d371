//! The markers of faults as the checker has them: one of them can be chosen, by its name.
//!
//! This file stands in the place of the core's own `fault.rs` in the package
//! `lockstead-model-core` only. A choice holds for the calling thread, on which the checker
//! runs all strands of a model, so tests that run beside each other choose for themselves.

extern crate std;

use std::cell::Cell;

/// Asks whether the fault of this name is chosen.
#[doc(hidden)]
#[macro_export]
macro_rules! fault {
    ($name:ident) => {
        $crate::fault::is_chosen(stringify!($name))
    };
}

std::thread_local! {
    static CHOSEN: Cell<Option<&'static str>> = const { Cell::new(None) };
    static REACHED: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the calling thread has chosen the fault `name`, and notes that its marker
/// exists.
pub fn is_chosen(name: &str) -> bool {
    let chosen = CHOSEN.get().is_some_and(|chosen| chosen == name);
    if chosen {
        REACHED.set(true);
    }
    chosen
}

/// A fault that the calling thread has chosen, until this is dropped.
#[derive(Debug)]
pub struct Choice {
    before: Option<&'static str>,
}

impl Choice {
    /// Chooses the fault `name`, or none, for the calling thread.
    #[must_use]
    pub fn new(name: Option<&'static str>) -> Self {
        REACHED.set(false);
        Choice { before: CHOSEN.replace(name) }
    }

    /// Panics if a fault is chosen whose marker no step has come to since.
    ///
    /// # Panics
    /// If there is no such marker, or it stands where nothing was executed.
    pub fn must_be_reached(&self) {
        if let Some(name) = CHOSEN.get() {
            assert!(REACHED.get(), "no step came to a marker fault!({name})");
        }
    }
}

impl Drop for Choice {
    fn drop(&mut self) {
        CHOSEN.set(self.before);
    }
}
