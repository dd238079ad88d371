//! From the start of the program to its end.
//!
//! # Role
//! One thread that sleeps most of the time. It wakes for a signal, a call from
//! a process, and the coarse clock, which it keeps for the ledgers; every
//! second tick it looks at what the threads wait for. Naming and printing are
//! for the reporter, so that the clock does not stand still for it.

use super::accountant::Accountant;
use super::across::CrossCycles;
use super::attached::AttachedRun;
use super::belongs::belongs;
use super::checks::{Checks, Due};
use super::glance::Sight;
use super::hang::hanging::Hanging;
use super::left_behind;
use super::load::MachineLoad;
use super::metrics::Metrics;
use super::options::SupervisorOptions;
use super::outcome::{RunOutcome, children_cpu, lost};
use super::pace::{self, ClockPace};
use super::processes::{Observed, inside};
use super::record::Recorder;
use super::reporter::{ReportJob, Reporter, ReporterTask};
use super::signals::{self, CommandSignals, ProgramEnd, Signal, asks_to_end};
use super::sources::EventSources;
use super::syscalls::Syscalls;
use super::watch::{ProcessWatch, RoundNews};
use crate::check::Judge;
use crate::clock::{self, now};
use lockstead_inspect::ledger::passing::SocketPeer;
use lockstead_inspect::ledger::{CallerRequest, Listener};
use lockstead_inspect::report::Glimpse;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks at the waits, a little less than two settings of the clock while
/// something runs.
const LOOK: Duration = Duration::from_millis(7);
/// The time between two looks for processes that have ended.
const ENDS: Duration = Duration::from_millis(100);

struct Supervisor<'a> {
    child: libc::pid_t,
    options: &'a SupervisorOptions,
    listener: Listener,
    syscalls: Option<Syscalls>,
    attached: Option<AttachedRun>,
    live: Vec<(Arc<Observed>, ProcessWatch)>,
    /// The latest that have ended since the queue of calls was last empty: a child of
    /// theirs may have called before.
    departed: VecDeque<Arc<Observed>>,
    accountant: Accountant,
    reporter: Reporter,
    cycles: CrossCycles,
    checks: Option<Checks>,
    recorder: Option<Recorder>,
    metrics: Option<Metrics>,
    /// The reasons why processes are not watched: the first process of each, and how many more.
    losses: BTreeMap<String, (String, u64)>,
    recurrences: u64,
    end: Option<ProgramEnd>,
    interrupted: bool,
    /// The program was asked to end.
    asked: bool,
    pace: ClockPace,
    glimpses: Vec<Glimpse>,
    hanging: Option<Hanging>,
    look: Instant,
    ends: Instant,
}

/// Watches the program `child` to its end.
pub(super) fn supervise(
    child: libc::pid_t,
    options: &SupervisorOptions,
    EventSources { listener, signals, syscalls, attached, metrics }: EventSources,
    (judge, copy): (Judge, Option<File>),
    recorder: Option<Recorder>,
) -> RunOutcome {
    let started = Instant::now();
    let load = MachineLoad::begin();
    let accountant = Accountant::start(options.report, options.order, options.semaphores);
    let checks = options.check.then(|| Checks::start(accountant.sender()));
    let program = child.unsigned_abs();
    let task = ReporterTask { on_deadlock: options.on_deadlock, program, start: now() };
    let mut supervisor = Supervisor {
        child,
        options,
        listener,
        syscalls,
        attached,
        live: Vec::new(),
        departed: VecDeque::new(),
        accountant,
        reporter: Reporter::new(task, judge, copy),
        cycles: CrossCycles::new(started),
        checks,
        recorder,
        metrics,
        losses: BTreeMap::new(),
        recurrences: 0,
        end: None,
        interrupted: false,
        asked: false,
        pace: ClockPace::new(started),
        glimpses: Vec::new(),
        hanging: options.hang.clone().map(|hang| Hanging::new(hang, child.unsigned_abs(), started)),
        look: started,
        ends: started + ENDS,
    };
    if let Some(process) = supervisor.attached.as_mut().and_then(AttachedRun::first) {
        // Nobody has told of the waits that have begun before.
        supervisor.adopt(process.clone());
        supervisor.reporter.report(ReportJob::Seen { process, sight: Sight::Earlier });
    }
    pace::wake_soon();
    let end = loop {
        let (signalled, called) = supervisor.sleep(&signals);
        while signalled && let Some(signal) = signals.next() {
            supervisor.signal(&signal);
        }
        if called {
            supervisor.calls();
        }
        supervisor.tick();
        if let Some(attached) = &mut supervisor.attached
            && attached.is_over(supervisor.live.is_empty())
        {
            break ProgramEnd::Left;
        }
        if let Some(end) = supervisor.end
            && (!options.wait_all || supervisor.interrupted || !supervisor.goes_on())
        {
            break end;
        }
    };
    // Who called before the end is in the queue still.
    supervisor.calls();
    supervisor.syscalls.take().into_iter().for_each(Syscalls::finish);
    for (process, watch) in std::mem::take(&mut supervisor.live) {
        if process.has_ended() {
            inside(&process.ended).get_or_insert_with(now);
        } else {
            process.read_maps();
        }
        supervisor.settle(process, &watch);
    }
    let took = started.elapsed();
    // Of a process that is no child nobody knows the processor time to subtract.
    let others_ns = if supervisor.attached.is_some() { None } else { load.others(took) };
    let left = supervisor.attached.take().map(AttachedRun::leave);
    // From here on signals end the command as they would any other: what it
    // writes to may be full, and nobody reads.
    drop(signals);
    let checked = supervisor.checks.take().map(|checks| {
        let (due, checked) = checks.finish();
        supervisor.report(due);
        checked
    });
    supervisor.metrics.into_iter().for_each(Metrics::finish);
    let reports = supervisor.reporter.finish();
    let hung = supervisor.hanging.is_some_and(|hanging| hanging.ended_program(end));
    RunOutcome {
        end,
        accounts: supervisor.accountant.finish(),
        reports,
        losses: supervisor.losses.into_iter().map(lost).collect(),
        recurrences: supervisor.recurrences,
        took,
        cpu_ns: children_cpu(),
        others_ns,
        checked,
        glimpses: supervisor.glimpses,
        hung,
        left,
        recording: supervisor.recorder.map(Recorder::finish),
    }
}

impl Supervisor<'_> {
    /// Sleeps until a signal or a call, and says which, or until the clock is due. It is never due
    /// if there is no process to keep it for.
    fn sleep(&mut self, signals: &CommandSignals) -> (bool, bool) {
        let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut wake: Vec<_> =
            self.listener.descriptors().map(|open| wanted(open.as_raw_fd())).collect();
        wake.extend(self.syscalls.iter().map(|syscalls| wanted(syscalls.descriptor())));
        wake.push(wanted(signals.descriptor()));
        let now = Instant::now();
        let due = match (self.live.is_empty(), self.end) {
            (true, None) => None,
            // A process that was left behind may have nothing to say, nor a ledger for the clock.
            (true, Some(_)) => Some(now + ENDS),
            (false, _) => Some(self.pace.next()),
        };
        let hang = self.hanging.as_ref().map(Hanging::next);
        let left = due.into_iter().chain(hang).min().map(|due| due.saturating_duration_since(now));
        let timeout = left.map(|left| libc::timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        self.pace.looks.used_before_sleep = clock::used();
        // SAFETY: the entries are borrowed exclusively, the timeout is null or
        // lives in this frame, no mask is given.
        unsafe {
            libc::ppoll(wake.as_mut_ptr(), wake.len() as libc::nfds_t, timeout, std::ptr::null())
        };
        let ready = |entry: &libc::pollfd| entry.revents != 0;
        let (signals, callers) = wake.split_last().expect("the signals are there");
        (ready(signals), callers.iter().any(ready))
    }

    /// Returns whether a process of the run lives that the program, which has ended, has left
    /// behind: one that is watched, or has not called yet, or never will.
    fn goes_on(&self) -> bool {
        !self.live.is_empty() || left_behind::any(self.listener.token())
    }

    fn signal(&mut self, signal: &Signal) {
        if let Some(attached) = &mut self.attached {
            return attached.signal(signal.number);
        }
        if signal.number == libc::SIGCHLD {
            return self.reap();
        }
        if asks_to_end(signal.number) {
            self.asked = true;
            let live = self.live.iter().map(|(process, _)| process.pid);
            let is_sent = signal.sender.is_some();
            self.hanging.iter_mut().for_each(|hanging| hanging.asked_to_end(is_sent, live.clone()));
        }
        let Some(sender) = signal.sender else { return };
        if self.end.is_some() {
            // Only those that outlive the program are waited for now.
            self.interrupted |= asks_to_end(signal.number);
            return;
        }
        let of_run = sender == self.child
            || self.live.iter().any(|(process, _)| process.pid == sender.unsigned_abs());
        if !of_run {
            signal.pass_on(self.child);
        }
    }

    fn reap(&mut self) {
        // As long as nobody has waited for it, the kernel knows what it has used.
        let program = self.live.iter().find(|(live, _)| live.pid == self.child.unsigned_abs());
        program.map(|(program, _)| program.processor_time());
        loop {
            let mut status = 0;
            // SAFETY: asks about the one child, into a number of this frame.
            let reaped =
                unsafe { libc::waitpid(self.child, &mut status, libc::WNOHANG | libc::WUNTRACED) };
            if reaped != self.child {
                return;
            }
            if libc::WIFSTOPPED(status) {
                signals::stop_along(libc::WSTOPSIG(status));
                continue;
            }
            self.end = Some(if libc::WIFSIGNALED(status) {
                ProgramEnd::Killed(libc::WTERMSIG(status))
            } else {
                ProgramEnd::Exited(libc::WEXITSTATUS(status))
            });
            return;
        }
    }

    fn calls(&mut self) {
        // Who has ended makes room.
        self.look_for_ends(now());
        for new in self.syscalls.as_ref().map(Syscalls::take_new).unwrap_or_default() {
            let peer = SocketPeer { pid: new.hello.pid, user: new.user };
            if let Ok(process) = Observed::new(&new.hello, new.file, peer) {
                self.adopt(Arc::new(process));
            }
        }
        for call in self.listener.calls() {
            match call {
                CallerRequest::Hello { hello, file, peer } if belongs(self.child, &peer) => {
                    match Observed::new(&hello, file, peer) {
                        Ok(mut process) => {
                            let parent = process.parent;
                            // The latest of a number first, which may have been reused.
                            let ended = self.departed.iter().rev();
                            let mut known = self.live.iter().map(|live| &live.0).chain(ended);
                            let found = known.find(|known| Some(known.pid) == parent);
                            let found = found.filter(|_| hello.forked != 0);
                            process.forked_from = found.map(Arc::downgrade).unwrap_or_default();
                            if self.options.semaphores {
                                process.keep_elder();
                            }
                            self.adopt(Arc::new(process));
                        }
                        Err(error) => {
                            let program = String::from_utf8_lossy(hello.program());
                            let who = format!("process {} ({program})", hello.pid);
                            self.lose(who, error.to_string());
                        }
                    }
                }
                // A stranger who has found the name of the socket.
                CallerRequest::Hello { .. } => {}
                CallerRequest::Lost { peer, error } if belongs(self.child, &peer) => {
                    let why = match error.kind() {
                        io::ErrorKind::TimedOut => error.to_string(),
                        _ => format!("{error}; `ulimit -n` is what lockstead may open"),
                    };
                    self.lose(format!("process {}", peer.pid), why);
                }
                CallerRequest::Without { hello, peer } if belongs(self.child, &peer) => {
                    let program = String::from_utf8_lossy(hello.program()).into_owned();
                    let error = io::Error::from_raw_os_error(hello.error.cast_signed());
                    let who = format!("process {} ({program})", hello.pid);
                    self.lose(who, format!("no ledger could be made in it: {error}"));
                }
                CallerRequest::Lost { .. } | CallerRequest::Without { .. } => {}
                CallerRequest::Question { pid, caller } => {
                    let found = self.live.iter().find(|(process, _)| process.pid == pid);
                    // SAFETY: the call takes and returns numbers only, and touches no memory of
                    // ours.
                    let me = unsafe { libc::geteuid() };
                    match found {
                        _ if caller.peer.user != me && caller.peer.user != 0 => {
                            caller.refuse("the `lockstead run` that watches it is another user's");
                        }
                        Some((process, _)) => caller.give(process.ledger.file()),
                        None => caller.refuse(
                            "the `lockstead run` above it does not watch this process (it has \
                             just started, or was started with --no-follow)",
                        ),
                    }
                }
            }
        }
        self.departed.clear();
    }

    /// Notes that a process is not watched, and why.
    fn lose(&mut self, who: String, why: String) {
        self.losses.entry(why).and_modify(|(_, more)| *more += 1).or_insert((who, 0));
    }

    /// Settles the account of a process of which nothing more is to be seen.
    fn settle(&mut self, process: Arc<Observed>, watch: &ProcessWatch) {
        self.recurrences += watch.detector.recurrences();
        let is_own = process.pid == self.child.unsigned_abs();
        // Who was asked to end may have done so by itself, but not because it was done.
        let by_itself = !self.asked
            && match self.end {
                Some(end) if is_own => matches!(end, ProgramEnd::Exited(_)),
                // How the others end, their parents know.
                _ => process.has_ended(),
            };
        self.glimpses.extend(watch.glances.glimpses(&process, by_itself));
        if let Some(end) = self.end
            && is_own
        {
            inside(&process.exit).get_or_insert_with(|| end.words());
        }
        self.recorder.iter().for_each(|recorder| recorder.end(&process));
        self.metrics.iter().for_each(|metrics| metrics.end(&process));
        match &self.checks {
            // It goes on when its ledger has been read to the end.
            Some(checks) => checks.end(process),
            None => self.accountant.settle(process),
        }
    }

    fn report(&mut self, due: Vec<Due>) {
        for (process, facts) in due {
            self.reporter.report(ReportJob::Check { process, facts });
        }
    }

    fn adopt(&mut self, process: Arc<Observed>) {
        process.ledger.set_clock(now());
        if let Some(checks) = &self.checks {
            checks.begin(process.clone());
        }
        self.recorder.iter().for_each(|recorder| recorder.begin(&process));
        self.metrics.iter().for_each(|metrics| metrics.begin(&process));
        let mut newest = (process, ProcessWatch::new(self.options.watch, Instant::now()));
        // The same process again: it has called exec, and its old image is gone.
        // Its calls may have come by different sockets, the later one first.
        if let Some(at) = self.live.iter().position(|(old, _)| old.pid == newest.0.pid) {
            let mut older = self.live.swap_remove(at);
            if older.0.began() > newest.0.began() {
                std::mem::swap(&mut older, &mut newest);
            }
            let (old, watch) = older;
            newest.0.follows(&old);
            inside(&old.ended).get_or_insert_with(now);
            inside(&old.exit).get_or_insert_with(|| "replaced by exec".into());
            self.settle(old, &watch);
        }
        self.pace.stir(Instant::now());
        self.live.push(newest);
    }

    /// Does what is due by now.
    fn tick(&mut self) {
        let now = Instant::now();
        self.look_for_hang(now);
        if now < self.pace.next() || self.live.is_empty() {
            return;
        }
        let time = self::now();
        for (process, _) in &self.live {
            process.ledger.set_clock(time);
        }
        self.pace.step(now, self.live.iter().map(|(process, _)| process));
        if now >= self.look {
            self.look = now + LOOK;
            self.look_at_waits(time);
        }
        if now >= self.ends {
            self.ends = now + ENDS;
            self.look_for_ends(time);
        }
    }

    fn look_for_hang(&mut self, now: Instant) {
        let Some(hanging) = &mut self.hanging else { return };
        let live = self.live.iter().map(|(process, _)| process.pid);
        let Some((hang, task)) = hanging.step(now, live) else { return };
        let watched = self.live.iter().map(|(process, _)| process.clone()).collect();
        self.reporter.report(ReportJob::Hang { hang, task, watched });
    }

    fn look_at_waits(&mut self, time: u64) {
        let mut news = Vec::new();
        let mut stirring = false;
        for members in self.cycles.look(&self.live, Instant::now()) {
            self.reporter.report(ReportJob::CycleAcross { members });
        }
        let reports = self.options.watch.is_some();
        let all = self.live.iter().filter(|_| reports).map(|(process, _)| process.clone());
        let all: Vec<_> = all.collect();
        // One that waits for a peer, or for a time, may then wake the others.
        let all_stand = self.live.iter().all(|(_, watch)| watch.glances.stands());
        let quiet = self.pace.quiet().filter(|_| all_stand);
        self.pace.looks.begin(time);
        for (process, watch) in &mut self.live {
            stirring |= watch.round(process, time, quiet, &mut self.pace.looks, &mut news);
            for news in news.drain(..) {
                let process = process.clone();
                self.reporter.report(match news {
                    RoundNews::Cycle(found) => ReportJob::Cycle { process, found },
                    RoundNews::Blocked(waiter) if self.cycles.is_dead(&process, &waiter) => {
                        continue;
                    }
                    RoundNews::Blocked(waiter) => {
                        ReportJob::Blocked { process, waiter, at: time, all: all.clone() }
                    }
                    RoundNews::Seen(Sight::Standstill { .. }) if self.cycles.has_dead(&process) => {
                        continue;
                    }
                    RoundNews::Seen(sight) => ReportJob::Seen { process, sight },
                });
            }
        }
        self.pace.looks.end();
        if let Some(checks) = &mut self.checks {
            let due = checks.due(&self.live);
            stirring |= checks.has_held();
            self.report(due);
        }
        if stirring {
            self.pace.stir(Instant::now());
        }
    }

    fn look_for_ends(&mut self, time: u64) {
        /// Each takes descriptors and address space.
        const MOST: usize = 16;
        let (child, end) = (self.child.unsigned_abs(), self.end);
        let gone = |process: &Observed| {
            // The program's own end is known when it is reaped.
            process.has_ended() && (process.pid != child || end.is_some())
        };
        for (process, watch) in self.live.extract_if(.., |live| gone(&live.0)).collect::<Vec<_>>() {
            inside(&process.ended).get_or_insert(time);
            if self.options.semaphores {
                self.departed.push_back(process.clone());
                if self.departed.len() > MOST {
                    self.departed.pop_front();
                }
            }
            self.settle(process, &watch);
        }
    }
}
