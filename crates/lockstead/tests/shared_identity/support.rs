//! A segment in a file, and children that are killed.

use lockstead::shared::{
    Locked, Segment, SegmentOptions, Shareable, SharedMutex, SharedRwLock, inspect::SegmentView,
};
use std::io::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
pub(crate) struct Root {
    pub(crate) stage: AtomicU32,
    /// A namespace, by number.
    pub(crate) space: AtomicU64,
    pub(crate) mutex: SharedMutex<u64>,
    pub(crate) rate: SharedRwLock<u64>,
}

/// Longer than anything takes, but a hang.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The time in which a death is found that the kernel has not told of.
pub(crate) const UNTOLD: Duration = Duration::from_secs(10);

/// A segment in a file of its own, removed when dropped.
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    pub(crate) segment: Segment<Root>,
}

impl Named {
    pub(crate) fn new(name: &str) -> Named {
        let path = std::env::temp_dir().join(format!("lockstead-{name}-{}", std::process::id()));
        let segment =
            Segment::create(&path, &SegmentOptions::new().mode(0o666)).expect("a segment");
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
    pub(crate) fn await_stage(&self, stage: u32) {
        let end = Instant::now() + LONG;
        while self.stage.load(SeqCst) != stage {
            assert!(Instant::now() < end, "stage {stage} is never reached");
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Takes the mutex for good, says so, and waits to be killed.
    pub(crate) fn keep(&self, stage: u32) -> ! {
        core::mem::forget(self.mutex.lock().expect("a slot"));
        self.stage.store(stage, SeqCst);
        loop {
            std::thread::park();
        }
    }

    /// Keeps the same, and the kernel will tell nobody of its end.
    pub(crate) fn keep_untold(&self, stage: u32) -> ! {
        core::mem::forget(self.mutex.lock().expect("a slot"));
        lose_list();
        self.stage.store(stage, SeqCst);
        loop {
            std::thread::park();
        }
    }

    /// Tells whether the mutex is got in time, and its last owner was said to have died.
    #[track_caller]
    pub(crate) fn told(&self) -> bool {
        let locked = self.mutex.lock_timeout(UNTOLD).expect("not in time");
        let told = matches!(locked, Locked::OwnerDied(_));
        drop(locked.recover(|_| ()));
        told
    }
}

/// A forked child. Killed, if it still lives, when dropped.
pub(crate) struct Child(libc::pid_t);

impl Child {
    pub(crate) fn new(body: impl FnOnce()) -> Child {
        // By the libc, which has other threads' descriptions of files closed before.
        // SAFETY: the child never returns from here.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", Error::last_os_error()),
            0 => {
                let right = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_ok();
                // SAFETY: the call ends the child without its destructors.
                unsafe { libc::_exit(i32::from(!right)) }
            }
            child => Child(child),
        }
    }

    /// Forks by the bare system call, of which nobody is told.
    pub(crate) fn bare(body: impl FnOnce()) -> Child {
        // SAFETY: the child never returns from here, and uses nothing that other threads lock.
        match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
            -1 => panic!("fork: {}", Error::last_os_error()),
            0 => {
                body();
                // SAFETY: the call ends the child without its destructors.
                unsafe { libc::_exit(0) }
            }
            child => Child(child as libc::pid_t),
        }
    }

    /// Starts the first process of a PID namespace of its own. Returns `None` where that is not
    /// allowed.
    pub(crate) fn first_of_namespace(body: impl FnOnce() + Send) -> Option<Child> {
        // A thread can say only once where its children are to live.
        std::thread::scope(|s| {
            let forks = || {
                // SAFETY: the call takes a number and touches no memory of ours.
                let allowed = unsafe { libc::unshare(libc::CLONE_NEWPID) } == 0;
                allowed.then(|| Child::new(body))
            };
            s.spawn(forks).join().expect("it forks")
        })
    }

    pub(crate) fn id(&self) -> libc::pid_t {
        self.0
    }

    pub(crate) fn kill(self) {
        drop(self);
    }

    #[track_caller]
    pub(crate) fn ends(mut self) {
        let (mut status, end) = (0, Instant::now() + 2 * LONG);
        // SAFETY: the child is our own, and nobody has waited for it yet.
        while unsafe { libc::waitpid(self.0, &mut status, libc::WNOHANG) } == 0 {
            assert!(Instant::now() < end, "the child hangs");
            std::thread::sleep(Duration::from_micros(200));
        }
        self.0 = 0;
        assert_eq!(status, 0, "the child failed");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.0 > 0 {
            // SAFETY: the child is our own, and nobody has waited for it yet.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, core::ptr::null_mut(), 0);
            }
        }
    }
}

/// Makes the kernel forget the list of the calling thread, so that it tells of its end to nobody.
pub(crate) fn lose_list() {
    // SAFETY: the kernel gets two numbers: no list, and the size that it expects.
    assert_eq!(unsafe { libc::syscall(libc::SYS_set_robust_list, 0usize, 24usize) }, 0);
}

pub(crate) fn living(path: &Path) -> usize {
    let people = SegmentView::open(path).expect("a segment").people().expect("people");
    people.all().iter().filter(|person| person.alive).count()
}
