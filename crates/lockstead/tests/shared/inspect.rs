//! Segments seen from outside.

use crate::support::{Folder, Watchdog, eventually};
use lockstead::shared::inspect::{LockState, Mended, Mender, SegmentView};
use lockstead::shared::{
    LockKind, Locked, Segment, SegmentError, SegmentOptions, Shareable, SharedCondvar, SharedMutex,
    SharedRwLock, SharedSemaphore,
};
use std::fs::File;
use std::sync::Barrier;
use std::thread;

#[derive(Shareable)]
#[repr(C)]
struct Account {
    number: u64,
    lock: SharedMutex<u64>,
}

#[derive(Shareable)]
#[repr(C)]
struct Root {
    accounts: [Account; 3],
    rates: SharedRwLock<[u32; 2]>,
    slots: SharedSemaphore,
    changed: SharedCondvar,
    nested: SharedMutex<[SharedMutex<u8>; 2]>,
}

fn names(view: &SegmentView) -> Vec<String> {
    let mut names = Vec::new();
    view.layout().visit(&mut |found| {
        names.push(format!("{} {}", found.path, found.kind.name()));
        true
    });
    names
}

#[test]
fn locks_have_the_names_that_the_program_gives_them() {
    let folder = Folder::new();
    let path = folder.file("root");
    Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    let view = SegmentView::open(&path).expect("a segment");
    assert_eq!(
        names(&view),
        [
            "accounts[0].lock mutex",
            "accounts[1].lock mutex",
            "accounts[2].lock mutex",
            "rates rwlock",
            "slots semaphore",
            "changed condvar",
            "nested mutex",
            "nested[0] mutex",
            "nested[1] mutex",
        ]
    );
    assert_eq!(view.layout().locks, 9);
    let single = folder.file("single");
    Segment::<SharedMutex<u64>>::create(&single, &SegmentOptions::new()).expect("a segment");
    assert_eq!(names(&SegmentView::open(&single).expect("a segment")), ["root mutex"]);
}

#[test]
fn who_has_what_is_seen() {
    let _watchdog = Watchdog::new("who_has_what_is_seen");
    let folder = Folder::new();
    let path = folder.file("root");
    let segment = Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    let root = segment.root();
    thread::scope(|s| {
        s.spawn(|| core::mem::forget(root.accounts[0].lock.lock().unwrap()));
        s.spawn(|| core::mem::forget(root.nested.lock().unwrap()));
    });
    eventually(|| drop_of(root.nested.try_lock()));
    let _mine = root.accounts[1].lock.lock().unwrap();
    let _read = root.rates.read().unwrap();
    root.slots.add(5).unwrap();
    let _units = root.slots.acquire(2).unwrap();
    let (over, view) = (Barrier::new(2), SegmentView::open(&path).expect("a segment"));
    thread::scope(|s| {
        s.spawn(|| {
            let refused = root.accounts[1].lock.lock_timeout(std::time::Duration::from_secs(5));
            drop(refused);
            over.wait();
        });
        let waited_for = segment.header().root + 24 + 8;
        eventually(|| view.people().unwrap().waiting_for(waited_for).count() == 1);
        let people = view.people().expect("slots");
        let mut seen = Vec::new();
        view.locks(&people, &mut |lock| {
            seen.push((lock.path.to_owned(), lock.state, lock.claims.len(), lock.units));
            if lock.path == "accounts[1].lock" {
                assert_eq!(lock.offset, waited_for);
                let owner = people.living(lock.owner.expect("me")).expect("alive");
                assert_eq!(owner.process, std::process::id());
                assert!(owner.number().is_some() && owner.since != 0 && owner.namespace != 0);
                assert!(lock.waiters && lock.kind == LockKind::Mutex);
            }
            if lock.path == "slots" {
                assert_eq!((lock.claims[0].units, lock.claims[0].lock), (2, lock.offset));
            }
            true
        })
        .expect("locks");
        let named = |name: &str, state, claims, units| (name.to_owned(), state, claims, units);
        assert_eq!(
            seen,
            [
                named("accounts[0].lock", LockState::OwnerDead, 0, None),
                named("accounts[1].lock", LockState::Owned, 0, None),
                named("accounts[2].lock", LockState::Free, 0, None),
                named("rates", LockState::Free, 1, None),
                named("slots", LockState::Free, 1, Some((5, 3))),
                named("changed", LockState::Free, 0, None),
                named("nested", LockState::NotRecoverable, 0, None),
                named("nested[0]", LockState::Free, 0, None),
                named("nested[1]", LockState::Free, 0, None),
            ]
        );
        assert_eq!(view.path_of(waited_for).as_deref(), Some("accounts[1].lock"));
        assert_eq!(view.path_of(waited_for + 8), None);
        drop(_mine);
        over.wait();
    });
}

/// Drops what was got, of a lock whose owner is dead. Returns whether that is so.
fn drop_of<G>(got: Result<Locked<G>, lockstead::shared::SharedError>) -> bool
where
    Locked<G>: Sized,
{
    !matches!(got, Err(lockstead::shared::SharedError::Held))
}

#[test]
fn what_is_stuck_is_mended() {
    let _watchdog = Watchdog::new("what_is_stuck_is_mended");
    let folder = Folder::new();
    let path = folder.file("root");
    let segment = Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    let root = segment.root();
    thread::scope(|s| {
        s.spawn(|| {
            core::mem::forget(root.accounts[0].lock.lock().unwrap());
            core::mem::forget(root.accounts[1].lock.lock().unwrap());
            core::mem::forget(root.rates.write().unwrap());
        });
    });
    drop(root.accounts[1].lock.lock().unwrap());
    let mine = root.accounts[2].lock.lock().unwrap();
    let mender = Mender::open(&path).expect("a segment");
    let _ = mender.declare_dead();
    let mend = |name: &str, reset| {
        let mut done = None;
        mender.layout().visit(&mut |lock| {
            if lock.path == name {
                let at = mender.header().root + lock.offset;
                done = Some(mender.mend(at, lock.kind, reset).expect("an answer"));
            }
            true
        });
        done.expect("a lock of that name")
    };
    assert_eq!(mend("accounts[0].lock", false), Mended::Recovered);
    assert_eq!(mend("accounts[0].lock", false), Mended::Fine);
    assert_eq!(mend("accounts[1].lock", false), Mended::NotRecoverable);
    assert_eq!(mend("accounts[1].lock", true), Mended::Reset);
    assert_eq!(mend("rates", false), Mended::Recovered);
    assert_eq!(mend("slots", false), Mended::Fine);
    assert_eq!(mend("changed", false), Mended::Fine);
    // It is this thread that has it, as another participant: the mender's mapping is
    // another segment to it.
    assert_eq!(mend("accounts[2].lock", true), Mended::Held);
    drop(mine);
    for account in &root.accounts {
        assert!(matches!(account.lock.lock().unwrap(), Locked::Acquired(_)));
    }
    assert!(matches!(root.rates.read().unwrap(), Locked::Acquired(_)));
    for wrong in [0, mender.header().root + 4, mender.header().total, u64::MAX - 7] {
        assert!(mender.mend(wrong, LockKind::Mutex, true).is_err());
    }
}

/// A file that is cut while it is looked at is an error, and no signal.
#[test]
fn a_view_survives_a_cut() {
    let folder = Folder::new();
    let path = folder.file("root");
    Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    let view = SegmentView::open(&path).expect("a segment");
    let people = view.people().expect("slots");
    let file = File::options().write(true).open(&path).expect("the file");
    file.set_len(view.header().root).expect("a cut");
    let cut = view.locks(&people, &mut |_| true);
    assert!(matches!(cut, Err(SegmentError::Truncated { .. })), "{cut:?}");
    file.set_len(0).expect("a cut");
    assert!(matches!(view.people(), Err(SegmentError::Truncated { .. })));
    assert!(matches!(view.doorbell(), Err(SegmentError::Truncated { .. })));
}
