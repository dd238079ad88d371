//! Where only one processor may be used at a time, nobody spins: by a quota of the
//! control group, and by the affinity.

mod common;

use common::{Watchdog, in_threads};
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use lockstead_core::RawMutex;
use lockstead_linux::Linux;
use lockstead_linux::features::probe;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Tells whether threads that find a mutex taken queue up to spin: the queue is part of its
/// word. Tried until somebody does, or for so long.
fn somebody_spins(long: Duration) -> bool {
    let lock = RawMutex::<Linux>::new();
    let seen = AtomicU32::new(0);
    let end = Instant::now() + long;
    in_threads(4, &|| {
        while seen.load(Relaxed) == 0 && Instant::now() < end {
            lock.lock(Location::caller()).expect("no reason to fail");
            // Long enough for the others to come.
            for _ in 0..2_000 {
                seen.fetch_add(u32::from(lock.peek().tail().is_some()), Relaxed);
            }
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { lock.unlock() };
        }
    });
    seen.load(Relaxed) != 0
}

/// This variable in the environment tells the child that it is limited.
const LIMITED: &str = "LOCKSTEAD_TEST_LIMITED";

/// Checks, in the child. In the parent it runs the test `name` once more after `limit`.
fn limited(name: &str, limit: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static) {
    if std::env::var_os(LIMITED).is_some() {
        let processors = probe().processors;
        assert_eq!(processors.effective, 1, "{processors:?}");
        // Where two may be used it takes some milliseconds.
        assert!(!somebody_spins(Duration::from_secs(1)), "a spinner runs in the owner's place");
        return;
    }
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", name]).env(LIMITED, "1");
    // SAFETY: the child runs `limit` between `fork` and `exec`, and it makes system calls only.
    unsafe { again.pre_exec(limit) };
    let output = match again.output() {
        Ok(output) => output,
        Err(why) => {
            println!("skipped: a child cannot be limited: {why}");
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

/// Otherwise the tests below could not fail.
#[test]
fn with_two_processors_somebody_spins() {
    let _watchdog = Watchdog::new(60);
    let processors = probe().processors;
    if processors.effective < 2 {
        println!("skipped: {processors:?}");
        return;
    }
    assert!(somebody_spins(Duration::from_secs(30)));
}

#[test]
fn nobody_spins_on_a_process_of_one_processor() {
    let _watchdog = Watchdog::new(60);
    // SAFETY: `sched_getcpu` takes no argument and touches no memory of ours.
    let here = usize::try_from(unsafe { libc::sched_getcpu() }).expect("a processor");
    limited("nobody_spins_on_a_process_of_one_processor", move || {
        if common::pin(here) { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    });
}

/// A control group for the test, removed when dropped.
struct Group(PathBuf);

impl Group {
    /// Returns a group whose processes may use half a processor.
    fn of_half_a_processor() -> Result<Group, String> {
        let name = format!("lockstead-test-{}", std::process::id());
        let mut why = String::from("no control groups of processors are mounted");
        for (mount, file, quota) in [
            ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"),
            ("/sys/fs/cgroup", "cpu.max", "50000 100000"),
        ] {
            let folder = Path::new(mount).join(&name);
            match std::fs::create_dir(&folder) {
                Err(error) => why = format!("{}: {error}", folder.display()),
                Ok(()) => {
                    let group = Group(folder);
                    match std::fs::write(group.0.join(file), quota) {
                        Ok(()) => return Ok(group),
                        Err(error) => why = format!("{}: {error}", group.0.join(file).display()),
                    }
                }
            }
        }
        Err(why)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The child has ended, but may still be counted for a moment.
        let end = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn nobody_spins_under_a_quota_of_half_a_processor() {
    const NAME: &str = "nobody_spins_under_a_quota_of_half_a_processor";
    let _watchdog = Watchdog::new(100);
    if std::env::var_os(LIMITED).is_some() {
        let quota = probe().processors.quota;
        assert!(quota.is_some_and(|quota| quota <= 0.5), "{quota:?}");
        return limited(NAME, || Ok(()));
    }
    let group = match Group::of_half_a_processor() {
        Ok(group) => group,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let procs = group.0.join("cgroup.procs");
    let procs = CString::new(procs.as_os_str().as_bytes()).expect("no zero in it");
    limited(NAME, move || {
        // SAFETY: a live path and buffer; the process moves itself.
        unsafe {
            let file = libc::open(procs.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            let moved = file >= 0 && libc::write(file, c"0".as_ptr().cast(), 1) == 1;
            if moved { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        }
    });
}
