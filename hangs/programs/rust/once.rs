//! What hangs with std and parking_lot alone: lockstead refuses to wait for oneself, and its `Once`
//! has other words.

use crate::cases::{Case, Locked, crossing};
use crate::family::{Mutex, Once, lock};
use crate::truth::{self, meet, start};
use std::sync::Arc;

/// The cases, by name.
pub(crate) const CASES: &[(&str, Case)] = &[("once", once), ("self", twice)];

/// Lets two initialisers each want what the other one initialises.
fn once() {
    let (one, two) = (Arc::new(Once::new()), Arc::new(Once::new()));
    truth::lock("a", &*one);
    truth::lock("b", &*two);
    crossing();
    let (first, second) = (one.clone(), two.clone());
    start("one", move || initialise(&first, &second));
    start("two", move || initialise(&two, &one));
}

#[inline(never)]
fn initialise(mine: &Once, other: &Once) {
    mine.call_once(|| {
        meet(2);
        other.call_once(|| ());
    });
}

fn twice() {
    let mutex = Arc::new(Mutex::new(0));
    truth::lock("a", &*mutex);
    truth::own("a", "one");
    truth::wait("one", "a");
    start("one", move || again(&mutex, &mutex));
}

#[inline(never)]
fn again(mutex: &Locked, same: &Locked) {
    let mut held = lock!(mutex);
    *held += *lock!(same);
}
