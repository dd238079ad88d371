//! The wait/wound mutex: the calls, one by one. See `stress` for many threads.

use crate::watchdog::Watchdog;
use crate::watched::Watched;
use lockstead::Interrupted;
use lockstead::ww::{
    CONTEXTS_PER_THREAD, Class, Context, Error, LockAllError, Scheme, WwGuard, WwMutex, lock_all,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

static DIE: Class = Class::wait_die("die");
static WOUND: Class = Class::wound_wait("wound");

#[test]
fn it_guards_its_data() {
    for class in [&DIE, &WOUND] {
        let mut mutex = WwMutex::new(class, 1);
        let context = class.begin();
        {
            let mut guard = mutex.lock(&context).expect("free");
            *guard += 1;
            assert!(mutex.is_locked() && mutex.is_held_in(&context));
            assert!(mutex.owner().expect("held").is_current());
            assert_eq!(context.acquired(), 1);
            assert_eq!(format!("{mutex:?}"), "WwMutex { data: <locked> }");
            assert!(core::ptr::eq(WwGuard::mutex(&guard), &raw const mutex));
        }
        assert_eq!(context.acquired(), 0);
        assert!(!mutex.is_locked());
        drop(context);
        assert_eq!(*mutex.get_mut(), 2);
        assert_eq!(format!("{mutex:?}"), "WwMutex { data: 2 }");
        assert_eq!(mutex.into_inner(), 2);
    }
}

#[test]
fn a_class_knows_its_scheme_and_name() {
    assert_eq!((DIE.scheme(), DIE.name()), (Scheme::WaitDie, "die"));
    assert_eq!((WOUND.scheme(), WOUND.name()), (Scheme::WoundWait, "wound"));
    let context = DIE.begin();
    assert!(core::ptr::eq(context.class(), &raw const DIE));
    context.done();
}

#[test]
fn what_a_context_holds_it_has_already() {
    for class in [&DIE, &WOUND] {
        let mutex = WwMutex::new(class, ());
        let context = class.begin();
        let guard = mutex.lock(&context).expect("free");
        assert_eq!(mutex.lock(&context).map(drop), Err(Error::Already));
        assert_eq!(mutex.lock_interruptible(&context).map(drop), Err(Error::Already));
        assert!(mutex.try_lock(&context).is_none());
        assert_eq!(context.acquired(), 1);
        drop(guard);
        assert!(mutex.try_lock(&context).is_some());
    }
}

#[test]
fn without_a_context_it_is_a_mutex() {
    let mutex = WwMutex::new(&DIE, 0);
    *mutex.lock_alone() += 1;
    let guard = mutex.try_lock_alone().expect("free");
    assert!(mutex.try_lock_alone().is_none());
    let late = thread::scope(|scope| {
        let late = scope.spawn(|| mutex.lock_alone_timeout(Duration::from_millis(5)).map(|g| *g));
        late.join().expect("does not panic")
    });
    assert!(late.is_err());
    drop(guard);
    assert_eq!(mutex.lock_alone_timeout(Duration::from_secs(60)).map(|guard| *guard), Ok(1));
}

#[test]
fn recursion_panics_rather_than_hangs() {
    let mutex = WwMutex::new(&WOUND, ());
    let context = WOUND.begin();
    let guard = mutex.lock_alone();
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = mutex.lock(&context);
    }));
    let message = *again.expect_err("held alone").downcast::<String>().expect("a message");
    assert!(message.contains("recursive locking: the wait/wound mutex"), "{message}");
    drop(guard);
}

#[test]
fn a_thread_has_a_few_contexts_and_no_more() {
    static CLASSES: [Class; CONTEXTS_PER_THREAD + 1] =
        [const { Class::wait_die("one of many") }; CONTEXTS_PER_THREAD + 1];
    let mut contexts: Vec<_> =
        CLASSES[..CONTEXTS_PER_THREAD].iter().map(|class| class.begin()).collect();
    let last = &CLASSES[CONTEXTS_PER_THREAD];
    let too_many = std::panic::catch_unwind(|| drop(last.begin()));
    let message = *too_many.expect_err("too many").downcast::<String>().expect("a message");
    assert!(message.contains("contexts at a time") && message.contains("calls.rs"), "{message}");
    drop(contexts.remove(1));
    drop(last.begin());
}

/// Has an older context hold the first of two locks and a younger one the second, each in its
/// thread; each asks for the other one's.
fn crossed(
    class: &'static Class,
    older: impl FnOnce(&WwMutex<i32>, &Context) + Send,
    younger: impl FnOnce(WwGuard<'_, i32>, &WwMutex<i32>, &Context) + Send,
) {
    let locks = [WwMutex::new(class, 0), WwMutex::new(class, 0)];
    let begun = Barrier::new(2);
    let held = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let context = class.begin();
            begun.wait();
            let first = locks[0].lock(&context).expect("free");
            held.wait();
            older(&locks[1], &context);
            drop(first);
        });
        scope.spawn(|| {
            begun.wait();
            let context = class.begin();
            let mine = locks[1].lock(&context).expect("free");
            held.wait();
            younger(mine, &locks[0], &context);
        });
    });
}

#[test]
fn wait_die_refuses_the_younger_at_once() {
    let _watchdog = Watchdog::new("wait_die_refuses_the_younger_at_once");
    crossed(
        &DIE,
        |second, context| *second.lock(context).expect("the oldest is never refused") += 1,
        |mine, first, context| {
            let second = WwGuard::mutex(&mine);
            assert_eq!(first.lock(context).map(drop), Err(Error::Deadlock));
            drop(mine);
            assert_eq!(context.acquired(), 0);
            assert_eq!(*first.lock_slow(context), 0);
            assert_eq!(*second.lock(context).expect("the older has gone"), 1);
        },
    );
}

#[test]
fn wound_wait_lets_the_younger_wait_until_it_is_wounded() {
    let _watchdog = Watchdog::new("wound_wait_lets_the_younger_wait_until_it_is_wounded");
    let (waits, refused) = (Watched::default(), AtomicBool::new(false));
    crossed(
        &WOUND,
        |second, context| {
            waits.sleeps();
            assert!(!refused.load(Ordering::SeqCst), "refused before it was wounded");
            *second.lock(context).expect("the oldest is never refused") += 1;
        },
        |mine, first, context| {
            let second = WwGuard::mutex(&mine);
            waits.begins();
            assert_eq!(first.lock(context).map(drop), Err(Error::Deadlock));
            refused.store(true, Ordering::SeqCst);
            drop(mine);
            drop(first.lock_slow(context));
            assert_eq!(*second.lock(context).expect("the older has gone"), 1);
        },
    );
}

#[test]
fn who_is_wounded_backs_off_when_it_waits_and_not_before() {
    let _watchdog = Watchdog::new("who_is_wounded_backs_off_when_it_waits_and_not_before");
    let locks: Vec<_> = (0..3).map(|_| WwMutex::new(&WOUND, ())).collect();
    let waits = Watched::default();
    let elsewhere = locks[2].lock_alone();
    let younger_holds = Barrier::new(2);
    thread::scope(|scope| {
        let older = WOUND.begin();
        let holds = scope.spawn(|| {
            let context = WOUND.begin();
            let mine = locks[0].lock(&context).expect("free");
            younger_holds.wait();
            // The older one sleeps for it, and has wounded.
            waits.sleeps();
            let free = locks[1].lock(&context).expect("free locks are refused nobody");
            assert_eq!(locks[2].lock(&context).map(drop), Err(Error::Deadlock));
            drop((mine, free));
        });
        younger_holds.wait();
        waits.begins();
        drop(locks[0].lock(&older).expect("the oldest"));
        holds.join().expect("does not panic");
    });
    drop(elsewhere);
}

#[test]
fn a_context_that_holds_nothing_waits_for_anybody() {
    let _watchdog = Watchdog::new("a_context_that_holds_nothing_waits_for_anybody");
    for class in [&DIE, &WOUND] {
        let mutex = WwMutex::new(class, 0);
        let older = class.begin();
        let mut guard = mutex.lock(&older).expect("free");
        let waits: [Watched; 3] = Default::default();
        thread::scope(|scope| {
            for waits in &waits {
                scope.spawn(|| {
                    let context = class.begin();
                    waits.begins();
                    *mutex.lock(&context).expect("holds nothing") += 1;
                });
            }
            waits.iter().for_each(Watched::sleeps);
            *guard += 10;
            drop(guard);
        });
        assert_eq!(mutex.into_inner(), 13);
    }
}

#[test]
fn the_oldest_of_those_that_wait_goes_first() {
    let _watchdog = Watchdog::new("the_oldest_of_those_that_wait_goes_first");
    const WAITERS: usize = 4;
    for class in [&DIE, &WOUND] {
        let mutex = WwMutex::new(class, Vec::new());
        let held = mutex.lock_alone();
        let waits: [Watched; WAITERS] = Default::default();
        let (begun, asks) = (AtomicUsize::new(0), AtomicUsize::new(WAITERS));
        thread::scope(|scope| {
            for age in 0..WAITERS {
                let (mutex, waits, begun, asks) = (&mutex, &waits[age], &begun, &asks);
                scope.spawn(move || {
                    while begun.load(Ordering::SeqCst) != age {
                        thread::yield_now();
                    }
                    let context = class.begin();
                    begun.store(age + 1, Ordering::SeqCst);
                    while asks.load(Ordering::SeqCst) != age {
                        thread::yield_now();
                    }
                    waits.begins();
                    mutex.lock(&context).expect("holds nothing").push(age);
                });
            }
            // The youngest asks first, and all behind an older one sleep.
            while begun.load(Ordering::SeqCst) != WAITERS {
                thread::yield_now();
            }
            for age in (0..WAITERS).rev() {
                asks.store(age, Ordering::SeqCst);
                while !waits[age].has_begun() {
                    thread::yield_now();
                }
                waits[age..].iter().for_each(Watched::sleeps);
            }
            drop(held);
        });
        assert_eq!(mutex.lock_alone()[0], 0, "{class:?}");
    }
}

#[test]
fn a_wait_ends_by_time() {
    let mutex = WwMutex::new(&DIE, ());
    let guard = mutex.lock_alone();
    thread::scope(|scope| {
        scope.spawn(|| {
            let context = DIE.begin();
            let began = Instant::now();
            let late = mutex.lock_timeout(&context, Duration::from_millis(20)).map(drop);
            assert_eq!(late, Err(Error::TimedOut));
            assert!(began.elapsed() >= Duration::from_millis(20));
            assert_eq!(context.acquired(), 0);
        });
    });
    drop(guard);
    let context = DIE.begin();
    assert!(mutex.lock_timeout(&context, Duration::from_secs(60)).is_ok());
}

extern "C" fn nothing(_: libc::c_int) {}

#[test]
fn a_wait_ends_by_a_signal() {
    let _watchdog = Watchdog::new("a_wait_ends_by_a_signal");
    // SAFETY: `action` lives for the call, its zeroes are values, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, core::ptr::null_mut()), 0);
    }
    for slow in [false, true] {
        let mutex = WwMutex::new(&WOUND, ());
        let guard = mutex.lock_alone();
        let over = AtomicBool::new(false);
        let id = AtomicI32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let context = WOUND.begin();
                // SAFETY: `gettid` takes no argument and cannot fail.
                id.store(unsafe { libc::gettid() }, Ordering::SeqCst);
                if slow {
                    let ended = mutex.lock_slow_interruptible(&context).map(drop);
                    assert_eq!(ended, Err(Interrupted));
                } else {
                    let ended = mutex.lock_interruptible(&context).map(drop);
                    assert_eq!(ended, Err(Error::Interrupted));
                }
                over.store(true, Ordering::SeqCst);
            });
            while !over.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(2));
                let id = id.load(Ordering::SeqCst);
                if id != 0 && !over.load(Ordering::SeqCst) {
                    // SAFETY: a signal with a handler, to a thread of this process;
                    // one that has ended is an error of the call.
                    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, libc::SIGUSR1) };
                }
            }
        });
        drop(guard);
    }
}

#[test]
#[should_panic(expected = "holds 1 lock(s)")]
fn lock_slow_with_other_locks_held_is_refused() {
    let locks = [WwMutex::new(&DIE, ()), WwMutex::new(&DIE, ())];
    let context = DIE.begin();
    let _held = locks[0].lock(&context).expect("free");
    drop(locks[1].lock_slow(&context));
}

#[test]
fn lock_all_keeps_the_order_of_the_list() {
    let locks: Vec<WwMutex<usize>> = (0..5).map(|n| WwMutex::new(&WOUND, n)).collect();
    let context = WOUND.begin();
    let wanted = [&locks[3], &locks[0], &locks[4]];
    let guards = lock_all(&context, &wanted).expect("three locks");
    assert_eq!(guards.iter().map(|guard| **guard).collect::<Vec<_>>(), [3, 0, 4]);
    assert_eq!(context.acquired(), 3);
    drop(guards);
    assert!(locks.iter().all(|lock| !lock.is_locked()));
    assert!(lock_all::<usize>(&context, &[]).expect("nothing").is_empty());
    let different: [&WwMutex<dyn std::fmt::Debug>; 2] =
        [&WwMutex::new(&WOUND, "text"), &WwMutex::new(&WOUND, 7)];
    let guards = lock_all(&context, &different).expect("two locks");
    assert_eq!(format!("{guards:?}"), r#"["text", 7]"#);
}

#[test]
fn lock_all_says_which_locks_are_the_same() {
    let locks = [WwMutex::new(&DIE, ()), WwMutex::new(&DIE, ())];
    let context = DIE.begin();
    let error = lock_all(&context, &[&locks[1], &locks[0], &locks[1]]).map(drop);
    assert_eq!(error, Err(LockAllError::Duplicate { first: 0, second: 2 }));
    let message = error.expect_err("twice").to_string();
    assert!(message.contains("number 0 and 2"), "{message}");
    assert!(locks.iter().all(|lock| !lock.is_locked()));

    let held = locks[1].lock(&context).expect("free");
    let error = lock_all(&context, &[&locks[0], &locks[1]]).map(drop);
    assert_eq!(error, Err(LockAllError::Already { index: 1 }));
    assert!(!locks[0].is_locked(), "holds none when it fails");
    drop(held);
}

#[test]
fn lock_all_backs_off_only_from_what_it_took() {
    let _watchdog = Watchdog::new("lock_all_backs_off_only_from_what_it_took");
    let locks: Vec<WwMutex<()>> = (0..3).map(|_| WwMutex::new(&DIE, ())).collect();
    let older = DIE.begin();
    let theirs = locks[2].lock(&older).expect("free");
    thread::scope(|scope| {
        scope.spawn(|| {
            let context = DIE.begin();
            let held = locks[0].lock(&context).expect("free");
            let error = lock_all(&context, &[&locks[1], &locks[2]]).map(drop);
            assert_eq!(error, Err(LockAllError::Deadlock { index: 1 }));
            assert!(locks[0].is_locked() && !locks[1].is_locked());
            drop(held);
        });
    });
    drop(theirs);
}
