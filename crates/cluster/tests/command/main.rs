//! The command: locks for scripts, the graph, the axe. Where etcd is not installed, skipped.

use lockstead_cluster::member::{self, Members};
use lockstead_cluster::{Locked, Mutex, Session, SessionOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

mod signals;

const BOUND: Duration = Duration::from_secs(30);

fn command(members: &Members, words: &[&str]) -> Command {
    let mut command = by_default(env!("CARGO_BIN_EXE_lockstead-cluster"));
    command.args(words).env("LOCKSTEAD_ENDPOINTS", members.endpoints()).stdin(Stdio::null());
    command
}

/// Returns a command that ignores no signal that ends programs: `nohup`, and shells that run tests in the
/// background, have them ignore some, and so what they start.
fn by_default(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: between fork and exec nothing is called but `signal`, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
                if libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
    command
}

fn run(members: &Members, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(members, words).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

fn session(members: &Members) -> Session {
    let ttl = Duration::from_secs(5);
    let client = members.options();
    Session::open(SessionOptions { client, ttl, ..SessionOptions::default() }).expect("a session")
}

/// Waits until so many stand in the queue of a lock.
fn wait_for_places(members: &Members, name: &str, number: usize) {
    wait_until(members, name, |places| places == number);
}

/// Waits until the number of those that stand in the queue of a lock is one that is wanted.
fn wait_until(members: &Members, name: &str, wanted: impl Fn(usize) -> bool) {
    let survey = lockstead_cluster::survey::Surveyor::new(members.options(), "lockstead");
    let survey = survey.expect("a client");
    let until = Instant::now() + BOUND;
    loop {
        let found = survey.look().expect("an answer");
        let lock = found.locks.iter().find(|lock| lock.name == name);
        if lock.is_some_and(|lock| wanted(lock.places.len())) {
            return;
        }
        assert!(Instant::now() < until, "the places of {name} never came");
    }
}

/// Ends a process that a failed test would leave behind.
struct Ends(std::process::Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ends {
    /// Sends the process a signal.
    fn signal(&self, signal: i32) {
        let pid = libc::pid_t::try_from(self.0.id()).expect("a number of a process");
        // SAFETY: a signal to a child that only `self` waits for, which is still there: where it has ended
        // already its number is its own until then.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Waits until the process has ended.
    fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        come("the end of a process", || {
            ended = self.0.try_wait().expect("its status");
            ended.is_some()
        });
        ended.expect("it has ended")
    }

    /// Waits until the process has a thread of this name.
    fn wait_for_thread(&self, name: &str) {
        let folder = format!("/proc/{}/task", self.0.id());
        come(name, || {
            let threads = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut names =
                threads.map(|thread| std::fs::read_to_string(thread.path().join("comm")));
            names.any(|found| found.is_ok_and(|found| found.trim_end() == name))
        });
    }
}

/// Waits until something is so.
fn come(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + BOUND;
    while !is() {
        assert!(Instant::now() < until, "it never came: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the lines of an output, as they come.
fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut all = BufReader::new(output).lines().map_while(Result::ok);
        all.try_for_each(|line| sender.send(line))
    });
    lines
}

/// Returns the rest of an output, once it ends.
fn rest(lines: &Receiver<String>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match lines.recv_timeout(BOUND) {
            Ok(line) => all.push(line),
            Err(mpsc::RecvTimeoutError::Disconnected) => return all,
            Err(error) => panic!("{error} after {all:?}"),
        }
    }
}

#[test]
fn a_script_runs_under_the_lock_and_knows_its_token() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let script = "echo $LOCKSTEAD_TOKEN $LOCKSTEAD_DEADLINE; exit 7";
    let (status, first, errors) = run(&members, &["lock", "a", "--", "sh", "-c", script]);
    assert_eq!(status, Some(7), "{errors}");
    let (_, second, _) = run(&members, &["lock", "a", "--", "sh", "-c", script]);
    let token = |text: &str| -> u64 { text.split(' ').next().unwrap().parse().expect("a number") };
    assert!(token(&second) > token(&first));
    assert_eq!(run(&members, &["lock", "a", "--", "/none/such"]).0, Some(127));

    // Somebody has it: shown, not waited for, taken away.
    let one = session(&members);
    let guard = Mutex::new(&one, "a").lock().expect("acquired").acquired().expect("nobody died");
    let (status, _, errors) = run(&members, &["lock", "--nonblock", "a", "--", "true"]);
    assert_eq!(status, Some(75), "{errors}");
    let (status, _, errors) = run(&members, &["lock", "--wait", "0.05", "a", "--", "true"]);
    assert_eq!(status, Some(75), "{errors}");
    let (status, list, _) = run(&members, &["ls"]);
    assert!(
        status == Some(0) && list.contains(&format!("process {}", std::process::id())),
        "{list}"
    );
    let (status, _, errors) = run(&members, &["release", "a"]);
    assert!(status == Some(2) && errors.contains("--force"), "{errors}");
    let (status, _, errors) = run(&members, &["release", "a", "--force"]);
    assert!(status == Some(0) && errors.contains("goes on until it looks"), "{errors}");
    guard.confirm().expect_err("taken away");

    // Its owner is dead for whoever comes next, until somebody repairs.
    let (status, _, errors) = run(&members, &["lock", "a", "--", "true"]);
    assert_eq!(status, Some(77), "{errors}");
    let repaired = ["lock", "--on-owner-died", "false", "a", "--", "true"];
    assert_eq!(run(&members, &repaired).0, Some(77));
    let repaired = ["lock", "--on-owner-died", "echo repaired", "a", "--", "echo", "done"];
    assert_eq!(run(&members, &repaired), (Some(0), "repaired\ndone\n".into(), String::new()));
    assert_eq!(run(&members, &["lock", "a", "--", "true"]).0, Some(0));
}

#[test]
fn a_command_is_ended_before_its_lock_may_be_anothers() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let mut members = Members::start(1).expect("etcd starts");
    let words =
        ["lock", "--ttl", "3", "--margin", "500", "a", "--", "sh", "-c", "echo in; sleep 100"];
    let mut child = Ends(
        command(&members, &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs"),
    );
    wait_for_places(&members, "a", 1);
    members.kill(0);
    assert_eq!(child.ended().code(), Some(76));
}

/// The command ends as it is told, and what it has started does not.
#[test]
fn what_a_command_has_started_ends_with_the_lease_as_well() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let mut members = Members::start(1).expect("etcd starts");
    // It ends by itself in the end, if nobody ends it.
    let script = "(trap '' TERM; echo in; for i in $(seq 1200); do sleep 0.05; done) & wait";
    let words = ["lock", "--ttl", "3", "--margin", "500", "a", "--", "sh", "-c", script];
    let mut child = command(&members, &words);
    let mut child = Ends(child.stdout(Stdio::piped()).spawn().expect("it runs"));
    let said = lines(child.0.stdout.take().expect("a pipe"));
    assert_eq!(said.recv_timeout(BOUND).as_deref(), Ok("in"));
    members.kill(0);
    assert_eq!(child.ended().code(), Some(76));
    // Whoever has the other end of the pipe has ended.
    assert_eq!(said.recv_timeout(BOUND), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn threads_that_wait_for_each_other_over_two_sessions_are_named() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let (one, two) = (session(&members), session(&members));
    let members = &members;
    std::thread::scope(|scope| {
        let cross = move |session: Session, first: &'static str, second: &'static str| {
            let held = Mutex::new(&session, first).lock().expect("acquired");
            wait_for_places_of_both(members);
            let got = Mutex::new(&session, second).lock_timeout(BOUND);
            drop(held);
            got.map(|locked| locked.is_inconsistent())
        };
        let (first, second) = (one.clone(), two.clone());
        let a = scope.spawn(move || cross(first, "x", "y"));
        let b = scope.spawn(move || cross(second, "y", "x"));
        wait_for_places(members, "x", 2);
        wait_for_places(members, "y", 2);
        let (status, text, errors) = run(members, &["dump"]);
        assert_eq!(status, Some(3), "{text}{errors}");
        assert!(text.contains("DEADLOCK: 2 threads wait for each other"), "{text}");
        assert!(text.contains("tests/command/main.rs"), "{text}");
        let (status, json, _) = run(members, &["dump", "--json"]);
        assert_eq!(status, Some(3));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["cycles"][0].as_array().map(Vec::len), Some(2));
        one.clone().close().expect("closed");
        assert!(a.join().expect("a thread").is_err());
        assert_eq!(b.join().expect("a thread"), Ok(true));
    });
}

#[test]
fn top_shows_the_locks_by_how_many_wait_as_often_as_asked() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let (one, two) = (session(&members), session(&members));
    let held = ["quiet", "wanted"].map(|name| Mutex::new(&one, name).lock().expect("acquired"));
    std::thread::scope(|scope| {
        scope.spawn(|| Mutex::new(&two, "wanted").lock_timeout(BOUND).map(|_| ()));
        wait_for_places(&members, "wanted", 2);
        let words = ["top", "--seconds", "0.1", "--times", "2"];
        let (status, text, errors) = run(&members, &words);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{text}");
        let looks: Vec<&str> = text.split("2 locks at revision ").skip(1).collect();
        assert_eq!(looks.len(), 2, "{text}");
        for look in looks {
            let at = |name| look.find(name).unwrap_or_else(|| panic!("no {name}: {text}"));
            assert!(at("\n  wanted ") < at("\n  quiet "), "{text}");
            assert!(!look.contains('\x1b'), "clears what is no terminal: {text:?}");
        }
        drop(held);
    });
    members_are_asked_in_vain(&["top", "--times", "1"]);
}

/// Asserts that a command that looks ends where no etcd is, and says what to do.
fn members_are_asked_in_vain(words: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
    let output = command.args(words).args(["--endpoints", "http://127.0.0.1:1"]).output();
    let output = output.expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("--endpoints"), "{errors}");
}

#[test]
fn a_client_that_was_stopped_past_its_lease_ends_its_command_before_it_does_more() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let script = "echo in; exec sleep 100";
    let words = ["lock", "--ttl", "2", "--margin", "500", "a", "--", "sh", "-c", script];
    let mut own = command(&members, &words);
    let mut child = Ends(own.stdout(Stdio::piped()).spawn().expect("it runs"));
    // Not its place alone: without a command that runs there is nothing to end.
    signals::is_in(&mut child);
    child.signal(libc::SIGSTOP);
    // The lease ends, and the next one is told.
    let next = session(&members);
    let locked = Mutex::new(&next, "a").lock_timeout(BOUND).expect("acquired");
    assert!(matches!(locked, Locked::OwnerDied(_)), "{locked:?}");
    let guard = locked.recover(|_| ()).expect("consistent");
    child.signal(libc::SIGCONT);
    assert_eq!(child.ended().code(), Some(76));
    // Its late release has done the next owner no harm.
    guard.confirm().expect("held");
    guard.unlock().expect("released");
}

#[test]
fn commands_that_nest_two_locks_in_opposite_orders_are_named() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let own = env!("CARGO_BIN_EXE_lockstead-cluster");
    // Each nests its second lock once its standard input ends.
    let script = "cat; exec \"$0\" lock --wait 30 \"$1\" -- true";
    let start = |first: &str, second: &str| {
        let words = ["lock", "--ttl", "600", first, "--", "sh", "-c", script, own, second];
        Ends(command(&members, &words).stdin(Stdio::piped()).spawn().expect("it runs"))
    };
    let (mut one, mut two) = (start("x", "y"), start("y", "x"));
    wait_for_places_of_both(&members);
    assert_eq!(run(&members, &["dump"]).0, Some(0));
    for child in [&mut one, &mut two] {
        drop(child.0.stdin.take());
    }
    wait_for_places(&members, "x", 2);
    wait_for_places(&members, "y", 2);
    let (status, text, errors) = run(&members, &["dump"]);
    assert_eq!(status, Some(3), "{text}{errors}");
    assert!(text.contains("DEADLOCK: 4 threads wait for each other"), "{text}");
    for child in [&one, &two] {
        let held = format!("process {0} thread {0} has ", child.0.id());
        assert!(text.contains(&held), "{text}");
    }
}

fn wait_for_places_of_both(members: &Members) {
    // Or more: the other one may have gone on to its second lock.
    wait_until(members, "x", |places| places >= 1);
    wait_until(members, "y", |places| places >= 1);
}

#[test]
fn a_lock_under_which_nobody_is_has_no_key_left() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    let one = session(&members);
    match Mutex::new(&one, "a").lock().expect("acquired") {
        Locked::Acquired(guard) => guard.unlock().expect("released"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        run(&members, &["dump"]),
        (Some(0), "nobody has or waits for a lock\n".into(), String::new())
    );
    assert_eq!(run(&members, &["release", "a"]).0, Some(3));

    // What a dead owner has left is shown, and freed.
    match Mutex::new(&one, "a").lock().expect("acquired") {
        Locked::Acquired(guard) => std::mem::forget(guard),
        other => panic!("{other:?}"),
    }
    one.close().expect("closed");
    assert_eq!(run(&members, &["dump"]).1, "a  an owner died\n");
    let (status, _, errors) = run(&members, &["release", "a", "--force"]);
    assert!(status == Some(0) && errors.contains("freed"), "{errors}");
    assert_eq!(run(&members, &["lock", "a", "--", "true"]).0, Some(0));
}

#[test]
fn a_grace_that_nobody_gave_fits_and_a_wait_that_no_clock_counts_is_for_ever() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let members = Members::start(1).expect("etcd starts");
    for words in [&["--ttl", "2", "--margin", "1500"][..], &["--wait", "1e300"], &["--wait", "inf"]]
    {
        let words = [&["lock"], words, &["a", "--", "true"]].concat();
        assert_eq!(run(&members, &words), (Some(0), String::new(), String::new()), "{words:?}");
    }
}

#[test]
fn what_cannot_be_done_is_said_before_etcd_is_asked() {
    for (words, says) in [
        (&["lock", "", "--", "true"][..], "<NAME>"),
        (&["lock", "--wait", "-1", "a", "--", "true"], "from 0"),
        (&["lock", "--wait", "nan", "a", "--", "true"], "from 0"),
        (&["lock", "--grace", "4501", "a", "--", "true"], "up to 4500"),
        (&["lock", "--grace", "4501", "--signal", "none", "a", "--", "true"], "up to 4500"),
        (&["lock", "--endpoints", "http://a,https://b", "a", "--", "true"], "--cacert"),
        (&["ls", "--endpoints", "https://a"], "--cacert"),
        (&["bench", "--turns", "0"], "--turns"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
        let output = command.args(words).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(says), "{words:?}: {errors}");
    }
}

#[test]
fn without_etcd_the_command_says_what_to_do() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
    // Nobody listens at port 1.
    let output = command
        .args(["lock", "--endpoints", "http://127.0.0.1:1", "a", "--", "true"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(69));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--endpoints"), "{errors}");
}
