//! Which semaphores could be mutexes: from ledgers to a verdict for each origin.
//!
//! # Role
//! Reads what the library that checks has noted of semaphores
//! ([`lockstead_ledger::usage`]) when a process has ended, and adds up what several
//! processes of one program say of the same.

pub mod model;
mod next;

use super::account::is_running;
use super::model::{ReportSite, percent};
use super::names::{LockFacts, Names, class_name, thread_name};
use super::places::Places;
use super::sites::{ShareSum, SharesOf, add_site, share_out, sites};
use super::threads;
use crate::stack::{Frame, Stack};
use crate::symbols::site;
use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::shares::Shares;
use lockstead_ledger::usage::{self, SemaphoreUsage, Sharing, Taker};
use lockstead_ledger::{Ledger, LedgerPart};
use model::{
    MissingEvidence, NoMutexReason, NoMutexWhy, SemaphoreAct, SemaphoreOrigin, SemaphoreThread,
    SemaphoreVerdict, Semaphores,
};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// A process of which to tell.
pub struct SemaphoreProcess<'a> {
    /// The ledger of the process.
    pub ledger: Ledger<'a>,
    /// The ledgers of its parent, of that one's parent and so on, as far as they are there and it
    /// was forked from them: they may have initialised what it uses.
    pub parents: Vec<Ledger<'a>>,
    /// The source of its names.
    pub names: &'a mut dyn Names,
    /// The kernel's id of the thread.
    pub pid: u32,
    /// The file it ran.
    pub exe: Option<String>,
}

/// Returns what its semaphores are used for.
#[must_use]
pub fn of_process(process: SemaphoreProcess<'_>) -> Semaphores {
    let ledger = process.ledger;
    let ends = ends(&ledger);
    let mut reader = SemaphoreReader { process, ends };
    let used = ledger.used(LedgerPart::Usages) as u32;
    Semaphores {
        origins: (1..used).filter_map(|at| reader.origin(ledger.usage(at)?)).collect(),
        not_recorded: ledger.header().losses.usages.load(Relaxed),
    }
}

/// Adds up what the processes of a run came to, and judges it.
#[must_use]
pub fn merge(all: impl IntoIterator<Item = Semaphores>) -> Semaphores {
    let mut whole = Semaphores::default();
    let mut known: HashMap<_, usize> = HashMap::new();
    for part in all {
        whole.not_recorded = whole.not_recorded.saturating_add(part.not_recorded);
        for origin in part.origins {
            let value = origin.value.map(|value| value.min(2));
            let stack = origin.initialised_at.as_ref().map(addresses);
            let key = (origin.exe.clone(), origin.name.clone(), value, origin.named, stack);
            match known.get(&key) {
                Some(&at) => add(&mut whole.origins[at], origin),
                None => {
                    known.insert(key, whole.origins.len());
                    whole.origins.push(origin);
                }
            }
        }
    }
    whole.origins.iter_mut().for_each(judge);
    let mut alike: HashMap<_, usize> = HashMap::new();
    for origin in std::mem::take(&mut whole.origins) {
        match alike.get(&Kin::of(&origin)) {
            Some(&at) => {
                let to = &mut whole.origins[at];
                to.name = origin.class.clone().unwrap_or(origin.name.clone());
                add(to, origin);
            }
            None => {
                alike.insert(Kin::of(&origin), whole.origins.len());
                whole.origins.push(origin);
            }
        }
    }
    whole.origins.iter_mut().for_each(judge);
    whole.origins.sort_by_cached_key(|origin| {
        (origin.verdict, Reverse((origin.waited_ns, origin.taken)), origin.name.clone())
    });
    whole
}

/// What origins have in common of which the chains of calls differ and nothing else:
/// one place where they are initialised, and the same to be said of them.
#[derive(PartialEq, Eq, Hash)]
struct Kin {
    exe: Option<String>,
    name: String,
    value: Option<u32>,
    initialised: Option<String>,
    reasons: Vec<NoMutexWhy>,
    missing: Option<MissingEvidence>,
}

impl Kin {
    fn of(origin: &SemaphoreOrigin) -> Kin {
        Kin {
            exe: origin.exe.clone(),
            name: origin.class.clone().unwrap_or_else(|| origin.name.clone()),
            value: origin.value.map(|value| value.min(2)),
            initialised: origin.initialised.clone(),
            reasons: origin.reasons.iter().map(|reason| reason.reason).collect(),
            missing: origin.missing,
        }
    }
}

/// Returns what two processes of one program have alike, wherever it was loaded.
fn addresses(stack: &Stack) -> Vec<String> {
    stack.frames.iter().map(Frame::long).collect()
}

fn add(to: &mut SemaphoreOrigin, from: SemaphoreOrigin) {
    for (mine, theirs) in [
        (&mut to.semaphores, from.semaphores),
        (&mut to.more_acts, from.more_acts),
        (&mut to.taken, from.taken),
        (&mut to.given, from.given),
        (&mut to.refused, from.refused),
        (&mut to.contended, from.contended),
        (&mut to.waited_ns, from.waited_ns),
        (&mut to.timed_out, from.timed_out),
        (&mut to.interrupted, from.interrupted),
        (&mut to.count_reads, from.count_reads),
        (&mut to.left_taken, from.left_taken),
        (&mut to.unknown_calls, from.unknown_calls),
    ] {
        *mine = mine.saturating_add(theirs);
    }
    to.longest_wait_ns = to.longest_wait_ns.max(from.longest_wait_ns);
    to.highest = to.highest.max(from.highest);
    to.largest_value = to.largest_value.max(from.largest_value);
    to.several_threads |= from.several_threads;
    let new = from.processes.into_iter().filter(|pid| !to.processes.contains(pid));
    let new: Vec<u32> = new.collect();
    to.processes.extend(new);
    to.count_read_at = to.count_read_at.take().or(from.count_read_at);
    for reason in from.reasons {
        match to.reasons.iter_mut().find(|mine| mine.reason == reason.reason) {
            Some(mine) => {
                mine.semaphores = mine.semaphores.saturating_add(reason.semaphores);
                for act in reason.acts {
                    match mine.acts.iter_mut().find(|known| known.at == act.at) {
                        Some(known) => known.count = known.count.saturating_add(act.count),
                        None => mine.acts.push(act),
                    }
                }
            }
            None => to.reasons.push(reason),
        }
    }
    add_all(&mut to.taken_at, from.taken_at);
    add_all(&mut to.given_at, from.given_at);
}

fn add_all(to: &mut Vec<ReportSite>, from: Vec<ReportSite>) {
    from.into_iter().for_each(|site| add_site(to, site));
    share_out(to, SharesOf::Count);
}

fn judge(origin: &mut SemaphoreOrigin) {
    origin.reasons.sort_by_key(|reason| reason.reason);
    origin.contended_percent = percent(origin.contended, origin.taken).min(100.0);
    origin.missing = match (origin.taken, origin.given) {
        _ if !origin.reasons.is_empty() => None,
        (0, 0) => Some(MissingEvidence::NeverUsed),
        (0, _) => Some(MissingEvidence::NeverTaken),
        (_, 0) => Some(MissingEvidence::NeverGiven),
        _ if origin.unknown_calls != 0 => Some(MissingEvidence::UnknownThreads),
        _ => None,
    };
    origin.verdict = match origin.missing {
        _ if !origin.reasons.is_empty() => SemaphoreVerdict::NoMutex,
        Some(_) => SemaphoreVerdict::Unclear,
        None => SemaphoreVerdict::Mutex,
    };
    origin.next = next::steps(origin);
}

/// The semaphores of one usage that somebody has when the process ends.
#[derive(Default)]
struct HeldAtEnd {
    /// The number of semaphores that somebody has.
    taken: u64,
    /// The takers of those whose threads had ended.
    orphaned: Vec<Taker>,
}

fn ends(ledger: &Ledger<'_>) -> HashMap<*const SemaphoreUsage, HeldAtEnd> {
    let mut ends: HashMap<*const SemaphoreUsage, HeldAtEnd> = HashMap::new();
    let running: Vec<u32> = ledger
        .threads()
        .filter(is_running)
        .map(|thread| Taker::number_of(thread.record.serial.load(Relaxed)))
        .collect();
    if ledger.used(LedgerPart::Usages) <= 1 {
        return ends;
    }
    for index in 1..ledger.used(LedgerPart::Locks) as u32 {
        let live = ledger.lock(index).filter(|lock| {
            let (kind, life, _) = lock.shape();
            kind == ObjectKind::Semaphore && matches!(life, RecordLife::Live)
        });
        let Some(semaphore) = live.and_then(|_| ledger.semaphore(index)) else { continue };
        let Some(taker) = semaphore.taker() else { continue };
        let end = ends.entry(semaphore.usage).or_default();
        end.taken += 1;
        if taker.thread != Taker::UNKNOWN && !running.contains(&taker.thread) {
            end.orphaned.push(taker);
        }
    }
    ends
}

struct SemaphoreReader<'a> {
    process: SemaphoreProcess<'a>,
    ends: HashMap<*const SemaphoreUsage, HeldAtEnd>,
}

/// How the semaphores of a usage were made.
struct Made {
    value: Option<u32>,
    largest: Option<u32>,
    named: bool,
    initialised: Option<Stack>,
    name: String,
    class: Option<String>,
}

impl SemaphoreReader<'_> {
    fn origin(&mut self, usage: &SemaphoreUsage) -> Option<SemaphoreOrigin> {
        let made = self.made(usage)?;
        let mut reasons = self.reasons(usage);
        let end = self.ends.remove(&std::ptr::from_ref(usage)).unwrap_or_default();
        reasons.extend(self.orphaned(&end));
        let count = |word: &std::sync::atomic::AtomicU64| word.load(Relaxed);
        let read = usage.read_stack.load(Relaxed);
        Some(SemaphoreOrigin {
            name: made.name,
            class: made.class,
            verdict: SemaphoreVerdict::Unclear,
            reasons,
            more_acts: count(&usage.more_acts),
            missing: None,
            next: Vec::new(),
            semaphores: count(&usage.lives),
            exe: self.process.exe.clone(),
            processes: vec![self.process.pid],
            value: made.value,
            largest_value: made.largest,
            highest: usage.highest.load(Relaxed),
            named: made.named,
            initialised: made.initialised.as_ref().and_then(called),
            initialised_at: made.initialised,
            taken: count(&usage.taken),
            given: count(&usage.given),
            refused: count(&usage.refused),
            contended: count(&usage.contended),
            contended_percent: 0.0,
            waited_ns: count(&usage.waited),
            longest_wait_ns: count(&usage.longest),
            timed_out: count(&usage.timed_out),
            interrupted: count(&usage.interrupted),
            count_reads: count(&usage.reads),
            several_threads: usage.several.load(Relaxed) != 0,
            left_taken: count(&usage.left).saturating_add(end.taken),
            unknown_calls: count(&usage.unjudged),
            taken_at: self.sites(&usage.taken_at),
            given_at: self.sites(&usage.given_at),
            count_read_at: self.place(read),
        })
    }

    fn made(&mut self, usage: &SemaphoreUsage) -> Option<Made> {
        let origin = usage.origin().filter(|_| usage.lives.load(Relaxed) != 0)?;
        let ledger = self.process.ledger;
        let address = usage.address.load(Relaxed);
        let alone = usage.elsewhere.load(Relaxed) == 0;
        let is_seen = origin.value.is_some() || origin.sharing == Sharing::Named;
        let returns = |ledger: &Ledger<'_>, id| match ledger.stack(id) {
            Some(stack) => (stack.returns().collect::<Vec<_>>(), stack.end),
            None => (Vec::new(), 0),
        };
        let (mut init, mut first) = (Vec::new(), Vec::new());
        let (mut value, mut largest, mut end) = (origin.value, usage.most(), 0);
        let mut named = origin.sharing == Sharing::Named;
        let mut serial = usage.serial.load(Relaxed);
        if is_seen {
            (init, end) = returns(&ledger, origin.stack);
        } else {
            first = returns(&ledger, origin.stack).0;
            let inherited = self.process.parents.iter().filter(|_| alone);
            let found = inherited.filter_map(|parent| made_in(parent, address)).next();
            if let Some((parent, there, number)) = found {
                (init, end) = returns(&parent, there.stack);
                (value, largest) = (there.value, there.value.unwrap_or(0));
                (named, serial) = (there.sharing == Sharing::Named, number);
            }
        }
        let names = &mut *self.process.names;
        let initialised = (!init.is_empty()).then(|| names.stack(&init, end));
        let facts = LockFacts {
            address,
            kind: ObjectKind::Semaphore,
            attributes: 0,
            serial,
            module: usage.module.load(Relaxed),
            on_stack_of: None,
            init,
            first,
            given: None,
            noun: None,
            late: false,
            is_of_second_pair: None,
        };
        let is_one = alone && (facts.module != 0 || usage.lives.load(Relaxed) == 1);
        let class = class_name(names, &facts);
        let name = if is_one { names.lock(&facts) } else { class.clone() };
        let class = (!alone || facts.module == 0).then_some(class);
        let largest = value.map(|value| value.max(largest));
        Some(Made { value, largest, named, initialised, name, class })
    }

    fn reasons(&mut self, usage: &SemaphoreUsage) -> Vec<NoMutexReason> {
        let mut reasons = Vec::new();
        for which in usage::Reason::ALL {
            let semaphores = usage.shown[which as usize].load(Relaxed);
            if semaphores == 0 {
                continue;
            }
            let shown: Vec<_> = usage.acts().filter(|(act, _)| act.reason == which).collect();
            let acts = shown.into_iter().map(|(act, count)| self.act(&act, count)).collect();
            reasons.push(NoMutexReason { reason: why(which), semaphores, acts });
        }
        reasons
    }

    fn act(&mut self, act: &usage::Act, count: u64) -> SemaphoreAct {
        let other = (act.other.thread != 0).then_some(act.other);
        SemaphoreAct {
            count,
            at: self.place(act.stack),
            stack: self.stack(act.stack),
            thread: self.thread(act.thread, act.tid),
            other: other.map(|other| self.thread(other.thread, act.other_tid)),
            other_at: other.and_then(|other| self.place(other.stack)),
            other_stack: other.and_then(|other| self.stack(other.stack)),
            number: act.number,
        }
    }

    /// Returns what threads that have ended still have.
    fn orphaned(&mut self, end: &HeldAtEnd) -> Option<NoMutexReason> {
        let mut acts: Vec<(Taker, u64)> = Vec::new();
        for taker in &end.orphaned {
            match acts.iter_mut().find(|(known, _)| known.stack == taker.stack) {
                Some((_, count)) => *count += 1,
                None => acts.push((*taker, 1)),
            }
        }
        let semaphores = end.orphaned.len() as u64;
        let acts: Vec<SemaphoreAct> = acts
            .into_iter()
            .map(|(taker, count)| SemaphoreAct {
                count,
                at: self.place(taker.stack),
                stack: self.stack(taker.stack),
                thread: self.thread(taker.thread, 0),
                other: None,
                other_at: None,
                other_stack: None,
                number: 0,
            })
            .collect();
        (semaphores != 0).then_some(NoMutexReason {
            reason: NoMutexWhy::ThreadEnded,
            semaphores,
            acts,
        })
    }

    /// Returns the thread that is known by this number in usages.
    fn thread(&mut self, number: u32, tid: u32) -> SemaphoreThread {
        let ledger = self.process.ledger;
        let is_it = |record: &lockstead_ledger::thread::ThreadRecord| {
            Taker::number_of(record.serial.load(Relaxed)) == number
        };
        let found = ledger.threads().map(|thread| thread.record).find(|record| is_it(record));
        let Some(record) = found else { return SemaphoreThread { tid, name: None } };
        let tid = record.tid.load(Relaxed);
        let name = thread_name(record)
            .or_else(|| threads::thread_start(record, &ledger, self.process.names));
        SemaphoreThread { tid, name }
    }

    fn stack(&mut self, id: u32) -> Option<Stack> {
        let stored = self.process.ledger.stack(id)?;
        let returns: Vec<u64> = stored.returns().collect();
        Some(self.process.names.stack(&returns, stored.end))
    }

    fn place(&mut self, id: u32) -> Option<String> {
        self.stack(id).as_ref().and_then(called)
    }

    fn sites(&mut self, shares: &Shares) -> Vec<ReportSite> {
        let ledger = self.process.ledger;
        let mut parts = ShareSum::default();
        parts.add_all(&ledger, shares);
        // No stack of a release says which functions return with a token.
        sites(&ledger, &Places::default(), self.process.names, &parts, SharesOf::Count)
    }
}

/// Returns the frame that says where a call was made: the program's, or the C library's where that
/// has made it by itself.
fn frame(stack: &Stack) -> Option<&Frame> {
    site(stack).or_else(|| stack.frames.iter().find(|frame| !frame.is_lockstead()))
}

fn called(stack: &Stack) -> Option<String> {
    frame(stack).map(Frame::site)
}

/// Returns how the semaphore that lies there was made in the process that forked, and its number
/// among those of its origin.
fn made_in<'a>(ledger: &Ledger<'a>, address: u64) -> Option<(Ledger<'a>, usage::UsageOrigin, u32)> {
    let index = ledger.find_lock(address)?;
    let lock = ledger.lock(index)?;
    let (kind, life, _) = lock.shape();
    if kind != ObjectKind::Semaphore || !matches!(life, RecordLife::Live) {
        return None;
    }
    let origin = ledger.semaphore(index)?.usage.origin()?;
    let is_seen = origin.value.is_some() || origin.sharing == Sharing::Named;
    is_seen.then(|| (*ledger, origin, lock.serial.load(Relaxed)))
}

fn why(reason: usage::Reason) -> NoMutexWhy {
    match reason {
        usage::Reason::BeginsTaken => NoMutexWhy::BeginsTaken,
        usage::Reason::BeginsAbove => NoMutexWhy::BeginsAboveOne,
        usage::Reason::GivenByAnother => NoMutexWhy::GivenByAnother,
        usage::Reason::RisesAbove => NoMutexWhy::RisesAboveOne,
        usage::Reason::TakenTwice => NoMutexWhy::TakenTwice,
        usage::Reason::InHandler => NoMutexWhy::InHandler,
        usage::Reason::Shared => NoMutexWhy::ProcessShared,
        usage::Reason::DestroyedTaken => NoMutexWhy::DestroyedTaken,
    }
}
