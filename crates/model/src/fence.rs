//! Fences that one thread has all others execute (`Fences` of the core).
//!
//! # What it does
//! All that the caller did before is seen by what others do after it, and all that others
//! did before it by the caller. It restarts no section.
//!
//! # What it does not show
//! A kernel reaches the others one after the other, between the beginning of the call and
//! its end; here all are reached in one step.

use crate::Model;
use crate::config::{Fault, Membarrier};
use crate::engine::with;
use crate::section::membarrier;
use lockstead_core::Slot;
use lockstead_core::biased::Fences;
use std::panic::Location;

impl Fences for Model {
    fn can_fence() -> bool {
        with(|engine| engine.config.membarrier) != Membarrier::Absent
    }

    #[track_caller]
    fn fence_others(_owner: Slot) -> bool {
        let (answer, fault) = with(|engine| (engine.config.membarrier, engine.config.fault));
        if answer == Membarrier::Denied {
            return false;
        }
        if fault != Some(Fault::NoFence) {
            membarrier(Location::caller(), false);
        }
        true
    }
}
