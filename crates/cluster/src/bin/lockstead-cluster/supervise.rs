//! A command that runs under a lock, and is ended before the lock may be another one's.

use crate::common::failed;
use crate::lock::LOST;
use crate::signals::{self, Event, Events};
use lockstead_cluster::{MutexGuard, UNDER, member};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use std::{mem, thread};

/// How a command is watched over.
pub(crate) struct Watch<'a> {
    pub(crate) events: &'a Events,
    /// The lease, by its number.
    pub(crate) lease: i64,
    /// What its process group gets before the deadline; 0: nothing, and it is not killed either.
    pub(crate) signal: i32,
    /// The time before the deadline at which it gets that.
    pub(crate) grace: Duration,
}

/// Returns the status of a shell for how a process has ended.
pub(crate) fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.or_else(|| status.signal().map(signals::status_of)).unwrap_or(1)
}

impl Watch<'_> {
    /// Runs a command with the lock's token in its environment, and ends it before the lock may be another
    /// one's. `None`: a signal had asked for the end before, and it was not started.
    pub(crate) fn run(
        &self,
        guard: &MutexGuard,
        words: &[OsString],
    ) -> Result<Option<ExitStatus>, Failure> {
        let deadline = guard.check().map_err(failed)?;
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let until = since_1970.unwrap_or_default() + deadline.remaining();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("LOCKSTEAD_TOKEN", guard.token().to_string())
            .env(UNDER, self.lease.to_string())
            .env("LOCKSTEAD_DEADLINE", format!("{:.3}", until.as_secs_f64()))
            // A group of its own gets the signals: a shell's children work under the lock, too.
            .process_group(0)
            .stdin(Stdio::inherit());
        // If this process is killed the lease ends, and the command must not go on.
        member::dies_with_us(&mut command);
        keep_the_dead()?;
        if !self.events.begin() {
            return Ok(None);
        }
        let child = command.spawn().map_err(|error| Failure::Refused {
            status: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
            text: format!("cannot start {}: {error}", words[0].display()),
        });
        let ended = child.and_then(|child| self.watch_over(guard, child));
        self.events.end();
        ended.map(Some)
    }

    fn watch_over(&self, guard: &MutexGuard, mut child: Child) -> Result<ExitStatus, Failure> {
        let pid = child.id();
        let group = libc::pid_t::try_from(pid).map_err(|error| Failure::Run(error.to_string()))?;
        let send = |signal: i32| {
            // SAFETY: a signal to a group whose leader this thread alone waits for, and only behind the last
            // of these calls: until then the kernel gives the number to nobody else, be the leader dead or
            // not (`keep_the_dead`). The thread that learns of its death leaves it to be waited for.
            unsafe { libc::kill(-group, signal) };
        };
        let ended = self.events.sender();
        let started = thread::Builder::new().name("command".into()).spawn(move || {
            wait_for_the_end(pid);
            ended.send(Event::Ended)
        });
        if let Err(error) = started {
            send(libc::SIGKILL);
            let _ = child.wait();
            return Err(Failure::Run(format!("cannot start a thread: {error}")));
        }
        let mut warned = false;
        loop {
            // The deadline moves on while etcd answers: it is looked at again where it would have been.
            let left = guard.safe_for();
            let nothing_comes = warned || self.signal == 0;
            let pause = if nothing_comes { left } else { left.saturating_sub(self.grace) };
            match self.events.next(pause.max(Duration::from_millis(1))) {
                Some(Event::Signal(signal)) => send(signal),
                Some(Event::Ended) => {
                    // What it has started works under the lock, too, and the lease is about to end.
                    if warned {
                        send(libc::SIGKILL);
                    }
                    return match child.wait() {
                        // It was asked to end, whatever it says of that.
                        Ok(status) if warned => Err(Failure::Refused {
                            status: LOST,
                            text: format!(
                                "the lease ran out, and the command ended as it was told ({status})"
                            ),
                        }),
                        Err(_) if warned => Err(self.lost()),
                        status => {
                            status.map_err(|error| Failure::Run(format!("cannot wait: {error}")))
                        }
                    };
                }
                None => {}
            }
            let left = guard.safe_for();
            if left.is_zero() && self.signal != 0 {
                send(libc::SIGKILL);
                output::note(format_args!("the lease was lost: the command was killed"));
            } else if left <= self.grace && !warned && self.signal != 0 {
                warned = true;
                output::note(format_args!(
                    "the lease runs out in {left:.1?}: the command is signalled"
                ));
                send(self.signal);
            } else if left > self.grace {
                warned = false;
            }
            if left.is_zero() {
                loop {
                    match self.events.next(Duration::MAX) {
                        Some(Event::Signal(signal)) => send(signal),
                        Some(Event::Ended) => break,
                        None => {}
                    }
                }
                let _ = child.wait();
                return Err(self.lost());
            }
        }
    }

    /// Returns how the command ends whose lease was lost, or was about to be when it ended the other one.
    fn lost(&self) -> Failure {
        let text = match self.signal {
            0 => "the lease ran out while the command ran, which was let alone",
            _ => "the lease ran out while the command ran, which was ended",
        };
        Failure::Refused { status: LOST, text: text.into() }
    }
}

/// Has children that have ended stay until they are waited for, also where this process was started with
/// SIGCHLD ignored: the kernel would give their numbers away, and nobody would learn how they ended.
fn keep_the_dead() -> Result<(), Failure> {
    // SAFETY: no handler is installed, but the default one, by which nothing happens.
    if unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) } == libc::SIG_ERR {
        let error = io::Error::last_os_error();
        return Err(Failure::Run(format!("cannot wait for a command: {error}")));
    }
    Ok(())
}

/// Waits until a child has ended, and leaves it to another thread to be waited for.
fn wait_for_the_end(pid: libc::id_t) {
    loop {
        // SAFETY: all zeroes are a valid `siginfo_t`, of integers and pointers that may be null.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        let how = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: the call writes to `info` alone, which is there until it has returned.
        let waited = unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, how) };
        if waited == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}
