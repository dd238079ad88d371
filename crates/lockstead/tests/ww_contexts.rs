//! What others do to a context reaches that context, and no longer than it should.

#[path = "common/watchdog.rs"]
mod watchdog;

use lockstead::ww::{CONTEXTS_PER_THREAD, Class, Error, WwMutex};
use std::sync::Barrier;
use std::thread;
use watchdog::Watchdog;

/// A thread with a context in each of several classes, all of the same number: the
/// wound goes to the one that holds the lock.
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
