//! Beside programs that lock the segment's file for their own ends.

use crate::support::{Child, LONG, Named, Root, UNTOLD, living, lose_list};
use lockstead::shared::inspect::SegmentView;
use lockstead::shared::{JoinError, Locked, Segment, SegmentOptions, SharedError};
use std::fs::{File, OpenOptions};
use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Takes a record lock on the whole file, and beyond its end.
fn lock_all(file: &File, kind: libc::c_int) -> Result<(), Error> {
    lock(file, kind, 0)
}

/// Takes a record lock from this byte on.
fn lock(file: &File, kind: libc::c_int, from: i64) -> Result<(), Error> {
    // SAFETY: the structure is plain bits, for which zero is valid.
    let mut range: libc::flock = unsafe { core::mem::zeroed() };
    range.l_start = from;
    (range.l_type, range.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    // SAFETY: the kernel reads `range`, which lives until the call returns.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

#[test]
fn who_only_reads_the_file_keeps_nobody_out_and_hides_no_death() {
    let named = Named::new("read");
    let (path, root) = (&named.path, named.segment.root());
    // Another process has come before, and is known by a lock of its own.
    let early = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        let _reads = segment.root().rate.read().expect("a slot");
        lose_list();
        root.stage.store(1, SeqCst);
        loop {
            std::thread::park();
        }
    });
    root.await_stage(1);
    let reader = OpenOptions::new().read(true).open(path).expect("it may read");
    lock_all(&reader, libc::F_RDLCK).expect_err("those that take part have locks for writing");
    early.kill();
    // As soon as the byte is free by which the dead one was known.
    lock(&reader, libc::F_RDLCK, (1 << 40) + 2).expect("this process was the first one");
    assert!(root.rate.write_timeout(UNTOLD).is_ok());
    let late = Child::new(|| Segment::<Root>::open(path).expect("a segment").root().keep(2));
    root.await_stage(2);
    late.kill();
    assert!(root.told());
}

/// Locks by two descriptions in turn, so that the kernel does not make one range of them.
#[test]
fn a_reader_that_locks_many_numbers_one_by_one_keeps_nobody_out_either() {
    let named = Named::new("one-by-one");
    let readers = [0, 1].map(|_| OpenOptions::new().read(true).open(&named.path).expect("read"));
    let first = i64::from(LAST_OF_THIS_PROCESS) + 1;
    for number in first..first + 300 {
        let reader = &readers[number as usize % 2];
        // SAFETY: the structure is plain bits, for which zero is valid.
        let mut range: libc::flock = unsafe { core::mem::zeroed() };
        (range.l_type, range.l_whence) = (libc::F_RDLCK as libc::c_short, 0);
        (range.l_start, range.l_len) = ((1 << 40) + number, 1);
        // SAFETY: the kernel reads `range`, which lives until the call returns.
        let done = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
        assert_eq!(done, 0, "{}", Error::last_os_error());
    }
    let (path, root) = (&named.path, named.segment.root());
    let other = Child::new(|| {
        // It has been passed over some, and taken one of them for what it is.
        let segment = Segment::<Root>::open(path).expect("a segment");
        segment.root().keep(1);
    });
    root.await_stage(1);
    let drawn = {
        use std::os::unix::fs::FileExt;
        let mut bytes = [0; 4];
        let file = OpenOptions::new().read(true).open(path).expect("the file");
        let at = named.segment.header().slots_at + 76;
        file.read_exact_at(&mut bytes, at).expect("the counter");
        u32::from_ne_bytes(bytes)
    };
    assert!(drawn < 100, "{drawn} numbers were drawn for two processes");
    assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
    other.kill();
    assert!(root.told());
}

/// The number of this process: it makes the segment, and so draws the first one.
const LAST_OF_THIS_PROCESS: u32 = 1;

#[test]
fn beside_a_reader_that_has_locked_the_whole_file_all_take_part() {
    let path = std::env::temp_dir().join(format!("lockstead-masked-{}", std::process::id()));
    drop(Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment"));
    let reader = OpenOptions::new().read(true).open(&path).expect("it may read");
    lock_all(&reader, libc::F_RDLCK).expect("nobody takes part");
    let segment = Segment::<Root>::open(&path).expect("a segment");
    let root = segment.root();
    for stage in 1..4 {
        let owner = Child::new(|| {
            let segment = Segment::<Root>::open(&path).expect("a segment");
            segment.root().keep(stage);
        });
        root.await_stage(stage);
        assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
        owner.kill();
        assert!(root.told());
    }
    // The second source in the same PID namespace: by the thread.
    let owner = Child::new(|| {
        core::mem::forget(root.mutex.lock().expect("a slot"));
        lose_list();
        root.stage.store(9, SeqCst);
        loop {
            std::thread::park();
        }
    });
    root.await_stage(9);
    owner.kill();
    assert!(root.told());
    drop(reader);
    std::fs::remove_file(&path).expect("it");
}

#[test]
fn a_program_that_locks_the_whole_file_for_writing_is_named_at_once() {
    let path = std::env::temp_dir().join(format!("lockstead-locked-{}", std::process::id()));
    drop(Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment"));
    let other = OpenOptions::new().read(true).write(true).open(&path).expect("it may write");
    lock_all(&other, libc::F_WRLCK).expect("nobody takes part");
    let segment = Segment::<Root>::open(&path).expect("a segment");
    let begun = segment.header().slots_at;
    let refused = segment.root().mutex.lock().map(drop).expect_err("it cannot be known");
    assert_eq!(refused, SharedError::Join(JoinError::FileLocked), "{refused}");
    // One number was drawn, and not all there are.
    let mut drawn = [0; 4];
    std::os::unix::fs::FileExt::read_exact_at(&other, &mut drawn, begun + 76).expect("read");
    assert!(u32::from_ne_bytes(drawn) < 10, "{drawn:?}");
    drop(other);
    // A child of another test may have inherited it, and has it for a moment longer.
    let end = Instant::now() + LONG;
    while !matches!(segment.root().mutex.lock(), Ok(Locked::Acquired(_))) {
        assert!(Instant::now() < end, "the file is locked still");
        std::thread::sleep(Duration::from_micros(200));
    }
    std::fs::remove_file(&path).expect("it");
}

/// Tells whether files of this directory have an origin that is certain; elsewhere a reader's lock
/// hides more.
fn in_memory(name: &str) -> Option<std::path::PathBuf> {
    let memory = std::path::Path::new("/dev/shm");
    let path = memory.join(format!("lockstead-{name}-{}", std::process::id()));
    let usable =
        memory.is_dir() && std::path::Path::new("/proc/sys/kernel/random/boot_id").exists();
    usable.then_some(path)
}

fn unnoticed(path: &std::path::Path) -> usize {
    let people = SegmentView::open(path).and_then(|view| view.people()).expect("a segment");
    people.all().iter().filter(|person| person.unnoticed).count()
}

/// The copy's locks are another reader's, so that nobody can be told from it by number.
#[test]
fn beside_a_reader_a_copy_of_the_file_has_no_living_owners_either() {
    let Some(path) = in_memory("masked") else { return println!("skipped: no /dev/shm, no /proc") };
    drop(Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment"));
    let reader = OpenOptions::new().read(true).open(&path).expect("it may read");
    lock_all(&reader, libc::F_RDLCK).expect("nobody takes part");
    let segment = Segment::<Root>::open(&path).expect("a segment");
    let owner = Child::new(|| Segment::<Root>::open(&path).expect("a segment").root().keep(1));
    segment.root().await_stage(1);
    let copy = path.with_extension("copy");
    std::fs::copy(&path, &copy).expect("copied");
    let other = OpenOptions::new().read(true).open(&copy).expect("it may read");
    lock_all(&other, libc::F_RDLCK).expect("nobody takes part in the copy");
    assert_eq!([unnoticed(&path), unnoticed(&copy)], [0, 1], "who only reads it is told too");
    {
        let opened = Segment::<Root>::open(&copy).expect("a segment");
        assert_eq!(living(&copy), 0, "who opens it finds nobody alive");
        assert!(opened.root().told());
    }
    let root = segment.root();
    assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
    owner.kill();
    assert!(root.told());
    [&path, &copy].iter().for_each(|path| std::fs::remove_file(path).expect("it"));
}

/// Stands for the next container: its first process has the number of the last one's, and its
/// namespace's number may be the same, too.
#[test]
fn beside_a_reader_the_next_process_of_the_same_number_is_somebody_else() {
    let path = std::env::temp_dir().join(format!("lockstead-next-{}", std::process::id()));
    drop(Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment"));
    let reader = OpenOptions::new().read(true).open(&path).expect("it may read");
    lock_all(&reader, libc::F_RDLCK).expect("nobody takes part");
    let segment = Segment::<Root>::open(&path).expect("a segment");
    let root = segment.root();
    let space = || std::fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino());
    let first = Child::first_of_namespace(|| {
        root.space.store(space(), SeqCst);
        Segment::<Root>::open(&path).expect("a segment").root().keep_untold(1);
    });
    let Some(first) = first else { return println!("skipped: no PID namespaces here") };
    root.await_stage(1);
    first.kill();
    let mut met = false;
    for _ in 0..100 {
        let next = Child::first_of_namespace(|| {
            assert_eq!(std::process::id(), 1);
            let is_same = space() != 0 && space() == root.space.load(SeqCst);
            root.stage.store(if is_same { 2 } else { 3 }, SeqCst);
            if is_same {
                assert!(Segment::<Root>::open(&path).expect("a segment").root().told());
            }
        });
        next.expect("as before").ends();
        met = root.stage.load(SeqCst) == 2;
        if met {
            break;
        }
    }
    std::fs::remove_file(&path).expect("it");
    if !met {
        println!("skipped: the numbers of namespaces do not come again here");
    }
}
