//! SIGINT, SIGTERM and SIGHUP while `lock` waits or its command runs: the wait is given up in order, and
//! the command gets the signal, for it is in a process group of its own.

use lockstead_render::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, Sender};
use std::{io, mem, ptr, thread};

/// What happens while a lock is waited for or a command runs under it.
pub(crate) enum Event {
    /// The command has ended, or cannot be waited for.
    Ended(io::Result<ExitStatus>),
    /// This process got a signal of this number.
    Signal(i32),
}

/// Has the signals sent as events, but for those that this process was started to ignore, as by `nohup`.
///
/// # Errors
/// If the handlers cannot be installed.
pub(crate) fn events() -> Result<(Sender<Event>, Receiver<Event>), Failure> {
    let (sender, events) = mpsc::channel();
    let heard: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let cannot = |error: io::Error| Failure::Run(format!("cannot handle signals: {error}"));
    let mut signals = Signals::new(heard).map_err(cannot)?;
    let own = sender.clone();
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || signals.forever().all(|signal| own.send(Event::Signal(signal)).is_ok()))
        .map_err(cannot)?;
    Ok((sender, events))
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes are a valid `sigaction`, of integers and pointers that may be null.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the call changes nothing and writes to `action`, which is there until it has returned.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
