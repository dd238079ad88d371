//! Fences that one thread has all others execute (`Fences` of the core).
//!
//! # What it does
//! All that the caller did before is seen by what others do after it, and all that others
//! did before it by the caller. It restarts no section.
//!
//! # What it does not show
//! A kernel reaches the others one after the other, between the beginning of the call and
//! its end; here all are reached in one step.

use crate::config::{Fault, Membarrier};
use crate::engine::with;
use crate::section::membarrier;
use std::panic::Location;

/// Whether the machine says that it can.
pub fn can_fence() -> bool {
    with(|engine| engine.config.membarrier) != Membarrier::Absent
}

/// Does it, unless it is refused.
pub fn fence_others(site: &'static Location<'static>) -> bool {
    let (answer, fault) = with(|engine| (engine.config.membarrier, engine.config.fault));
    if answer == Membarrier::Denied {
        return false;
    }
    if fault != Some(Fault::NoFence) {
        membarrier(site, false);
    }
    true
}

/// Implements `Fences` of a core for [`Model`](crate::Model); see
/// [`platform!`](crate::platform).
#[macro_export]
macro_rules! fences {
    ($($core:tt)+) => {
        impl $($core)+::biased::Fences for $crate::Model {
            fn can_fence() -> bool {
                $crate::hidden::can_fence()
            }

            #[track_caller]
            fn fence_others(_owner: $($core)+::slot::Slot) -> bool {
                $crate::hidden::fence_others(::core::panic::Location::caller())
            }
        }
    };
}

crate::fences!(lockstead_core);
