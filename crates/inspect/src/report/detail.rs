//! A row that is shown: its name, its times, the places where it was waited
//! and held.

use super::account::{Account, Unfinished};
use super::model::{Bucket, Durations, LockReport, Site, percent};
use super::names::{
    LockFacts, Names, attribute_names, class_name, kind_name, life_name, type_name,
};
use super::rows::{Row, is_over};
use crate::stack::{Frame, Stack};
use crate::symbols::site;
use lockstead_ledger::Ledger;
use lockstead_ledger::histogram::{Times, bucket};
use lockstead_ledger::lock::{Kind, Life, LockRecord, SITES, SiteShare};
use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

/// The part of one place, with return addresses still.
#[derive(Clone, Copy, Debug)]
struct Share {
    site: u64,
    stack: u32,
    count: u64,
    total: u64,
}

/// What the records of a row come to.
#[derive(Default)]
struct Sum {
    wait: Times,
    hold: Times,
    waited_at: Vec<Share>,
    held_at: Vec<Share>,
    timed_out: u64,
    refused: u64,
    still_waiting: u64,
    still_held: u64,
}

/// Looks up everything about a row. `all_waited_ns` is what it has a share of.
pub(super) fn describe(
    ledger: &Ledger<'_>,
    account: &Account,
    names: &mut dyn Names,
    row: &Row,
    all_waited_ns: u64,
) -> Option<LockReport> {
    let members = row.members.all();
    let lock = ledger.lock(*members.first()?)?;
    let sum = sum(ledger, account, members);
    let facts = LockFacts::of(ledger, lock);
    let (kind, life, attributes) = lock.shape();
    let one = row.totals.locks == 1 && life != Life::MassGrave;
    let name = if one { names.lock(&facts) } else { class_name(names, &facts) };
    let initialised = lock.init_stack.load(Relaxed);
    let as_lock = kind == Kind::Condition && !row.idle;
    let over = members.iter().filter_map(|&index| ledger.lock(index)).all(is_over);
    Some(LockReport {
        name,
        kind: kind_name(kind),
        attributes: attribute_names(attributes),
        type_name: if as_lock { AS_LOCK.into() } else { type_name(kind, attributes) },
        mutex: if as_lock { mutex(ledger, names, lock) } else { None },
        address: one.then_some(facts.address),
        locks: row.totals.locks,
        life: match life {
            _ if one => life_name(life),
            _ if over => life_name(Life::MassGrave),
            _ => "several",
        },
        acquisitions: row.totals.acquisitions,
        contended: row.totals.contended,
        contended_percent: percent(row.totals.contended, row.totals.acquisitions).min(100.0),
        timed_out: sum.timed_out,
        refused: sum.refused,
        share_percent: percent(row.totals.waited_ns, all_waited_ns),
        still_waiting: sum.still_waiting,
        still_held: sum.still_held,
        wait: durations(ledger, names, &sum.wait),
        hold: durations(ledger, names, &sum.hold),
        waited_at: sites(ledger, names, sum.waited_at),
        held_at: sites(ledger, names, sum.held_at),
        initialised_at: stack(ledger, names, initialised),
    })
}

/// The type of a condition that serves as a lock.
const AS_LOCK: &str = "lock of a condition and a mutex";

/// What the mutex of a condition is called.
fn mutex(ledger: &Ledger<'_>, names: &mut dyn Names, condition: &LockRecord) -> Option<String> {
    let address = ledger.existing_extension(condition)?.handing.mutex.load(Relaxed);
    let mutex = ledger.lock(ledger.find_lock(address)?)?;
    Some(names.lock(&LockFacts::of(ledger, mutex)))
}

fn sum(ledger: &Ledger<'_>, account: &Account, members: &[u32]) -> Sum {
    let mut sum = Sum::default();
    for &index in members {
        let extension = ledger.lock(index).and_then(|lock| ledger.existing_extension(lock));
        if let Some(statistics) = extension {
            sum.wait.absorb(&statistics.wait.read());
            sum.hold.absorb(&statistics.hold.read());
            sum.timed_out = sum.timed_out.saturating_add(statistics.timed_out.load(Relaxed));
            sum.refused = sum.refused.saturating_add(statistics.refused.load(Relaxed));
            add_shares(&mut sum.waited_at, &statistics.waited_at);
            add_shares(&mut sum.held_at, &statistics.held_at);
        }
        for wait in account.waits(index) {
            sum.still_waiting += 1;
            add_unfinished(ledger, &mut sum.wait, &mut sum.waited_at, *wait);
        }
        for hold in account.holds(index) {
            sum.still_held += 1;
            add_unfinished(ledger, &mut sum.hold, &mut sum.held_at, *hold);
        }
    }
    sum
}

fn add_shares(to: &mut Vec<Share>, shares: &[SiteShare; SITES]) {
    for share in shares {
        let site = share.site.load(Relaxed);
        if site != 0 {
            let stack = share.stack.load(Relaxed) as u32;
            let (count, total) = (share.count.load(Relaxed), share.total.load(Relaxed));
            add_share(to, Share { site, stack, count, total });
        }
    }
}

fn add_share(to: &mut Vec<Share>, share: Share) {
    match to.iter_mut().find(|other| other.site == share.site) {
        Some(other) => {
            other.count = other.count.saturating_add(share.count);
            other.total = other.total.saturating_add(share.total);
        }
        None => to.push(share),
    }
}

fn add_unfinished(
    ledger: &Ledger<'_>,
    times: &mut Times,
    shares: &mut Vec<Share>,
    Unfinished { ns, stack }: Unfinished,
) {
    let Some(ns) = ns else { return };
    let mut one = Times { total: ns, max: ns, max_stack: stack, ..Times::default() };
    one.counts[bucket(ns)] = 1;
    times.absorb(&one);
    let site = ledger.stack(stack).map_or(SiteShare::OTHERS, |stack| stack.site());
    add_share(shares, Share { site, stack, count: 1, total: ns });
}

fn durations(ledger: &Ledger<'_>, names: &mut dyn Names, times: &Times) -> Durations {
    let used = |&count: &u64| count != 0;
    let first = times.counts.iter().position(used).unwrap_or(0);
    let last = times.counts.iter().rposition(used).map_or(0, |last| last + 1);
    let histogram = (first..last)
        .map(|at| Bucket {
            // The first bucket holds what took less than 2 ns, nothing included.
            from_ns: if at == 0 { 0 } else { 1 << at },
            count: times.counts[at],
        })
        .collect();
    Durations {
        count: times.count(),
        total_ns: times.total,
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        max_ns: times.max,
        max_at: stack(ledger, names, times.max_stack).and_then(|s| site(&s).map(Frame::site)),
        histogram,
    }
}

fn sites(ledger: &Ledger<'_>, names: &mut dyn Names, mut shares: Vec<Share>) -> Vec<Site> {
    // What stands for all others comes last, however long.
    shares.sort_by_key(|s| (s.site == SiteShare::OTHERS, Reverse((s.total, s.count)), s.site));
    let whole = shares.iter().fold(0, |sum: u64, share| sum.saturating_add(share.total));
    shares
        .iter()
        .map(|share| {
            let others = share.site == SiteShare::OTHERS;
            let stack = if others { None } else { stack(ledger, names, share.stack) };
            // The stack of a site may have found no room; its address is known.
            let stack = stack.or_else(|| (!others).then(|| names.stack(&[share.site], 0)));
            let frame = stack.as_ref().and_then(site);
            Site {
                site: match frame {
                    Some(frame) => frame.site(),
                    None if others => "other places".into(),
                    None => format!("{:#x}", share.site),
                },
                function: frame.and_then(|frame| frame.function.clone()),
                file: frame.and_then(|frame| frame.file.clone()),
                line: frame.and_then(|frame| frame.line),
                count: share.count,
                total_ns: share.total,
                share_percent: percent(share.total, whole),
                others,
                stack,
            }
        })
        .collect()
}

fn stack(ledger: &Ledger<'_>, names: &mut dyn Names, id: u32) -> Option<Stack> {
    let stored = ledger.stack(id)?;
    let returns: Vec<u64> = stored.returns().collect();
    Some(names.stack(&returns, stored.end))
}
