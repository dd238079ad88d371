//! What the library records of each family of locks: kind and attributes, what
//! is held, what is waited for while a thread blocks.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::lock::{ObjectKind, RecordLife, attribute};
use lockstead_ledger::publish::{Flags, WaitKind, Waiting};
use std::sync::atomic::Ordering::Relaxed;

/// Locks in the order in which the program acquires them, and how.
const HELD: &[(&str, Flags)] = &[
    ("plain", Flags::NONE),
    ("adaptive", Flags::NONE),
    ("recursive", Flags::NONE),
    ("recursive", Flags::NONE),
    ("checking", Flags::NONE),
    ("robust", Flags::NONE),
    ("inheriting", Flags::NONE),
    ("shared", Flags::NONE),
    ("tried", Flags::TRIED),
    ("c11", Flags::NONE),
    ("readers", Flags::READ),
    ("readers", Flags::READ),
    ("writers", Flags::NONE),
    ("spin", Flags::NONE),
];

const SHAPES: &[(&str, ObjectKind, u16)] = &[
    ("plain", ObjectKind::Mutex, 0),
    ("adaptive", ObjectKind::Mutex, attribute::ADAPTIVE),
    ("recursive", ObjectKind::Mutex, attribute::RECURSIVE),
    ("checking", ObjectKind::Mutex, attribute::ERRORCHECK),
    ("robust", ObjectKind::Mutex, attribute::ROBUST),
    ("inheriting", ObjectKind::Mutex, attribute::INHERIT),
    ("shared", ObjectKind::Mutex, attribute::SHARED),
    ("tried", ObjectKind::Mutex, 0),
    ("c11", ObjectKind::Mutex, attribute::RECURSIVE | attribute::C11),
    ("readers", ObjectKind::RwLock, 0),
    ("writers", ObjectKind::RwLock, attribute::WRITERS_FIRST),
    ("spin", ObjectKind::Spin, 0),
    ("monotonic", ObjectKind::Condition, attribute::MONOTONIC),
    ("c11_cond", ObjectKind::Condition, attribute::C11),
    ("sem", ObjectKind::Semaphore, 0),
    ("barrier", ObjectKind::Barrier, 0),
];

/// Threads by name, what each waits for, and how.
const WAITS: &[(&str, &str, WaitKind)] = &[
    ("mutex", "plain", WaitKind::MUTEX),
    ("mutex_timed", "recursive", WaitKind::MUTEX.timed_realtime()),
    ("mutex_clock", "checking", WaitKind::MUTEX.timed()),
    ("mutex_robust", "robust", WaitKind::MUTEX),
    ("mutex_inherit", "inheriting", WaitKind::MUTEX),
    ("writing", "readers", WaitKind::WRITE),
    ("write_timed", "writers", WaitKind::WRITE.timed_realtime()),
    ("reading", "writers", WaitKind::READ),
    ("read_clock", "writers", WaitKind::READ.timed()),
    ("spinning", "spin", WaitKind::SPIN),
    ("c11_mutex", "c11", WaitKind::MUTEX),
    ("c11_timed", "c11", WaitKind::MUTEX.timed_realtime()),
    ("semaphore", "sem", WaitKind::SEMAPHORE),
    ("semaphore_timed", "sem", WaitKind::SEMAPHORE.timed_realtime()),
    ("semaphore_clock", "sem", WaitKind::SEMAPHORE.timed()),
    ("at_barrier", "barrier", WaitKind::BARRIER),
    ("joining", "sleeper", WaitKind::JOIN),
    ("condition", "cond", WaitKind::CONDITION),
    ("cond_timed", "monotonic", WaitKind::CONDITION.timed()),
    ("cond_clock", "clocked", WaitKind::CONDITION.timed_realtime()),
    ("c11_condition", "c11_cond", WaitKind::CONDITION),
];

/// Returns the mutexes that waits on conditions give back, by thread.
fn companion(observed: &Observed, waiter: &str) -> u64 {
    const MUTEX: u64 = size_of::<libc::pthread_mutex_t>() as u64;
    let given = observed.address("given");
    match waiter {
        "condition" => given,
        "cond_timed" => given + MUTEX,
        "cond_clock" => given + 2 * MUTEX,
        "c11_condition" => observed.address("c11_given"),
        _ => 0,
    }
}

fn assert_held(observed: &Observed) {
    let ledger = observed.ledger();
    let held = view::held(&view::first(&ledger));
    let shown: Vec<_> = held.iter().map(|held| (held.address, held.flags.untimed())).collect();
    let expected: Vec<_> =
        HELD.iter().map(|(name, flags)| (observed.address(name), *flags)).collect();
    assert_eq!(shown, expected);
    for (holding, (name, _)) in held.iter().zip(HELD) {
        let lock = ledger.lock(holding.lock).expect("a record");
        assert_eq!(lock.address.load(Relaxed), holding.address, "{name}");
        let stack = ledger.stack(holding.stack).expect("where it was acquired");
        assert!(stack.returns().count() >= 2, "{name}");
    }
}

/// Returns the wait of the thread `waiter`, once it has begun.
fn wait_of(observed: &Observed, waiter: &str, how: WaitKind) -> Waiting {
    let ledger = observed.ledger();
    // Before it gets there it may wait for something else: for its mutex.
    observed.until(waiter, || {
        let thread = view::named(&ledger, waiter)?;
        view::wait(&thread).filter(|wait| wait.how.kind() == how.kind())
    })
}

fn assert_waiting(observed: &Observed) {
    let ledger = observed.ledger();
    for &(waiter, target, how) in WAITS {
        let wait = wait_of(observed, waiter, how);
        let expected = Waiting {
            how,
            target: observed.address(target),
            companion: companion(observed, waiter),
            ..wait
        };
        assert_eq!(wait, expected, "{waiter}");
        assert_eq!(wait.deadline != 0, how.is_timed(), "{waiter}");
        assert!(ledger.stack(wait.stack).expect("where it waits").returns().count() >= 2);
        // What it lends to a condition it does not hold meanwhile.
        let thread = view::named(&ledger, waiter).expect("seen above");
        let held = view::held(&thread);
        let lent: Vec<_> = held.iter().map(|held| (held.address, held.flags)).collect();
        match wait.companion {
            0 => assert_eq!(lent, [], "{waiter}"),
            mutex => {
                assert_eq!(lent.len(), 1, "{waiter}");
                assert_eq!(lent[0].0, mutex, "{waiter}");
                assert!(lent[0].1.has(Flags::LENT), "{waiter}");
            }
        }
    }
}

fn all_families_are_recorded_as_what_they_are(library: Library) {
    let Some(program) = compile("families") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("held");
    assert_held(&observed);
    for &(name, kind, attributes) in SHAPES {
        let shape = view::shape(&observed.ledger(), observed.address(name));
        assert_eq!(shape, (kind, RecordLife::Live, attributes | attribute::KNOWN), "{name}");
    }
    observed.go_on();
    observed.reach("released");
    view::assert_quiet(&observed.ledger());
    for (name, times) in
        [("plain", 1), ("recursive", 2), ("tried", 1), ("readers", 3), ("checking", 2)]
    {
        let facts = view::facts(&observed.ledger(), observed.address(name));
        assert_eq!(facts.acquisitions, times, "{name}");
        assert_eq!((facts.contended, facts.waits), (0, 0), "{name}");
    }
    // Nobody has waited: what was refused was not to be had by waiting.
    let ledger = observed.ledger();
    let record = view::first(&ledger).record;
    for waits in [&record.contended, &record.waited, &record.idled] {
        assert_eq!(waits.load(Relaxed), 0);
    }
    observed.go_on();
    observed.reach("waiting");
    assert_waiting(&observed);
    assert_held(&observed);
    observed.go_on();
    observed.reach("woken");
    let ledger = observed.ledger();
    view::assert_quiet(&ledger);
    for (name, waits) in [
        ("plain", 1),
        ("recursive", 1),
        ("checking", 1),
        ("robust", 1),
        ("inheriting", 1),
        ("readers", 1),
        ("writers", 3),
        ("spin", 1),
        ("c11", 2),
        ("sem", 3),
        ("barrier", 1),
    ] {
        let facts = view::facts(&ledger, observed.address(name));
        assert_eq!((facts.contended, facts.waits, facts.timed_out), (waits, waits, 0), "{name}");
    }
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { all_families_are_recorded_as_what_they_are }
