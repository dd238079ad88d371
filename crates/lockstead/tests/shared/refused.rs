//! Files that are no segments, or no longer.

use crate::support::{Folder, Random, Watchdog};
use lockstead::shared::inspect::SegmentView;
use lockstead::shared::{
    Segment, SegmentError, SegmentOptions, Shareable, SharedCondvar, SharedMutex,
};
use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Shareable)]
#[repr(C)]
struct Root {
    number: u64,
    locks: [SharedMutex<u64>; 4],
    changed: SharedCondvar,
}

type Small = Segment<Root>;

fn small(path: &Path) -> Vec<u8> {
    Small::create(path, &SegmentOptions::new().participants(2).claims(1)).expect("a segment");
    fs::read(path).expect("its bytes")
}

#[test]
fn what_is_no_segment_is_refused() {
    let _watchdog = Watchdog::new("what_is_no_segment_is_refused");
    let folder = Folder::new();
    let path = folder.file("other");
    for bytes in [&b""[..], b"lockseg", &[0; 5000], &[0xff; 5000]] {
        fs::write(&path, bytes).expect("a file");
        assert!(matches!(Small::open(&path), Err(SegmentError::NotASegment)), "{}", bytes.len());
        assert!(matches!(SegmentView::open(&path), Err(SegmentError::NotASegment)));
    }
    let pipe = folder.file("pipe");
    let name = CString::new(pipe.as_os_str().as_bytes()).expect("a name");
    // SAFETY: `name` is a live string that ends in a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(matches!(Small::open(&pipe), Err(SegmentError::NotAFile)));
    // To be read, a pipe opens at once too, without a writer.
    assert!(matches!(SegmentView::open(&pipe), Err(SegmentError::NotAFile)));
    assert!(matches!(SegmentView::open(folder.path()), Err(SegmentError::NotAFile)));
    assert!(matches!(Small::open("/dev/null"), Err(SegmentError::NotAFile)));
}

#[test]
fn a_file_of_another_length_is_refused() {
    let folder = Folder::new();
    let path = folder.file("root");
    let length = small(&path).len() as u64;
    let file = File::options().write(true).open(&path).expect("the file");
    for other in [length - 1, length - 4096, 4096, 200, length + 1] {
        file.set_len(other).expect("a change");
        match Small::open(&path) {
            Err(SegmentError::Truncated { should, is }) => {
                assert_eq!((should, is), (length, other));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_changed_byte_of_the_header_and_the_directory_is_noticed() {
    let folder = Folder::new();
    let path = folder.file("root");
    let bytes = small(&path);
    let directory = 4096..4096 + Small::open(&path).expect("it").header().directory_bytes as usize;
    for at in (0..112).chain(directory) {
        for change in [1, 0x80, 0xff] {
            let mut other = bytes.clone();
            other[at] ^= change;
            fs::write(&path, &other).expect("a file");
            let refused = Small::open(&path).expect_err("a changed byte");
            let expected = match at {
                0..8 => matches!(refused, SegmentError::NotASegment),
                8..12 => matches!(refused, SegmentError::Version { .. }),
                12..16 => matches!(refused, SegmentError::ByteOrder),
                _ => matches!(refused, SegmentError::Damaged(_)),
            };
            assert!(expected, "byte {at}: {refused:?}");
            assert!(SegmentView::open(&path).is_err(), "byte {at}");
        }
    }
}

/// Damages the file with sums that are right: the decoder itself has to be right, too.
#[test]
fn changed_headers_and_directories_with_right_sums_are_survived() {
    let _watchdog = Watchdog::new("changed_headers_and_directories_with_right_sums_are_survived");
    let folder = Folder::new();
    let path = folder.file("root");
    let bytes = small(&path);
    let directory = Small::open(&path).expect("it").header().directory_bytes as usize;
    let mut random = Random::new(5);
    let mut opened = 0;
    for _ in 0..4000 {
        let mut other = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = if random.below(2) == 0 {
                random.below(104)
            } else {
                4096 + random.below(directory)
            };
            other[at] = match random.below(4) {
                0 => random.next() as u8,
                1 => other[at].wrapping_add(1),
                2 => 0,
                _ => 0xff,
            };
        }
        let sum = hash(&other[4096..4096 + directory]);
        other[96..104].copy_from_slice(&sum.to_le_bytes());
        let sum = hash(&other[..104]);
        other[104..112].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, &other).expect("a file");
        // What opens describes itself; every lock is in the root.
        let Ok(view) = SegmentView::open(&path) else { continue };
        opened += 1;
        let people = view.people().expect("slots");
        let (mut locks, mut last) = (0, 0);
        view.locks(&people, &mut |lock| {
            assert!(lock.offset >= view.header().root && lock.offset.is_multiple_of(8));
            last = last.max(lock.offset);
            locks += 1;
            locks < 10_000
        })
        .expect("locks");
        assert!(last < view.header().total);
        let _ = Small::open(&path);
    }
    assert!(opened > 20, "{opened}");
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

mod before {
    use super::{Shareable, SharedCondvar, SharedMutex};

    #[derive(Shareable)]
    #[repr(C)]
    pub(super) struct Root {
        number: u64,
        locks: [SharedMutex<u64>; 5],
        changed: SharedCondvar,
    }
}

mod renamed {
    use super::{Shareable, SharedCondvar, SharedMutex};

    #[derive(Shareable)]
    #[repr(C)]
    pub(super) struct Root {
        number: u64,
        locks: [SharedMutex<i64>; 4],
        changed: SharedCondvar,
    }
}

#[test]
fn a_segment_of_another_root_is_refused_with_the_difference() {
    let folder = Folder::new();
    let path = folder.file("root");
    small(&path);
    let difference = |refused| match refused {
        SegmentError::OtherRoot { difference } => difference,
        other => panic!("{other:?}"),
    };
    let refused = Segment::<before::Root>::open(&path).expect_err("5 locks");
    let difference_of_count = difference(refused);
    assert!(
        difference_of_count.contains("root.locks` is an array of 4")
            && difference_of_count.contains("an array of 5"),
        "{difference_of_count}"
    );
    let refused = Segment::<renamed::Root>::open(&path).expect_err("other numbers");
    assert_eq!(
        difference(refused),
        "`root.locks[].data` is u64 (8 bytes) there, i64 (8 bytes) here"
    );
    let refused = Segment::<SharedMutex<u64>>::open(&path).expect_err("another type");
    assert!(difference(refused).contains("struct Root"));
}

#[test]
fn options_that_make_no_segment_are_refused() {
    for options in [
        SegmentOptions::new().participants(0),
        SegmentOptions::new().participants(16_383),
        SegmentOptions::new().claims(193),
    ] {
        let refused = Small::memfd("none", &options).expect_err("no such segment");
        assert!(matches!(refused, SegmentError::Options(_)), "{refused:?}");
    }
    Small::memfd("most", &SegmentOptions::new().participants(16_382).claims(1)).expect("the most");
    Small::memfd("most", &SegmentOptions::new().claims(192)).expect("the most");
}

#[test]
fn who_may_only_read_does_not_open_it() {
    let folder = Folder::new();
    let path = folder.file("root");
    small(&path);
    let file = File::open(&path).expect("the file");
    let refused = Small::from_fd(file.into()).expect_err("it cannot be written");
    assert!(matches!(refused, SegmentError::Io { .. }), "{refused:?}");
    SegmentView::open(&path).expect("to look at, that is enough");
}

#[test]
fn what_is_no_segment_is_left_as_it_was() {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the call makes a new file, and nobody else has the descriptor.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"other".as_ptr(), flags)) };
    file.set_len(8192).expect("its size");
    let same = file.try_clone().expect("another descriptor");
    assert!(matches!(Small::from_fd(same.into()), Err(SegmentError::NotASegment)));
    file.set_len(4096).expect("it may still be cut");
}
