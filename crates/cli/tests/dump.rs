//! `lockstead dump` on programs that really hang: what it says, and what it
//! leaves out.

pub(crate) mod support;

use crate::common::{finish, lockstead, run, start_copy};
use crate::programs;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Barrier, Mutex};
use support::{Hung, SOURCE, expect, frame, hang, line, locking, plain, start, start_unsettled};

/// Makes this very program hang, as a program in Rust to look at.
const HANG: &str = "LOCKSTEAD_TEST_HANG";

const ONE_MORE: &str = "not shown: 1 thread, not known to wait for a lock or to hold one that \
     others want (--all shows them)\n";

#[test]
fn two_locks_in_two_orders_among_bystanders() {
    let Some(hung) = hang("abba", 3) else { return };
    // It has its lock before the others wait for that, and sleeps a moment later.
    hung.await_shown("\"sleeper\" holds mutex bystander and is asleep in clock_nanosleep()");
    hung.await_shown("\"hang\" is asleep in pause()");
    let text = format!(
        "process N (hang): 6 threads, 3 wait, DEADLOCK\n\n\
         lockstead: DEADLOCK: 2 threads wait for each other\n\
         \x20 thread \"teller\"\n\
         \x20   waits for mutex at 0xN (heap), at:\n{}\
         \x20   holds front (mutex), as its word says\n\
         \x20 thread \"auditor\"\n\
         \x20   waits for front (mutex), at:\n{}\
         \x20   holds mutex at 0xN (heap), as its word says\n\n\
         also waiting\n\
         \x20 thread \"patient\" waits for mutex bystander\n\
         \x20   held by thread \"sleeper\", which is asleep in clock_nanosleep()\n{}\n\
         holding\n\
         \x20 thread \"sleeper\" holds mutex bystander and is asleep in clock_nanosleep()\n{}\n\
         not shown: 2 threads, not known to wait for a lock or to hold one that others want \
         (--all shows them)\n",
        locking("front_then_heaped", "lock(heaped)"),
        locking("heaped_then_front", "lock(&front)"),
        locking("waits_for_sleeper", "lock(&bystander)"),
        frame("sleeps_with_lock", "nanosleep("),
    );
    expect(&hung, 3, &text);
    let all = plain(&hung.dump(&["--all"]).stdout);
    assert!(all.contains("\"busy\" is running"), "{all}");
    assert!(all.contains("\"hang\" is asleep in pause()"), "{all}");
    assert!(!all.contains("not shown"), "{all}");
}

#[test]
fn a_thread_that_takes_its_own_lock() {
    let Some(hung) = hang("self", 1) else { return };
    let at = line("takes_twice", "lock(&account.lock)") + 1;
    let text = format!(
        "process N (hang): 2 threads, 1 wait, DEADLOCK\n\n\
         lockstead: DEADLOCK: 1 thread waits for itself\n\
         \x20 thread \"twice\"\n\
         \x20   waits for account.lock (mutex), at:\n{}\
         \x20   holds account.lock (mutex), as its word says\n\n{ONE_MORE}",
        locking("takes_twice", "lock(&account.lock)")
            .replace(&format!(":{}\n", at - 1), &format!(":{at}\n")),
    );
    expect(&hung, 3, &text);
}

#[test]
fn a_cycle_of_four_kinds() {
    let Some(hung) = hang("kinds", 4) else { return };
    let site = locking("one_of_cycle", "lock(&cycle[(at");
    let locks = [
        "cycle[0] (recursive mutex)",
        "cycle[1] (error-checking mutex)",
        "cycle[2] (priority-inheritance mutex)",
        "cycle[3] (robust mutex)",
    ];
    let members = [0, 1, 2, 3].map(|at| {
        format!(
            "  thread \"cycle-{at}\"\n    waits for {}, at:\n{site}    holds {}, as its word says\n",
            locks[(at + 1) % 4],
            locks[at],
        )
    });
    let text = format!(
        "process N (hang): 5 threads, 4 wait, DEADLOCK\n\n\
         lockstead: DEADLOCK: 4 threads wait for each other\n\
         {}\n{ONE_MORE}",
        members.concat()
    );
    expect(&hung, 3, &text);
}

#[test]
fn a_writer_and_a_reader() {
    let Some(hung) = hang("rwlock", 2) else { return };
    let text = format!(
        "process N (hang): 3 threads, 2 wait, DEADLOCK\n\n\
         lockstead: DEADLOCK: 2 threads wait for each other\n\
         \x20 thread \"writer\"\n\
         \x20   waits for front (mutex), at:\n{}\
         \x20   holds table (rwlock), as its word says\n\
         \x20 thread \"reader\"\n\
         \x20   waits to read table (rwlock), at:\n{}\
         \x20   holds front (mutex), as its word says\n\n{ONE_MORE}",
        locking("*writer", "lock(&front)").replace('*', ""),
        frame("*reader", "rdlock").replace('*', ""),
    );
    expect(&hung, 3, &text);
}

#[test]
fn readers_are_counted_not_named() {
    let Some(hung) = hang("readers", 1) else { return };
    let text = format!(
        "process N (hang): 3 threads, 1 wait, no deadlock found\n\nwaiting\n\
         \x20 thread \"writer\" waits for rwlock table to write\n\
         \x20   held by N reader; who they are is not in the lock\n{}\n{}",
        frame("writes", "wrlock"),
        ONE_MORE.replace("1 thread", "2 threads"),
    );
    expect(&hung, 0, &text);
}

#[test]
fn joins_are_part_of_cycles() {
    let Some(hung) = hang("join", 2) else { return };
    let main = SOURCE.lines().position(|l| l.contains("\"join\")) join()")).expect("there") + 1;
    let text = format!(
        "process N (hang): 2 threads, 2 wait, DEADLOCK\n\n\
         lockstead: DEADLOCK: 2 threads wait for each other\n\
         \x20 thread \"hang\"\n\
         \x20   waits for the end of thread \"joined\", at:\n{}\
         \x20     main() at hang.c:{main}\n\
         \x20   holds front (mutex), as its word says\n\
         \x20 thread \"joined\"\n\
         \x20   waits for front (mutex), at:\n{}",
        frame("join", "pthread_join"),
        locking("wants_front", "lock(&front)"),
    );
    expect(&hung, 3, &text);
    let Some(both) = hang("joins", 2) else { return };
    let text = plain(&both.dump(&[]).stdout);
    for (waits, joined) in [("joiner", "hang"), ("hang", "joiner")] {
        let words =
            format!("thread \"{waits}\"\n    waits for the end of thread \"{joined}\", at:");
        assert!(text.contains(&words), "no {words:?} in {text}");
    }
}

#[test]
fn waits_for_events_are_no_deadlock() {
    let Some(hung) = hang("idle", 4) else { return };
    let outcome = hung.dump(&[]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let text = plain(&outcome.stdout);
    assert!(text.starts_with("process N (hang): 5 threads, 4 wait, no deadlock found\n"), "{text}");
    for words in [
        "thread \"sem\" waits for semaphore permits\n    a semaphore has no owner in it",
        "thread \"cond\" waits for condition variable ready\n      waits_cond()",
        "thread \"cond-timed\" waits for condition variable ready (for 3",
        "thread \"barrier\" waits for barrier gate (1 of 2 threads have come)\n",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(!text.contains("held by"), "{text}");
}

#[test]
fn a_cycle_with_a_timed_wait_is_no_deadlock() {
    let Some(hung) = hang("timed", 2) else { return };
    let outcome = hung.dump(&[]);
    let text = plain(&outcome.stdout);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(!text.contains("DEADLOCK"), "{text}");
    let title = "a cycle, but no deadlock: 2 threads wait for each other, until a wait times out";
    assert!(text.contains(title), "{text}");
    let words = "thread \"timed\"\n    waits for account.lock (mutex), with a time-out, at:";
    assert!(text.contains(words), "no {words:?} in {text}");
}

#[test]
fn an_owner_that_has_ended_is_told() {
    let Some(hung) = hang("leaked", 1) else { return };
    // It sleeps for the end of the owner first.
    hung.await_shown("\"main-waits\" waits for mutex front");
    let outcome = hung.dump(&[]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let text = plain(&outcome.stdout);
    assert!(text.contains("thread \"main-waits\" waits for mutex front\n"), "{text}");
    assert!(text.contains("no thread of this process has this id: it has ended"), "{text}");
}

#[test]
fn an_owner_of_another_pid_namespace_is_not_taken_for_one_of_this() {
    let Some(program) = programs::program("containers.c") else { return };
    let running = programs::start(Command::new(program));
    let pid = running.expect_line();
    if pid.starts_with("none") {
        return println!("skipped: no PID namespaces here ({pid})");
    }
    let since = std::time::Instant::now();
    let outcome = loop {
        let outcome = run(&["dump", &pid]);
        if outcome.stdout.contains("waits for ") {
            break outcome;
        }
        assert!(since.elapsed() < std::time::Duration::from_secs(60), "{outcome:?}");
    };
    let text = plain(&outcome.stdout);
    assert!(
        text.contains("held by N: it is shared with a process of another PID namespace"),
        "{text}"
    );
    assert_eq!(outcome.status, 0, "{text}");
}

#[test]
fn streams_have_locks_with_owners() {
    let Some(hung) = hang("stream", 2) else { return };
    let outcome = hung.dump(&[]);
    let text = plain(&outcome.stdout);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    // Its name is among symbols that a distribution may have taken out.
    assert!(text.contains("waits for ") && text.contains("stream lock"), "{text}");
    assert!(text.contains("thread \"printer\"\n    waits for front (mutex), at:"), "{text}");
}

#[test]
fn a_refused_mutex_is_not_guessed() {
    let Some(hung) = hang("inherit", 2) else { return };
    let outcome = hung.dump(&[]);
    let text = plain(&outcome.stdout);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(!text.contains("DEADLOCK"), "one of its waits is not known: {text}");
    assert!(text.contains("waits for mutex cycle"), "{text}");
    assert!(text.contains("lets this thread sleep for ever"), "{text}");
}

#[test]
fn a_program_without_symbols() {
    let Some(hung) = start("abba", 3, |built| &built.stripped) else { return };
    let outcome = hung.dump(&[]);
    let text = plain(&outcome.stdout);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    for words in [
        "lockstead: DEADLOCK: 2 threads wait for each other\n",
        "thread \"teller\"\n    waits for mutex at 0xN (heap), at:\n",
        "thread \"auditor\"\n    waits for mutex in bare+0x",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn long_cycles_and_crowds() {
    let Some(many) = hang("many 300", 300) else { return };
    let outcome = many.dump(&[]);
    assert_eq!(outcome.status, 3);
    assert!(outcome.stdout.contains("DEADLOCK: 300 threads wait for each other\n"));
    let Some(crowd) = hang("crowd 300", 300) else { return };
    let text = crowd.dump(&[]).stdout;
    assert!(
        text.contains("300 threads (") && text.contains(" and 292 more (--all lists them)) wait")
    );
    let all = crowd.dump(&["--all"]).stdout;
    assert!(!all.contains("more (--all"), "{all}");
}

#[test]
fn threads_that_go_on_are_no_deadlock() {
    let Some(hung) = start_unsettled("lively") else { return };
    for _ in 0..30 {
        let outcome = hung.dump(&[]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(!outcome.stdout.contains("DEADLOCK"), "{outcome:?}");
    }
}

static FIRST: Mutex<()> = Mutex::new(());
static SECOND: Mutex<()> = Mutex::new(());

/// Hangs: the program to look at, which the test below runs in a process of its own.
fn hang_in_rust() {
    static BOTH: Barrier = Barrier::new(2);
    let first = std::thread::spawn(|| {
        let _first = FIRST.lock();
        BOTH.wait();
        let _second = SECOND.lock();
    });
    let _second = SECOND.lock();
    BOTH.wait();
    let _first = FIRST.lock();
    let _ = first.join();
}

#[test]
fn holders_of_rust_mutexes_are_found_by_their_landing_pads() {
    if std::env::var_os(HANG).is_some() {
        hang_in_rust();
    }
    let me = std::env::current_exe().expect("a test has a file");
    let mut program = Command::new(me);
    program
        .args([
            "--exact",
            "dump::holders_of_rust_mutexes_are_found_by_their_landing_pads",
            "--test-threads=1",
        ])
        .env(HANG, "1");
    let hung = Hung::start(&mut program);
    // The two threads, and the one of the harness that waits for the test.
    if !hung.settle(3) {
        return;
    }
    let outcome = hung.dump(&[]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let text = &outcome.stdout;
    assert!(text.contains("lockstead: DEADLOCK: 2 threads wait for each other"), "{text}");
    for name in ["command::dump::FIRST", "command::dump::SECOND"] {
        for words in ["waits for", "holds"] {
            let words = format!("    {words} {name} (Rust std::sync::Mutex)");
            assert!(text.contains(&words), "no {words:?} in {text}");
        }
    }
    let pad = "pad: the landing pad of command::dump::hang_in_rust";
    assert_eq!(text.matches(pad).count(), 2, "{text}");
    assert!(text.contains("command::dump::hang_in_rust"), "{text}");
}

#[test]
fn another_user_is_told_what_is_missing() {
    // SAFETY: `geteuid` takes no argument and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let Some(hung) = hang("abba", 3) else { return };
    // Root's build folder may be closed to others.
    let folder = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .expect("a folder");
    let copy = folder.path().join("lockstead");
    std::fs::copy(env!("CARGO_BIN_EXE_lockstead"), &copy).expect("a copy");
    let nobody = |flags: &[&str]| {
        let mut command = Command::new(&copy);
        command.arg("dump").arg(hung.pid().to_string()).args(flags).uid(65534).gid(65534);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(start_copy(&mut command))
    };
    let outcome = nobody(&[]);
    assert_eq!(outcome.status, 1, "names can be shown, and are no answer: {outcome:?}");
    assert!(outcome.stderr.contains("is deadlocked cannot be told"), "{outcome:?}");
    let help =
        format!("belongs to another user (uid 0); try: sudo lockstead dump {}\n", hung.pid());
    assert!(outcome.stderr.contains(&help), "{outcome:?}");
    assert!(outcome.stdout.contains("what they wait for cannot be read"), "{outcome:?}");
    for name in ["teller", "auditor", "patient", "sleeper", "busy"] {
        assert!(plain(&outcome.stdout).contains(&format!("\"{name}\" is ")), "{outcome:?}");
    }
    let outcome = nobody(&["--json"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(report["complete"], false);
    assert_eq!(report["threads"].as_array().map(Vec::len), Some(6));
    crate::common::documented(&report);
}

#[test]
fn what_is_no_program_is_refused() {
    for (pid, words) in [("4194303", "no such process"), ("4194304", "no such process")] {
        let outcome = run(&["dump", pid]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
    for pid in ["0", "-1", "me", "99999999999", ""] {
        let outcome = run(&["dump", "--", pid]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{outcome:?}");
        assert!(outcome.stderr.contains("PID"), "{outcome:?}");
    }
}

#[test]
fn a_narrow_program_is_refused() {
    // One that sleeps: header, one segment, and `pause` in a loop.
    let code = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for word in [1_u32, 0x0804_8054, 52, 0, 0, 52 | 32 << 16, 1, 0] {
        file.extend(word.to_le_bytes());
    }
    for word in [1_u32, 0, 0x0804_8000, 0x0804_8000, 93, 93, 5, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("narrow");
    std::fs::write(&path, file).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("one's own file");
    let hung = match Command::new(&path).spawn() {
        Ok(child) => Hung(child),
        Err(error) => {
            eprintln!("skipped: no 32-bit programs here: {error}");
            return;
        }
    };
    // The parent is let go within exec, just before the program has its name.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::fs::read_to_string(format!("/proc/{}/comm", hung.pid())).expect("it sleeps")
        != "narrow\n"
    {
        assert!(std::time::Instant::now() < deadline, "the program has not got its name");
        std::thread::yield_now();
    }
    let outcome = hung.dump(&[]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
    assert!(outcome.stderr.contains("(narrow) is a 32-bit program"), "{outcome:?}");
}

#[test]
fn a_thread_leads_to_its_process() {
    let Some(hung) = hang("self", 1) else { return };
    let mut tasks: Vec<u32> = std::fs::read_dir(format!("/proc/{}/task", hung.pid()))
        .expect("it runs")
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    tasks.sort_unstable();
    let outcome = run(&["dump", &tasks[1].to_string()]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("is a thread of process {}", hung.pid())));
}

#[test]
fn the_json_names_members_owners_and_frames() {
    let Some(hung) = hang("abba", 3) else { return };
    let outcome = finish(
        lockstead(&["dump", &hung.pid().to_string(), "--json", "--all"]).spawn().expect("starts"),
    );
    assert_eq!((outcome.status, outcome.stderr.as_str()), (3, ""));
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    crate::common::documented(&report);
    assert_eq!(report["source"], "memory");
    let thread = |name: &str| {
        let threads = report["threads"].as_array().expect("an array");
        threads.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let (teller, auditor) = (thread("teller"), thread("auditor"));
    assert_eq!(report["cycles"][0]["verdict"], "deadlock");
    let mut members = [teller["tid"].as_u64(), auditor["tid"].as_u64()];
    members.sort_unstable();
    assert_eq!(report["cycles"][0]["threads"], serde_json::json!(members));
    assert_eq!(auditor["activity"], "waiting");
    let address = &auditor["wait"]["target"]["address"];
    let locks = report["locks"].as_array().expect("an array");
    let front = locks.iter().find(|lock| &lock["address"] == address).expect("it is listed");
    assert_eq!(front["name"], "mutex front");
    assert_eq!(front["holders"][0]["thread"], teller["tid"]);
    assert_eq!(front["waiting"], serde_json::json!([auditor["tid"]]));
    let functions: Vec<_> = auditor["stack"]["frames"]
        .as_array()
        .expect("frames")
        .iter()
        .filter_map(|frame| frame["function"].as_str())
        .collect();
    assert!(functions.contains(&"heaped_then_front"), "{functions:?}");
    assert_eq!(thread("busy")["activity"], "running");
    assert!(
        Path::new(auditor["stack"]["frames"][0]["module"].as_str().expect("named")).is_absolute()
    );
}
