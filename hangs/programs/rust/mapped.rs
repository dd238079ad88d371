//! Guards of a part of what a lock protects, where the family has them.

use crate::cases::{Case, crossed};
use crate::family::{MappedMutexGuard, Mutex, MutexGuard, lock};
use crate::truth::meet;
use std::hint::black_box;

/// The cases, by name.
pub(crate) const CASES: &[(&str, Case)] = &[("mapped", || crossed::<u64>(mapped))];

#[inline(never)]
fn mapped(mine: &Mutex<u64>, other: &Mutex<u64>) {
    let mut part: MappedMutexGuard<'_, u64> = MutexGuard::map(lock!(mine), |all| black_box(all));
    meet(2);
    let guard = lock!(other);
    *part += *guard;
}
