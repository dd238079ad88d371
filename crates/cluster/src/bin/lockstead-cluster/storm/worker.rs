//! A client of the storm: a process that takes the lock again and again and says until when it was sure of
//! it; and how the storm starts one.

use clap::ValueEnum;
use lockstead_cluster::{
    ClientOptions, ClusterError, Moment, Mutex, MutexGuard, Session, SessionOptions,
};
use lockstead_render::failure::Failure;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A part of the evidence that is broken, so that the storm has to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Broken {
    /// The register accepts every token.
    Register,
    /// Owners do not look at their deadline.
    Guard,
}

impl Broken {
    fn word(self) -> &'static str {
        match self {
            Broken::Register => "register",
            Broken::Guard => "guard",
        }
    }
}

/// What a client is started with.
pub(super) struct Start<'a> {
    pub(super) endpoints: &'a str,
    pub(super) lock: usize,
    pub(super) ttl: u64,
    pub(super) broken: Option<Broken>,
    /// The network namespace that it is in.
    pub(super) namespace: Option<RawFd>,
    /// The seconds by which its boot-time clock is ahead.
    pub(super) ahead: u64,
}

/// Starts a client, each of whose lines `hear` hears, and answers perhaps.
pub(super) fn start(
    with: &Start<'_>,
    hear: impl Fn(&str) -> Option<String> + Send + 'static,
) -> io::Result<Child> {
    // This program, also if its file is replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["storm", "--ttl", &with.ttl.to_string(), "--worker", with.endpoints])
        .args(["--lock", &format!("storm/{}", with.lock)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(broken) = with.broken {
        command.args(["--broken", broken.word()]);
    }
    let namespace = with.namespace;
    let ahead = (with.ahead != 0).then(|| format!("boottime {} 0\n", with.ahead));
    // SAFETY: between fork and exec nothing is called but system calls on what was prepared before.
    unsafe {
        command.pre_exec(move || {
            let done = |result: libc::c_int| match result {
                -1 => Err(io::Error::last_os_error()),
                other => Ok(other),
            };
            // It is not left behind, stopped perhaps, when the storm itself is killed.
            done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            if let Some(namespace) = namespace {
                done(libc::setns(namespace, libc::CLONE_NEWNET))?;
            }
            if let Some(ahead) = &ahead {
                done(libc::unshare(libc::CLONE_NEWTIME))?;
                let file = c"/proc/self/timens_offsets";
                let file = done(libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
                let written = libc::write(file, ahead.as_ptr().cast(), ahead.len());
                if usize::try_from(written) != Ok(ahead.len()) {
                    return Err(io::Error::last_os_error());
                }
                // The namespace is one for children; of kernels before 6.3 no `exec` leads into it, either.
                let file = c"/proc/self/ns/time_for_children";
                let file = done(libc::open(file.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC))?;
                done(libc::setns(file, libc::CLONE_NEWTIME))?;
            }
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    if let (Some(output), Some(mut input)) = (child.stdout.take(), child.stdin.take()) {
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(answer) = hear(&line) {
                    // A client that was killed does not read it.
                    let _ = reply(&mut input, &answer);
                }
            }
        });
    }
    Ok(child)
}

fn reply(input: &mut ChildStdin, answer: &str) -> io::Result<()> {
    input.write_all(format!("{answer}\n").as_bytes())
}

/// Says one line, whole, for a client may be killed at any moment. Where nobody hears it, the storm is over.
fn say(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output
        .write_all(format!("{text}\n").as_bytes())
        .and_then(|()| output.flush())
        .map_err(|_| Failure::Closed)
}

fn ask(text: &str) -> Result<String, Failure> {
    say(text)?;
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => Err(Failure::Closed),
        Ok(_) => Ok(answer.trim_end().to_owned()),
    }
}

/// Takes the lock again and again.
///
/// | line | | answer |
/// |---|---|---|
/// | `in TOKEN NS TOLD` | in, and sure of it at that moment; 1: told of a death | `value N`, `refused`, `end` |
/// | `sure TOKEN NS` | still sure, and about to write | `go`: it may have been stopped meanwhile |
/// | `write TOKEN N` | written without another look, as an owner does that was stopped before it | `value N`, `refused` |
/// | `leaving TOKEN`, `lost TOKEN` | gives the lock back; has learnt that it is lost | |
pub(super) fn work(
    endpoints: &str,
    ttl: u64,
    lock: &str,
    broken: Option<Broken>,
) -> Result<(), Failure> {
    loop {
        let client = ClientOptions::of(endpoints).map_err(crate::common::failed)?;
        let ttl = Duration::from_secs(ttl);
        let options = SessionOptions { client, ttl, ..SessionOptions::default() };
        let Ok(session) = Session::open(options) else { continue };
        let mutex = Mutex::new(&session, lock);
        // A session that is lost is followed by another one.
        while session.check().is_ok() {
            let Ok(locked) = mutex.lock() else { continue };
            let told = locked.is_inconsistent();
            let Ok(guard) = locked.recover(|_| ()) else { continue };
            let over = turn(&guard, told, broken)?;
            let token = guard.token();
            say(&format!("leaving {token}"))?;
            if let Err(ClusterError::Lost(_) | ClusterError::Removed) = guard.unlock() {
                say(&format!("lost {token}"))?;
            }
            if over {
                drop(mutex);
                // What etcd does not hear of ends with the lease.
                let _ = session.close();
                return Ok(());
            }
        }
    }
}

/// Works as the owner; returns whether it was the last time.
fn turn(guard: &MutexGuard, told: bool, broken: Option<Broken>) -> Result<bool, Failure> {
    let token = guard.token();
    let sure = || match broken {
        Some(Broken::Guard) => true,
        _ => guard.check().is_ok(),
    };
    let mut value = None;
    for step in 0..fastrand::u32(2..5) {
        // The moment before the look: the look came later, and was still in time.
        let now = Moment::now().nanoseconds();
        if !sure() {
            return Ok(false);
        }
        let answer = match value {
            _ if step == 0 => ask(&format!("in {token} {now} {}", u8::from(told)))?,
            // Whoever does not look goes on.
            None if broken == Some(Broken::Guard) => ask(&format!("sure {token} {now}"))?,
            None => return Ok(false),
            Some(value) => {
                ask(&format!("sure {token} {now}"))?;
                ask(&format!("write {token} {value}"))?
            }
        };
        if answer == "end" {
            return Ok(true);
        }
        value = answer.strip_prefix("value ").and_then(|number| number.parse::<u64>().ok());
    }
    Ok(false)
}
