//! Upgradable readers, of which a lock has one at a time: other readers get in beside it, writers and
//! other upgradable readers do not; and it becomes a writer when the other readers have gone.

use crate::cases::Case;
use crate::family::{Mutex, RwLock, lock, read, write};
use crate::truth::{self, after, arrive, meet, start};
use parking_lot::RwLockUpgradableReadGuard as Upgradable;
use std::hint::black_box;
use std::sync::Arc;

type Table = RwLock<u64>;
type Locked = Mutex<u64>;

/// The cases, by name.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("upgradable_and_writer", || crossed(writes_last)),
    ("upgradable_and_upgradable", || crossed(reads_upgradably_last)),
    ("upgradable_among_readers", among_readers),
    ("upgradable_behind_reader", behind_reader),
    ("upgrades_behind_reader", upgrades_behind_reader),
    ("reads_behind_upgrade", || behind_upgrade(reads_when_closed)),
    ("upgradable_behind_upgrade", || behind_upgrade(reads_upgradably_when_closed)),
    ("upgradable_then_writes", || alone(then_writes)),
    ("upgradable_twice", || alone(twice)),
    ("upgrades_as_reader", || alone(upgrades_as_reader)),
    ("upgradable_gone", || once_upgradable(upgradable_gone)),
    ("upgradable_downgraded", once_downgraded),
];

fn both() -> (Arc<Table>, Arc<Locked>) {
    let (a, b) = (Arc::new(RwLock::new(0)), Arc::new(Mutex::new(0)));
    truth::lock("a", &*a);
    truth::lock("b", &*b);
    (a, b)
}

/// Lets an upgradable reader of `a` and a thread that wants `a` cross over `b`.
fn crossed(last: fn(&Table, &Locked)) {
    let (a, b) = both();
    truth::own("a", "one");
    truth::own("b", "two");
    truth::wait("one", "b");
    truth::wait("two", "a");
    let (table, mutex) = (a.clone(), b.clone());
    start("one", move || reads_upgradably_first(&table, &mutex));
    start("two", move || last(&a, &b));
}

#[inline(never)]
fn reads_upgradably_first(a: &Table, b: &Locked) {
    let held = a.upgradable_read();
    meet(2);
    *lock!(b) += *held;
}

#[inline(never)]
fn writes_last(a: &Table, b: &Locked) {
    let held = lock!(b);
    meet(2);
    *write!(a) += *held;
}

#[inline(never)]
fn reads_upgradably_last(a: &Table, b: &Locked) {
    let mut held = lock!(b);
    meet(2);
    *held += *a.upgradable_read();
}

/// Lets a writer want what an upgradable reader and a plain one have.
fn among_readers() {
    let (a, b) = both();
    for name in ["one", "three"] {
        truth::own("a", name);
        truth::wait(name, "b");
    }
    truth::own("b", "two");
    truth::wait("two", "a");
    let (table, mutex) = (a.clone(), b.clone());
    start("one", move || reads_upgradably_then_locks(&table, &mutex));
    let (table, mutex) = (a.clone(), b.clone());
    start("three", move || reads_then_locks(&table, &mutex));
    start("two", move || locks_then_writes(&a, &b));
}

#[inline(never)]
fn reads_upgradably_then_locks(a: &Table, b: &Locked) {
    let held = a.upgradable_read();
    meet(3);
    *lock!(b) += *held;
}

#[inline(never)]
fn reads_then_locks(a: &Table, b: &Locked) {
    let held = read!(a);
    meet(3);
    *lock!(b) += *held;
}

#[inline(never)]
fn locks_then_writes(a: &Table, b: &Locked) {
    let held = lock!(b);
    meet(3);
    *write!(a) += *held;
}

/// Lets an upgradable reader want what another one has that sleeps elsewhere, while a plain reader,
/// who would not be in its way, waits for it.
fn behind_reader() {
    let (a, b) = both();
    truth::own("a", "one");
    truth::own("a", "three");
    truth::own("b", "two");
    truth::wait("two", "a");
    truth::behind("two", "one");
    truth::wait("three", "b");
    let (table, mutex) = (a.clone(), b.clone());
    let third = a.clone();
    start("one", move || reads_upgradably_and_sleeps(&third));
    start("three", move || reads_then_locks(&table, &mutex));
    start("two", move || locks_then_reads_upgradably(&a, &b));
}

#[inline(never)]
fn reads_upgradably_and_sleeps(a: &Table) {
    let held = a.upgradable_read();
    arrive();
    if black_box(true) {
        truth::sleep();
    }
    black_box(*held);
}

#[inline(never)]
fn locks_then_reads_upgradably(a: &Table, b: &Locked) {
    let mut held = lock!(b);
    meet(3);
    *held += *a.upgradable_read();
}

/// Lets an upgradable reader become a writer while a plain reader waits for what it has beside.
fn upgrades_behind_reader() {
    let (a, b) = both();
    truth::own("a", "two");
    truth::own("b", "one");
    truth::wait("one", "a");
    truth::wait("two", "b");
    let (table, mutex) = (a.clone(), b.clone());
    start("one", move || upgrades(&table, &mutex, 2));
    start("two", move || reads_first(&a, &b));
}

#[inline(never)]
fn upgrades(a: &Table, b: &Locked, all: u32) {
    let mut held = lock!(b);
    let reads = a.upgradable_read();
    meet(all);
    let mut writes = Upgradable::upgrade(reads);
    *writes += *held;
    *held += 1;
}

#[inline(never)]
fn reads_first(a: &Table, b: &Locked) {
    let held = read!(a);
    meet(2);
    *lock!(b) += *held;
}

/// Lets a thread stand behind a reader that is to become a writer, and has to wait for a plain reader
/// that waits for the thread.
fn behind_upgrade(last: fn(&Table, &Locked)) {
    let (a, b) = both();
    truth::own("a", "three");
    truth::own("b", "two");
    truth::wait("one", "a");
    truth::wait("two", "a");
    truth::behind("two", "one");
    truth::wait("three", "b");
    let table = a.clone();
    start("one", move || only_upgrades(&table));
    let (table, mutex) = (a.clone(), b.clone());
    start("three", move || reads_then_locks(&table, &mutex));
    start("two", move || last(&a, &b));
}

#[inline(never)]
fn only_upgrades(a: &Table) {
    let reads = a.upgradable_read();
    meet(3);
    *Upgradable::upgrade(reads) += 1;
}

/// Waits until no more readers are let in.
fn until_closed(a: &Table) {
    meet(3);
    while a.try_read().is_some() {
        std::thread::yield_now();
    }
}

#[inline(never)]
fn reads_when_closed(a: &Table, b: &Locked) {
    let mut held = lock!(b);
    until_closed(a);
    *held += *read!(a);
}

#[inline(never)]
fn reads_upgradably_when_closed(a: &Table, b: &Locked) {
    let mut held = lock!(b);
    until_closed(a);
    *held += *a.upgradable_read();
}

/// Lets a thread wait for itself.
fn alone(body: fn(&Table, &Table)) {
    let a = Arc::new(RwLock::new(0));
    truth::lock("a", &*a);
    truth::own("a", "one");
    truth::wait("one", "a");
    start("one", move || body(&a, &a));
}

#[inline(never)]
fn then_writes(a: &Table, same: &Table) {
    let held = a.upgradable_read();
    *write!(same) += *held;
}

#[inline(never)]
fn twice(a: &Table, same: &Table) {
    let held = a.upgradable_read();
    black_box(*held + *same.upgradable_read());
}

#[inline(never)]
fn upgrades_as_reader(a: &Table, same: &Table) {
    let held = read!(a);
    *Upgradable::upgrade(same.upgradable_read()) += *held;
}

/// Lets a thread that read `a` upgradably before wait behind two that cross over `a`, one of which does
/// so now.
fn once_upgradable(past: fn(&Table, &Locked)) {
    let (a, b) = both();
    truth::own("b", "two");
    truth::own("a", "one");
    truth::wait("one", "b");
    truth::wait("two", "a");
    truth::wait("past", "b");
    let (table, mutex) = (a.clone(), b.clone());
    start("past", move || past(&table, &mutex));
    let (table, mutex) = (a.clone(), b.clone());
    start("one", move || {
        after(1);
        reads_upgradably_then_locks(&table, &mutex);
    });
    start("two", move || {
        after(1);
        locks_then_reads_upgradably(&a, &b);
    });
}

#[inline(never)]
fn upgradable_gone(a: &Table, b: &Locked) {
    let held = a.upgradable_read();
    let value = *held;
    drop(held);
    meet(3);
    *lock!(b) += value;
}

/// Lets that thread have a plain read left, which is in no upgradable reader's way.
fn once_downgraded() {
    truth::own("a", "past");
    truth::behind("two", "one");
    once_upgradable(upgradable_downgraded);
}

#[inline(never)]
fn upgradable_downgraded(a: &Table, b: &Locked) {
    let held = Upgradable::downgrade(a.upgradable_read());
    meet(3);
    *lock!(b) += *held;
}
