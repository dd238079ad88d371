//! Where something is missing that sharing needs: `/proc`, a descriptor, rights, system calls.

#[path = "../../../linux/tests/common/filter.rs"]
mod filter;

use crate::support::{Child, LONG, Named, Root, living, lose_list};
use lockstead::shared::{JoinError, Locked, Segment, SegmentError, SegmentOptions, SharedError};
use std::ffi::{CStr, CString};
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// Hides what the calling process and its children mount from here on from everybody else. Returns
/// false where that is not allowed.
fn have_own_mounts() -> bool {
    // SAFETY: a namespace of the caller's own, and a path that lives.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                core::ptr::null(),
                c"/".as_ptr(),
                core::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                core::ptr::null(),
            ) == 0
    }
}

/// Mounts a file system without a device. Returns false where that is not allowed.
fn mount(kind: &CStr, target: &CStr, options: &CStr) -> bool {
    let (kind, options) = (kind.as_ptr(), options.as_ptr().cast());
    // SAFETY: the strings live during the call and end in a zero.
    unsafe { libc::mount(c"none".as_ptr(), target.as_ptr(), kind, 0, options) == 0 }
}

/// Hides `/proc` from the calling process and its children. Returns false where that is not
/// allowed.
fn lose_proc() -> bool {
    have_own_mounts() && mount(c"tmpfs", c"/proc", c"") && !Path::new("/proc/self").exists()
}

/// What a child says that cannot do what is to be tested.
const SKIPPED: u32 = 77;

#[test]
fn without_proc_a_file_with_a_path_protects_as_with_it() {
    let named = Named::new("without-proc");
    let (path, root) = (&named.path, named.segment.root());
    let owner = Child::new(|| {
        if !lose_proc() {
            root.stage.store(SKIPPED, SeqCst);
            return;
        }
        // A file that is made without `/proc`, and one that is opened.
        let made = path.with_extension("made");
        drop(Segment::<Root>::create(&made, &SegmentOptions::new()).expect("made"));
        std::fs::remove_file(&made).expect("it");
        let segment = Segment::<Root>::open(path).expect("a segment");
        // So is a child of this one, which needs to be known by itself.
        Child::new(|| assert!(!segment.root().told())).ends();
        core::mem::forget(segment.root().mutex.lock().expect("a slot"));
        lose_list();
        root.stage.store(1, SeqCst);
        loop {
            std::thread::park();
        }
    });
    let end = Instant::now() + LONG;
    while root.stage.load(SeqCst) == 0 {
        assert!(Instant::now() < end, "nothing happens");
        std::thread::sleep(Duration::from_micros(200));
    }
    if root.stage.load(SeqCst) == SKIPPED {
        return println!("skipped: no mount namespaces here");
    }
    assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
    owner.kill();
    assert!(root.told());
    assert_eq!(living(path), 1, "this thread");
}

#[test]
fn without_proc_and_without_a_path_joining_says_what_is_missing() {
    let segment = Segment::<Root>::memfd("no-path", &SegmentOptions::new()).expect("a segment");
    let root = segment.root();
    Child::new(|| {
        if !lose_proc() {
            return println!("skipped: no mount namespaces here");
        }
        let refused = root.mutex.lock().map(drop).expect_err("nobody would learn of its end");
        assert!(
            matches!(refused, SharedError::Join(JoinError::NoDescription(libc::ENOENT))),
            "{refused}"
        );
        assert!(refused.to_string().contains("mount /proc"), "{refused}");
    })
    .ends();
    assert!(matches!(root.mutex.lock(), Ok(Locked::Acquired(_))));
}

#[test]
fn without_a_free_descriptor_who_has_opened_takes_part_and_a_child_is_told() {
    let segment = Segment::<Root>::memfd("full", &SegmentOptions::new()).expect("a segment");
    let root = segment.root();
    Child::new(|| {
        let limit = |files| {
            let limit = libc::rlimit { rlim_cur: files, rlim_max: 1024 };
            // SAFETY: the kernel reads `limit`, which lives until the call returns.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        };
        // Opened by this process, with descriptors to spare.
        let mine = segment.as_fd().try_clone_to_owned().expect("a descriptor");
        let mine = Segment::<Root>::from_fd(mine).expect("a segment");
        limit(3);
        let said = mine
            .root()
            .mutex
            .lock()
            .expect("known by what it did when it opened")
            .is_inconsistent();
        assert!(!said);
        let child = Child::new(|| {
            let refused = mine.root().mutex.lock().map(drop).expect_err("it is not known");
            let expected = SharedError::Join(JoinError::NoDescription(libc::EMFILE));
            assert_eq!(refused, expected, "{refused}");
            // It was not for good.
            limit(1024);
            assert!(!mine.root().told());
        });
        child.ends();
        core::mem::forget(mine.root().mutex.lock().expect("a slot"));
        lose_list();
    })
    .ends();
    assert!(root.told());
}

/// Does as daemons do: the file is root's, and opened before that is given up.
#[test]
fn who_gives_up_the_right_to_the_file_after_opening_it_takes_part() {
    // SAFETY: `geteuid` takes no argument and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: not root");
    }
    let path = std::env::temp_dir().join(format!("lockstead-daemon-{}", std::process::id()));
    let segment = Segment::<Root>::create(&path, &SegmentOptions::new().mode(0o600)).expect("one");
    let root = segment.root();
    let owner = Child::new(|| {
        let segment = Segment::<Root>::open(&path).expect("a segment");
        // SAFETY: the calls take numbers and touch no memory of ours.
        unsafe {
            assert_eq!(libc::setgid(65_534), 0);
            assert_eq!(libc::setuid(65_534), 0);
        }
        assert!(OpenOptions::new().read(true).open(&path).is_err());
        std::thread::scope(|s| {
            s.spawn(|| assert!(matches!(segment.root().mutex.lock(), Ok(Locked::Acquired(_)))));
        });
        let refused = Child::new(|| {
            let refused = segment.root().mutex.lock().map(drop).expect_err("it may not open it");
            let expected = SharedError::Join(JoinError::NoDescription(libc::EACCES));
            assert_eq!(refused, expected, "{refused}");
            assert!(refused.to_string().contains("before"), "{refused}");
        });
        refused.ends();
        core::mem::forget(segment.root().mutex.lock().expect("a slot"));
        lose_list();
        root.stage.store(1, SeqCst);
        loop {
            std::thread::park();
        }
    });
    root.await_stage(1);
    assert_eq!(root.mutex.try_lock().map(drop), Err(SharedError::Held), "it lives");
    owner.kill();
    assert!(root.told());
    std::fs::remove_file(&path).expect("it");
}

/// Refuses to let anybody join. Where a mapping refers to another file system's file: nobody would
/// be known by its lock.
#[test]
fn on_an_overlay_joining_says_that_its_locks_do_not_last() {
    let named = Named::new("overlay");
    let root = named.segment.root();
    let folder = named.path.with_extension("overlay");
    let parts = ["lower", "upper", "work", "merged"].map(|name| folder.join(name));
    parts.iter().for_each(|part| std::fs::create_dir_all(part).expect("a folder"));
    Child::new(|| {
        let [lower, upper, work, merged] = parts.each_ref().map(|path| path.display().to_string());
        let options = CString::new(format!("lowerdir={lower},upperdir={upper},workdir={work}"));
        let target = CString::new(merged.as_str()).expect("no zero in a path");
        let options = options.expect("no zero in paths");
        let mounted = have_own_mounts() && mount(c"overlay", &target, &options);
        if !mounted {
            root.stage.store(SKIPPED, SeqCst);
            return;
        }
        let path = Path::new(&merged).join("segment");
        let segment = Segment::<Root>::create(&path, &SegmentOptions::new()).expect("a segment");
        match segment.root().mutex.lock().map(drop) {
            Err(refused) => {
                assert_eq!(refused, SharedError::Join(JoinError::ForgetfulFileSystem));
                assert!(refused.to_string().contains("/dev/shm"), "{refused}");
            }
            // Where overlays keep locks, so that nobody takes a living one for dead.
            Ok(()) => {
                let held = segment.root().mutex.lock().expect("free");
                let other = || {
                    let other = Segment::<Root>::open(&path).expect("a segment");
                    assert_eq!(other.root().mutex.try_lock().map(drop), Err(SharedError::Held));
                };
                Child::new(other).ends();
                drop(held);
            }
        }
    })
    .ends();
    std::fs::remove_dir_all(&folder).expect("it");
    if root.stage.load(SeqCst) == SKIPPED {
        println!("skipped: nothing can be mounted here");
    }
}

#[test]
fn filters_of_system_calls_are_passed_by_or_named() {
    let named = Named::new("filtered");
    let fresh = named.path.with_extension("fresh");
    let under = |call, second, error, body: &dyn Fn(Result<Segment<Root>, SegmentError>)| {
        Child::new(|| {
            if !filter::refuse(call, second, error) {
                return println!("skipped: no filters here");
            }
            body(Segment::<Root>::create(&fresh, &SegmentOptions::new()));
        })
        .ends();
        let _ = std::fs::remove_file(&fresh);
    };
    // There is another way to get memory.
    under(libc::SYS_fallocate, None, libc::EPERM, &|segment| {
        let segment = segment.expect("a segment");
        assert!(matches!(segment.root().mutex.lock(), Ok(Locked::Acquired(_))));
    });
    // There is none to be known by, nor to be told from a forked child.
    let unknown = |error, segment: Result<Segment<Root>, SegmentError>| {
        let segment = segment.expect("a segment");
        let refused = segment.root().mutex.lock().map(drop).expect_err("it is not known");
        let expected = SharedError::Join(JoinError::NoRecordLocks(error));
        assert_eq!(refused, expected, "{refused}");
        assert!(refused.to_string().contains("allow fcntl"), "{refused}");
    };
    under(libc::SYS_fcntl, None, libc::EPERM, &|segment| {
        let unsealed = Segment::<Root>::memfd("filtered", &SegmentOptions::new()).map(drop);
        let refused = unsealed.expect_err("anybody could cut it").to_string();
        assert!(refused.contains("sealing"), "{refused}");
        unknown(libc::EPERM, segment);
    });
    // Not as if somebody had all numbers.
    under(libc::SYS_fcntl, Some(libc::F_OFD_SETLK as u32), libc::EACCES, &|segment| {
        unknown(libc::EACCES, segment);
    });
    under(libc::SYS_madvise, None, libc::EPERM, &|segment| {
        // The first segment of a process is not attached at all.
        let refused = match segment {
            Ok(segment) => segment.root().mutex.lock().map(drop).map_err(|why| why.to_string()),
            Err(why) => Err(why.to_string()),
        };
        let refused = refused.expect_err("a child would take itself for its parent");
        assert!(refused.contains("madvise") && refused.contains("not permitted"), "{refused}");
    });
}

/// Does as a daemon that closes whatever is open, and opens files of its own then.
#[test]
fn a_descriptor_that_the_program_has_closed_and_used_anew_is_left_to_it() {
    Child::new(|| {
        let segment = Segment::<Root>::memfd("closed", &SegmentOptions::new()).expect("a segment");
        let number = segment.as_fd().as_raw_fd();
        // SAFETY: as a program does that does not know whose it is; nothing of the test's uses it.
        unsafe { libc::close(number) };
        let other = std::fs::File::open("/dev/null").expect("a file");
        assert_eq!(other.as_raw_fd(), number, "the lowest that is free");
        assert!(segment.close().is_ok());
        other.metadata().expect("it is open still");
    })
    .ends();
}
