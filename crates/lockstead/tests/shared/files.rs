//! Making and opening segments.

use crate::support::{Folder, Watchdog, segment};
use lockstead::shared::{
    Busy, JoinError, Segment, SegmentError, SegmentOptions, Shareable, SharedError, SharedMutex,
};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::thread;

#[derive(Shareable)]
#[repr(C)]
struct Root {
    number: u64,
    locks: [SharedMutex<u64>; 4],
}

fn is_io<T>(result: Result<T, SegmentError>, kind: ErrorKind) -> bool {
    matches!(result, Err(SegmentError::Io { error, .. }) if error.kind() == kind)
}

#[test]
fn what_one_writes_another_reads() {
    let folder = Folder::new();
    let path = folder.file("root");
    let one = Segment::<Root>::create_with(&path, &SegmentOptions::new(), |root| root.number = 7);
    let one = one.expect("a segment");
    let other = Segment::<Root>::open(&path).expect("the same");
    assert_eq!(other.root().number, 7);
    *one.root().locks[2].lock().unwrap().acquired().unwrap() = 5;
    assert_eq!(*other.root().locks[2].lock().unwrap().acquired().unwrap(), 5);
    // Two mappings in one process are two addresses of the same lock.
    let held = one.root().locks[0].lock().unwrap();
    thread::scope(|s| {
        let tried = s.spawn(|| other.root().locks[0].try_lock().map(|_| ())).join().unwrap();
        assert_eq!(tried, Err(SharedError::Held));
    });
    drop(held);
}

#[test]
fn the_permissions_are_those_asked_for() {
    let folder = Folder::new();
    let mode = |path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let path = folder.file("default");
    Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    assert_eq!(mode(&path), 0o600);
    let path = folder.file("all");
    Segment::<Root>::create(&path, &SegmentOptions::new().mode(0o666)).expect("a segment");
    assert_eq!(mode(&path), 0o666);
}

#[test]
fn a_file_is_made_once_and_whole() {
    let folder = Folder::new();
    let path = folder.file("root");
    assert!(is_io(Segment::<Root>::open(&path), ErrorKind::NotFound));
    let made = std::panic::catch_unwind(|| {
        Segment::<Root>::create_with(&path, &SegmentOptions::new(), |_| panic!("half done"))
    });
    assert!(made.is_err());
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0);
    Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    assert!(is_io(
        Segment::<Root>::create(&path, &SegmentOptions::new()),
        ErrorKind::AlreadyExists
    ));
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 1);
}

#[test]
fn several_that_open_or_create_have_the_same() {
    let _watchdog = Watchdog::new("several_that_open_or_create_have_the_same");
    let folder = Folder::new();
    let (start, path) = (Barrier::new(8), folder.file("root"));
    thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                start.wait();
                let segment = Segment::<Root>::open_or_create(&path, &SegmentOptions::new());
                let segment = segment.expect("a segment");
                *segment.root().locks[1].lock().unwrap().acquired().unwrap() += 1;
            });
        }
    });
    let segment = Segment::<Root>::open(&path).expect("a segment");
    assert_eq!(*segment.root().locks[1].lock().unwrap().acquired().unwrap(), 8);
}

#[test]
fn nobody_changes_the_size_of_a_memory_file() {
    let segment = segment::<Root>();
    let file = std::fs::File::from(segment.as_fd().try_clone_to_owned().expect("a descriptor"));
    let length = file.metadata().expect("a file").len();
    assert_eq!(length, segment.header().total);
    for other in [0, length - 4096, length + 4096] {
        assert_eq!(file.set_len(other).map_err(|e| e.kind()), Err(ErrorKind::PermissionDenied));
    }
    let same = Segment::<Root>::from_fd(file.into()).expect("the same");
    *segment.root().locks[0].lock().unwrap().acquired().unwrap() = 3;
    assert_eq!(*same.root().locks[0].lock().unwrap().acquired().unwrap(), 3);
}

#[test]
fn a_million_locks_do_not_pass_over_the_stack() {
    let _watchdog = Watchdog::new("a_million_locks_do_not_pass_over_the_stack");
    let little = thread::Builder::new().stack_size(128 << 10);
    let done = little.spawn(|| {
        let segment = segment::<[SharedMutex<u64>; 1_000_000]>();
        assert_eq!(segment.header().root_bytes, 16_000_000);
        assert!(segment.header().directory_bytes < 100);
        let locks = segment.root();
        let guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
        assert!(locks[999_999].is_locked());
        drop(guards);
        assert!(!locks[999_999].is_locked());
    });
    done.expect("a thread").join().expect("no overflow");
}

#[test]
fn there_are_as_many_participants_as_there_are_slots() {
    let _watchdog = Watchdog::new("there_are_as_many_participants_as_there_are_slots");
    let options = SegmentOptions::new().participants(1);
    let segment = Segment::<Root>::memfd("one", &options).expect("a segment");
    segment.participate().expect("the only slot");
    thread::scope(|s| {
        let other = s.spawn(|| {
            let refused = segment.root().locks[0].lock().map(|_| ());
            assert_eq!(refused, Err(SharedError::Join(JoinError::Full)));
            assert_eq!(segment.participate(), Err(JoinError::Full));
        });
        other.join().unwrap();
        segment.leave().expect("it holds nothing");
        // A thread's slot is free when it has ended, again and again.
        for _ in 0..3 {
            s.spawn(|| segment.participate().expect("the slot that was left")).join().unwrap();
        }
    });
}

#[test]
fn who_holds_or_takes_part_is_not_left_behind() {
    let _watchdog = Watchdog::new("who_holds_or_takes_part_is_not_left_behind");
    let segment = segment::<Root>();
    let guard = segment.root().locks[0].lock().unwrap().acquired().unwrap();
    assert_eq!(segment.leave(), Err(Busy::Holds));
    drop(guard);
    segment.leave().expect("it holds nothing any more");
    let (joined, over) = (Barrier::new(2), Barrier::new(2));
    let segment = thread::scope(|s| {
        let shared = &segment;
        let (joined, over) = (&joined, &over);
        s.spawn(move || {
            shared.participate().expect("a slot");
            joined.wait();
            over.wait();
            shared.leave().expect("it holds nothing");
        });
        joined.wait();
        // The same file, mapped once more, does not count for this one.
        let fd = segment.as_fd().try_clone_to_owned().expect("a descriptor");
        Segment::<Root>::from_fd(fd).expect("the same").close().expect("nobody uses it");
        over.wait();
        shared
    });
    segment.participate().expect("a slot");
    let again = Segment::<Root>::from_fd(segment.as_fd().try_clone_to_owned().expect("one"));
    let again = again.expect("the same");
    std::mem::forget(again.root().locks[1].lock().unwrap());
    let (again, busy) = again.close().expect_err("a guard was forgotten");
    assert_eq!(busy, Busy::Holds);
    assert!(again.root().locks[1].is_locked());
}

#[test]
fn what_is_dropped_is_unmapped_unless_it_is_used() {
    let _watchdog = Watchdog::new("what_is_dropped_is_unmapped_unless_it_is_used");
    let is_mapped = |name: &str| {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the process's mappings");
        maps.contains(&format!("memfd:{name} "))
    };
    let options = SegmentOptions::new();
    let dropped = Segment::<Root>::memfd("dropped-segment", &options).expect("a segment");
    drop(dropped.root().locks[0].lock().unwrap());
    assert!(is_mapped("dropped-segment"));
    drop(dropped);
    assert!(!is_mapped("dropped-segment"));

    let kept = Segment::<Root>::memfd("kept-segment", &options).expect("a segment");
    core::mem::forget(kept.root().locks[0].lock().unwrap());
    drop(kept);
    assert!(is_mapped("kept-segment"));
}

#[test]
fn a_lock_elsewhere_is_refused() {
    let lock = SharedMutex::new(0u64);
    assert_eq!(lock.lock().map(|_| ()), Err(SharedError::NotInSegment));
    assert_eq!(lock.try_lock().map(|_| ()), Err(SharedError::NotInSegment));
}

#[test]
fn lists_of_ones_own_and_no_claims() {
    let options = SegmentOptions::new().participants(4).claims(0).exclusive(true);
    let segment = Segment::<Root>::memfd("exclusive", &options).expect("a segment");
    assert!(segment.header().exclusive);
    thread::scope(|s| {
        s.spawn(|| {
            *segment.root().locks[0].lock().unwrap().acquired().unwrap() += 1;
        });
    });
    assert_eq!(segment.header().slots, 5);
    assert_eq!(segment.header().claims_each, 0);
}

#[test]
fn a_root_of_no_size_has_participants_as_well() {
    let segment = segment::<[SharedMutex<u64>; 0]>();
    assert_eq!(segment.participate(), Ok(()));
    assert_eq!(segment.leave(), Ok(()));
}

/// Names are what the language allows, in all scripts.
#[test]
fn fields_have_names_in_all_scripts() {
    #[derive(Shareable)]
    #[repr(C)]
    struct शब्दकोश {
        शब्द: SharedMutex<u64>,
        größe: u64,
    }
    let segment = segment::<शब्दकोश>();
    assert!(segment.root().शब्द.lock().is_ok());
    assert_eq!(segment.root().größe, 0);
}
