//! What the holder of a lock did while others waited for it: what looks have met, and its way into
//! the rows.
//!
//! # Role
//! The ledger has how long threads waited, but not what kept them waiting: whether the holder ran,
//! waited for a processor, slept in a call, or whether the lock was free and its waiters on their
//! way. So the command looks at the locks that are waited for, again and again, and adds up here
//! what it met. A look stands for the time since the one before, for each thread that waits, so that
//! the parts are those of the waiting.
//!
//! # How exact
//! A part is an estimate from a sample. Looks with many waiters, or after a longer pause, weigh
//! more; so what counts is the number of looks of equal weight that would be as good (`effective`).
//! Of that many the margin is that of a share of one half, in 95 of 100 cases.

pub(super) mod model;

pub use model::{HolderDoing, HolderPlace, HolderReport, HolderSplit, SplitSite};

use super::lives::{LifeRecords, WaitedLife};
use super::model::percent;
use super::names::{LockFacts, Names};
use super::places::Places;
use super::site::ReportSite;
use super::sites::{SiteShare, site_of};
use crate::proc::calls;
use crate::stack::{Frame, Stack};
use crate::symbols::program_frames;
use lockstead_ledger::Ledger;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The most stacks of a process that are kept.
const STACKS: usize = 1024;
/// The most places of a row, and the most places of its waiters.
const LISTED: usize = 16;
/// Fewer looks than that tell nothing: a part would be known to 18 in a hundred.
pub const ENOUGH: f64 = 30.0;

/// What was met at a lock that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetHolder {
    /// Nobody had it, or the waiter itself: it had not come to run.
    Free,
    /// Somebody had it, and nothing told who, or what that thread did.
    Unknown,
    /// Its holder ran. The stack is that of the acquisition, 0 where that is not known.
    Running(u32),
    /// Its holder was ready to run, and had no processor. The stack as before.
    Ready(u32),
    /// Its holder slept in this call.
    Asleep(i64, AsleepAt),
    /// Its holder waited itself, for this, with this stack of the ledger.
    Waiting(WaitedLife, u32),
    /// Its holder waited itself for the end of a thread, with this stack of the ledger.
    Joining(u32),
    /// Its holder was stopped by a signal or a debugger. The stack is that of the acquisition.
    Stopped(u32),
}

/// Where a holder slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AsleepAt {
    /// The stack that was walked.
    Walked(StackNumber),
    /// Nothing but where it had acquired the lock; 0 where that is not known either.
    Acquired(u32),
}

/// The number of a stack that was walked among those of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNumber(u32);

/// A look that met waiters of a lock.
#[derive(Clone, Debug)]
pub struct MetLock {
    /// The lock that was waited for.
    pub life: WaitedLife,
    /// What was met for each thread that waited, with the stack of its wait.
    pub met: Vec<(u32, MetHolder)>,
    /// The time for which the look stands, in nanoseconds.
    pub ns: u64,
}

/// Times by the parts of a split, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Parts {
    running: f64,
    ready: f64,
    asleep: f64,
    waiting: f64,
    free: f64,
    unknown: f64,
}

impl Parts {
    fn add(&mut self, met: MetHolder, ns: f64) {
        *match met {
            MetHolder::Free => &mut self.free,
            MetHolder::Unknown => &mut self.unknown,
            MetHolder::Running(_) => &mut self.running,
            MetHolder::Ready(_) => &mut self.ready,
            MetHolder::Asleep(..) | MetHolder::Stopped(_) => &mut self.asleep,
            MetHolder::Waiting(..) | MetHolder::Joining(_) => &mut self.waiting,
        } += ns;
    }

    fn absorb(&mut self, other: &Parts) {
        self.running += other.running;
        self.ready += other.ready;
        self.asleep += other.asleep;
        self.waiting += other.waiting;
        self.free += other.free;
        self.unknown += other.unknown;
    }

    fn split(&self) -> HolderSplit {
        let Parts { running, ready, asleep, waiting, free, unknown } = *self;
        let whole = running + ready + asleep + waiting + free + unknown;
        let part = |ns: f64| if whole == 0.0 { 0.0 } else { ns * 100.0 / whole };
        HolderSplit {
            running_percent: part(running),
            ready_percent: part(ready),
            asleep_percent: part(asleep),
            waiting_percent: part(waiting),
            free_percent: part(free),
            unknown_percent: part(unknown),
        }
    }
}

/// What looks at one lock have met.
#[derive(Clone, Debug, Default)]
struct LockSums {
    looks: u64,
    waiters: u64,
    /// The sum of the weights of the looks, and that of their squares.
    weight: f64,
    squares: f64,
    met: HashMap<MetHolder, (f64, u64)>,
    /// The parts, and the number of looks, by the stacks of the waits.
    sites: HashMap<u32, (Parts, u64)>,
}

impl LockSums {
    fn absorb(&mut self, other: &LockSums) {
        self.looks += other.looks;
        self.waiters += other.waiters;
        self.weight += other.weight;
        self.squares += other.squares;
        for (met, (ns, count)) in &other.met {
            let sum = self.met.entry(*met).or_default();
            *sum = (sum.0 + ns, sum.1 + count);
        }
        for (stack, (parts, looks)) in &other.sites {
            let sum = self.sites.entry(*stack).or_default();
            sum.0.absorb(parts);
            sum.1 += looks;
        }
    }

    /// Returns how many looks of equal weight would tell as much.
    fn effective(&self) -> f64 {
        if self.squares == 0.0 { 0.0 } else { self.weight * self.weight / self.squares }
    }
}

/// What looks at the locks of one process have met.
#[derive(Clone, Debug, Default)]
pub struct HolderLooks {
    locks: HashMap<WaitedLife, LockSums>,
    stacks: Vec<Vec<u64>>,
    numbers: HashMap<Vec<u64>, StackNumber>,
}

impl HolderLooks {
    /// Returns the number of a stack that was walked, by its return addresses, innermost first;
    /// `None` if there is no room for one more.
    pub fn stack(&mut self, returns: Vec<u64>) -> Option<StackNumber> {
        if let Some(&known) = self.numbers.get(&returns) {
            return Some(known);
        }
        if self.stacks.len() == STACKS {
            return None;
        }
        let number = StackNumber(self.stacks.len() as u32);
        self.stacks.push(returns.clone());
        self.numbers.insert(returns, number);
        Some(number)
    }

    /// Adds a look that met waiters. Several holders, readers, have a part of it each.
    pub fn add(&mut self, look: &MetLock, holders: usize) {
        let sums = self.locks.entry(look.life).or_default();
        let part = look.ns as f64 / holders.max(1) as f64;
        let mut waiters: Vec<u32> = Vec::new();
        for &(stack, met) in &look.met {
            let sum = sums.met.entry(met).or_default();
            *sum = (sum.0 + part, sum.1 + 1);
            let site = sums.sites.entry(stack).or_default();
            site.0.add(met, part);
            if !waiters.contains(&stack) {
                waiters.push(stack);
                site.1 += 1;
            }
        }
        let weight = part * look.met.len() as f64;
        sums.looks += 1;
        sums.waiters += (look.met.len() / holders.max(1)) as u64;
        sums.weight += weight;
        sums.squares += weight * weight;
    }
}

/// What looks have met, by the records of a ledger that is read at the end.
pub(super) struct HoldersByRecord<'h> {
    stacks: &'h [Vec<u64>],
    records: HashMap<u32, Vec<&'h LockSums>>,
    /// The records of what holders waited for.
    lives: HashMap<WaitedLife, u32>,
}

impl<'h> HoldersByRecord<'h> {
    /// Finds the record of each lock that was looked at.
    pub(super) fn new(ledger: &Ledger<'_>, looks: Option<&'h HolderLooks>) -> Self {
        let mut found =
            HoldersByRecord { stacks: &[], records: HashMap::new(), lives: HashMap::new() };
        let Some(looks) = looks.filter(|looks| !looks.locks.is_empty()) else { return found };
        found.stacks = &looks.stacks;
        let records = LifeRecords::of(ledger);
        for (life, sums) in &looks.locks {
            if let Some(record) = records.find(life) {
                found.records.entry(record).or_default().push(sums);
            }
            for met in sums.met.keys() {
                if let MetHolder::Waiting(life, _) = met
                    && let Some(record) = records.find(life)
                {
                    found.lives.insert(*life, record);
                }
            }
        }
        found
    }

    /// Returns what the holders of the locks of these records did while others waited for them.
    pub(super) fn report(
        &self,
        ledger: &Ledger<'_>,
        names: &mut dyn Names,
        places: &Places,
        members: &[u32],
    ) -> HolderReport {
        let mut sums = LockSums::default();
        for one in members.iter().filter_map(|index| self.records.get(index)).flatten() {
            sums.absorb(one);
        }
        let mut parts = Parts::default();
        let mut found: Vec<HolderPlace> = Vec::new();
        let mut met: Vec<_> = sums.met.iter().collect();
        // So the stack of each place is that with the largest part.
        met.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
        for (&met, &(ns, count)) in met {
            parts.add(met, ns);
            let Some(place) = self.place(ledger, names, places, met) else { continue };
            let place = HolderPlace { seen_ns: ns as u64, looks: count, ..place };
            match found.iter_mut().find(|other| other.is_like(&place)) {
                Some(known) => {
                    known.seen_ns = known.seen_ns.saturating_add(place.seen_ns);
                    known.looks += place.looks;
                }
                None => found.push(place),
            }
        }
        found.sort_by_key(|place| Reverse(place.seen_ns));
        let more = found.len().saturating_sub(LISTED) as u64;
        found.truncate(LISTED);
        let whole = sums.met.values().map(|(ns, _)| ns).sum::<f64>() as u64;
        for place in &mut found {
            place.share_percent = percent(place.seen_ns, whole);
        }
        let effective = sums.effective();
        HolderReport {
            looks: sums.looks,
            seen_ns: whole,
            enough: effective >= ENOUGH,
            margin_percent: (effective > 0.0).then(|| (98.0 / effective.sqrt()).min(100.0)),
            waiters: if sums.looks == 0 { 0.0 } else { sums.waiters as f64 / sums.looks as f64 },
            split: parts.split(),
            places: found,
            more,
            waited_at: split_sites(ledger, names, places, &sums.sites),
        }
    }

    /// Returns what a holder did and where; `None` if nobody held the lock, or nothing is known.
    fn place(
        &self,
        ledger: &Ledger<'_>,
        names: &mut dyn Names,
        places: &Places,
        met: MetHolder,
    ) -> Option<HolderPlace> {
        let mut of = |doing, stack| match stack {
            0 => HolderPlace { doing, ..HolderPlace::default() },
            stack => {
                let share = SiteShare { stack, count: 0, total: 0 };
                HolderPlace::at(doing, site_of(ledger, places, names, &share))
            }
        };
        Some(match met {
            MetHolder::Free | MetHolder::Unknown => return None,
            MetHolder::Running(id) => of(HolderDoing::Running, id).acquired(),
            MetHolder::Ready(id) => of(HolderDoing::Ready, id).acquired(),
            MetHolder::Stopped(id) => of(HolderDoing::Stopped, id).acquired(),
            MetHolder::Joining(id) => of(HolderDoing::Waiting, id).waits_for("the end of a thread"),
            MetHolder::Waiting(life, id) => {
                let place = of(HolderDoing::Waiting, id);
                let lock = self.lives.get(&life).and_then(|&record| ledger.lock(record));
                match lock.map(|lock| names.lock(&LockFacts::of(ledger, lock))) {
                    Some(name) => place.waits_for(&name),
                    None => place,
                }
            }
            MetHolder::Asleep(number, at) => {
                let place = match at {
                    AsleepAt::Acquired(id) => of(HolderDoing::Asleep, id).acquired(),
                    AsleepAt::Walked(StackNumber(number)) => {
                        let returns = self.stacks.get(number as usize)?;
                        HolderPlace::asleep(names.stack(returns, 0))
                    }
                };
                let call = calls::name(number).map_or_else(|| number.to_string(), str::to_owned);
                HolderPlace { call: Some(call), ..place }
            }
        })
    }
}

impl HolderPlace {
    fn at(doing: HolderDoing, site: ReportSite) -> HolderPlace {
        HolderPlace {
            doing,
            site: Some(site.site),
            function: site.function,
            file: site.file,
            line: site.line,
            stack: site.stack,
            ..HolderPlace::default()
        }
    }

    fn asleep(stack: Stack) -> HolderPlace {
        // A thread that sleeps was called by the program, whatever stands in between.
        let frame = program_frames(&stack).first().map(|&frame| frame.clone());
        HolderPlace {
            doing: HolderDoing::Asleep,
            site: frame.as_ref().map(Frame::site),
            function: frame.as_ref().and_then(|frame| frame.function.clone()),
            file: frame.as_ref().and_then(|frame| frame.file.clone()),
            line: frame.as_ref().and_then(|frame| frame.line),
            stack: Some(stack),
            ..HolderPlace::default()
        }
    }

    fn acquired(self) -> HolderPlace {
        HolderPlace { acquired: self.site.is_some(), ..self }
    }

    fn waits_for(self, what: &str) -> HolderPlace {
        HolderPlace { lock: Some(what.to_owned()), ..self }
    }

    fn is_like(&self, other: &HolderPlace) -> bool {
        (self.doing, &self.call, &self.lock, &self.site)
            == (other.doing, &other.call, &other.lock, &other.site)
    }
}

/// Returns the split of each place at which threads waited, the most looks first.
fn split_sites(
    ledger: &Ledger<'_>,
    names: &mut dyn Names,
    places: &Places,
    sites: &HashMap<u32, (Parts, u64)>,
) -> Vec<SplitSite> {
    let mut found: Vec<(String, Parts, u64)> = Vec::new();
    for (&stack, (parts, looks)) in sites {
        let share = SiteShare { stack, count: *looks, total: 0 };
        let site = site_of(ledger, places, names, &share).site;
        match found.iter_mut().find(|known| known.0 == site) {
            Some(known) => {
                known.1.absorb(parts);
                known.2 += looks;
            }
            None => found.push((site, *parts, *looks)),
        }
    }
    found.sort_by(|a, b| (b.2, &a.0).cmp(&(a.2, &b.0)));
    found.truncate(LISTED);
    let split = |(site, parts, looks): (String, Parts, u64)| {
        let margin = (98.0 / (looks as f64).sqrt()).min(100.0);
        SplitSite { site, looks, margin_percent: margin, split: parts.split() }
    };
    found.into_iter().map(split).collect()
}
