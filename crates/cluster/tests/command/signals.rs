//! Signals while the command waits, repairs and runs, where etcd answers and where it does not.

use super::{BOUND, Ends, by_default, command, lines, rest, session, wait_for_places};
use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{Locked, Mutex};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Starts `lock` with a command of a shell that prepares itself, says so, and goes on until it is ended.
fn start(members: &Members, words: &[&str], prepares: &str) -> Ends {
    let script = format!("{prepares}; echo in; while :; do sleep 0.05; done");
    let words = [&["lock"], words, &["--", "sh", "-c", &script]].concat();
    let mut own = command(members, &words);
    let own = own.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut own = Ends(own.expect("it runs"));
    is_in(&mut own);
    own
}

/// Waits until a command, or a repair, has said that it is in.
pub(crate) fn is_in(own: &mut Ends) -> Receiver<String> {
    let said = lines(own.0.stdout.take().expect("a pipe"));
    assert_eq!(said.recv_timeout(BOUND).as_deref(), Ok("in"));
    said
}

fn errors_of(child: &mut Child) -> String {
    rest(&lines(child.stderr.take().expect("a pipe"))).join("\n")
}

/// Asserts that a lock is free and that its last owner did not die.
fn is_free(members: &Members, name: &str) {
    let next = session(members);
    let locked = Mutex::new(&next, name).try_lock().expect("free");
    assert!(matches!(locked, Locked::Acquired(_)), "{locked:?}");
}

/// Has an owner of a lock die.
fn dies(members: &Members, name: &str) {
    let owner = session(members);
    std::mem::forget(Mutex::new(&owner, name).lock().expect("acquired"));
    owner.close().expect("closed");
}

#[test]
fn a_signal_gives_up_the_place_of_a_waiter_and_reaches_the_command_of_an_owner() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    // A lease longer than all waits here: what is given up only with it comes too late.
    let mut owner = start(&members, &["--ttl", "600", "a"], "trap 'exit 5' TERM");
    let mut waiter = Ends(
        command(&members, &["lock", "--ttl", "600", "a", "--", "true"]).spawn().expect("it runs"),
    );
    wait_for_places(&members, "a", 2);
    // Not SIGINT, which the shell that runs tests in the background has them ignore.
    waiter.signal(libc::SIGTERM);
    assert_eq!(waiter.ended().code(), Some(128 + libc::SIGTERM));
    wait_for_places(&members, "a", 1);
    owner.signal(libc::SIGTERM);
    assert_eq!(owner.ended().code(), Some(5));
    // It was released, and nobody died.
    is_free(&members, "a");
}

#[test]
fn a_signal_that_is_ignored_as_under_nohup_ends_nothing() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let holder = session(&members);
    let guard = Mutex::new(&holder, "kept").lock().expect("asked").acquired().expect("nobody died");
    let script = "trap '' HUP; exec \"$0\" lock kept -- sleep 1";
    let mut waiter = Command::new("sh");
    waiter.args(["-c", script, env!("CARGO_BIN_EXE_lockstead-cluster")]);
    waiter.env("LOCKSTEAD_ENDPOINTS", members.endpoints()).stdin(Stdio::null());
    let mut waiter = Ends(waiter.spawn().expect("it runs"));
    wait_for_places(&members, "kept", 2);
    waiter.signal(libc::SIGHUP);
    guard.unlock().expect("it was held");
    assert_eq!(waiter.ended().code(), Some(0), "neither the wait nor the command");
}

#[test]
fn a_long_wait_is_told_once() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let holder = session(&members);
    let guard = Mutex::new(&holder, "long").lock().expect("asked").acquired().expect("nobody died");
    let mut waiter = command(&members, &["lock", "long", "--", "true"]);
    let mut waiter = Ends(waiter.stderr(Stdio::piped()).spawn().expect("it runs"));
    let errors = lines(waiter.0.stderr.take().expect("a pipe"));
    // It comes by itself, while nobody gives the lock back.
    let told = errors.recv_timeout(BOUND).expect("a line");
    assert!(told.contains("waiting for long") && told.contains("dump"), "{told}");
    // Time for ten more looks at the wait: one that were told again would be so by each.
    assert_eq!(errors.recv_timeout(Duration::from_secs(1)), Err(RecvTimeoutError::Timeout));
    guard.unlock().expect("it was held");
    assert!(waiter.ended().success());
    assert_eq!(rest(&errors), Vec::<String>::new());
}

#[test]
fn the_command_gets_the_signal_that_ends_with_a_core() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let mut owner = start(&members, &["--ttl", "600", "a"], "trap 'exit 6' QUIT");
    owner.signal(libc::SIGQUIT);
    assert_eq!(owner.ended().code(), Some(6));
    is_free(&members, "a");
}

#[test]
fn a_signal_to_the_repair_keeps_the_command_from_its_start() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    for (status, says) in [(0, "the command was not run"), (7, "nothing was repaired")] {
        dies(&members, "a");
        let repair = format!("trap 'exit {status}' TERM; echo in; while :; do sleep 0.05; done");
        let words = ["lock", "--on-owner-died", &repair, "a", "--", "echo", "ran"];
        let mut own = command(&members, &words);
        let own = own.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut own = Ends(own.expect("it runs"));
        let said = is_in(&mut own);
        own.signal(libc::SIGTERM);
        assert_eq!(own.ended().code(), Some(128 + libc::SIGTERM));
        assert_eq!(rest(&said), Vec::<String>::new(), "it was started");
        let errors = errors_of(&mut own.0);
        assert!(errors.contains("SIGTERM") && errors.contains(says), "{errors}");
        // What was repaired is in order, and what was not is told to the next one.
        let next = session(&members);
        let locked = Mutex::new(&next, "a").lock_timeout(BOUND).expect("free");
        assert_eq!(locked.is_inconsistent(), status != 0, "{locked:?}");
        locked.recover(|_| ()).expect("consistent").unlock().expect("released");
    }
}

/// A relay to a member that holds the requests which acquire a lock.
struct Holds {
    endpoint: String,
    /// Tells that one is held.
    held: Receiver<()>,
    goes_on: Sender<()>,
}

impl Holds {
    fn start(member: &str) -> Self {
        let member = member.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let ((tells, held), (goes_on, waits)) = (mpsc::channel(), mpsc::channel());
        thread::spawn(move || {
            let mut waits = Some(waits);
            for socket in listener.incoming().map_while(Result::ok) {
                let to = TcpStream::connect(&member).expect("the member");
                let (mut back, mut front) =
                    (to.try_clone().expect("a copy"), socket.try_clone().expect("a copy"));
                thread::spawn(move || {
                    let _ = std::io::copy(&mut back, &mut front);
                    let _ = front.shutdown(Shutdown::Both);
                });
                // The command has one connection as it asks for the lock, besides those that watch.
                let (tells, waits) = (tells.clone(), waits.take());
                thread::spawn(move || carries(socket, to, &tells, waits.as_ref()));
            }
        });
        Holds { endpoint, held, goes_on }
    }
}

fn carries(
    mut from: TcpStream,
    mut to: TcpStream,
    tells: &Sender<()>,
    waits: Option<&Receiver<()>>,
) {
    let mut buffer = [0; 16 << 10];
    while let Ok(number @ 1..) = from.read(&mut buffer) {
        if let (Some(waits), true) = (waits, buffer[..number].starts_with(b"POST /v3/kv/txn")) {
            let _ = tells.send(());
            let _ = waits.recv_timeout(BOUND);
        }
        if to.write_all(&buffer[..number]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn a_signal_during_an_acquisition_that_succeeds_is_not_forgotten() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let relay = Holds::start(&members.endpoints());
    let words = ["lock", "--ttl", "600", "--endpoints", &relay.endpoint, "a", "--", "echo", "ran"];
    let mut own = by_default(env!("CARGO_BIN_EXE_lockstead-cluster"));
    own.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut own = Ends(own.spawn().expect("it runs"));
    relay.held.recv_timeout(BOUND).expect("a request");
    own.signal(libc::SIGTERM);
    // It is heard: the time runs in which it is to be obeyed in order.
    own.wait_for_thread("deadline");
    drop(relay.goes_on);
    assert_eq!(own.ended().code(), Some(128 + libc::SIGTERM));
    let said = rest(&lines(own.0.stdout.take().expect("a pipe")));
    assert_eq!(said, Vec::<String>::new(), "it was started");
    let errors = errors_of(&mut own.0);
    assert!(errors.contains("SIGTERM: the command was not run; its place is given up"), "{errors}");
    is_free(&members, "a");
}

#[test]
fn a_signal_ends_what_waits_for_an_etcd_that_does_not_answer() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let owner = session(&members);
    let guard = Mutex::new(&owner, "a").lock().expect("asked").acquired().expect("nobody died");
    let waits = |name| {
        let mut own = command(&members, &["lock", "--ttl", "60", name, "--", "true"]);
        Ends(own.stderr(Stdio::piped()).spawn().expect("it runs"))
    };
    let (mut once, mut twice) = (waits("a"), waits("a"));
    wait_for_places(&members, "a", 3);
    let mut runs = start(&members, &["--ttl", "60", "b"], "trap 'exit 5' TERM");
    members.stop(0, true);
    for own in [&once, &twice, &runs] {
        own.signal(libc::SIGTERM);
    }
    twice.wait_for_thread("deadline");
    twice.signal(libc::SIGHUP);
    assert_eq!(twice.ended().code(), Some(128 + libc::SIGHUP), "not at once");
    assert_eq!(once.ended().code(), Some(128 + libc::SIGTERM));
    assert_eq!(runs.ended().code(), Some(5), "its own status");
    for (own, signal) in [(&mut once, "SIGTERM"), (&mut twice, "SIGHUP")] {
        let errors = errors_of(&mut own.0);
        let lapses = errors.contains("goes with its lease, within 60 s");
        assert!(errors.contains(signal) && lapses, "{errors}");
    }
    let errors = errors_of(&mut runs.0);
    assert!(errors.contains("the release was not confirmed"), "{errors}");
    members.stop(0, false);
    drop(guard);
}

#[test]
fn a_signal_ends_what_waits_for_its_first_answer() {
    // It takes connections, and says nothing.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
    let mut own = by_default(env!("CARGO_BIN_EXE_lockstead-cluster"));
    own.args(["lock", "--endpoints", &endpoint, "a", "--", "true"]).stderr(Stdio::piped());
    let mut own = Ends(own.spawn().expect("it runs"));
    own.wait_for_thread("signals");
    own.signal(libc::SIGTERM);
    assert_eq!(own.ended().code(), Some(128 + libc::SIGTERM));
    let errors = errors_of(&mut own.0);
    assert!(errors.contains("a: SIGTERM: no lock was asked for yet"), "{errors}");
}

#[test]
fn who_was_started_to_ignore_dead_children_learns_how_the_command_ended() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let mut own = command(&members, &["lock", "a", "--", "sh", "-c", "exit 7"]);
    // SAFETY: between fork and exec nothing is called but `signal`, which is async-signal-safe, and no
    // handler is installed.
    unsafe {
        own.pre_exec(|| match libc::signal(libc::SIGCHLD, libc::SIG_IGN) {
            libc::SIG_ERR => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    assert_eq!(Ends(own.spawn().expect("it runs")).ended().code(), Some(7));
}
