//! Two locks, one inside the other.

/// The core as it ships.
mod shipped {
    pub(super) use lockstead_core::{atomic, platform, robust};
    #[allow(dead_code, unused_imports, unreachable_pub, reason = "other models use the rest")]
    pub(super) mod model {
        include!("segment/mixed.rs");
    }
}

use crate::killing;

#[test]
fn shared_mutex_inside_a_rwlock() {
    shipped::model::nested().verify("3 threads", &killing(2));
}
