//! SIGINT, SIGTERM, SIGHUP and SIGQUIT while `lock` waits or its command runs.
//!
//! ```text
//!   no command runs:  first signal ──▶ the main thread gives up in order, and ends with 128 + signal
//!                          └─ two seconds later, or at a second one: the process says what it leaves, and ends
//!   a command runs:   each one ──▶ its process group
//! ```

use lockstead_render::failure::Failure;
use lockstead_render::output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, mem, ptr, thread};

/// The time for an end in order: a member that answers needs a fraction of it, and whoever has sent the
/// signal waits.
const IN_ORDER: Duration = Duration::from_secs(2);

/// What happens while a command runs under the lock.
pub(crate) enum Event {
    /// The command has ended, and is not waited for yet.
    Ended,
    /// This process got a signal of this number.
    Signal(i32),
}

/// What the main thread and the one that hears signals know of each other.
struct State {
    name: String,
    /// A command runs, which gets the signals.
    runs: bool,
    /// The first signal that came, be it that a command got it as well.
    asked: Option<i32>,
    /// The time for an end in order runs.
    counts: bool,
    /// The command's status, once it has ended.
    status: Option<u8>,
    /// What becomes of the lock if the process ends now.
    leaves: String,
}

/// What has happened, and whether a signal has asked for the end.
pub(crate) struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    state: Arc<Mutex<State>>,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a signal's name.
pub(crate) fn name_of(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Returns the status of a process that a signal has ended, as a shell has it.
pub(crate) fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}

impl State {
    /// Ends the process, whatever its main thread waits for.
    fn end(&self, signal: i32) -> ! {
        let text = format!("{}: {}: {}", self.name, name_of(signal), self.leaves);
        if self.status.is_some() {
            output::note(text);
        } else {
            output::error(text);
        }
        std::process::exit(self.status.unwrap_or_else(|| status_of(signal)).into())
    }
}

/// Ends the process unless its main thread does so in time.
fn end_in_time(state: &Arc<Mutex<State>>, signal: i32) {
    if mem::replace(&mut locked(state).counts, true) {
        return;
    }
    let late = Arc::clone(state);
    let waits = thread::Builder::new().name("deadline".into()).spawn(move || {
        thread::sleep(IN_ORDER);
        locked(&late).end(signal);
    });
    // Without a thread there is no time either.
    if waits.is_err() {
        locked(state).end(signal);
    }
}

impl Events {
    /// Hears signals from now on, but for those that this process was started to ignore, as by `nohup`.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub(crate) fn start(name: &str, leaves: String) -> Result<Events, Failure> {
        let (sender, receiver) = mpsc::channel();
        let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        let heard: Vec<i32> = all.into_iter().filter(|signal| !is_ignored(*signal)).collect();
        let cannot = |error: io::Error| Failure::Run(format!("cannot handle signals: {error}"));
        let mut signals = Signals::new(heard).map_err(cannot)?;
        let name = name.to_owned();
        let state = State { name, runs: false, asked: None, counts: false, status: None, leaves };
        let state = Arc::new(Mutex::new(state));
        let (own, to) = (Arc::clone(&state), sender.clone());
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || signals.forever().for_each(|signal| hear(&own, &to, signal)))
            .map_err(cannot)?;
        Ok(Events { sender, receiver, state })
    }

    /// Says what becomes of the lock if the process ends from now on, and with which status it does if that
    /// is not the signal's.
    pub(crate) fn leaves(&self, status: Option<u8>, leaves: String) {
        let mut state = locked(&self.state);
        (state.status, state.leaves) = (status, leaves);
    }

    /// Returns the first signal that has come.
    pub(crate) fn asked(&self) -> Option<i32> {
        locked(&self.state).asked
    }

    /// Has signals sent as events, for a command that starts. False if one has come: then it does not.
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        let mut state = locked(&self.state);
        state.runs = state.asked.is_none();
        state.runs
    }

    /// Ends that: the command has ended. If it had got a signal, what is still to be done has so much time
    /// as after one that comes now.
    pub(crate) fn end(&self) {
        let mut state = locked(&self.state);
        state.runs = false;
        let asked = state.asked;
        drop(state);
        if let Some(signal) = asked {
            end_in_time(&self.state, signal);
        }
    }

    /// Returns the next event, or `None` if there is none for so long.
    pub(crate) fn next(&self, timeout: Duration) -> Option<Event> {
        self.receiver.recv_timeout(timeout).ok()
    }

    /// Returns what sends events, for whoever watches the command.
    pub(crate) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }
}

/// Does what a signal asks for.
fn hear(state: &Arc<Mutex<State>>, to: &Sender<Event>, signal: i32) {
    let mut own = locked(state);
    let before = own.asked;
    own.asked = before.or(Some(signal));
    match (own.runs, before) {
        // Sent while the state is locked: who ends the command's time finds none that is on its way.
        (true, _) => drop(to.send(Event::Signal(signal))),
        (false, Some(_)) => own.end(signal),
        (false, None) => {
            drop(own);
            end_in_time(state, signal);
        }
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes are a valid `sigaction`, of integers and pointers that may be null.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the call changes nothing and writes to `action`, which is there until it has returned.
    let asked = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}
