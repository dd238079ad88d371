//! Threads that hang by locks of three crates at once.

#[allow(dead_code, reason = "each program has its part of the facts")]
#[path = "../rust/truth.rs"]
mod truth;

use std::sync::Arc;
use truth::{meet, start};

type Std = std::sync::Mutex<u64>;
type Parked = parking_lot::Mutex<u64>;
type Own = lockstead::Mutex<u64>;

fn main() {
    let wanted = std::env::args().nth(1).expect("the name of a case, or --list");
    match &wanted[..] {
        "--list" => return println!("ring\nseveral\nreaders"),
        "ring" => ring(),
        "several" => several(),
        "readers" => readers(),
        _ => panic!("no case of this name"),
    }
    truth::end();
}

fn locks() -> (Arc<Std>, Arc<Parked>, Arc<Own>) {
    let locks = (Arc::new(Std::new(0)), Arc::new(Parked::new(0)), Arc::new(Own::new(0)));
    truth::lock("a", &*locks.0);
    truth::lock("b", &*locks.1);
    truth::lock("c", &*locks.2);
    locks
}

/// Lets each of three threads hold a lock of another crate.
fn ring() {
    let (a, b, c) = locks();
    for (lock, thread, next) in [("a", "one", "b"), ("b", "two", "c"), ("c", "three", "a")] {
        truth::own(lock, thread);
        truth::wait(thread, next);
    }
    let (a2, b2, c2) = (a.clone(), b.clone(), c.clone());
    start("one", move || std_first(&a, &b));
    start("two", move || parked_first(&b2, &c));
    start("three", move || own_first(&c2, &a2));
}

#[inline(never)]
fn std_first(a: &Std, b: &Parked) {
    let held = a.lock().unwrap();
    meet(3);
    *b.lock() += *held;
}

#[inline(never)]
fn parked_first(b: &Parked, c: &Own) {
    let held = b.lock();
    meet(3);
    *c.lock() += *held;
}

#[inline(never)]
fn own_first(c: &Own, a: &Std) {
    let held = c.lock();
    meet(3);
    *a.lock().unwrap() += *held;
}

/// Lets one thread hold a lock of each crate, and three wait for one each.
fn several() {
    let (a, b, c) = locks();
    for (lock, thread) in [("a", "one"), ("b", "two"), ("c", "three")] {
        truth::own(lock, "busy");
        truth::wait(thread, lock);
    }
    let (a2, b2, c2) = (a.clone(), b.clone(), c.clone());
    start("busy", move || hold_all(&a, &b, &c));
    start("one", move || {
        truth::after(1);
        *a2.lock().unwrap() += 1;
    });
    start("two", move || {
        truth::after(1);
        *b2.lock() += 1;
    });
    start("three", move || {
        truth::after(1);
        *c2.lock() += 1;
    });
}

#[inline(never)]
fn hold_all(a: &Std, b: &Parked, c: &Own) {
    let all = (a.lock().unwrap(), b.lock(), c.lock());
    truth::arrive();
    if std::hint::black_box(true) {
        truth::sleep();
    }
    drop(all);
}

/// Lets two threads read a lock of one crate and want to write one of another.
fn readers() {
    let a = Arc::new(std::sync::RwLock::new(0_u64));
    let b = Arc::new(parking_lot::RwLock::new(0_u64));
    truth::lock("a", &*a);
    truth::lock("b", &*b);
    truth::own("a", "one");
    truth::own("b", "two");
    truth::wait("one", "b");
    truth::wait("two", "a");
    let (a2, b2) = (a.clone(), b.clone());
    start("one", move || {
        let held = a.read().unwrap();
        meet(2);
        *b.write() += *held;
    });
    start("two", move || {
        let held = b2.read();
        meet(2);
        *a2.write().unwrap() += *held;
    });
}
