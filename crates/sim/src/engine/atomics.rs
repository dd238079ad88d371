//! Atomics whose every access costs what it costs on the machine.
//!
//! Sequentially consistent but for stores, which are visible later to others (TSO).

use super::line::Went;
use super::strand::suspend;
use super::task::NOBODY;
use super::trace::StepKind;
use super::words::{U32, U64};
use super::world::{SimWorld, inside, with};

/// Passes the running task's debt, then tries `access` until it is done, or until a store is
/// on its way and will be done without the task.
fn until_done(access: impl Fn(&mut SimWorld) -> Went) -> Went {
    loop {
        let went = with(|w| {
            if w.current == NOBODY {
                return Some(Went::Hit);
            }
            if w.settle() {
                return None;
            }
            Some(access(w))
        });
        match went {
            None => suspend(),
            Some(Went::Drains) => suspend(),
            Some(Went::Asked) => {
                suspend();
                return Went::Asked;
            }
            Some(went) => return went,
        }
    }
}

macro_rules! atomic {
    ($name:ident, $value:ident, $wide:literal) => {
        impl $name {
            pub(crate) fn note(&self, kind: StepKind, value: $value) {
                with(|w| {
                    if w.trace.on && w.current != NOBODY && !w.tasks[w.current].hushed {
                        w.note(kind, self.address(), value.into());
                    }
                });
            }

            /// Reads the word, at its cost.
            pub(crate) fn read(&self) -> $value {
                let address = self.address();
                let went = until_done(|w| w.read(address, self.get().into()));
                let value = self.get();
                if went == Went::Asked {
                    with(|w| w.fetched(address, value.into()));
                }
                self.note(StepKind::Load, value);
                value
            }

            /// Writes the word, at its cost.
            pub(crate) fn write(&self, value: $value) {
                if !inside() {
                    // A lock is made before its simulation begins.
                    self.set(value);
                    return;
                }
                let address = self.address();
                let went = until_done(|w| w.write(address, Some((value.into(), $wide))));
                if went != Went::Posted {
                    self.set(value);
                }
                self.note(StepKind::Store, value);
            }

            /// Changes in one step; returns the value before.
            pub(crate) fn update(&self, change: impl FnOnce($value) -> $value) -> $value {
                let before = self.update_quietly(change);
                self.note(StepKind::Update, self.get());
                before
            }

            /// Does the same as [`Self::update`], and notes no step of the task.
            pub(crate) fn update_quietly(&self, change: impl FnOnce($value) -> $value) -> $value {
                let address = self.address();
                until_done(|w| w.write(address, None));
                let before = self.get();
                self.set(change(before));
                before
            }

            /// Replaces `current` by `new`, or returns what was found.
            pub(crate) fn replace(&self, current: $value, new: $value) -> Result<$value, $value> {
                let before = self.update(|value| if value == current { new } else { value });
                if before == current { Ok(before) } else { Err(before) }
            }
        }
    };
}

atomic!(U32, u32, false);
atomic!(U64, u64, true);
