//! Threads that hang while others look like owners: guards that are gone, lost or not taken,
//! waiters for conditions, readers, owners that sleep elsewhere.

use crate::cases::{Case, crossing};
use crate::family::{Condvar, Mutex, RwLock, lock, read, wait, write};
use crate::truth::{self, after, meet, start};
use std::hint::black_box;
use std::sync::Arc;

type Locked = Mutex<u64>;
type Both = (Arc<Locked>, Arc<Locked>);

/// The cases, by name.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("dropped", || behind(dropped)),
    ("scope_ended", || behind(scope_ended)),
    ("dropped_in_branch", || behind(|a, b| in_branch(a, b, true))),
    ("moved_away", || behind(moved_away)),
    #[cfg(panic = "unwind")]
    ("poisoned", || behind(poisoned)),
    ("leaked", leaked),
    ("bystander", bystander),
    ("tried", || behind(tried)),
    ("tried_and_kept", || behind(tried_and_kept)),
    ("later", || behind(later)),
    ("in_turns", || behind(in_turns)),
    ("condition", || condition(wait_for_more)),
    ("condition_once", || condition(wait_once)),
    ("lost_wake_up", lost_wake_up),
    ("taking_back", taking_back),
    ("working_off", working_off),
    ("upgrade", upgrade),
    ("reader_waits", reader_waits),
    ("writer_waits", writer_waits),
    ("two_readers", two_readers),
    ("owner_sleeps", owner_sleeps),
    ("owner_joins", owner_joins),
    ("owner_receives", owner_receives),
];

/// Makes the two locks, and lets `one` and `two` cross each other as soon as another thread has
/// come.
fn both() -> Both {
    let both = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    truth::lock("a", &*both.0);
    truth::lock("b", &*both.1);
    both
}

fn cross(both: &Both, others: u32) {
    crossing();
    let (a, b) = both.clone();
    let (first, second) = both.clone();
    start("one", move || cross_after(&a, &b, others));
    start("two", move || cross_after(&second, &first, others));
}

fn cross_after(mine: &Locked, other: &Locked, others: u32) {
    after(others);
    late_variable(mine, other, others + 2);
}

#[inline(never)]
fn late_variable(mine: &Locked, other: &Locked, all: u32) {
    let mut held = lock!(mine);
    *held += 1;
    meet(all);
    *lock!(other) += *held;
}

/// Lets a third thread have `a` for a while and then wait for `b`, behind two that cross.
fn behind(past: fn(&Locked, &Locked)) {
    let both = both();
    truth::wait("past", "b");
    cross(&both, 1);
    start("past", move || past(&both.0, &both.1));
}

#[inline(never)]
fn dropped(a: &Locked, b: &Locked) {
    let held = lock!(a);
    let value = *held;
    drop(held);
    meet(3);
    *lock!(b) += value;
}

#[inline(never)]
fn scope_ended(a: &Locked, b: &Locked) {
    let value = {
        let mut held = lock!(a);
        *held += 1;
        *held
    };
    meet(3);
    *lock!(b) += value;
}

#[inline(never)]
fn in_branch(a: &Locked, b: &Locked, gone: bool) {
    let held = lock!(a);
    let mut kept = None;
    if black_box(gone) {
        drop(held);
    } else {
        kept = Some(held);
    }
    meet(3);
    *lock!(b) += 1;
    if let Some(held) = kept {
        black_box(*held);
    }
}

#[inline(never)]
fn moved_away(a: &Locked, b: &Locked) {
    let mut all = vec![lock!(a)];
    black_box(&mut all);
    let taken = all.pop();
    black_box(&all);
    drop(black_box(taken));
    meet(3);
    *lock!(b) += all.len() as u64;
}

#[cfg(panic = "unwind")]
#[inline(never)]
fn poisoned(a: &Locked, b: &Locked) {
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = lock!(a);
        std::panic::resume_unwind(Box::new(1_u64));
    }));
    crate::family::recover(a);
    meet(3);
    *lock!(b) += u64::from(panicked.is_err());
}

#[inline(never)]
fn tried(a: &Locked, b: &Locked) {
    meet(3);
    drop(black_box(a.try_lock()));
    *lock!(b) += 1;
}

#[inline(never)]
fn tried_and_kept(a: &Locked, b: &Locked) {
    meet(3);
    let attempt = black_box(a.try_lock());
    *lock!(b) += 1;
    drop(attempt);
}

/// Wants `b` now, and will have and give back `a` after that.
#[inline(never)]
fn later(a: &Locked, b: &Locked) {
    meet(3);
    *lock!(b) += 1;
    let mut held = lock!(a);
    *held += black_box(1);
}

/// Takes and gives back one after the other, again and again.
#[inline(never)]
fn in_turns(a: &Locked, b: &Locked) {
    for turn in 0..black_box(10) {
        *lock!(a) += turn;
        if turn == 0 {
            meet(3);
        }
        *lock!(b) += turn;
    }
}

/// Lets a thread lose the guard of `a` and wait for `b`, whose owner waits for `a`.
fn leaked() {
    let both = both();
    truth::leak("a", "past");
    truth::own("b", "one");
    truth::wait("past", "b");
    truth::wait("one", "a");
    let (a, b) = both.clone();
    start("past", move || lose(&both.0, &both.1));
    start("one", move || late_variable(&b, &a, 2));
}

#[inline(never)]
fn lose(a: &Locked, b: &Locked) {
    std::mem::forget(lock!(a));
    meet(2);
    *lock!(b) += 1;
}

/// Lets two more threads have references to both locks, on the stack and in counted pointers.
fn bystander() {
    let both = both();
    cross(&both, 2);
    let (a, b) = both.clone();
    start("by_reference", move || stand_by(&both.0, &both.1));
    start("by_pointer", move || own_pointers(a, b));
}

#[inline(never)]
fn stand_by(a: &Locked, b: &Locked) {
    let seen = black_box([a, b]);
    meet(4);
    pause();
    drop(black_box(seen[0].try_lock()));
}

#[inline(never)]
fn own_pointers(a: Arc<Locked>, b: Arc<Locked>) {
    meet(4);
    pause();
    drop(black_box(a.try_lock()));
    drop(black_box(b.try_lock()));
}

/// Sleeps for good, so that the compiler does not know it.
#[inline(never)]
fn pause() {
    if black_box(true) {
        truth::sleep();
    }
}

/// Lets a third thread wait for a condition with `a`, which others cross over meanwhile.
fn condition(waits: fn(&Locked, &Condvar, u32)) {
    let both = both();
    let condition = Arc::new(Condvar::new());
    truth::lock("changed", &*condition);
    truth::wait("past", "changed");
    cross(&both, 1);
    start("past", move || waits(&both.0, &condition, 3));
}

/// Waits once, and takes whatever wakes it for the condition.
#[inline(never)]
fn wait_once(mutex: &Locked, condition: &Condvar, all: u32) {
    let held = lock!(mutex);
    truth::arrive();
    let mut held = wait(condition, held);
    *held += u64::from(all);
}

#[inline(never)]
fn wait_for_more(mutex: &Locked, condition: &Condvar, all: u32) {
    let mut held = lock!(mutex);
    truth::arrive();
    // Nobody ever makes it so many.
    while *held < 1000 {
        held = wait(condition, held);
    }
    *held += u64::from(all);
}

/// Lets a thread wait for a condition that was signalled before, while nobody holds anything.
fn lost_wake_up() {
    let (mutex, condition) = (Arc::new(Mutex::new(0)), Arc::new(Condvar::new()));
    truth::lock("a", &*mutex);
    truth::lock("changed", &*condition);
    truth::wait("one", "changed");
    condition.notify_one();
    start("one", move || wait_for_more(&mutex, &condition, 1));
}

/// Lets a thread be woken from a condition while another one has the mutex, which it has to get
/// back.
fn taking_back() {
    let (mutex, condition) = (Arc::new(Mutex::new(0)), Arc::new(Condvar::new()));
    truth::lock("a", &*mutex);
    truth::own("a", "one");
    truth::wait("past", "a");
    let (same, changed) = (mutex.clone(), condition.clone());
    start("past", move || wait_for_more(&mutex, &condition, 1));
    start("one", move || signals_and_sleeps(&same, &changed));
}

/// Lets a thread want a mutex back of which another one has lost the guard: nothing speaks against
/// the one that waits but what it would do next.
fn working_off() {
    let (mutex, condition) = (Arc::new(Mutex::new(0)), Arc::new(Condvar::new()));
    truth::lock("a", &*mutex);
    truth::leak("a", "one");
    truth::wait("past", "a");
    let (same, changed) = (mutex.clone(), condition.clone());
    start("past", move || works_off(&mutex, &condition));
    start("one", move || signals_and_loses(&same, &changed));
}

/// Takes one piece of work after the other, each time anew: what it releases next it has to take
/// back first.
#[inline(never)]
fn works_off(mutex: &Locked, condition: &Condvar) {
    let mut left = lock!(mutex);
    truth::arrive();
    while black_box(true) {
        while *left == 0 {
            left = wait(condition, left);
        }
        *left -= 1;
        drop(left);
        left = lock!(mutex);
    }
}

#[inline(never)]
fn signals_and_sleeps(mutex: &Locked, condition: &Condvar) {
    after(1);
    let mut held = lock!(mutex);
    condition.notify_one();
    pause();
    *held += 1;
}

#[inline(never)]
fn signals_and_loses(mutex: &Locked, condition: &Condvar) {
    after(1);
    let mut held = lock!(mutex);
    *held += 1;
    condition.notify_one();
    std::mem::forget(held);
    pause();
}

/// Lets a reader want to write.
fn upgrade() {
    let lock = Arc::new(RwLock::new(0));
    truth::lock("a", &*lock);
    truth::own("a", "one");
    truth::wait("one", "a");
    start("one", move || read_then_write(&lock, &lock));
}

#[inline(never)]
fn read_then_write(lock: &RwLock<u64>, same: &RwLock<u64>) {
    let held = read!(lock);
    *write!(same) += *held;
}

/// Lets a reader and a writer of `a` cross over `b`; `reads` is the thread that has `a` first.
fn with_readers(
    holders: &[&str],
    first: fn(&RwLock<u64>, &Locked),
    second: fn(&RwLock<u64>, &Locked),
) {
    let (a, b) = (Arc::new(RwLock::new(0)), Arc::new(Mutex::new(0)));
    truth::lock("a", &*a);
    truth::lock("b", &*b);
    truth::own("b", "two");
    truth::wait("two", "a");
    for name in holders {
        truth::own("a", name);
        truth::wait(name, "b");
        let (a, b) = (a.clone(), b.clone());
        start(name, move || first(&a, &b));
    }
    start("two", move || second(&a, &b));
}

fn reader_waits() {
    with_readers(&["one"], |a, b| reads_first(a, b, 2), |a, b| writes_last(a, b, 2));
}

fn two_readers() {
    with_readers(&["one", "three"], |a, b| reads_first(a, b, 3), |a, b| writes_last(a, b, 3));
}

fn writer_waits() {
    with_readers(&["one"], writes_first, reads_last);
}

#[inline(never)]
fn reads_first(a: &RwLock<u64>, b: &Locked, all: u32) {
    let held = read!(a);
    meet(all);
    *lock!(b) += *held;
}

#[inline(never)]
fn writes_last(a: &RwLock<u64>, b: &Locked, all: u32) {
    let held = lock!(b);
    meet(all);
    *write!(a) += *held;
}

#[inline(never)]
fn writes_first(a: &RwLock<u64>, b: &Locked) {
    let mut held = write!(a);
    meet(2);
    *held += *lock!(b);
}

#[inline(never)]
fn reads_last(a: &RwLock<u64>, b: &Locked) {
    let mut held = lock!(b);
    meet(2);
    *held += *read!(a);
}

/// Lets `one` wait for an owner that is in another call; nobody waits for `one`.
fn with_busy_owner(owner: fn(&Locked)) {
    let mutex = Arc::new(Mutex::new(0));
    truth::lock("a", &*mutex);
    truth::own("a", "busy");
    truth::wait("one", "a");
    let same = mutex.clone();
    start("busy", move || owner(&mutex));
    start("one", move || {
        after(1);
        *lock!(same) += 1;
    });
}

fn owner_sleeps() {
    with_busy_owner(sleeps);
}

#[inline(never)]
fn sleeps(mutex: &Locked) {
    let mut held = lock!(mutex);
    truth::arrive();
    pause();
    *held += 1;
}

fn owner_receives() {
    with_busy_owner(receives);
}

#[inline(never)]
fn receives(mutex: &Locked) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut held = lock!(mutex);
    truth::arrive();
    *held += receiver.recv().unwrap_or(0);
    let _ = sender.send(*held);
}

/// Lets the owner wait for the end of a thread that wants the lock.
fn owner_joins() {
    let mutex = Arc::new(Mutex::new(0));
    truth::lock("a", &*mutex);
    truth::own("a", "one");
    truth::wait("two", "a");
    truth::join("one", "two");
    start("one", move || joins(&mutex));
}

#[inline(never)]
fn joins(mutex: &Arc<Locked>) {
    let mut held = lock!(mutex);
    let same = mutex.clone();
    let thread = truth::named("two").spawn(move || *lock!(same) += 1).expect("a thread");
    let _ = thread.join();
    *held += 1;
}
