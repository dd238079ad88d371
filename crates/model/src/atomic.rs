//! Atomics whose every access is a point of exploration.

use crate::atom::Atom;
use crate::engine::{self, Engine, Visible, check, death, halt, point, with};
use crate::report::{ModelStep, Site};
use crate::signal;
use std::panic::Location;
use std::sync::atomic::Ordering;

/// Notes that the thread looks at `atom` too, as part of an access to another.
pub(crate) fn glance(atom: &Atom) {
    if let Visible::Over = with(|engine| engine.touch(atom)) {
        halt();
    }
}

/// Lets others go first before an access, and a signal come.
pub(crate) fn access(atom: &Atom, always: bool, site: Site) {
    let visible = with(|engine| engine.touch(atom));
    match visible {
        Visible::Over => halt(),
        Visible::Yes => point(site),
        Visible::No | Visible::Guarded if always => point(site),
        Visible::No | Visible::Guarded => {}
    }
    if with(|engine| engine.aside) {
        return;
    }
    if visible == Visible::Guarded {
        death::may_come();
    }
    signal::may_come(site);
    if !with(|engine| engine.begin(atom.address())) {
        halt();
    }
}

macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident, $value:ident, $wide:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            pub(crate) atom: Atom,
        }

        impl $name {
            /// The atomic that holds zero.
            #[expect(clippy::declare_interior_mutable_const, reason = "each use is a new one")]
            pub const ZERO: Self = Self { atom: Atom::NEW };

            /// Reads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                let site = Location::caller();
                access(&self.atom, false, site);
                let value = with(|e| e.load(&self.atom, order, site, $wide));
                check();
                value as $value
            }

            /// Writes the value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                let site = Location::caller();
                access(&self.atom, false, site);
                with(|e| e.store(&self.atom, value.into(), order, site, $wide));
            }

            /// Writes the value and returns the one before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |_| value)
            }

            /// Adds, wrapping, and returns the value before.
            #[track_caller]
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_add(value))
            }

            /// Subtracts, wrapping, and returns the value before.
            #[track_caller]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_sub(value))
            }

            /// Sets bits and returns the value before.
            #[track_caller]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old | value)
            }

            /// Keeps bits and returns the value before.
            #[track_caller]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old & value)
            }

            #[track_caller]
            fn update(&self, order: Ordering, change: impl FnOnce($value) -> $value) -> $value {
                let site = Location::caller();
                access(&self.atom, false, site);
                let change = |old| u64::from(change(old as $value));
                with(|e| e.update(&self.atom, order, site, $wide, change)) as $value
            }

            /// Replaces `current` by `new`.
            ///
            /// # Errors
            /// The value found, when it was not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let site = Location::caller();
                access(&self.atom, false, site);
                let (wanted, new) = (current.into(), new.into());
                let result = with(|e| {
                    let all = u64::MAX;
                    e.compare_exchange(&self.atom, all, wanted, new, success, failure, site, $wide)
                });
                check();
                result.map(|v| v as $value).map_err(|v| v as $value)
            }
        }
    };
}

atomic!(
    /// A 32-bit atomic. Usable only inside a scenario; it must lie in the shared
    /// value, on a thread's stack or in a participant.
    U32, u32, false
);
atomic!(
    /// A 64-bit atomic. Usable only inside a scenario; it must lie in the shared
    /// value, on a thread's stack or in a participant.
    U64, u64, true
);

/// Executes a fence, for protocols that use one (the locks do not).
#[track_caller]
pub fn fence(order: Ordering) {
    let site = Location::caller();
    point(site);
    let on = with(|engine: &mut Engine| {
        let me = engine.current;
        let learnt = engine.memory.fence(me, order);
        engine.learn(learnt);
        engine.event(site, ModelStep::Fence(order), 0, false);
        engine.step()
    });
    if !on {
        halt();
    }
}

/// Declares the memory of `object` as freed: from here on any access to an
/// atomic or plain field in it is a failure. Waking its address is not.
#[track_caller]
pub fn freed<T>(object: &T) {
    let site = Location::caller();
    point(site);
    engine::with(|engine| {
        let start = std::ptr::from_ref(object).addr();
        engine.freed.push(start..start + size_of::<T>());
        engine.learn(2);
        engine.changes += 1;
        engine.event(site, ModelStep::Free, start, false);
    });
}
