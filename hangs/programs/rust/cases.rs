//! Threads that hang by each other's guards: each case is one way to have a guard alive.

use crate::family::{Mutex, MutexGuard, lock};
use crate::truth::{self, meet, start};
use std::future::Future as _;
use std::hint::black_box;
use std::sync::Arc;

/// What starts the threads of a case, and tells the truth of them.
pub(crate) type Case = fn();

pub(crate) type Locked = Mutex<u64>;

/// The cases, by name.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("abba", || crossed::<u64>(variable)),
    ("underscore", || crossed::<u64>(underscore)),
    ("field", || crossed::<u64>(field)),
    ("vector", || crossed::<u64>(vector)),
    ("option", || crossed::<u64>(option)),
    ("returned", || crossed::<u64>(returned)),
    ("argument", || crossed::<u64>(argument)),
    ("closure", || crossed::<u64>(closure)),
    ("boxed_closure", || crossed::<u64>(boxed_closure)),
    ("temporary", || crossed::<u64>(temporary)),
    ("scrutinee", || crossed::<u64>(scrutinee)),
    ("deep", || crossed::<u64>(deep)),
    ("future", || crossed::<u64>(future)),
    ("behind_catch", || crossed::<u64>(behind_catch)),
    ("text", || crossed::<String>(text)),
    ("ring", ring),
    ("shared_owner", shared_owner),
    ("statics", statics),
];

/// Runs the case that the command line names, or lists all.
pub(crate) fn main(all: &[&[(&str, Case)]]) {
    let wanted = std::env::args().nth(1).expect("the name of a case, or --list");
    let cases = || all.iter().flat_map(|some| some.iter());
    if wanted == "--list" {
        return cases().for_each(|(name, _)| println!("{name}"));
    }
    let (_, case) = cases().find(|(name, _)| *name == wanted).expect("a case of this name");
    case();
    truth::end();
}

/// Says that `one` holds `a` and wants `b`, and `two` the other way round.
pub(crate) fn crossing() {
    truth::own("a", "one");
    truth::own("b", "two");
    truth::wait("one", "b");
    truth::wait("two", "a");
}

/// Lets two threads run the same function on the same two locks, in either order.
pub(crate) fn crossed<T: Default + Send + 'static>(body: fn(&Mutex<T>, &Mutex<T>)) {
    let (a, b) = (Arc::new(Mutex::new(T::default())), Arc::new(Mutex::new(T::default())));
    truth::lock("a", &*a);
    truth::lock("b", &*b);
    crossing();
    let (first, second) = (a.clone(), b.clone());
    start("one", move || body(&first, &second));
    start("two", move || body(&b, &a));
}

#[inline(never)]
pub(crate) fn variable(mine: &Locked, other: &Locked) {
    let mut held = lock!(mine);
    *held += 1;
    meet(2);
    let mut wanted = lock!(other);
    *wanted += *held;
}

#[inline(never)]
fn underscore(mine: &Locked, other: &Locked) {
    let _held = lock!(mine);
    meet(2);
    *lock!(other) += 1;
}

struct Account<'a> {
    number: u64,
    balance: MutexGuard<'a, u64>,
    name: String,
}

#[inline(never)]
fn field(mine: &Locked, other: &Locked) {
    let mut account = Account { number: 7, balance: lock!(mine), name: String::from("account") };
    meet(2);
    let wanted = lock!(other);
    *account.balance += *wanted + account.number;
    black_box(&account.name);
}

#[inline(never)]
fn vector(mine: &Locked, other: &Locked) {
    let mut held = vec![lock!(mine)];
    black_box(&mut held);
    meet(2);
    let wanted = lock!(other);
    *held[0] += *wanted;
}

#[inline(never)]
fn option(mine: &Locked, other: &Locked) {
    let mut held = None;
    if black_box(true) {
        held = Some(lock!(mine));
    }
    meet(2);
    let wanted = lock!(other);
    if let Some(held) = &mut held {
        **held += *wanted;
    }
}

#[inline(never)]
fn taken(mine: &Locked) -> MutexGuard<'_, u64> {
    let mut held = lock!(mine);
    *held += 1;
    held
}

#[inline(never)]
fn returned(mine: &Locked, other: &Locked) {
    let mut held = taken(mine);
    meet(2);
    *held += *lock!(other);
}

#[inline(never)]
fn consume(mut held: MutexGuard<'_, u64>, other: &Locked) {
    meet(2);
    *held += *lock!(other);
}

#[inline(never)]
fn argument(mine: &Locked, other: &Locked) {
    consume(lock!(mine), other);
    black_box(());
}

#[inline(never)]
fn call(body: impl FnOnce()) {
    body();
    black_box(());
}

#[inline(never)]
fn closure(mine: &Locked, other: &Locked) {
    let mut held = lock!(mine);
    meet(2);
    call(move || *held += *lock!(other));
}

#[inline(never)]
fn boxed_closure(mine: &Locked, other: &Locked) {
    let mut held = lock!(mine);
    let body: Box<dyn FnOnce() + '_> = Box::new(move || {
        meet(2);
        *held += *lock!(other);
    });
    black_box(body)();
}

#[inline(never)]
fn value(other: &Locked) -> u64 {
    meet(2);
    *lock!(other)
}

#[inline(never)]
fn temporary(mine: &Locked, other: &Locked) {
    black_box(lock!(mine).wrapping_add(value(other)));
}

#[inline(never)]
fn scrutinee(mine: &Locked, other: &Locked) {
    match *lock!(mine) {
        0 => black_box(value(other)),
        more => black_box(more),
    };
}

#[inline(never)]
fn level(depth: u32, other: &Locked) -> u64 {
    if depth == 0 { value(other) } else { level(depth - 1, other) + black_box(1) }
}

#[inline(never)]
fn deep(mine: &Locked, other: &Locked) {
    let mut held = lock!(mine);
    *held += level(black_box(6), other);
}

#[allow(clippy::await_holding_lock, reason = "this is how such a program hangs")]
#[inline(never)]
fn future(mine: &Locked, other: &Locked) {
    let mut both = Box::pin(async {
        let mut held = lock!(mine);
        *held += async { value(other) }.await;
    });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let _ = black_box(both.as_mut().poll(&mut context));
}

#[inline(never)]
fn behind_catch(mine: &Locked, other: &Locked) {
    let mut held = lock!(mine);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| value(other)));
    *held += caught.unwrap_or(0);
}

#[inline(never)]
fn text(mine: &Mutex<String>, other: &Mutex<String>) {
    let mut held = lock!(mine);
    held.push_str("mine");
    let copies = vec![held.clone(); black_box(3)];
    meet(2);
    held.push_str(&lock!(other));
    black_box(copies);
}

fn ring() {
    let [a, b, c] = std::array::from_fn(|_| Arc::new(Mutex::new(0)));
    let names = ["a", "b", "c"];
    let threads = ["one", "two", "three"];
    let locks = [&a, &b, &c].map(Arc::clone);
    for (name, lock) in names.iter().zip(&locks) {
        truth::lock(name, &**lock);
    }
    for at in 0..3 {
        truth::own(names[at], threads[at]);
        truth::wait(threads[at], names[(at + 1) % 3]);
        let (mine, other) = (locks[at].clone(), locks[(at + 1) % 3].clone());
        start(threads[at], move || link(&mine, &other));
    }
}

#[inline(never)]
fn link(mine: &Locked, other: &Locked) {
    let held = lock!(mine);
    meet(3);
    *lock!(other) += *held;
}

struct Owner {
    name: String,
    balance: Locked,
}

impl Owner {
    #[inline(never)]
    fn pay(self: &Arc<Self>, to: &Arc<Owner>) {
        let mut mine = lock!(self.balance);
        meet(2);
        *lock!(to.balance) += *mine;
        *mine = self.name.len() as u64;
    }
}

fn shared_owner() {
    let new = |name: &str| Arc::new(Owner { name: name.into(), balance: Mutex::new(0) });
    let (a, b) = (new("a"), new("b"));
    truth::lock("a", &a.balance);
    truth::lock("b", &b.balance);
    crossing();
    let (first, second) = (a.clone(), b.clone());
    start("one", move || first.pay(&second));
    start("two", move || b.pay(&a));
}

static FIRST: Locked = Mutex::new(0);
static SECOND: Locked = Mutex::new(0);

fn statics() {
    truth::lock("a", &FIRST);
    truth::lock("b", &SECOND);
    crossing();
    start("one", first_of_both);
    start("two", second_of_both);
}

#[inline(never)]
fn first_of_both() {
    let held = lock!(FIRST);
    meet(2);
    *lock!(SECOND) += *held;
}

#[inline(never)]
fn second_of_both() {
    let held = lock!(SECOND);
    meet(2);
    *lock!(FIRST) += *held;
}
