//! Two locks, one inside the other.

use super::killing;

#[test]
fn shared_mutex_inside_a_rwlock() {
    super::segment::mixed::nested().verify("3 threads", &killing(2));
}
