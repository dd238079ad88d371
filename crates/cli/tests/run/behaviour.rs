//! That the program is as it would be without lockstead, and what is refused.

use crate::common::{finish, lockstead, run};
use crate::programs::{fixed, program};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output, Stdio};

/// Makes the command that runs a shell script under `lockstead run`.
fn script(text: &str) -> Command {
    heeding(lockstead(&["run", "--no-report", "--", "/bin/sh", "-c", text]))
}

/// Has the command heed the signals that whoever started the test may ignore, as `nohup` does: a
/// shell cannot undo that.
fn heeding(mut command: Command) -> Command {
    let heed = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: a plain system call between fork and exec; the default
            // runs no code of this process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: `heed` makes system calls only, as a forked child may.
    unsafe { command.pre_exec(heed) };
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the command starts")
}

#[test]
fn the_status_is_the_programs() {
    for status in [0, 1, 7, 125, 255] {
        let outcome = finish(script(&format!("exit {status}")).spawn().expect("starts"));
        assert_eq!((outcome.status, &*outcome.stderr), (status, ""), "{outcome:?}");
    }
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGINT] {
        let outcome = output(&mut script(&format!("kill -{signal} $$")));
        assert_eq!(outcome.status.signal(), Some(signal), "{outcome:?}");
        assert_eq!(outcome.stderr, b"");
    }
}

#[test]
fn what_a_program_finds_is_what_it_would_have_found() {
    // Its descriptors, its signals, its place among processes, its limits.
    let text = "grep -E 'Sig(Blk|Ign)|ShdPnd|NoNewPrivs' /proc/self/status; ls -l /proc/self/fd \
                | grep -o '[0-9]* -> [^0-9]*'; ulimit -a; umask; pwd; echo \"$0 $*\"; cat";
    for closed in [None, Some(0), Some(2)] {
        for ignored in [libc::SIG_DFL, libc::SIG_IGN] {
            let prepare = move || {
                // SAFETY: the closure makes system calls only, between fork and exec.
                unsafe {
                    libc::signal(libc::SIGPIPE, ignored);
                    libc::signal(libc::SIGUSR2, ignored);
                    let mut set: libc::sigset_t = std::mem::zeroed();
                    libc::sigemptyset(&mut set);
                    libc::sigaddset(&mut set, libc::SIGWINCH);
                    libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
                    if let Some(closed) = closed {
                        libc::close(closed);
                    }
                }
                Ok(())
            };
            let mut bare = heeding(Command::new("/bin/sh"));
            bare.args(["-c", text]).stdin(Stdio::null());
            // SAFETY: `prepare` makes system calls only, as a forked child may.
            let outcomes = [bare, script(text)].map(|mut command| unsafe {
                output(command.stdout(Stdio::piped()).stderr(Stdio::piped()).pre_exec(prepare))
            });
            let [bare, watched] = outcomes.map(|outcome| {
                assert!(closed.is_some() || outcome.status.success(), "{outcome:?}");
                String::from_utf8_lossy(&outcome.stdout).into_owned()
            });
            assert!(bare.contains("SigIgn"), "{bare}");
            assert_eq!(bare, watched, "closed: {closed:?}");
        }
    }
}

#[test]
fn a_signal_to_the_command_reaches_the_program() {
    for (name, number) in [("TERM", libc::SIGTERM), ("HUP", libc::SIGHUP), ("USR1", libc::SIGUSR1)]
    {
        let text = format!(
            "trap 'echo came; exit 42' {name}; echo ready; i=0; \
             while [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done"
        );
        let mut child = script(&text).spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert_eq!(lines.next().expect("a line").expect("text"), "ready");
        let pid = i32::try_from(child.id()).expect("a process id");
        // SAFETY: the child has not been waited for, so the id is its own.
        assert_eq!(unsafe { libc::kill(pid, number) }, 0);
        assert_eq!(lines.next().expect("a line").expect("text"), "came");
        assert!(lines.next().is_none(), "it came once");
        assert_eq!(child.wait().expect("ends").code(), Some(42));
    }
}

#[test]
fn the_program_outlives_the_command() {
    let Some(quiet) = program("quiet.c") else { return };
    let text = format!("echo $$; sleep 0.3; {} order; echo $?", quiet.display());
    let mut child = script(&text).spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let pid: u32 = lines.next().expect("a line").expect("text").parse().expect("a number");
    child.kill().expect("killed");
    assert_eq!(child.wait().expect("ends").signal(), Some(libc::SIGKILL));
    assert!(std::fs::exists(format!("/proc/{pid}")).expect("readable"), "it went down too");
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!(rest, ["in order", "53"]);
}

#[test]
fn what_is_left_behind_starts_programs_as_ever() {
    // `$PPID` is the command: it has ended when `ls` starts, though nobody has
    // waited for it yet.
    let text = "(while read -r _ _ state _ < /proc/$PPID/stat && [ $state != Z ]; do
            sleep 0.02
        done
        ls -d /; echo done) & :";
    let outcome = output(&mut script(text));
    assert!(outcome.status.success(), "{outcome:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!((&*text(&outcome.stdout), &*text(&outcome.stderr)), ("/\ndone\n", ""));
}

#[test]
fn what_cannot_be_watched_is_refused_with_a_way_out() {
    let refuse = |program: &str, status: i32, words: &[&str]| {
        let outcome = run(&["run", "--", program]);
        assert_eq!((outcome.status, &*outcome.stdout), (status, ""), "{outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "no {word:?} in {}", outcome.stderr);
        }
    };
    refuse("/absent/program", 127, &["/absent/program"]);
    refuse("no-such-program-anywhere", 127, &["PATH"]);
    refuse("/", 126, &["/"]);
    let data = tempfile::NamedTempFile::new().expect("a file");
    refuse(data.path().to_str().expect("a plain name"), 126, &["denied"]);
    if let Some(quiet) = fixed("quiet.c") {
        let quiet = quiet.to_str().expect("a plain name");
        refuse(quiet, 125, &["statically linked", "Instead:", "lockstead dump"]);
        // One that the program starts is only left out.
        let outcome = finish(script(&format!("{quiet} order")).spawn().expect("starts"));
        assert_eq!((outcome.status, &*outcome.stdout), (53, "in order\n"));
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn wrong_usage() {
    for arguments in [
        &["run"][..],
        &["run", "--watch", "5", "--", "true"],
        &["run", "--on-deadlock", "panic", "--", "true"],
        &["run", "--json", "/absent/file", "--", "true"],
    ] {
        assert_eq!(run(arguments).status, 2, "{arguments:?}");
    }
}
