//! Who holds a lock just now, of locks of this process.

use super::{Area, birth, thread};
use lockstead_inspect::waits::grip::{Grip, Holder, grip};
use lockstead_inspect::waits::observe::LastingWaiter;
use lockstead_inspect::waits::words::WordOwners;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_ledger::{Birth, Ledger};
use std::mem::MaybeUninit;

/// Returns who holds the lock at `address`.
fn asked(ledger: &Ledger<'_>, address: u64, how: WaitKind) -> Grip {
    let waiting = Waiting { how, stack: 0, target: address, since: 0, deadline: 0, companion: 0 };
    grip(&waiting, ledger, &WordOwners::default(), std::process::id())
}

fn known(ledger: &Ledger<'_>, address: u64, kind: ObjectKind, attributes: u16) {
    let birth = Birth { attributes, ..birth(ledger, address, kind, 0x40) };
    ledger.init_lock(&birth).expect("room");
}

fn me() -> u32 {
    // SAFETY: the call returns a number only.
    unsafe { libc::gettid() }.unsigned_abs()
}

#[test]
fn a_mutex_names_its_owner_and_its_stack_is_that_of_the_ledger() {
    for protocol in [libc::PTHREAD_PRIO_NONE, libc::PTHREAD_PRIO_INHERIT] {
        let area = Area::new();
        let ledger = area.ledger();
        let mut attributes = MaybeUninit::uninit();
        let mut mutex = Box::new(libc::PTHREAD_MUTEX_INITIALIZER);
        // SAFETY: both are this frame's own, and initialised in this order.
        unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol);
            libc::pthread_mutex_init(&raw mut *mutex, attributes.as_ptr());
        }
        let address = (&raw const *mutex) as u64;
        let named = if protocol == libc::PTHREAD_PRIO_NONE { 0 } else { attribute::INHERIT };
        known(&ledger, address, ObjectKind::Mutex, attribute::KNOWN | named);
        assert_eq!(asked(&ledger, address, WaitKind::MUTEX), Grip::Free);
        // SAFETY: the mutex is initialised, and stays where it is until it is unlocked.
        unsafe { libc::pthread_mutex_lock(&raw mut *mutex) };
        let stranger = Holder { tid: me(), thread: None, stack: 0 };
        assert_eq!(asked(&ledger, address, WaitKind::MUTEX), Grip::Held(vec![stranger]));
        let part = thread(&ledger, me(), 0, 0);
        part.stack().push(&Holding { address, stack: 7, ..Holding::default() }).expect("room");
        let Grip::Held(holders) = asked(&ledger, address, WaitKind::MUTEX) else { panic!("free") };
        assert_eq!((holders.len(), holders[0].tid, holders[0].stack), (1, me(), 7));
        // SAFETY: this thread has locked the mutex, which is still where it was.
        unsafe { libc::pthread_mutex_unlock(&raw mut *mutex) };
        assert_eq!(asked(&ledger, address, WaitKind::MUTEX), Grip::Free);
    }
}

#[test]
fn readers_are_those_of_the_ledger_and_a_writer_is_in_the_word() {
    let area = Area::new();
    let ledger = area.ledger();
    let mut lock = Box::new(libc::PTHREAD_RWLOCK_INITIALIZER);
    let address = (&raw const *lock) as u64;
    known(&ledger, address, ObjectKind::RwLock, attribute::KNOWN);
    let asked = || asked(&ledger, address, WaitKind::WRITE);
    assert_eq!(asked(), Grip::Free);
    // SAFETY: the lock is initialised and stays where it is; this thread takes and gives it.
    unsafe { libc::pthread_rwlock_rdlock(&raw mut *lock) };
    assert_eq!(asked(), Grip::Unknown, "somebody reads, and nobody has said so");
    let parts = [thread(&ledger, 71, 0, 0), thread(&ledger, 72, 0, 0)];
    for part in &parts {
        part.stack()
            .push(&Holding { address, flags: Flags::READ, ..Holding::default() })
            .expect("room");
    }
    let Grip::Held(readers) = asked() else { panic!("not held") };
    assert_eq!(readers.iter().map(|reader| reader.tid).collect::<Vec<_>>(), [71, 72]);
    for part in &parts {
        part.stack().pop(address).expect("it was pushed");
    }
    // SAFETY: the lock is initialised and stays where it is; this thread takes and gives it.
    unsafe {
        libc::pthread_rwlock_unlock(&raw mut *lock);
        libc::pthread_rwlock_wrlock(&raw mut *lock);
    }
    assert_eq!(asked(), Grip::Held(vec![Holder { tid: me(), thread: None, stack: 0 }]));
    // SAFETY: the lock is initialised and stays where it is; this thread takes and gives it.
    unsafe { libc::pthread_rwlock_unlock(&raw mut *lock) };
    assert_eq!(asked(), Grip::Free);
}

#[test]
fn of_a_spin_lock_the_ledger_has_the_holder_and_of_other_kinds_nobody() {
    let area = Area::new();
    let ledger = area.ledger();
    let mut word: Box<libc::pthread_spinlock_t> = Box::new(0);
    // SAFETY: the lock is this frame's own, and stays where it is.
    unsafe { libc::pthread_spin_init(&raw mut *word, 0) };
    let address = (&raw const *word) as u64;
    known(&ledger, address, ObjectKind::Spin, attribute::KNOWN);
    let spin = || asked(&ledger, address, WaitKind::SPIN);
    assert_eq!(spin(), Grip::Free);
    // SAFETY: the lock is initialised and stays where it is; this thread takes and gives it.
    unsafe { libc::pthread_spin_lock(&raw mut *word) };
    assert_eq!(spin(), Grip::Unknown);
    let part = thread(&ledger, 71, 0, 0);
    part.stack().push(&Holding { address, ..Holding::default() }).expect("room");
    assert!(matches!(spin(), Grip::Held(holders) if holders[0].tid == 71));
    let gate = 0x9000;
    known(&ledger, gate, ObjectKind::Semaphore, attribute::KNOWN);
    assert_eq!(asked(&ledger, gate, WaitKind::SEMAPHORE), Grip::Unknown);
    assert_eq!(asked(&ledger, 0xa000, WaitKind::MUTEX), Grip::Unknown, "no such lock");
}

/// The holder waits itself, and the ledger has not seen it acquire the mutex.
#[test]
fn a_mutex_that_was_acquired_before_is_on_the_stack_of_whom_it_names_unless_it_is_shared() {
    for (attributes, named) in [(0, 1), (attribute::SHARED, 0)] {
        let area = Area::new();
        let ledger = area.ledger();
        let mut mutex = Box::new(libc::PTHREAD_MUTEX_INITIALIZER);
        // SAFETY: the mutex is initialised, and stays where it is until it is unlocked.
        unsafe { libc::pthread_mutex_lock(&raw mut *mutex) };
        let (address, other) = ((&raw const *mutex) as u64, 0x9000);
        known(&ledger, address, ObjectKind::Mutex, attribute::KNOWN | attributes);
        known(&ledger, other, ObjectKind::Mutex, attribute::KNOWN);
        let waits = |tid, target| {
            let part = thread(&ledger, tid, 0, 0);
            let how = WaitKind::MUTEX;
            part.record.wait.begin(&Waiting {
                how,
                stack: 0,
                target,
                since: 1,
                deadline: 0,
                companion: 0,
            });
            let (episode, waiting) = part.record.wait.read().expect("it has begun");
            LastingWaiter { thread: 0, tid, episode, waiting, held: Vec::new() }
        };
        let mut waiters = [waits(71, address), waits(72, address), waits(me(), other)];
        let complete = |waiters: &[LastingWaiter; 3]| {
            let words = WordOwners::default();
            let all = words.complete(waiters.iter(), &ledger, std::process::id());
            all.into_iter().map(|waiter| waiter.held).collect::<Vec<_>>()
        };
        let held = complete(&waiters);
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [0, 0, named]);
        let by_word = |one: &Holding| one.address == address && one.flags.has(Flags::BY_WORD);
        assert!(held[2].iter().all(by_word), "{held:?}");
        // What the ledger has seen stays as it is.
        waiters[2].held.push(Holding { address, stack: 7, ..Holding::default() });
        let held = complete(&waiters);
        assert_eq!((held[2].len(), held[2][0].stack), (1, 7));
        // SAFETY: this thread has locked the mutex, which is still where it was.
        unsafe { libc::pthread_mutex_unlock(&raw mut *mutex) };
        assert!(complete(&waiters)[0].is_empty());
    }
}
