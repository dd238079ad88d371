//! What is shown: rows with names, made from what happened in the interval.
//! Only as many rows are named as there is room for.

use super::flags::Column;
use lockstead_inspect::report::live::{Lasting, Live, LiveWaiter, LockRate};
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
        let seconds = live.interval_ns.max(1) as f64 / 1e9;
        let per_s = |number: u64| number as f64 / seconds;
        let generations: HashMap<u32, u32> =
            live.locks.iter().map(|rate| (rate.lock, rate.generation)).collect();
        let locks = order(live, choices)
            .into_iter()
            .take(room.locks)
            .map(|rate| LockRow {
                name: names.lock(rate.lock, Some(rate.generation)),
                waiting: per_s(rate.waited_ns) / 1e9,
                acquisitions_per_s: per_s(rate.acquisitions),
                contended_percent: contended_percent(rate),
                waiters: rate.waiting,
                held: rate.held,
            })
            .collect();
        let name_of =
            |lock: u32, names: &mut dyn Lookup| names.lock(lock, generations.get(&lock).copied());
        let waiters = live
            .waiters
            .iter()
            .map(|waiter| (waiter, false))
            .chain(live.idle.iter().map(|waiter| (waiter, true)))
            .take(room.waiters)
            .map(|(waiter, idle)| ThreadRow {
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
        let holders = live
            .holders
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
        Screen {
            interval_ns: live.interval_ns,
            threads: live.threads,
            acquisitions_per_s: per_s(live.acquisitions),
            waiting: per_s(live.waited_ns) / 1e9,
            locks,
            waiters,
            holders,
            all_locks: live.locks.len(),
            waiting_now: live.waiters.len(),
            idle_now: live.idle.len(),
            held_now: live.holders.len(),
        }
    }
}

/// Returns the locks in the order that was chosen.
pub(super) fn order<'l>(live: &'l Live, choices: &ScreenChoices) -> Vec<&'l LockRate> {
    let places: HashMap<u32, usize> =
        choices.frozen.iter().flatten().enumerate().map(|(place, &lock)| (lock, place)).collect();
    let mut rates: Vec<&LockRate> = live.locks.iter().collect();
    rates.sort_by_key(|rate| {
        let key = match choices.sort {
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
