//! Who is who among those that share a segment: after the file was copied, in the next
//! container of the same process number, where there is no `/proc` or no descriptor to
//! spare, beside programs that lock the file, and after giving up a user's rights. A program
//! of its own, since it forks.

use lockstead::shared::{
    JoinError, Locked, Options, Segment, SegmentError, Shareable, SharedError, SharedMutex,
    SharedRwLock, inspect::View,
};
use std::fs::{File, OpenOptions};
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
struct Root {
    stage: AtomicU32,
    mutex: SharedMutex<u64>,
    rate: SharedRwLock<u64>,
}

/// Longer than anything takes, but a hang.
const LONG: Duration = Duration::from_secs(30);

/// In which a death is found that the kernel has not told of.
const UNTOLD: Duration = Duration::from_secs(10);

/// A segment in a file of its own, removed when dropped.
struct Named {
    path: PathBuf,
    segment: Segment<Root>,
}

impl Named {
    fn new(name: &str) -> Named {
        let path = std::env::temp_dir().join(format!("lockstead-{name}-{}", std::process::id()));
        let segment = Segment::create(&path, &Options::new().mode(0o666)).expect("a segment");
        Named { path, segment }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Root {
    #[track_caller]
    fn await_stage(&self, stage: u32) {
        let end = Instant::now() + LONG;
        while self.stage.load(SeqCst) != stage {
            assert!(Instant::now() < end, "stage {stage} is never reached");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Takes the mutex for good, says so, and waits to be killed.
    fn keep(&self, stage: u32) -> ! {
        core::mem::forget(self.mutex.lock().expect("a seat"));
        self.stage.store(stage, SeqCst);
        loop {
            std::thread::park();
        }
    }

    /// Whether the mutex is got in time, and its last owner was said to have died.
    #[track_caller]
    fn told(&self) -> bool {
        let locked = self.mutex.lock_timeout(UNTOLD).expect("not in time");
        let told = matches!(locked, Locked::OwnerDied(_));
        drop(locked.recover(|_| ()));
        told
    }
}

/// A forked child. Killed, if it still lives, when dropped.
struct Child(libc::pid_t);

impl Child {
    fn new(body: impl FnOnce()) -> Child {
        // By the libc, which has other threads' descriptions of files closed before.
        // SAFETY: the child never returns from here.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", Error::last_os_error()),
            0 => {
                let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
                // SAFETY: ends the child without its destructors.
                unsafe { libc::_exit(i32::from(!right)) }
            }
            child => Child(child),
        }
    }

    /// The first one of a PID namespace of its own; `None` where that is not allowed.
    fn first_of_namespace(body: impl FnOnce() + Send) -> Option<Child> {
        // A thread can say only once where its children are to live.
        std::thread::scope(|s| {
            let forks = || {
                // SAFETY: takes a number.
                let allowed = unsafe { libc::unshare(libc::CLONE_NEWPID) } == 0;
                allowed.then(|| Child::new(body))
            };
            s.spawn(forks).join().expect("it forks")
        })
    }

    fn kill(self) {
        drop(self);
    }

    #[track_caller]
    fn ends(mut self) {
        let mut status = 0;
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::waitpid(self.0, &mut status, 0) };
        self.0 = 0;
        assert_eq!(status, 0, "the child failed");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.0 > 0 {
            // SAFETY: our own child, not waited for yet.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, core::ptr::null_mut(), 0);
            }
        }
    }
}

/// The kernel forgets the list of the calling thread, and tells of its end to nobody.
fn lose_list() {
    // SAFETY: takes numbers.
    assert_eq!(unsafe { libc::syscall(libc::SYS_set_robust_list, 0usize, 24usize) }, 0);
}

/// A record lock on the whole file, and beyond its end.
fn lock_all(file: &File, kind: libc::c_int) -> Result<(), Error> {
    lock(file, kind, 0)
}

/// A record lock from this byte on.
fn lock(file: &File, kind: libc::c_int, from: i64) -> Result<(), Error> {
    // SAFETY: plain bits, for which zero is valid.
    let mut range: libc::flock = unsafe { core::mem::zeroed() };
    range.l_start = from;
    (range.l_type, range.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    // SAFETY: reads a live structure.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn living(path: &Path) -> usize {
    let people = View::open(path).expect("a segment").people().expect("people");
    people.all().iter().filter(|person| person.alive).count()
}

/// As after a start of the system, or a file that was put back: seats say that somebody
/// lives who is nowhere to be found.
#[test]
fn a_copy_of_the_file_has_no_living_owners() {
    let named = Named::new("copied");
    let (path, segment) = (&named.path, &named.segment);
    let owner = Child::new(|| segment.root().keep(1));
    segment.root().await_stage(1);
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).expect("copied");
    let begun = Instant::now();
    let opened = Segment::<Root>::open_or_create(&copy, &Options::new()).expect("a segment");
    assert_eq!(living(&copy), 0, "who opens it finds nobody alive");
    assert!(opened.root().told());
    println!("told after {:?}", begun.elapsed());
    std::fs::remove_file(&copy).expect("it");
    // The owner has what it has.
    assert_eq!(segment.root().mutex.try_lock().map(drop), Err(SharedError::Held));
    owner.kill();
    assert!(segment.root().told());
}

/// The process number of a container is 1 again when it is started again. Its namespace's
/// number may be, too.
#[test]
fn the_next_process_of_the_same_number_is_somebody_else() {
    let named = Named::new("restarted");
    let root = named.segment.root();
    for (stage, opens_first) in [(1, false), (2, true)] {
        // The next one draws the same number in the segment.
        let counter = named.segment.header().seats_at + 76;
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
            core::mem::forget(root.mutex.lock().expect("a seat"));
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

/// Hides `/proc` from the calling process and its children; false where that is not allowed.
fn lose_proc() -> bool {
    // SAFETY: a namespace of the caller's own, and paths that live.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                core::ptr::null(),
                c"/".as_ptr(),
                core::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                core::ptr::null(),
            ) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/proc".as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                core::ptr::null(),
            ) == 0
            && !Path::new("/proc/self").exists()
    }
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
        drop(Segment::<Root>::create(&made, &Options::new()).expect("made"));
        std::fs::remove_file(&made).expect("it");
        let segment = Segment::<Root>::open(path).expect("a segment");
        // So is a child of this one, which needs to be known by itself.
        Child::new(|| assert!(!segment.root().told())).ends();
        core::mem::forget(segment.root().mutex.lock().expect("a seat"));
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
    let segment = Segment::<Root>::memfd("no-path", &Options::new()).expect("a segment");
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
    let segment = Segment::<Root>::memfd("full", &Options::new()).expect("a segment");
    let root = segment.root();
    Child::new(|| {
        let limit = |files| {
            let limit = libc::rlimit { rlim_cur: files, rlim_max: 1024 };
            // SAFETY: reads a live structure.
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
        core::mem::forget(mine.root().mutex.lock().expect("a seat"));
        lose_list();
    })
    .ends();
    assert!(root.told());
}

#[test]
fn who_only_reads_the_file_keeps_nobody_out_and_hides_no_death() {
    let named = Named::new("read");
    let (path, root) = (&named.path, named.segment.root());
    // Another process has come before, and is known by a lock of its own.
    let early = Child::new(|| {
        let segment = Segment::<Root>::open(path).expect("a segment");
        let _reads = segment.root().rate.read().expect("a seat");
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

#[test]
fn beside_a_reader_that_has_locked_the_whole_file_all_take_part() {
    let path = std::env::temp_dir().join(format!("lockstead-masked-{}", std::process::id()));
    drop(Segment::<Root>::create(&path, &Options::new()).expect("a segment"));
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
        core::mem::forget(root.mutex.lock().expect("a seat"));
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
    drop(Segment::<Root>::create(&path, &Options::new()).expect("a segment"));
    let other = OpenOptions::new().read(true).write(true).open(&path).expect("it may write");
    lock_all(&other, libc::F_WRLCK).expect("nobody takes part");
    let segment = Segment::<Root>::open(&path).expect("a segment");
    let begun = segment.header().seats_at;
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

/// As daemons do: the file is root's, and opened before that is given up.
#[test]
fn who_gives_up_the_right_to_the_file_after_opening_it_takes_part() {
    // SAFETY: only asks.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: not root");
    }
    let path = std::env::temp_dir().join(format!("lockstead-daemon-{}", std::process::id()));
    let segment = Segment::<Root>::create(&path, &Options::new().mode(0o600)).expect("one");
    let root = segment.root();
    let owner = Child::new(|| {
        let segment = Segment::<Root>::open(&path).expect("a segment");
        // SAFETY: takes numbers.
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
        core::mem::forget(segment.root().mutex.lock().expect("a seat"));
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

/// This system call is refused from here on, to all threads; false if filters are not
/// allowed.
fn forbid(call: libc::c_long) -> bool {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        step(LOAD, 0, 0, 0),
        step(EQUAL, 0, 1, call as u32),
        step(RETURN, 0, 0, refused),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its steps are alive during the calls, which copy them.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) == 0
    }
}

#[test]
fn filters_of_system_calls_are_passed_by_or_named() {
    let named = Named::new("filtered");
    let fresh = named.path.with_extension("fresh");
    let under = |call, body: &dyn Fn(Result<Segment<Root>, SegmentError>)| {
        Child::new(|| {
            if !forbid(call) {
                return println!("skipped: no filters here");
            }
            body(Segment::<Root>::create(&fresh, &Options::new()));
        })
        .ends();
        let _ = std::fs::remove_file(&fresh);
    };
    // There is another way to get memory.
    under(libc::SYS_fallocate, &|segment| {
        let segment = segment.expect("a segment");
        assert!(matches!(segment.root().mutex.lock(), Ok(Locked::Acquired(_))));
    });
    // There is none to be known by, nor to be told from a forked child.
    under(libc::SYS_fcntl, &|segment| {
        let segment = segment.expect("a segment");
        let refused = segment.root().mutex.lock().map(drop).expect_err("it is not known");
        let expected = SharedError::Join(JoinError::NoRecordLocks(libc::EPERM));
        assert_eq!(refused, expected, "{refused}");
        assert!(refused.to_string().contains("allow fcntl"), "{refused}");
    });
    under(libc::SYS_madvise, &|segment| {
        // The first segment of a process is not attached at all.
        let refused = match segment {
            Ok(segment) => segment.root().mutex.lock().map(drop).map_err(|why| why.to_string()),
            Err(why) => Err(why.to_string()),
        };
        let refused = refused.expect_err("a child would take itself for its parent");
        assert!(refused.contains("refuses madvise"), "{refused}");
    });
}
