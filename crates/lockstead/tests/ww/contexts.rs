//! What others do to a context reaches that context, and no longer than it should.

use crate::watchdog::Watchdog;
use crate::watched::Watched;
use lockstead::ww::{CONTEXTS_PER_THREAD, Class, Error, WwMutex};
use std::sync::Barrier;
use std::thread;

/// Runs a thread with a context in each of several classes, all of the same number: the wound goes
/// to the one that holds the lock.
#[test]
fn a_wound_finds_its_context_among_those_of_a_thread() {
    let _watchdog = Watchdog::new("a_wound_finds_its_context_among_those_of_a_thread");
    for which in 0..CONTEXTS_PER_THREAD {
        let classes: &'static [Class] =
            Box::leak((0..CONTEXTS_PER_THREAD).map(|_| Class::wound_wait("one of many")).collect());
        let class = &classes[which];
        let locks = [WwMutex::new(class, ()), WwMutex::new(class, ())];
        let held = Barrier::new(2);
        thread::scope(|scope| {
            let older = class.begin();
            scope.spawn(|| {
                // The numbers begin anew with each class.
                classes.iter().filter(|other| !std::ptr::eq(*other, class)).for_each(|other| {
                    drop(other.begin());
                });
                let contexts: Vec<_> = classes.iter().map(Class::begin).collect();
                let context = &contexts[which];
                let mine = locks[1].lock(context).expect("free");
                held.wait();
                // The older one holds this, and wounds whoever holds the other.
                assert_eq!(locks[0].lock(context).map(drop), Err(Error::Deadlock));
                drop(mine);
            });
            let first = locks[0].lock(&older).expect("free");
            held.wait();
            drop(locks[1].lock(&older).expect("the oldest is never refused"));
            drop(first);
        });
    }
}

/// A context that was wounded and has backed off is not refused for that wound again.
#[test]
fn a_wound_heals_when_the_context_backs_off() {
    let _watchdog = Watchdog::new("a_wound_heals_when_the_context_backs_off");
    static CLASS: Class = Class::wound_wait("class");
    let locks: [WwMutex<()>; 3] = std::array::from_fn(|_| WwMutex::new(&CLASS, ()));
    let (older_waits, waits) = (Watched::default(), Watched::default());
    let holds = Barrier::new(2);
    thread::scope(|scope| {
        let older = CLASS.begin();
        let younger = scope.spawn(|| {
            let context = CLASS.begin();
            let mine = locks[0].lock(&context).expect("free");
            holds.wait();
            older_waits.sleeps();
            let theirs = Barrier::new(2);
            let done = Barrier::new(2);
            thread::scope(|inner| {
                inner.spawn(|| {
                    let youngest = CLASS.begin();
                    let guard = locks[1].lock(&youngest).expect("free");
                    theirs.wait();
                    done.wait();
                    drop(guard);
                    let guard = locks[2].lock(&youngest).expect("free");
                    theirs.wait();
                    waits.sleeps();
                    drop(guard);
                });
                theirs.wait();
                // Wounded: refused the first lock that is not free.
                assert_eq!(locks[1].lock(&context).map(drop), Err(Error::Deadlock));
                drop(mine);
                done.wait();
                theirs.wait();
                // Free by now: no wait, in which it would have looked at its wound.
                let again = locks[1].lock_slow(&context);
                waits.begins();
                assert!(locks[2].lock(&context).is_ok(), "refused by a younger one");
                drop(again);
            });
        });
        holds.wait();
        older_waits.begins();
        drop(locks[0].lock(&older).expect("the oldest"));
        drop(older);
        younger.join().expect("does not panic");
    });
}
