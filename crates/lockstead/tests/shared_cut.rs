//! Files of segments that are cut while they are in use. A program of its own: it has a
//! handler of a signal.

use lockstead::shared::{
    Locked, OnDeath, Segment, SegmentOptions, Shareable, SharedCondvar, SharedError, SharedMutex,
    SharedRwLock, SharedSemaphore, pages_cut, survive_cuts,
};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Shareable)]
#[repr(C)]
struct Root {
    mutexes: [SharedMutex<u64>; 1000],
    rates: SharedRwLock<u64>,
    slots: SharedSemaphore,
    changed: SharedCondvar,
}

struct Path(PathBuf);

impl Drop for Path {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the file of a child, which a child that a signal ends leaves behind.
fn path_of(child: u32) -> PathBuf {
    std::env::temp_dir().join(format!("lockstead-cut-{child}"))
}

fn make() -> (Path, Segment<Root>, File) {
    let path = Path(path_of(std::process::id()));
    let segment = Segment::<Root>::create_with(&path.0, &SegmentOptions::new(), |root| {
        root.slots = SharedSemaphore::new(3, OnDeath::Return);
    });
    let file = File::options().write(true).open(&path.0).expect("the file");
    (path, segment.expect("a segment"), file)
}

/// Returns the signal by which a child ends that runs `body`; 0 if it ends by itself.
fn signal_of(body: impl FnOnce()) -> libc::c_int {
    // SAFETY: the child runs `body` and ends without returning from here.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // SAFETY: `alarm` takes a number and has no preconditions.
            unsafe { libc::alarm(30) };
            // What the harness captures is lost with the child.
            std::panic::set_hook(Box::new(|why| {
                let text = format!("{why}\n");
                // SAFETY: the call reads as many bytes as `text` has, which lives until it returns.
                unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
            }));
            let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
            // SAFETY: the call ends the child without its destructors.
            unsafe { libc::_exit(i32::from(!right)) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the kernel writes into `status`, which lives until the call returns.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            let _ = std::fs::remove_file(path_of(child.unsigned_abs()));
            if libc::WIFSIGNALED(status) {
                return libc::WTERMSIG(status);
            }
            assert_eq!(libc::WEXITSTATUS(status), 0, "the child has failed");
            0
        }
    }
}

/// One test, since there is one handler.
#[test]
fn a_cut_is_survived_where_that_was_asked_for() {
    // The test means something: without the handler it is the end.
    let died = signal_of(|| {
        let (_path, segment, file) = make();
        file.set_len(4096).expect("a cut");
        let _ = segment.root().mutexes[0].lock();
    });
    assert_eq!(died, libc::SIGBUS);

    // Another file's cut, and a signal that is sent, are still the end.
    let died = signal_of(|| {
        survive_cuts().expect("a handler");
        let (path, _segment, _file) = make();
        let file = File::options().read(true).write(true).open(&path.0).expect("the file");
        // SAFETY: the mapping is our own, and is read as bytes.
        unsafe {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
            let (null, shared) = (core::ptr::null_mut(), libc::MAP_SHARED);
            let at = libc::mmap(null, 4096, libc::PROT_READ, shared, fd, 0);
            assert_ne!(at, libc::MAP_FAILED);
            file.set_len(0).expect("a cut");
            core::hint::black_box(at.cast::<u8>().read_volatile());
        }
    });
    assert_eq!(died, libc::SIGBUS);
    // The handler of the standard library, which had the signal before, gives it up for
    // the next time.
    // SAFETY: the child raises the signal in itself, and has nothing to lose by ending.
    let died = signal_of(|| unsafe {
        survive_cuts().expect("a handler");
        libc::raise(libc::SIGBUS);
        libc::raise(libc::SIGBUS);
    });
    assert_eq!(died, libc::SIGBUS);

    for kept in [true, false] {
        let ended = signal_of(|| survived(kept));
        assert_eq!(ended, 0);
    }
    for turn in 0..20 {
        let ended = signal_of(|| cut_while_in_use(turn));
        assert_eq!(ended, 0, "turn {turn}");
    }
}

/// Cuts the file while threads join, wait and release.
fn cut_while_in_use(turn: u64) {
    survive_cuts().expect("a handler");
    let (_path, segment, file) = make();
    let (root, header) = (segment.root(), *segment.header());
    let over = AtomicBool::new(false);
    std::thread::scope(|s| {
        for thread in 0..4 {
            let (over, segment) = (&over, &segment);
            s.spawn(move || {
                let limit = Duration::from_millis(2);
                let mut after = 0;
                for number in thread.. {
                    let mutex = &root.mutexes[if number % 3 == 0 { 0 } else { number % 1000 }];
                    if let Ok(Locked::Acquired(guard)) = mutex.lock_timeout(limit) {
                        drop(root.changed.wait_timeout(guard, limit / 4));
                    }
                    drop(root.rates.read_timeout(limit));
                    drop(root.rates.write_timeout(limit));
                    drop(root.slots.acquire_timeout(1, limit));
                    after += u32::from(over.load(Ordering::Relaxed));
                    if number % 50 == 49 {
                        let _ = segment.leave();
                    }
                    if after > 20 {
                        break;
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(10 + turn % 7));
        let at = match turn % 4 {
            0 => 0,
            1 => header.slots_at,
            2 => header.root,
            _ => header.root + 8192,
        };
        file.set_len(at).expect("a cut");
        over.store(true, Ordering::Relaxed);
    });
}

/// Cuts in the middle of the root, or all of it and the slots.
fn survived(kept: bool) {
    survive_cuts().expect("a handler");
    survive_cuts().expect("once more is nothing");
    let (_path, segment, file) = make();
    let root = segment.root();
    let last = root.mutexes[999].lock().unwrap().acquired().unwrap();
    let read = root.rates.read().unwrap().acquired().unwrap();
    let permit = root.slots.acquire(2).unwrap();
    let header = *segment.header();
    file.set_len(if kept { header.root + 4096 } else { 4096 }).expect("a cut");

    // What was there is ones. The guards' releases do no harm.
    assert_eq!((*last, *read), (u64::MAX, u64::MAX));
    assert!(pages_cut() > 0);
    drop((last, read, permit));
    assert!(matches!(root.mutexes[999].lock().unwrap(), Locked::NotRecoverable));
    assert!(matches!(root.mutexes[998].try_lock().unwrap(), Locked::NotRecoverable));
    let long = Duration::from_secs(20);
    assert!(matches!(root.rates.write_timeout(long).unwrap(), Locked::NotRecoverable));
    assert!(matches!(root.rates.read_timeout(long).unwrap(), Locked::NotRecoverable));
    assert_eq!(root.slots.acquire(1).map(drop), Err(SharedError::Spoiled));
    root.changed.notify_all();
    let first = root.mutexes[0].lock().unwrap();
    assert_eq!(matches!(first, Locked::Acquired(_)), kept);
    drop(first);
    std::thread::scope(|s| {
        s.spawn(|| {
            // Where the slots are gone nobody may take part any more, or the slots are
            // found worn out and made usable again. It gets none of the locks.
            let joined = segment.participate().is_ok();
            assert!(joined || !kept);
            let got = root.mutexes[0].lock_timeout(Duration::from_secs(20));
            assert_eq!(matches!(got, Ok(Locked::Acquired(_))), kept);
        });
    });
    drop(segment);
}
