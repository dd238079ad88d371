//! `--metrics`: the figures of locks in Prometheus' text format, while the program runs.
//!
//! # Role
//! One thread, which gives way to the program: it reads the ledgers, names the worst locks, and
//! replaces the file or answers who asks.
//!
//! # Cost
//! A look takes as long as the program has locks that were used. It is taken each [`PERIOD`] for a
//! file; for an address when somebody asks, and never more often than once in [`REST`], however many
//! ask. After a look that took long the next one comes the later, so that all looks together take a
//! tenth of the time at most ([`rest_after`]).

mod counted;
mod counters;
mod flags;
mod http;
mod text;

pub(crate) use flags::{MetricsFlags, MetricsPlace};

use super::processes::Observed;
use counted::CountedProcess;
use lockstead_render::failure::Failure;
use lockstead_render::{files, output};
use std::collections::HashSet;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two files.
const PERIOD: Duration = Duration::from_secs(2);
/// The time for which an answer serves others who ask.
const REST: Duration = Duration::from_secs(1);
/// The longest time until the end of a process is heard of where nobody asks.
const STEP: Duration = Duration::from_millis(200);
/// The most processes that have ended whose figures are still shown.
const ENDED: usize = 64;
/// The number that is added to the niceness.
const GIVE_WAY: libc::c_int = 10;

/// Where the figures are to go, before the program runs.
pub(super) struct PreparedMetrics {
    to: Outlet,
    top: usize,
}

enum Outlet {
    File(PathBuf),
    Socket(TcpListener),
}

/// What the supervisor tells.
enum Told {
    Began(Arc<Observed>),
    Ended(Arc<Observed>),
}

/// The thread that shows the figures.
pub(super) struct Metrics {
    to: Sender<Told>,
    thread: JoinHandle<()>,
}

/// Opens the place for the figures, if there is to be one, and says which address it is.
///
/// # Errors
/// The file cannot be written, or the address is taken.
pub(super) fn prepare(flags: &MetricsFlags) -> Result<Option<PreparedMetrics>, Failure> {
    let to = match &flags.place {
        None => return Ok(None),
        Some(MetricsPlace::File(file)) => {
            files::can_write(file)
                .map_err(|why| Failure::option("--metrics", file.display(), why))?;
            Outlet::File(file.clone())
        }
        Some(MetricsPlace::Address(address)) => {
            let opened = TcpListener::bind(address).and_then(|socket| {
                socket.set_nonblocking(true)?;
                Ok((socket.local_addr()?, socket))
            });
            let (address, socket) = opened.map_err(|error| {
                let why = format!("{error}; name another port, or 0 for any that is free");
                Failure::option("--metrics", address, why)
            })?;
            output::note(format_args!("lockstead: metrics at http://{address}/metrics"));
            Outlet::Socket(socket)
        }
    };
    Ok(Some(PreparedMetrics { to, top: flags.locks as usize }))
}

impl Metrics {
    /// Starts the thread.
    pub(super) fn start(prepared: PreparedMetrics) -> Metrics {
        let (to, told) = mpsc::channel();
        let thread = thread::spawn(move || work(&told, prepared));
        Metrics { to, thread }
    }

    /// Shows a process from now on.
    pub(super) fn begin(&self, process: &Arc<Observed>) {
        // The thread ends only after the sender.
        let _ = self.to.send(Told::Began(process.clone()));
    }

    /// Reads the rest of a process of which nothing more is to be seen.
    pub(super) fn end(&self, process: &Arc<Observed>) {
        let _ = self.to.send(Told::Ended(process.clone()));
    }

    /// Waits until the last figures are written.
    pub(super) fn finish(self) {
        drop(self.to);
        let _ = self.thread.join();
    }
}

/// All processes that are shown.
struct Shown {
    processes: Vec<CountedProcess>,
    top: usize,
    dropped: u64,
    /// The last page, and when it was made.
    page: Option<(Instant, String)>,
    /// How long the last look took.
    took: Duration,
}

impl Shown {
    fn hear(&mut self, told: Told) {
        match told {
            Told::Began(process) => self.processes.push(CountedProcess::new(process)),
            Told::Ended(process) => {
                let found = self.processes.iter_mut().find(|counted| counted.is_of(&process));
                found.into_iter().for_each(|counted| counted.finish(self.top));
                self.dropped += forget_ended(&mut self.processes, CountedProcess::has_ended);
            }
        }
    }

    /// Returns the page, made anew unless the last one is fresh.
    fn page(&mut self) -> String {
        if let Some((at, page)) = &self.page
            && at.elapsed() < rest_after(self.took, REST)
        {
            return page.clone();
        }
        self.fresh()
    }

    fn fresh(&mut self) -> String {
        let (top, began) = (self.top, Instant::now());
        self.processes.iter_mut().for_each(|process| process.look(top));
        self.dropped += forget_succeeded(&mut self.processes, |process| process.pid);
        let all: Vec<&CountedProcess> = self.processes.iter().collect();
        let page = text::render(&all, self.dropped);
        self.page = Some((Instant::now(), page.clone()));
        self.took = began.elapsed();
        page
    }
}

/// Returns the time between a look that took so long and the next one, `least` at least.
fn rest_after(took: Duration, least: Duration) -> Duration {
    least.max(took.saturating_mul(9))
}

/// Takes the first of the processes away that have ended, if these are more than [`ENDED`]. Returns
/// how many were taken away.
fn forget_ended<P>(processes: &mut Vec<P>, has_ended: impl Fn(&P) -> bool) -> u64 {
    let ended = processes.iter().filter(|process| has_ended(process)).count();
    let first = processes.iter().position(has_ended);
    first.filter(|_| ended > ENDED).map(|first| processes.remove(first)).map_or(0, |_| 1)
}

/// Takes the processes away that have a successor of the same number, as each has that has become
/// another program. Returns how many were taken away.
fn forget_succeeded<P>(processes: &mut Vec<P>, pid: impl Fn(&P) -> u32) -> u64 {
    let before = processes.len();
    let mut later = HashSet::new();
    let mut place = before;
    while let Some(last) = place.checked_sub(1) {
        place = last;
        if !later.insert(pid(&processes[place])) {
            processes.remove(place);
        }
    }
    (before - processes.len()) as u64
}

fn work(told: &Receiver<Told>, PreparedMetrics { to, top }: PreparedMetrics) {
    // SAFETY: takes numbers; on Linux it is this thread's priority, and the worst that can happen is
    // that it stays as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(0, 0) + GIVE_WAY) };
    let mut shown =
        Shown { processes: Vec::new(), top, dropped: 0, page: None, took: Duration::ZERO };
    match to {
        Outlet::File(file) => to_file(told, &mut shown, &file),
        Outlet::Socket(socket) => to_socket(told, &mut shown, &socket),
    }
}

fn to_file(told: &Receiver<Told>, shown: &mut Shown, file: &std::path::Path) {
    let mut failed = false;
    let mut next = Instant::now() + PERIOD;
    loop {
        let heard = told.recv_timeout(next.saturating_duration_since(Instant::now()));
        let is_over = match heard {
            Ok(told) => {
                shown.hear(told);
                if Instant::now() < next {
                    continue;
                }
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if let Err(error) = files::write(file, &shown.fresh())
            && !std::mem::replace(&mut failed, true)
        {
            let file = file.display();
            output::note(format_args!("lockstead: cannot write metrics to {file}: {error}"));
        }
        if is_over {
            return;
        }
        next = Instant::now() + rest_after(shown.took, PERIOD);
    }
}

fn to_socket(told: &Receiver<Told>, shown: &mut Shown, socket: &TcpListener) {
    loop {
        let mut wanted = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the kernel reads and writes one entry, which this frame borrows exclusively.
        unsafe { libc::poll(&mut wanted, 1, STEP.as_millis() as libc::c_int) };
        loop {
            match told.try_recv() {
                Ok(told) => shown.hear(told),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        if let Ok((client, _)) = socket.accept()
            && client.set_nonblocking(false).is_ok()
        {
            http::answer(client, || shown.page());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_processes_that_have_ended_the_last_ones_are_kept() {
        let mut processes: Vec<(u32, bool)> = vec![(1, false), (2, true)];
        for pid in 3..=65 {
            processes.push((pid, true));
            assert_eq!(forget_ended(&mut processes, |process| process.1), 0, "{pid}");
        }
        processes.extend([(66, false), (67, true)]);
        assert_eq!(forget_ended(&mut processes, |process| process.1), 1);
        let kept: Vec<u32> = processes.iter().map(|process| process.0).collect();
        assert_eq!(
            kept,
            [1].into_iter().chain(3..=67).collect::<Vec<_>>(),
            "none that runs is gone"
        );
        assert_eq!(forget_ended(&mut processes, |process| process.1), 0, "{ENDED} are left");
    }

    #[test]
    fn of_processes_with_one_number_the_last_one_is_kept() {
        let mut processes = vec![(7, 'a'), (8, 'b'), (7, 'c'), (9, 'd'), (7, 'e')];
        assert_eq!(forget_succeeded(&mut processes, |process| process.0), 2);
        assert_eq!(processes, [(8, 'b'), (9, 'd'), (7, 'e')]);
    }

    #[test]
    fn looks_take_a_tenth_of_the_time_at_most() {
        assert_eq!(rest_after(Duration::from_millis(20), REST), REST);
        assert_eq!(rest_after(Duration::from_secs(2), REST), Duration::from_secs(18));
    }
}
