//! Slots that say that somebody lives who is nowhere to be found: in a copy, and where the next
//! process has the same number; and one thread that comes by two ways.

use crate::support::{Child, Named, Root, living, lose_list};
use lockstead::shared::{Segment, SegmentOptions, SharedError};
use std::fs::OpenOptions;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Stands for a start of the system, or a file that was put back: slots say that somebody lives who
/// is nowhere to be found.
#[test]
fn a_copy_of_the_file_has_no_living_owners() {
    let named = Named::new("copied");
    let (path, segment) = (&named.path, &named.segment);
    let owner = Child::new(|| segment.root().keep(1));
    segment.root().await_stage(1);
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).expect("copied");
    let begun = Instant::now();
    let opened = Segment::<Root>::open_or_create(&copy, &SegmentOptions::new()).expect("a segment");
    assert_eq!(living(&copy), 0, "who opens it finds nobody alive");
    assert!(opened.root().told());
    println!("told after {:?}", begun.elapsed());
    std::fs::remove_file(&copy).expect("it");
    // The owner has what it has.
    assert_eq!(segment.root().mutex.try_lock().map(drop), Err(SharedError::Held));
    owner.kill();
    assert!(segment.root().told());
}

/// The page of the lock is of a moment when somebody had it, that of the slots of a later one,
/// when it had left: as after a crash of the system, or in a copy of a file that is used. And the
/// other way round.
#[test]
fn a_file_of_two_moments_has_no_owner_that_comes_later() {
    use std::os::unix::fs::FileExt;
    let path = std::env::temp_dir().join(format!("lockstead-moments-{}", std::process::id()));
    let segment = Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
    let word = segment.header().root + core::mem::offset_of!(Root, mutex) as u64;
    let file = OpenOptions::new().read(true).write(true).open(&path).expect("the file");
    let mut owned = [0; 4];
    let held = segment.root().mutex.lock().expect("a slot");
    file.read_exact_at(&mut owned, word).expect("the word");
    drop(held);
    segment.leave().expect("it holds nothing");
    assert!(segment.close().is_ok());
    let first = u32::from_ne_bytes(owned);
    // The slot's tenant has left; or the slot is of before this tenant came.
    for named in [first, first + (3 << 14)] {
        file.write_all_at(&named.to_ne_bytes(), word).expect("the word");
        let segment = Segment::<Root>::open(&path).expect("a segment");
        assert!(segment.root().told(), "{named:#x}");
        std::thread::scope(|s| {
            // Joined, so that it has left when the segment is closed.
            s.spawn(|| assert!(!segment.root().told(), "{named:#x}")).join().expect("told");
        });
        assert!(segment.close().is_ok());
    }
    std::fs::remove_file(&path).expect("it");
}

/// The process number of a container is 1 again when it is started again. Its namespace's
/// number may be, too.
#[test]
fn the_next_process_of_the_same_number_is_somebody_else() {
    let named = Named::new("restarted");
    let root = named.segment.root();
    for (stage, opens_first) in [(1, false), (2, true)] {
        // The next one draws the same number in the segment.
        let counter = named.segment.header().slots_at + 76;
        let file = OpenOptions::new().write(true).open(&named.path).expect("the file");
        let rewind = || {
            std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4], counter).expect("written");
        };
        rewind();
        let path = &named.path;
        let first = Child::first_of_namespace(|| {
            assert_eq!(std::process::id(), 1);
            let segment = Segment::<Root>::open(path).expect("a segment");
            let root = segment.root();
            core::mem::forget(root.mutex.lock().expect("a slot"));
            lose_list();
            root.stage.store(stage, SeqCst);
            loop {
                std::thread::park();
            }
        });
        let Some(first) = first else { return println!("skipped: no PID namespaces here") };
        root.await_stage(stage);
        first.kill();
        assert_eq!(living(path), 1, "the kernel has not told");
        rewind();
        let second = Child::first_of_namespace(|| {
            assert_eq!(std::process::id(), 1);
            let segment = Segment::<Root>::open(path).expect("a segment");
            if opens_first {
                assert!(segment.root().told());
            }
            segment.root().stage.store(100 + stage, SeqCst);
            loop {
                std::thread::park();
            }
        });
        let second = second.expect("as before");
        root.await_stage(100 + stage);
        if !opens_first {
            assert!(root.told());
            named.segment.leave().expect("it holds nothing");
        }
        second.kill();
    }
}

#[test]
fn who_has_opened_a_segment_twice_is_told_that_it_would_wait_for_itself() {
    let named = Named::new("twice");
    let again = Segment::<Root>::open(&named.path).expect("a segment");
    let (one, other) = (named.segment.root(), again.root());
    let held = one.mutex.lock().expect("free");
    assert_eq!(other.mutex.lock().map(drop), Err(SharedError::Recursive));
    assert_eq!(other.mutex.try_lock().map(drop), Err(SharedError::Recursive));
    drop(held);
    let reads = one.rate.read().expect("free");
    assert_eq!(other.rate.write().map(drop), Err(SharedError::Recursive));
    drop(reads);
    let writes = other.rate.write().expect("free");
    assert_eq!(one.rate.read().map(drop), Err(SharedError::Recursive));
    drop(writes);
    // Another thread of the same process is somebody else.
    let held = one.mutex.lock().expect("free");
    std::thread::scope(|s| {
        s.spawn(|| {
            let refused = other.mutex.lock_timeout(Duration::from_millis(1)).map(drop);
            assert_eq!(refused, Err(SharedError::TimedOut));
        });
    });
    drop(held);
}
