//! `lockstead cluster lock NAME -- COMMAND`: a command that runs while a lock is held.

use crate::common::{EtcdFlags, failed};
use crate::signals::{Event, events};
use clap::Args;
use lockstead_cluster::{ClusterError, Locked, Mutex, MutexGuard, Patience, UNDER};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// The time of waiting after which that is said.
const SILENCE: Duration = Duration::from_secs(2);

/// The lock was not acquired in time.
const BUSY: u8 = 75;
/// The lease was lost while the command ran.
const LOST: u8 = 76;
/// The last owner died and --on-owner-died says to fail, or the lock is not recoverable.
const DIED: u8 = 77;
/// There is no etcd to ask.
const UNREACHABLE: u8 = 69;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster lock nightly -- ./report.sh
  lockstead cluster lock --endpoints http://a:2379,http://b:2379 --wait 30 nightly -- ./report.sh
  lockstead cluster lock --on-owner-died ./repair.sh nightly -- ./report.sh

The command has in its environment:
  LOCKSTEAD_TOKEN     the fencing token, a decimal number that grows from owner to owner
  LOCKSTEAD_DEADLINE  until when the lock was certain as the command began, seconds since 1970
  LOCKSTEAD_LEASE     the number of the lease; what takes locks in the command says by it under which
                      lock it runs, so that `dump` finds deadlocks through commands

A wait of more than two seconds is told on standard error, once. SIGINT, SIGTERM and SIGHUP end the
wait, and the place in the queue is given up; while the command runs
its process group gets them, and the lock is released when the command has ended.

Exit status: the command's own, 128 and the number of the signal that ended it or the wait, or:
  69   no endpoint of etcd answered
  75   the lock was not free, or not in time (--nonblock, --wait)
  76   the lease was lost while the command ran: it was ended, see --signal
  77   the last owner died and --on-owner-died says fail, or its repair failed; not recoverable
  126  the command cannot be started
  127  there is no such command
  1, 2 something else failed; wrong usage")]
pub(crate) struct LockFlags {
    #[command(flatten)]
    etcd: EtcdFlags,
    /// Seconds of the lease: so long at least others wait after this host has died
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    ttl: u64,
    /// Milliseconds by which the lock is given up before its lease may end; the election timeout of
    /// the members
    #[arg(long, value_name = "MS", default_value_t = 1_000)]
    margin: u64,
    /// Wait at most so long for the lock
    #[arg(
        long,
        value_name = "SECONDS",
        conflicts_with = "nonblock",
        allow_negative_numbers = true
    )]
    wait: Option<f64>,
    /// Do not wait for the lock
    #[arg(long)]
    nonblock: bool,
    /// What to do if the last owner died: `run` the command all the same, `fail`, or first run this
    /// command for a shell, whose success makes the lock consistent again
    #[arg(long, value_name = "run|fail|COMMAND", default_value = "fail")]
    on_owner_died: String,
    /// What the command gets when the lease is lost, each signal with the time before the next; at the
    /// deadline it is killed
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", value_parser = ["TERM", "INT", "HUP", "KILL", "none"])]
    signal: String,
    /// Milliseconds before the deadline at which the command gets the signal: at most half of the lease
    /// less the margin, for renewals come only after a third of that
    #[arg(long, value_name = "MS", default_value_t = 500)]
    grace: u64,
    /// Name of the lock
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Acquires, runs, releases.
///
/// # Errors
/// As [`Failure`]; the command's status is one.
pub(crate) fn run(flags: &LockFlags) -> Result<(), Failure> {
    let until = flags.wait.map(until).transpose()?.flatten();
    let margin = Duration::from_millis(flags.margin);
    let most = Duration::from_secs(flags.ttl).saturating_sub(margin) / 2;
    if Duration::from_millis(flags.grace) > most {
        let why = format!(
            "allowed with this --ttl and --margin: up to {}, or the command would get its signal before \
             the lease is renewed",
            most.as_millis()
        );
        return Err(Failure::option("--grace <MS>", flags.grace, why));
    }
    let session =
        flags.etcd.session(Duration::from_secs(flags.ttl), margin).map_err(unreachable)?;
    let mutex = Mutex::new(&session, &flags.name);
    let events = events()?;
    let interrupted = Cell::new(0);
    let (began, told) = (Instant::now(), Cell::new(false));
    let goes_on = || {
        if began.elapsed() >= SILENCE && !told.replace(true) {
            output::note(format_args!(
                "waiting for {}; `lockstead cluster dump` shows who has it",
                flags.name
            ));
        }
        match events.1.try_recv() {
            Ok(Event::Signal(signal)) => {
                interrupted.set(signal);
                false
            }
            _ => true,
        }
    };
    // In place of a line of this source, the same one for everybody. Not the arguments: whoever reads
    // etcd is not to learn what secrets are among them.
    let program = flags.command[0].to_string_lossy();
    let patience = match flags.nonblock {
        true => Patience::Never,
        false => Patience::While { until, goes_on: &goes_on },
    };
    let locked = mutex.lock_as(patience, &program);
    let guard = match locked {
        Ok(Locked::Acquired(guard)) => guard,
        Ok(Locked::OwnerDied(inconsistent)) => match flags.on_owner_died.as_str() {
            "run" => {
                output::note(format_args!("the last owner of {} died", flags.name));
                inconsistent.mark_consistent().map_err(failed)?
            }
            "fail" => {
                // Whoever comes next is told in this one's stead.
                inconsistent.leave_to_the_next().map_err(failed)?;
                let text = "the last owner died; repair what it left with --on-owner-died COMMAND";
                return refuse(DIED, text);
            }
            repair => {
                let words = ["sh".into(), "-c".into(), repair.into()];
                match supervise(flags, (&inconsistent, session.lease()), &words, &events)? {
                    status if status.success() => inconsistent.mark_consistent().map_err(failed)?,
                    status => {
                        inconsistent.leave_to_the_next().map_err(failed)?;
                        return refuse(DIED, &format!("the repair failed ({status})"));
                    }
                }
            }
        },
        Ok(Locked::NotRecoverable) => {
            return refuse(DIED, &ClusterError::NotRecoverable.to_string());
        }
        Err(error @ (ClusterError::Held | ClusterError::TimedOut)) => {
            return refuse(BUSY, &format!("{}: {error}", flags.name));
        }
        Err(ClusterError::Cancelled) => {
            let status = u8::try_from(128 + interrupted.get()).unwrap_or(1);
            return refuse(
                status,
                &format!("{}: interrupted, the lock was not acquired", flags.name),
            );
        }
        Err(error @ ClusterError::Unreachable { .. }) => {
            return refuse(UNREACHABLE, &error.to_string());
        }
        Err(error @ ClusterError::Lost(_)) => return refuse(LOST, &error.to_string()),
        Err(error) => return Err(failed(error)),
    };
    let status = supervise(flags, (&guard, session.lease()), &flags.command, &events)?;
    match guard.unlock() {
        Ok(()) => {}
        Err(error @ (ClusterError::Lost(_) | ClusterError::Removed)) => {
            return refuse(LOST, &format!("while the command ran, {error}"));
        }
        // The lease ends with this process; the work is done.
        Err(error) => output::note(format_args!("the release was not confirmed: {error}")),
    }
    match status_of(status) {
        0 => Ok(()),
        status => Err(Failure::Program(status)),
    }
}

/// Returns the end of a wait of so many seconds; `None` if no clock goes so far.
fn until(seconds: f64) -> Result<Option<Instant>, Failure> {
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::option("--wait <SECONDS>", seconds, "allowed: a number of seconds from 0")
    })?;
    Ok(Instant::now().checked_add(time))
}

fn unreachable(failure: Failure) -> Failure {
    match failure {
        Failure::Run(text) => Failure::Refused { status: UNREACHABLE, text },
        other => other,
    }
}

fn refuse(status: u8, text: &str) -> Result<(), Failure> {
    Err(Failure::Refused { status, text: text.to_owned() })
}

fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(1)).unwrap_or(1)
}

/// Runs a command with the lock's token in its environment, and ends it before the lock may be another
/// one's.
fn supervise(
    flags: &LockFlags,
    (guard, lease): (&MutexGuard, i64),
    words: &[OsString],
    events: &(Sender<Event>, Receiver<Event>),
) -> Result<ExitStatus, Failure> {
    let deadline = guard.check().map_err(failed)?;
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let until = since_1970.unwrap_or_default() + deadline.remaining();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env("LOCKSTEAD_TOKEN", guard.token().to_string())
        .env(UNDER, lease.to_string())
        .env("LOCKSTEAD_DEADLINE", format!("{:.3}", until.as_secs_f64()))
        // A group of its own gets the signals: a shell's children work under the lock, too.
        .process_group(0)
        .stdin(Stdio::inherit());
    // SAFETY: between fork and exec nothing is called but `prctl`, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            // If this process is killed the lease ends, and the command must not go on.
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    let child = command.spawn().map_err(|error| Failure::Refused {
        status: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
        text: format!("cannot start {}: {error}", words[0].display()),
    })?;
    watch_over(flags, guard, child, events)
}

fn watch_over(
    flags: &LockFlags,
    guard: &MutexGuard,
    mut child: Child,
    (sender, events): &(Sender<Event>, Receiver<Event>),
) -> Result<ExitStatus, Failure> {
    let group = libc::pid_t::try_from(child.id()).unwrap_or(0);
    let signal = match flags.signal.as_str() {
        "INT" => libc::SIGINT,
        "HUP" => libc::SIGHUP,
        "KILL" => libc::SIGKILL,
        "none" => 0,
        _ => libc::SIGTERM,
    };
    let send = |signal: i32| {
        // SAFETY: a signal to a group of which this process has not yet waited for the leader, so that
        // the number is still its own. Number 0 asks only whether it is there.
        unsafe { libc::kill(-group, signal) };
    };
    let ended = sender.clone();
    thread::spawn(move || ended.send(Event::Ended(child.wait())));
    let grace = Duration::from_millis(flags.grace);
    let mut warned = false;
    loop {
        // The deadline moves on while etcd answers: it is looked at again where it would have been.
        let left = guard.safe_for();
        let pause = if warned { left } else { left.saturating_sub(grace) };
        match events.recv_timeout(pause.max(Duration::from_millis(1))) {
            Ok(Event::Signal(signal)) => send(signal),
            // It was asked to end, whatever it says of that.
            Ok(Event::Ended(Ok(status))) if warned => {
                return Err(Failure::Refused {
                    status: LOST,
                    text: format!(
                        "the lease ran out, and the command ended as it was told ({status})"
                    ),
                });
            }
            Ok(Event::Ended(_)) if warned => return Err(lost()),
            Ok(Event::Ended(status)) => {
                return status.map_err(|error| Failure::Run(format!("cannot wait: {error}")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::Run("nobody waits for the command".into()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let left = guard.safe_for();
        if left.is_zero() && signal != 0 {
            send(libc::SIGKILL);
            output::note(format_args!("the lease was lost: the command was killed"));
        } else if left <= grace && !warned && signal != 0 {
            warned = true;
            output::note(format_args!(
                "the lease runs out in {left:.1?}: the command is signalled"
            ));
            send(signal);
        } else if left > grace {
            warned = false;
        }
        if left.is_zero() {
            while let Ok(Event::Signal(signal)) = events.recv() {
                send(signal);
            }
            return Err(lost());
        }
    }
}

/// Returns how the command ends whose lease was lost, or was about to be when it ended the other one.
fn lost() -> Failure {
    let text = "the lease ran out while the command ran, which was ended";
    Failure::Refused { status: LOST, text: text.into() }
}
