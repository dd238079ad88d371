//! Finds out that nothing of a run moves any more.
//!
//! # Role
//! Looks at all threads of all processes some eight times within the time that `--hang-after`
//! allows, and compares. What a thread did between two looks shows in the kernel's counters, so
//! that looking seldom misses nothing.
//!
//! # Cost
//! Three small files a thread and one a process of the machine, every few seconds; where less is allowed, or
//! there are many, as often as takes a twentieth of a processor.

use super::{HangOptions, family};
use crate::clock;
use lockstead_inspect::memory::ProcessMemory;
use lockstead_inspect::proc::asleep::{self, SleepSurroundings};
use lockstead_inspect::proc::futex::{FutexWait, WaitLimit};
use lockstead_inspect::proc::status::StatusFile;
use lockstead_inspect::proc::task::{self, SleepingCall, TaskDoing};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// Looks within the time that nothing may move.
const LOOKS: u32 = 8;
/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(20);
/// The longest time between two looks.
const LONGEST: Duration = Duration::from_secs(5);
/// The part of a processor that the looks may use.
const SHARE: u32 = 20;
/// The part of a processor that a thread may use whose wait has a deadline.
const ALLOWED: u32 = 100;
/// What it may use between two looks in any case: one waking.
const ONE_WAKING: Duration = Duration::from_millis(1);
/// A look that comes so many times too late was not due to the program.
const LATE: u32 = 4;

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Number and first argument of the system call; none outside of any, or where the kernel
    /// does not tell.
    call: Option<(i64, u64)>,
    sp: u64,
    pc: u64,
}

/// One thread at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    /// None while it runs.
    place: Option<Place>,
    /// Its wait has a deadline.
    timed: bool,
    /// How often it was taken off a processor.
    switches: Option<(u64, u64)>,
    /// How long it has run, where the kernel tells.
    ran: Option<Duration>,
}

impl Standing {
    /// Returns how it stands now, if it has moved no more since than waiting takes, or than being
    /// stopped takes where `is_visited` says that this command may have stopped it.
    fn rests(self, now: Standing, allowed: Duration, is_visited: bool) -> Option<Standing> {
        // One that runs all the time is never taken off its processor.
        let idle = now.ran == self.ran && (now.ran.is_some() || now.place.is_some());
        if idle
            && now.switches.is_some()
            && (now.switches, now.place) == (self.switches, self.place)
        {
            return Some(now);
        }
        if is_visited && now.ran.is_none() {
            // It is stopped, and goes on from where it was.
            return Some(self);
        }
        let used = now.ran?.checked_sub(self.ran?)?;
        let there = match now.place {
            // It was met on its way back.
            None => Standing { place: self.place, timed: self.timed, ..now },
            Some(_) => now,
        };
        let wakes = self.timed && there.timed || is_visited;
        let same = there.place == self.place && wakes;
        (same && used <= allowed).then_some(there)
    }
}

/// A standstill that is to be reported.
#[derive(Clone, Debug)]
pub(crate) struct Hang {
    /// The processes of the run.
    pub(crate) pids: Vec<u32>,
    /// The number of their threads.
    pub(crate) threads: usize,
    /// Nothing has moved since then, or longer.
    pub(crate) since: Instant,
}

/// Looks at a run again and again, and notices when nothing moves.
pub(crate) struct HangWatch {
    options: HangOptions,
    /// The time to the next look.
    period: Duration,
    next: Instant,
    looked: Instant,
    /// All threads at the last look, by their process and number.
    seen: BTreeMap<(u32, u32), Standing>,
    /// The time since which nothing has moved.
    still: Option<Instant>,
    /// How long nothing has to move until that is reported next.
    patience: Duration,
    /// This standstill was reported.
    reported: bool,
    /// The picture of it is being made, for which this command stops the threads for moments.
    is_visited: bool,
}

impl HangWatch {
    pub(crate) fn new(options: HangOptions, now: Instant) -> Self {
        let period = period(options.after, Duration::ZERO);
        HangWatch {
            patience: options.after,
            options,
            period,
            next: now + period,
            looked: now,
            seen: BTreeMap::new(),
            still: None,
            reported: false,
            is_visited: false,
        }
    }

    /// Notes whether the picture of a standstill is being made.
    pub(crate) fn set_visited(&mut self, is_visited: bool) {
        self.is_visited = is_visited;
    }

    pub(crate) fn options(&self) -> &HangOptions {
        &self.options
    }

    /// Returns when to look again.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Returns whether nothing had moved for the whole time at the last look.
    pub(crate) fn is_hung(&self) -> bool {
        self.still.is_some_and(|since| self.looked - since >= self.options.after)
    }

    /// Looks, if it is time to; `roots` are the processes of the run that are known. Returns a
    /// standstill once, when it has lasted. The next one has to last twice as long: a debugger that
    /// looks at the program moves it, and a server rests again and again.
    pub(crate) fn tick(&mut self, now: Instant, roots: impl Iterator<Item = u32>) -> Option<Hang> {
        if now < self.next {
            return None;
        }
        self.look(now, roots);
        let since = self.still.filter(|&since| now - since >= self.patience)?;
        if std::mem::replace(&mut self.reported, true) {
            return None;
        }
        self.patience = self.patience.saturating_mul(2);
        let pids: BTreeSet<u32> = self.seen.keys().map(|&(pid, _)| pid).collect();
        Some(Hang { pids: pids.into_iter().collect(), threads: self.seen.len(), since })
    }

    /// Looks at all threads now.
    pub(crate) fn look(&mut self, now: Instant, roots: impl Iterator<Item = u32>) {
        let used = clock::used();
        let passed = now - self.looked;
        let mut before = std::mem::take(&mut self.seen);
        self.seen = standings(&family::living(roots), &before);
        let allowed = (passed / ALLOWED).max(ONE_WAKING);
        // A look that is late does not begin a standstill, for the machine may have been asleep. One
        // that had lasted before goes on.
        let counts = passed < self.period * LATE || self.is_hung();
        let mut same = !self.seen.is_empty() && counts;
        for (key, standing) in &mut self.seen {
            let then = before.remove(key);
            let rests = then.and_then(|then| then.rests(*standing, allowed, self.is_visited));
            match rests {
                Some(rests) => *standing = rests,
                None => same = false,
            }
        }
        if same && before.is_empty() {
            self.still.get_or_insert(self.looked);
        } else {
            (self.still, self.reported) = (None, false);
        }
        self.looked = now;
        self.period = period(self.options.after, Duration::from_nanos(clock::used() - used));
        self.next = now + self.period;
    }
}

/// Returns the time from one look, which `took` so much of a processor, to the next, if nothing may move for
/// `after`. What others take of the processor meanwhile delays nothing.
fn period(after: Duration, took: Duration) -> Duration {
    (after / LOOKS).clamp(SHORTEST, LONGEST).max(took * SHARE)
}

/// Reads all threads of the processes. Whether the wait of a thread has a deadline is read once for
/// each place.
fn standings(
    pids: &BTreeSet<u32>,
    before: &BTreeMap<(u32, u32), Standing>,
) -> BTreeMap<(u32, u32), Standing> {
    let around = SleepSurroundings::default();
    let mut found = BTreeMap::new();
    for &pid in pids {
        let memory = ProcessMemory::new(pid);
        for tid in task::numbers(pid).unwrap_or_default() {
            let Some((mut standing, call)) = standing(pid, tid) else { continue };
            let known = before.get(&(pid, tid)).filter(|known| known.place == standing.place);
            standing.timed = match (known, call) {
                (Some(known), _) => known.timed,
                (None, Some(call)) => is_timed(pid, &call, &memory, &around),
                (None, None) => false,
            };
            found.insert((pid, tid), standing);
        }
    }
    found
}

/// Reads one thread. Returns `None` for one that is there no more.
fn standing(pid: u32, tid: u32) -> Option<(Standing, Option<SleepingCall>)> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let status = StatusFile::read(&format!("{folder}/status")).ok()?;
    let (place, call) = match task::doing(pid, tid).ok()? {
        TaskDoing::Running => (None, None),
        TaskDoing::Call(call) => {
            let on = Some((call.number, call.arguments[0]));
            (Some(Place { call: on, sp: call.sp, pc: call.pc }), Some(call))
        }
        TaskDoing::Stopped { sp, pc } => (Some(Place { call: None, sp, pc }), None),
        TaskDoing::Refused => (Some(Place { call: None, sp: 0, pc: 0 }), None),
    };
    // It waits for whoever stopped it.
    let stopped = status.text("State").is_none_or(|state| state.starts_with(['T', 't']));
    let ran = fs::read_to_string(format!("{folder}/schedstat")).ok();
    let ran = ran.and_then(|text| text.split_whitespace().next()?.parse().ok());
    let standing = Standing {
        place,
        timed: false,
        switches: status.switches().filter(|_| !stopped),
        ran: ran.map(Duration::from_nanos).filter(|_| !stopped),
    };
    Some((standing, call))
}

fn is_timed(
    pid: u32,
    call: &SleepingCall,
    memory: &ProcessMemory,
    around: &SleepSurroundings,
) -> bool {
    match FutexWait::decode(call) {
        Some(wait) => wait.limit != WaitLimit::None,
        None => asleep::asleep(pid, call, memory, around).timed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_take_long_are_made_seldom() {
        let [quick, slow] = [Duration::from_millis(1), Duration::from_millis(200)];
        assert_eq!(period(Duration::from_secs(60), quick), Duration::from_secs(5));
        assert_eq!(period(Duration::from_secs(1), quick), Duration::from_millis(125));
        assert_eq!(period(Duration::from_secs(1), slow), Duration::from_secs(4));
    }

    fn at(place: u64, timed: bool, switches: u64, ran_us: u64) -> Standing {
        Standing {
            place: Some(Place { call: Some((202, place)), sp: 1, pc: 2 }),
            timed,
            switches: Some((switches, 0)),
            ran: Some(Duration::from_micros(ran_us)),
        }
    }

    #[test]
    fn only_a_wait_with_a_deadline_may_wake() {
        let allowed = Duration::from_micros(500);
        let rests = |then: Standing, now: Standing| then.rests(now, allowed, false).is_some();
        assert!(rests(at(1, false, 3, 10), at(1, false, 3, 10)));
        assert!(!rests(at(1, false, 3, 10), at(1, false, 4, 11)), "it ran");
        assert!(rests(at(1, true, 3, 10), at(1, true, 9, 510)));
        assert!(!rests(at(1, true, 3, 10), at(1, true, 9, 511)), "it ran for too long");
        assert!(!rests(at(1, true, 3, 10), at(2, true, 4, 20)), "it waits for something else");
        assert!(!rests(at(1, true, 3, 10), at(1, false, 4, 20)), "its wait is another one");
    }

    #[test]
    fn who_is_stopped_by_those_that_report_it_rests() {
        let allowed = Duration::from_micros(500);
        let then = at(1, false, 3, 10);
        let visited = |now: Standing| then.rests(now, allowed, true);
        assert_eq!(visited(at(1, false, 4, 20)), Some(at(1, false, 4, 20)), "it is back");
        let stopped = Standing { switches: None, ran: None, ..at(0, false, 0, 0) };
        assert_eq!(visited(stopped), Some(then));
        assert_eq!(visited(at(2, false, 4, 20)), None, "it is elsewhere");
        assert_eq!(visited(at(1, false, 4, 511)), None, "it ran for too long");
    }

    #[test]
    fn a_thread_that_is_met_awake_keeps_its_place() {
        let allowed = Duration::from_micros(500);
        let then = at(1, true, 3, 10);
        let awake = Standing { place: None, timed: false, ..at(0, false, 4, 20) };
        let now = then.rests(awake, allowed, false).expect("it only woke");
        assert_eq!((now.place, now.timed), (then.place, true));
        assert!(now.rests(at(1, true, 5, 30), allowed, false).is_some());
        let runs = Standing { place: None, ..at(0, false, 3, 10) };
        assert_eq!(runs.rests(runs, allowed, false), Some(runs), "not on a processor since");
        let on = Standing { place: None, ..at(0, false, 3, 20) };
        assert!(runs.rests(on, allowed, false).is_none(), "it was on a processor all the time");
    }

    #[test]
    fn what_the_kernel_does_not_count_is_no_rest() {
        let then = at(1, true, 3, 10);
        let stopped = Standing { switches: None, ran: None, ..then };
        assert!(then.rests(stopped, ONE_WAKING, false).is_none());
        assert!(stopped.rests(then, ONE_WAKING, false).is_none());
    }
}
