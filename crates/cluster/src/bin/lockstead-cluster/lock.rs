//! `lockstead cluster lock NAME -- COMMAND`: a command that runs while a lock is held.

use crate::common::{EtcdFlags, failed};
use crate::signals::{Events, name_of, status_of as status_of_signal};
use crate::supervise::{Watch, status_of};
use clap::Args;
use lockstead_cluster::{ClusterError, Inconsistent, Locked, Mutex, MutexGuard, Patience, Session};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::cell::Cell;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// The time of waiting after which that is said.
const SILENCE: Duration = Duration::from_secs(2);

/// The time before the deadline at which the command gets its signal, if no other one is given.
const GRACE: Duration = Duration::from_millis(500);

/// The lock was not acquired in time.
const BUSY: u8 = 75;
/// The lease was lost while the command ran.
pub(crate) const LOST: u8 = 76;
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

A wait of more than two seconds is told on standard error, once. SIGINT, SIGTERM, SIGHUP and SIGQUIT
end the wait, and the place in the queue is given up. If etcd does not answer within two seconds, or
at a second signal, this ends all the same, and the place goes with its lease; what was done is told.
While the command runs its process group gets the signals, and the lock is released when the command
has ended; after a repair that got one the command is not started.

The command has a process group of its own, so that one signal reaches all that it starts: from a
terminal it cannot read. Started within another `lock`, it holds both locks: nest them in one order
everywhere, or two commands may wait for each other, which `dump` shows.

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
    /// Wait at most so long for the lock; more than a clock can count is for ever, as without this
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
    /// less the margin, for renewals come only after a third of that [default: 500, or that half]
    #[arg(long, value_name = "MS")]
    grace: Option<u64>,
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
    let grace = grace(flags, margin)?;
    let events = Events::start(&flags.name, "no lock was asked for yet".into())?;
    let opened = flags.etcd.session(Duration::from_secs(flags.ttl), margin).map_err(unreachable);
    let session = match (opened, events.asked()) {
        (Ok(session), _) => session,
        (Err(Failure::Refused { text, .. }), Some(signal)) => {
            let text = format!("{}: {}: {text}", flags.name, name_of(signal));
            return Err(Failure::Refused { status: status_of_signal(signal), text });
        }
        (Err(failure), _) => return Err(failure),
    };
    events.leaves(None, unconfirmed(flags));
    Owner { flags, grace, events: &events, session: &session }.run(until)
}

/// Says what becomes of a place of which etcd did not confirm that it is given up.
fn unconfirmed(flags: &LockFlags) -> String {
    let ttl = flags.ttl;
    format!(
        "etcd has not confirmed that the place is given up; it goes with its lease, within {ttl} s"
    )
}

/// Whoever waits for the lock, and owns it then.
struct Owner<'a> {
    flags: &'a LockFlags,
    grace: Duration,
    events: &'a Events,
    session: &'a Session,
}

impl Owner<'_> {
    fn run(&self, until: Option<Instant>) -> Result<(), Failure> {
        let Owner { flags, events, .. } = self;
        let guard = match self.acquires(until) {
            Ok(Locked::Acquired(guard)) => guard,
            Ok(Locked::OwnerDied(inconsistent)) => self.repairs(inconsistent)?,
            Ok(Locked::NotRecoverable) => {
                return Err(refused(DIED, &ClusterError::NotRecoverable.to_string()));
            }
            // Whatever else hindered it: this is what was asked for.
            Err(_) if let Some(signal) = events.asked() => {
                return Err(self.interrupted(signal, "the lock was not acquired"));
            }
            Err(error @ (ClusterError::Held | ClusterError::TimedOut)) => {
                return Err(refused(BUSY, &format!("{}: {error}", flags.name)));
            }
            Err(error @ ClusterError::Unreachable { .. }) => {
                return Err(refused(UNREACHABLE, &error.to_string()));
            }
            Err(error @ ClusterError::Lost(_)) => return Err(refused(LOST, &error.to_string())),
            Err(error) => return Err(failed(error)),
        };
        let status = self.watch().run(&guard, &flags.command)?.map(status_of);
        if let Some(status) = status {
            let left = format!(
                "the release was not confirmed; the lock goes with its lease, within {} s, and the next \
                 owner may be told that this one died",
                flags.ttl
            );
            events.leaves(Some(status), left);
        }
        match guard.unlock() {
            Ok(()) => {}
            Err(error @ (ClusterError::Lost(_) | ClusterError::Removed)) if status.is_some() => {
                return Err(refused(LOST, &format!("while the command ran, {error}")));
            }
            // The lease ends with this process; the work is done.
            Err(error) => output::note(format_args!("the release was not confirmed: {error}")),
        }
        match (status, events.asked()) {
            (None, signal) => {
                Err(self.interrupted(signal.unwrap_or(libc::SIGTERM), "the command was not run"))
            }
            (Some(0), _) => Ok(()),
            (Some(status), _) => Err(Failure::Program(status)),
        }
    }

    fn acquires(&self, until: Option<Instant>) -> Result<Locked<MutexGuard>, ClusterError> {
        let Owner { flags, events, .. } = self;
        let mutex = Mutex::new(self.session, &flags.name);
        let (began, told) = (Instant::now(), Cell::new(false));
        let goes_on = || {
            if began.elapsed() >= SILENCE && !told.replace(true) {
                output::note(format_args!(
                    "waiting for {}; `lockstead cluster dump` shows who has it",
                    flags.name
                ));
            }
            events.asked().is_none()
        };
        let patience = match flags.nonblock {
            true => Patience::Never,
            false => Patience::While { until, goes_on: &goes_on },
        };
        // In place of a line of this source, the same one for everybody. Not the arguments: whoever reads
        // etcd is not to learn what secrets are among them.
        mutex.lock_as(patience, &flags.command[0].to_string_lossy())
    }

    fn watch(&self) -> Watch<'_> {
        let signal = match self.flags.signal.as_str() {
            "INT" => libc::SIGINT,
            "HUP" => libc::SIGHUP,
            "KILL" => libc::SIGKILL,
            "none" => 0,
            _ => libc::SIGTERM,
        };
        let (lease, grace) = (self.session.lease(), self.grace);
        Watch { events: self.events, lease, signal, grace }
    }

    /// Does what is to be done where the last owner died. Where that is not done, whoever comes next is told
    /// in this one's stead.
    fn repairs(&self, inconsistent: Inconsistent<MutexGuard>) -> Result<MutexGuard, Failure> {
        let (flags, events) = (self.flags, self.events);
        if let Some(signal) = events.asked() {
            return Err(self.leaves(inconsistent, |owner| {
                owner.interrupted(signal, "nothing was repaired, and the command was not run")
            }));
        }
        match flags.on_owner_died.as_str() {
            "run" => {
                output::note(format_args!("the last owner of {} died", flags.name));
                inconsistent.mark_consistent().map_err(failed)
            }
            "fail" => Err(self.leaves(inconsistent, |_| {
                let text = "the last owner died; repair what it left with --on-owner-died COMMAND";
                refused(DIED, text)
            })),
            repair => {
                let words = ["sh".into(), "-c".into(), repair.into()];
                let ended = self.watch().run(&inconsistent, &words);
                match ended {
                    Ok(Some(status)) if status.success() => {
                        inconsistent.mark_consistent().map_err(failed)
                    }
                    Ok(status) => Err(self.leaves(inconsistent, |owner| match events.asked() {
                        Some(signal) => owner.interrupted(
                            signal,
                            "nothing was repaired, and the command was not run",
                        ),
                        None => {
                            let status = status.map(|status| status.to_string());
                            let why = status.unwrap_or_else(|| "it was not started".into());
                            refused(DIED, &format!("the repair failed ({why})"))
                        }
                    })),
                    Err(failure) => Err(self.leaves(inconsistent, |_| failure)),
                }
            }
        }
    }

    /// Leaves the repair to the next owner, and returns what is said then.
    fn leaves(
        &self,
        inconsistent: Inconsistent<MutexGuard>,
        says: impl FnOnce(&Self) -> Failure,
    ) -> Failure {
        match inconsistent.leave_to_the_next() {
            // Its mark stays in etcd when the lease ends, and tells the next one as well.
            Ok(()) | Err(ClusterError::Lost(_)) => {}
            Err(error) => output::note(format_args!(
                "that the repair is left to the next owner was not confirmed: {error}"
            )),
        }
        says(self)
    }

    /// Returns how the command ends that a signal has asked to, with what came of it.
    fn interrupted(&self, signal: i32, so: &str) -> Failure {
        let left = match self.session.clone().close() {
            Ok(()) => "its place is given up".into(),
            Err(_) => unconfirmed(self.flags),
        };
        let text = format!("{}: {}: {so}; {left}", self.flags.name, name_of(signal));
        refused(status_of_signal(signal), &text)
    }
}

/// Returns the end of a wait of so many seconds; `None` if no clock goes so far.
fn until(seconds: f64) -> Result<Option<Instant>, Failure> {
    if seconds.is_nan() || seconds < 0.0 {
        let value = format_args!("{seconds:?}");
        let why = "allowed: a number of seconds from 0";
        return Err(Failure::option("--wait <SECONDS>", value, why));
    }
    let time = Duration::try_from_secs_f64(seconds).ok();
    Ok(time.and_then(|time| Instant::now().checked_add(time)))
}

/// Returns the time before the deadline at which the command gets its signal.
fn grace(flags: &LockFlags, margin: Duration) -> Result<Duration, Failure> {
    let most = Duration::from_secs(flags.ttl).saturating_sub(margin) / 2;
    match flags.grace.map(Duration::from_millis) {
        None => Ok(most.min(GRACE)),
        // That the margin leaves nothing is said by the session, in its words.
        Some(grace) if grace > most && !most.is_zero() => {
            let why = format!(
                "allowed with this --ttl and --margin: up to {}, or the command would get its signal \
                 before the lease is renewed",
                most.as_millis()
            );
            Err(Failure::option("--grace <MS>", grace.as_millis(), why))
        }
        Some(grace) => Ok(grace),
    }
}

fn unreachable(failure: Failure) -> Failure {
    match failure {
        Failure::Run(text) => Failure::Refused { status: UNREACHABLE, text },
        other => other,
    }
}

fn refused(status: u8, text: &str) -> Failure {
    Failure::Refused { status, text: text.to_owned() }
}
