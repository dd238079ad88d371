//! What is shown: rows with names, made from what happened in the interval.
//! Only as many rows are named as there is room for.

use super::flags::Column;
use lockstead_inspect::report::OneLock;
use lockstead_inspect::report::live::{Lasting, Live, LiveHolder, LiveWaiter, LockRate};
use lockstead_ledger::publish::WaitKind;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Knows the names of the process.
pub(super) trait Lookup {
    /// Returns what to call a lock, by index and life of its record.
    fn lock(&mut self, index: u32, generation: Option<u32>) -> String;
    /// Returns the place where a stack with this id leads to.
    fn site(&mut self, stack: u32) -> String;
    /// Returns what to call a thread, whose name in the ledger is given.
    fn thread(&mut self, tid: u32, name: Option<&str>) -> String;
    /// Returns the frames of a stack, innermost first.
    fn stack(&mut self, stack: u32) -> Vec<String>;
    /// Returns what a lock has come to; `None` if that life of its record is over.
    fn one(&mut self, lock: ChosenLock) -> Option<OneLock>;
}

/// A lock that the user has chosen: the index of its record, and the life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChosenLock {
    pub(super) lock: u32,
    pub(super) generation: u32,
}

impl ChosenLock {
    /// Tells whether this rate is that of the lock.
    pub(super) fn has(self, rate: &LockRate) -> bool {
        (rate.lock, rate.generation) == (self.lock, self.generation)
    }
}

/// How many rows there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) locks: usize,
    pub(super) waiters: usize,
    pub(super) holders: usize,
}

/// What the user has chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct ScreenChoices {
    /// The column that the locks are ordered by.
    pub(super) sort: Column,
    /// Nothing is looked at: the screen stays as it is.
    pub(super) paused: bool,
    /// The locks keep these places, numbers go on; new ones come after them.
    pub(super) frozen: Option<Vec<u32>>,
    /// The keys are explained.
    pub(super) help: bool,
    /// What the names of the shown locks have in them.
    pub(super) filter: String,
    /// The filter is being typed.
    pub(super) typing: bool,
    /// The lock that is marked.
    pub(super) chosen: Option<ChosenLock>,
    /// The page of that lock is shown.
    pub(super) open: bool,
    /// The number of lines of that page that lie above the screen.
    pub(super) scrolled: usize,
}

impl ScreenChoices {
    /// Tells whether a lock of this name is shown.
    fn shows(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }
}

/// One lock in the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LockRow {
    pub(super) name: String,
    /// The number of threads that waited for it, on average.
    pub(super) waiting: f64,
    pub(super) acquisitions_per_s: f64,
    pub(super) contended_percent: f64,
    /// The number of threads that wait for it now.
    pub(super) waiters: u32,
    pub(super) held: Option<Lasting>,
}

/// One thread that waits, or holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadRow {
    pub(super) thread: String,
    pub(super) time: Lasting,
    /// The lock, or what else it waits for.
    pub(super) lock: String,
    pub(super) site: String,
    /// It waits for work, not for a lock.
    pub(super) idle: bool,
}

/// All that is shown at one look.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Screen {
    pub(super) interval_ns: u64,
    pub(super) threads: u64,
    pub(super) acquisitions_per_s: f64,
    /// The number of threads that waited for locks, on average.
    pub(super) waiting: f64,
    pub(super) locks: Vec<LockRow>,
    /// The place of the marked lock among `locks`.
    pub(super) marked: Option<usize>,
    pub(super) waiters: Vec<ThreadRow>,
    pub(super) holders: Vec<ThreadRow>,
    /// How many there are of each, shown or not.
    pub(super) all_locks: usize,
    pub(super) waiting_now: usize,
    pub(super) idle_now: usize,
    pub(super) held_now: usize,
}

impl Screen {
    /// Names what there is room for.
    pub(super) fn make(
        live: &Live,
        names: &mut dyn Lookup,
        choices: &ScreenChoices,
        room: Room,
    ) -> Screen {
        let per_s = per_second(live);
        let generations: HashMap<u32, u32> =
            live.locks.iter().map(|rate| (rate.lock, rate.generation)).collect();
        let ordered = order(live, choices, names);
        let marked = choices.chosen.and_then(|lock| ordered.iter().position(|rate| lock.has(rate)));
        // As far down as the marked one is there.
        let above = marked.map_or(0, |marked| (marked + 1).saturating_sub(room.locks));
        let shown = ordered.iter().skip(above).take(room.locks);
        let locks = shown.map(|rate| LockRow::of(rate, live, names)).collect();
        let name_of =
            |lock: u32, names: &mut dyn Lookup| names.lock(lock, generations.get(&lock).copied());
        let is_shown = |lock: Option<u32>, other: &dyn Fn() -> String, names: &mut dyn Lookup| {
            choices.filter.is_empty()
                || choices.shows(&match lock {
                    Some(lock) => name_of(lock, names),
                    None => other(),
                })
        };
        let waiting: Vec<(&LiveWaiter, bool)> = live
            .waiters
            .iter()
            .map(|waiter| (waiter, false))
            .chain(live.idle.iter().map(|waiter| (waiter, true)))
            .filter(|(waiter, _)| is_shown(waiter.lock, &|| target(waiter), names))
            .collect();
        let held: Vec<&LiveHolder> = live
            .holders
            .iter()
            .filter(|holder| is_shown(Some(holder.lock), &String::new, names))
            .collect();
        let waiters = waiting
            .iter()
            .take(room.waiters)
            .map(|&(waiter, idle)| ThreadRow {
                thread: names.thread(waiter.tid, waiter.name.as_deref()),
                time: Lasting { ns: waiter.for_ns, exact: true },
                lock: match waiter.lock {
                    Some(lock) => name_of(lock, names),
                    None => target(waiter),
                },
                site: names.site(waiter.stack),
                idle,
            })
            .collect();
        let holders = held
            .iter()
            .take(room.holders)
            .map(|holder| {
                let name = name_of(holder.lock, names);
                ThreadRow {
                    thread: names.thread(holder.tid, holder.name.as_deref()),
                    time: holder.time,
                    lock: if holder.shared { format!("{name} (read)") } else { name },
                    site: names.site(holder.stack),
                    idle: false,
                }
            })
            .collect();
        let idle_now = waiting.iter().filter(|(_, idle)| *idle).count();
        Screen {
            interval_ns: live.interval_ns,
            threads: live.threads,
            acquisitions_per_s: per_s(live.acquisitions),
            waiting: per_s(live.waited_ns) / 1e9,
            locks,
            marked: marked.map(|marked| marked - above),
            waiters,
            holders,
            all_locks: ordered.len(),
            waiting_now: waiting.len() - idle_now,
            idle_now,
            held_now: held.len(),
        }
    }
}

impl LockRow {
    /// Names a lock, and says what has happened to it.
    pub(super) fn of(rate: &LockRate, live: &Live, names: &mut dyn Lookup) -> LockRow {
        let per_s = per_second(live);
        LockRow {
            name: names.lock(rate.lock, Some(rate.generation)),
            waiting: per_s(rate.waited_ns) / 1e9,
            acquisitions_per_s: per_s(rate.acquisitions),
            contended_percent: contended_percent(rate),
            waiters: rate.waiting,
            held: rate.held,
        }
    }
}

/// Returns what makes a number of the interval one of each second.
fn per_second(live: &Live) -> impl Fn(u64) -> f64 + use<> {
    let seconds = live.interval_ns.max(1) as f64 / 1e9;
    move |number| number as f64 / seconds
}

/// Returns the locks that the filter lets through, in the order that was chosen.
pub(super) fn order<'l>(
    live: &'l Live,
    choices: &ScreenChoices,
    names: &mut dyn Lookup,
) -> Vec<&'l LockRate> {
    let places: HashMap<u32, usize> =
        choices.frozen.iter().flatten().enumerate().map(|(place, &lock)| (lock, place)).collect();
    let mut name = |rate: &LockRate| names.lock(rate.lock, Some(rate.generation));
    let is_shown = |rate: &&LockRate| choices.filter.is_empty() || choices.shows(&name(rate));
    let mut rates: Vec<&LockRate> = live.locks.iter().filter(is_shown).collect();
    if choices.sort == Column::Lock {
        rates.sort_by_cached_key(|rate| {
            let place = places.get(&rate.lock).copied().unwrap_or(usize::MAX);
            (place, name(rate).to_lowercase(), rate.lock)
        });
        return rates;
    }
    rates.sort_by_key(|rate| {
        let key = match choices.sort {
            Column::Lock => 0,
            Column::Waiting => rate.waited_ns,
            Column::Acquisitions => rate.acquisitions,
            Column::Contended => (contended_percent(rate) * 1000.0) as u64,
            Column::Waiters => u64::from(rate.waiting),
            Column::Held => held_ns(rate),
        };
        let place = places.get(&rate.lock).copied().unwrap_or(usize::MAX);
        (place, Reverse((key, rate.waited_ns, rate.acquisitions, held_ns(rate))), rate.lock)
    });
    rates
}

fn held_ns(rate: &LockRate) -> u64 {
    rate.held.map_or(0, |held| held.ns)
}

fn contended_percent(rate: &LockRate) -> f64 {
    // A wait may have begun in one interval and been counted in the next.
    match rate.acquisitions {
        0 => 0.0,
        all => (rate.contended as f64 * 100.0 / all as f64).min(100.0),
    }
}

/// Returns what a thread waits for that has no record.
fn target(waiter: &LiveWaiter) -> String {
    match waiter.how.kind() {
        WaitKind::JOIN => "the end of a thread".into(),
        _ => format!("{:#x}", waiter.target),
    }
}
