//! Waits that no ledger has, and processes in which all threads wait.
//!
//! # Role
//! The ledger knows the waits of the functions that are interposed. A thread that sleeps
//! for the lock of a file, for a semaphore of System V, for a stream of stdio, or on a
//! futex word of another library, is in the kernel alone; so now and then the kernel is
//! asked in which call each thread sleeps. A thread that is in the same call with the same
//! arguments and the same stack as before counts as one that has been in it since.
//!
//! # Cost
//! A small file a thread, once a second while the process uses no processor time, and
//! every few seconds while it does; of many threads a portion at a time.

use super::processes::Observed;
use lockstead_inspect::memory::ProcessMemory;
use lockstead_inspect::proc::asleep::{self, SleepSurroundings};
use lockstead_inspect::proc::calls;
use lockstead_inspect::proc::futex::FutexWait;
use lockstead_inspect::proc::task::{self, SleepingCall, TaskDoing, TaskMoment};
use lockstead_inspect::report::Glimpse;
use lockstead_inspect::waits::standstill::{self, Enders};
use lockstead_ledger::publish::WaitKind;
use lockstead_ledger::thread::state;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The longest time between two looks at a process that uses no processor time.
const LONGEST: Duration = Duration::from_secs(1);
/// The shortest time between two looks at such a process.
const SHORTEST: Duration = Duration::from_millis(50);
/// How many times as long a process that uses processor time goes without a look.
const BUSY: u32 = 4;
/// How long all threads have waited before it is said: a cycle through semaphores is reported as
/// such when it is a second old.
const STANDS: Duration = Duration::from_millis(1500);
/// The number of threads that are read at a time: it takes some two milliseconds.
const PORTION: usize = 128;
/// Looks within the limit of `--watch`.
const LOOKS: u32 = 8;

/// What a look found.
pub(super) enum Sight {
    /// The command has just attached: threads may be in waits that began before.
    Earlier,
    /// Waits last that the ledger knows, and whose holders only memory can tell.
    Lasting,
    /// A thread has waited for longer than the limit, and the ledger does not know it.
    Unrecorded {
        /// The kernel's number of the thread that waits.
        tid: u32,
        /// It has waited since then, or longer.
        since: Instant,
    },
    /// Threads have slept for a while on futex words, of which the ledger has no owners.
    Futexes,
    /// All threads wait, none with a deadline.
    Standstill {
        /// The ways in which the wait can still end.
        enders: Enders,
        /// They have waited since then, or longer.
        since: Instant,
    },
}

/// What was seen of one thread: the call that it is in, and since when.
struct SeenThread {
    call: SleepingCall,
    since: Instant,
    /// How long it will have lasted when it is next reported.
    next: Option<Duration>,
    /// What to say of it, looked up once it has lasted.
    told: Option<ToldWait>,
}

/// What to say of a wait at the end.
enum ToldWait {
    /// Nothing was said: the report has it from the ledger.
    Nothing,
    /// It is for something that happens, which is how threads rest.
    Event(String),
    /// It is for what others hold.
    Lock(String),
}

/// A look that has begun: of many threads it takes in portions, for whoever looks keeps the
/// coarse clock as well.
struct GlanceReading {
    /// The threads that are not read yet.
    left: Vec<u32>,
    /// The calls in which threads sleep, by the numbers of the threads that were read.
    calls: BTreeMap<u32, SleepingCall>,
    /// The number of calls that have been read.
    all: usize,
    /// The process had not used the processor since the look before.
    rests: bool,
}

impl GlanceReading {
    fn go_on(&mut self, pid: u32) {
        let rest = self.left.len().saturating_sub(PORTION);
        for tid in self.left.drain(rest..) {
            let Ok(doing) = task::doing(pid, tid) else { continue };
            if doing.has_ended() {
                continue;
            }
            self.all += 1;
            if let TaskDoing::Call(call) = doing {
                self.calls.insert(tid, call);
            }
        }
    }
}

/// What is known of one process.
pub(super) struct Glances {
    limit: Option<Duration>,
    period: Duration,
    next: Instant,
    /// Looks that were left out since it uses processor time.
    skipped: u32,
    used: u64,
    reading: Option<GlanceReading>,
    /// What was seen of each thread, by its number.
    seen: BTreeMap<u32, SeenThread>,
    /// The time since which all threads have been in the calls that they are in.
    still: Option<Instant>,
    /// The ways out that the last report of it named.
    told: Option<Enders>,
    /// Nothing but signals, processes with the same memory and the ends of children can end that.
    is_closed: bool,
    /// It was said that nothing will ever change.
    is_over: bool,
    /// The time at which it was looked at last.
    looked: Instant,
    /// The waits for what others held that have ended, with their times, by thread and words.
    past: BTreeMap<(u32, String), Duration>,
}

impl Glances {
    /// Prepares reports on waits that last for `limit`.
    pub(super) fn new(limit: Option<Duration>, now: Instant) -> Self {
        let period = limit.map_or(LONGEST, |limit| (limit / LOOKS).clamp(SHORTEST, LONGEST));
        Glances {
            limit,
            period,
            next: now + period,
            skipped: 0,
            used: 0,
            reading: None,
            seen: BTreeMap::new(),
            still: None,
            told: None,
            is_closed: false,
            is_over: false,
            looked: now,
            past: BTreeMap::new(),
        }
    }

    /// Looks, if it is time to. `quiet`: since when no process of the run has used the
    /// processor, if all of them stand still.
    pub(super) fn look(
        &mut self,
        process: &Observed,
        now: Instant,
        quiet: Option<Instant>,
    ) -> Vec<Sight> {
        let mut sights = Vec::new();
        if self.reading.is_none() && (now < self.next || !self.begins(process, now)) {
            return sights;
        }
        let Some(reading) = self.reading.as_mut() else { return sights };
        reading.go_on(process.pid);
        let Some(reading) = self.reading.take_if(|reading| reading.left.is_empty()) else {
            return sights;
        };
        let rests = reading.rests && process.processor_time() == self.used;
        let all_same = self.takes_in(reading, now) && rests;
        self.standstill(process, now, quiet, all_same, &mut sights);
        self.unrecorded(process, now, &mut sights);
        sights
    }

    /// Begins to look, unless the process uses processor time and was looked at lately.
    fn begins(&mut self, process: &Observed, now: Instant) -> bool {
        self.next = now + self.period;
        let used = process.processor_time();
        let rests = used == self.used;
        self.used = used;
        self.skipped += 1;
        if !process.visible || !rests && self.skipped < BUSY {
            self.still = None;
            return false;
        }
        self.skipped = 0;
        let left = task::numbers(process.pid).unwrap_or_default();
        self.reading = Some(GlanceReading { left, calls: BTreeMap::new(), all: 0, rests });
        true
    }

    /// Compares what was read with what was seen before. Says whether all sleep as they did.
    fn takes_in(&mut self, reading: GlanceReading, now: Instant) -> bool {
        let mut before = std::mem::take(&mut self.seen);
        let mut same = 0;
        for (tid, call) in reading.calls {
            let known = before.get(&tid).is_some_and(|seen| seen.call == call);
            same += usize::from(known);
            let new = || SeenThread { call, since: now, next: self.limit, told: None };
            let known = if known { before.remove(&tid) } else { None };
            self.seen.insert(tid, known.unwrap_or_else(new));
        }
        let ended_any = !before.is_empty();
        for (tid, seen) in before {
            if let Some(ToldWait::Lock(what)) = seen.told {
                *self.past.entry((tid, what)).or_default() += self.looked - seen.since;
            }
        }
        self.looked = now;
        reading.all != 0 && reading.all == same && !ended_any
    }

    /// Finds the waits that the ledger does not have, for what others hold.
    fn unrecorded(&mut self, process: &Observed, now: Instant, sights: &mut Vec<Sight>) {
        let recorded = recorded(process);
        let memory = ProcessMemory::new(process.pid);
        let around = SleepSurroundings::default();
        let mut left = PORTION;
        for (&tid, seen) in &mut self.seen {
            let is_futex = FutexWait::decode(&seen.call).is_some();
            match recorded.get(&tid) {
                // Joins are in no table of the report.
                Some(&WaitKind::JOIN) => {
                    seen.told = Some(ToldWait::Event("for the end of a thread".into()))
                }
                Some(_) => seen.told = Some(ToldWait::Nothing),
                None => {}
            }
            // Of a wait on a futex word the ledger does not know who could end it.
            if recorded.get(&tid).is_some_and(|&kind| kind != WaitKind::FUTEX) {
                continue;
            }
            if !matches!(seen.told, Some(ToldWait::Lock(_)))
                && let Some((lock, since)) = process.earlier.lock(tid, &seen.call)
            {
                seen.since = since;
                seen.told = Some(ToldWait::Lock(format!(
                    "for {lock}; it began before the command came, and is in no figure here"
                )));
            }
            let lasted = now - seen.since;
            if lasted >= self.period && seen.told.is_none() && left != 0 {
                // The others at the next look.
                left -= 1;
                seen.told = Some(told(process.pid, tid, &seen.call, &memory, &around));
            }
            let may_be_held = !self.is_over && (is_futex || asleep::is_for_lock(&seen.call));
            if may_be_held && seen.next.is_some_and(|next| lasted >= next) {
                seen.next = Some(lasted * 2);
                sights.push(Sight::Unrecorded { tid, since: seen.since });
            }
        }
    }

    /// Returns whether all threads wait for what nobody outside the run is known to be there for.
    pub(super) fn stands(&self) -> bool {
        self.is_closed && self.still.is_some_and(|since| self.looked - since >= STANDS)
    }

    fn standstill(
        &mut self,
        process: &Observed,
        now: Instant,
        quiet: Option<Instant>,
        all_same: bool,
        sights: &mut Vec<Sight>,
    ) {
        if !all_same {
            (self.still, self.told) = (None, None);
            (self.is_closed, self.is_over) = (false, false);
            return;
        }
        // The look before this one found them in these calls already.
        let since = *self.still.get_or_insert(now - self.period);
        let lasted = |since: Instant| self.limit.is_some_and(|limit| now - since >= limit);
        let may_ask_others = lasted(since) && quiet.is_some_and(lasted);
        let done = match self.told {
            Some(Enders::Nobody | Enders::Child) => true,
            Some(Enders::Others) => !may_ask_others,
            None => now - since < STANDS,
        };
        if done {
            return;
        }
        let Some(&tid) = self.seen.keys().next() else { return };
        let calls: Vec<SleepingCall> = self.seen.values().map(|seen| seen.call).collect();
        let enders = standstill::enders(process.pid, tid, &calls);
        self.is_closed = enders.is_some();
        match enders {
            Some(Enders::Others) if !may_ask_others => self.told = Some(Enders::Others),
            Some(enders @ (Enders::Nobody | Enders::Others)) => {
                self.told = Some(Enders::Nobody);
                self.is_over = enders == Enders::Nobody;
                sights.push(Sight::Standstill { enders, since });
            }
            // Asked again only when something has changed.
            Some(Enders::Child) | None => self.told = Some(Enders::Nobody),
        }
    }

    /// Returns the waits that only the kernel told of: those for what others held, and, of a
    /// process that did not end by itself, those for events in which it was when it was last looked
    /// at.
    pub(super) fn glimpses(&self, process: &Observed, by_itself: bool) -> Vec<Glimpse> {
        let glimpse = |tid, what: &str, waited: Duration, ended| Glimpse {
            pid: process.pid,
            program: process.name(),
            tid,
            what: what.to_owned(),
            waited_ns: u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX),
            ended,
        };
        let past = self.past.iter();
        let past = past.map(|((tid, what), &waited)| glimpse(*tid, what, waited, true));
        let last = self.seen.iter().filter_map(|(&tid, seen)| {
            let what = match seen.told.as_ref()? {
                ToldWait::Lock(what) => what,
                ToldWait::Event(what) if !by_itself => what,
                ToldWait::Event(_) | ToldWait::Nothing => return None,
            };
            Some(glimpse(tid, what, self.looked - seen.since, by_itself))
        });
        past.chain(last).collect()
    }
}

/// Returns the threads whose waits the ledger has, and what kind these are.
fn recorded(process: &Observed) -> HashMap<u32, WaitKind> {
    let ledger = process.ledger.view();
    let living = ledger.threads().filter(|thread| thread.record.state.load(Relaxed) == state::LIVE);
    let waiting = living.filter_map(|thread| {
        let (_, waiting) = thread.record.wait.read()?;
        Some((thread.record.tid.load(Relaxed), waiting.how.kind()))
    });
    waiting.collect()
}

/// Returns what to say at the end of a wait in this call.
fn told(
    pid: u32,
    tid: u32,
    call: &SleepingCall,
    memory: &ProcessMemory,
    around: &SleepSurroundings,
) -> ToldWait {
    if TaskMoment::read(pid, tid, false).is_ok_and(|task| matches!(task.state, 'T' | 't')) {
        return ToldWait::Event("to go on: it was stopped by a signal or a debugger".into());
    }
    if let Some(wait) = FutexWait::decode(call) {
        let word = wait.address;
        return ToldWait::Event(format!(
            "at the futex word {word:#x}, of no lock that is recorded"
        ));
    }
    let on = asleep::asleep(pid, call, memory, around);
    let by = crate::dump::enders(&on, pid).join(", ");
    let by = if by.is_empty() { String::new() } else { format!(" ({by})") };
    let name = calls::name(call.number).map_or_else(|| call.number.to_string(), str::to_owned);
    let what = on.what.as_ref().map(|what| format!(", for {what}")).unwrap_or_default();
    let text = format!("in {name}(){what}{by}");
    if on.is_lock() { ToldWait::Lock(text) } else { ToldWait::Event(text) }
}
