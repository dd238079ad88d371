//! Deadlocks that go through a lock of one process: `lockstead cluster dump --local`, on a program under
//! `lockstead run`. Where etcd is not installed, or the command not built beside, skipped.

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{ClientOptions, Mutex, Session, SessionOptions};
use std::cell::UnsafeCell;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{env, thread};

/// The variable that makes this the program which waits in a circle; its value names the endpoints.
const CROSSES: &str = "LOCKSTEAD_TEST_CROSSES";

/// The bound of everything that could hang.
const BOUND: Duration = Duration::from_secs(60);

/// Ends a program with the command that watches it: both are in a group of their own.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let group = libc::pid_t::try_from(self.0.id()).expect("a number of a process");
        // SAFETY: a signal to the group of a child that is not yet waited for, so that the number is its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// Returns a program that cargo has built beside this test, if it has.
fn beside(name: &str) -> Option<PathBuf> {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_lockstead-cluster"));
    let file = own.with_file_name(name);
    if file.is_file() {
        return Some(file);
    }
    println!("skipped: {} is not built; cargo build -p lockstead-cli", file.display());
    None
}

fn dump(members: &Members, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
    command.arg("dump").args(words).env("LOCKSTEAD_ENDPOINTS", members.endpoints());
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A mutex of libc, which `lockstead run` sees: that of the standard library is no call of libc's.
struct Local(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is for several threads; it stays where it is, in a static.
unsafe impl Sync for Local {}

static LOCAL: Local = Local(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// Acquires it for ever.
fn lock_local() {
    // SAFETY: the mutex is initialised, and a static.
    let failed = unsafe { libc::pthread_mutex_lock(LOCAL.0.get()) };
    assert_eq!(failed, 0);
}

/// Does nothing, unless it is the program that the other test starts: one thread has the cluster's lock and
/// waits for the process's own, another has that and waits for the cluster's. It stays until it is killed.
#[test]
fn two_threads_cross() {
    let Ok(endpoints) = env::var(CROSSES) else { return };
    let client = ClientOptions::of(&endpoints).expect("endpoints");
    let session = Session::open(SessionOptions { client, ..SessionOptions::default() });
    let session = session.expect("a session");
    let both = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let held = Mutex::new(&session, "crossed").lock();
            both.wait();
            lock_local();
            drop(held);
        });
        scope.spawn(|| {
            lock_local();
            both.wait();
            let _ = Mutex::new(&session, "crossed").lock();
        });
    });
}

#[test]
fn a_cycle_through_a_lock_of_a_process_is_found_here_and_from_elsewhere() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let Some(lockstead) = beside("lockstead") else { return };
    let members = Members::start(1).expect("etcd starts");
    let own = env::current_exe().expect("its own file");
    let mut command = Command::new(lockstead);
    command.args(["run", "--"]).arg(own).args(["--exact", "two_threads_cross"]);
    command.env(CROSSES, members.endpoints()).stdin(Stdio::null()).stdout(Stdio::null());
    command.process_group(0);
    let _watched = Ends(command.spawn().expect("it runs"));

    // Both threads come to wait; from the queue of the cluster alone nobody waits in a circle.
    let until = Instant::now() + BOUND;
    let (text, errors) = loop {
        let (status, text, errors) = dump(&members, &["--local"]);
        if status == Some(3) {
            break (text, errors);
        }
        assert!(Instant::now() < until, "no cycle: {status:?} {text}{errors}");
    };
    assert!(text.contains("DEADLOCK: 2 threads wait for each other"), "{text}{errors}");
    assert!(text.contains("waits for the lock crossed of"), "{text}");
    assert!(text.contains("waits for the local lock"), "{text}");
    assert_eq!(dump(&members, &[]).0, Some(0), "the cluster's locks alone are no cycle");

    // What this host has found, another one adds.
    let (status, json, errors) = dump(&members, &["--local", "--json"]);
    assert_eq!(status, Some(3), "{errors}");
    let file = std::env::temp_dir().join(format!("lockstead-local-{}.json", std::process::id()));
    std::fs::write(&file, json).expect("a file");
    let name = file.to_str().expect("a path of text");
    let (status, text, errors) = dump(&members, &["--with", name]);
    assert_eq!(status, Some(3), "{text}{errors}");
    assert!(text.contains("waits for the local lock"), "{text}");
    std::fs::write(&file, "{}").expect("a file");
    let (status, _, errors) = dump(&members, &["--with", name]);
    assert!(status == Some(2) && errors.contains("dump --local --json"), "{errors}");
    let _ = std::fs::remove_file(file);
}
