//! Misuse of wait/wound mutexes in a build that checks: each case in a process of
//! its own, for what was found is kept for the whole of one.
#![cfg(feature = "check")]

use lockstead::ww::{Class, Error, WwMutex, lock_all};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, thread};

const CASE: &str = "LOCKSTEAD_TEST_CASE";

static DIE: Class = Class::wait_die("tables");
static WOUND: Class = Class::wound_wait("chairs");

/// Runs `case` in a process that begins with the test `name` alone, and returns
/// what it wrote to standard error; it must succeed.
fn alone(name: &str, case: fn()) -> String {
    if env::var_os(CASE).is_some() {
        // SAFETY: the call sets a timer whose signal ends this process.
        unsafe { libc::alarm(120) };
        case();
        std::process::exit(0);
    }
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env(CASE, "1").env("LOCKSTEAD_CHECK", "report").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Asserts that the case breaks this rule, once, and that this file is named for it so often.
#[track_caller]
fn breaks(text: &str, rule: &str, places: usize) {
    let titles: Vec<_> = text.lines().filter(|line| line.starts_with("lockstead: ")).collect();
    assert_eq!(titles, [format!("lockstead: RULE: {rule}")], "{text}");
    assert_eq!(text.matches("ww_check.rs:").count(), places, "{text}");
}

#[test]
fn proper_use_is_not_reported() {
    let text = alone("proper_use_is_not_reported", || {
        let locks: Vec<_> = (0..4).map(|_| WwMutex::new(&DIE, 0)).collect();
        for _ in 0..3 {
            let context = DIE.begin();
            let other = WOUND.begin();
            let guards = lock_all(&context, &[&locks[2], &locks[0]]).expect("two locks");
            context.done();
            drop(guards);
            drop((other, context));
            drop(locks[1].lock_alone());
        }
        refused(&locks[0], &locks[1], |context| {
            drop(locks[0].lock_slow(context));
            drop(locks[1].lock(context));
        });
    });
    assert_eq!(text, "");
}

/// Has a context refused `wanted` while it holds `own`, then goes on with it as
/// told once it holds nothing.
fn refused<'a>(
    wanted: &'a WwMutex<i32>,
    own: &'a WwMutex<i32>,
    next: impl FnOnce(&lockstead::ww::Context) + Send + 'a,
) {
    let older = DIE.begin();
    let held = wanted.lock(&older).expect("free");
    let was_refused = AtomicBool::new(false);
    thread::scope(|scope| {
        let younger = scope.spawn(|| {
            let context = DIE.begin();
            let mine = own.lock(&context).expect("free");
            assert_eq!(wanted.lock(&context).map(drop), Err(Error::Deadlock));
            drop(mine);
            was_refused.store(true, Ordering::SeqCst);
            next(&context);
        });
        while !was_refused.load(Ordering::SeqCst) && !younger.is_finished() {
            thread::yield_now();
        }
        drop(held);
        younger.join().expect("does not panic");
    });
}

#[test]
fn a_lock_of_another_class() {
    let text = alone("a_lock_of_another_class", || {
        let chair = WwMutex::new(&WOUND, ());
        let context = DIE.begin();
        drop(chair.lock(&context));
    });
    breaks(&text, "context of another class", 2);
    assert!(text.contains("`chairs`") && text.contains("`tables`"), "{text}");
}

#[test]
fn an_acquisition_after_done() {
    let text = alone("an_acquisition_after_done", || {
        let table = WwMutex::new(&DIE, ());
        let context = DIE.begin();
        context.done();
        drop(table.try_lock(&context));
    });
    breaks(&text, "acquisition after done", 2);
}

#[test]
fn done_twice() {
    let text = alone("done_twice", || {
        let context = DIE.begin();
        context.done();
        context.done();
    });
    breaks(&text, "done twice", 2);
}

#[test]
fn another_lock_after_a_refusal() {
    let text = alone("another_lock_after_a_refusal", || {
        let tables: Vec<_> = (0..3).map(|_| WwMutex::new(&DIE, 0)).collect();
        refused(&tables[0], &tables[1], |context| drop(tables[2].lock(context)));
    });
    breaks(&text, "another lock after a refusal", 2);
}

#[test]
fn no_backing_off_after_a_refusal() {
    let text = alone("no_backing_off_after_a_refusal", || {
        let tables: Vec<_> = (0..3).map(|_| WwMutex::new(&DIE, 0)).collect();
        let older = DIE.begin();
        let held = tables[0].lock(&older).expect("free");
        thread::scope(|scope| {
            scope.spawn(|| {
                let context = DIE.begin();
                let _mine = tables[1].lock(&context).expect("free");
                assert_eq!(tables[0].lock(&context).map(drop), Err(Error::Deadlock));
                drop(tables[2].lock(&context));
            });
        });
        drop(held);
    });
    breaks(&text, "no backing off after a refusal", 2);
}

#[test]
fn lock_slow_without_a_refusal() {
    let text = alone("lock_slow_without_a_refusal", || {
        let table = WwMutex::new(&DIE, ());
        let context = DIE.begin();
        drop(table.lock_slow(&context));
    });
    breaks(&text, "lock_slow without a refusal", 2);
}

#[test]
fn a_second_context_of_a_class() {
    let text = alone("a_second_context_of_a_class", || {
        let context = WOUND.begin();
        drop(WOUND.begin());
        drop(context);
    });
    breaks(&text, "second context of a class", 2);
}

#[test]
fn a_leaked_guard() {
    let text = alone("a_leaked_guard", || {
        let table = WwMutex::new(&DIE, ());
        let context = DIE.begin();
        core::mem::forget(table.lock(&context));
        drop(context);
    });
    breaks(&text, "context ended while holding", 1);
}

#[test]
fn a_lock_taken_alone_beside_a_context() {
    let text = alone("a_lock_taken_alone_beside_a_context", || {
        let tables = [WwMutex::new(&DIE, ()), WwMutex::new(&DIE, ())];
        let context = DIE.begin();
        let held = tables[0].lock(&context).expect("free");
        drop(tables[1].lock_alone());
        drop(held);
        drop(tables[1].lock_alone());
    });
    breaks(&text, "lock taken alone beside a context", 2);
}
