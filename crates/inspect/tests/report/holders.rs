//! What holders did while others waited for them, in the rows of their locks.

use super::{Area, MS, Plain, lock, thread};
use lockstead_inspect::report::holders::{
    AsleepAt, HolderDoing, HolderLooks, HolderReport, MetHolder, MetLock,
};
use lockstead_inspect::report::lives::WaitedLife;
use lockstead_inspect::report::model::ProcessReport;
use lockstead_inspect::report::verdict::VerdictRule;
use lockstead_inspect::report::{LedgerProcess, ProcessFacts, ReportOptions, describe_process};
use lockstead_ledger::Ledger;
use std::sync::atomic::Ordering::Relaxed;

/// Adds so many looks that met one waiter, which stands in the place with the address `site`.
fn meet(looks: &mut HolderLooks, ledger: &Ledger<'_>, of: u32, site: u64, met: MetHolder, n: u64) {
    let life = WaitedLife::now(ledger, of).expect("a record");
    let stack = ledger.intern_stack(&[site, 0x99], 0);
    for _ in 0..n {
        looks.add(&MetLock { life, met: vec![(stack, met)], ns: MS }, 1);
    }
}

fn process(area: &Area, looks: &HolderLooks, options: &ReportOptions) -> ProcessReport {
    let facts = ProcessFacts { pid: 10, ..ProcessFacts::default() };
    let (ledger, names) = (area.ledger(), &mut Plain);
    let process = LedgerProcess { ledger, facts, names, python: None, holders: Some(looks) };
    describe_process(process, options).expect("locks were used")
}

fn holder(process: &ProcessReport, at: usize) -> &HolderReport {
    process.locks[at].holder.as_ref().expect("a mutex")
}

#[test]
fn the_parts_are_those_of_the_looks_and_each_place_has_its_own() {
    let area = Area::new();
    let ledger = area.ledger();
    thread(&ledger, 10, 0, 0);
    let index = lock(&ledger, 0x1000, 0x40, 1, &[100 * MS]);
    let other = lock(&ledger, 0x2000, 0x40, 1, &[10 * MS]);
    let mut looks = HolderLooks::default();
    let acquired = ledger.intern_stack(&[0x300, 0x99], 0);
    let walked = AsleepAt::Walked(looks.stack(vec![0x400, 0x401]).expect("room"));
    let inner = WaitedLife::now(&ledger, other).expect("a record");
    let mut add = |site, met, n| meet(&mut looks, &ledger, index, site, met, n);
    add(0x100, MetHolder::Asleep(libc::SYS_fsync, walked), 60);
    add(0x100, MetHolder::Running(acquired), 10);
    add(0x101, MetHolder::Ready(acquired), 10);
    add(0x101, MetHolder::Waiting(inner, acquired), 10);
    add(0x101, MetHolder::Free, 6);
    add(0x101, MetHolder::Unknown, 4);
    let process = process(&area, &looks, &ReportOptions::default());
    let found = holder(&process, 0);
    assert_eq!((found.looks, found.enough, found.waiters), (100, true, 1.0));
    assert_eq!(found.margin_percent.map(f64::round), Some(10.0));
    let split = &found.split;
    let parts = [
        split.asleep_percent,
        split.running_percent,
        split.ready_percent,
        split.waiting_percent,
        split.free_percent,
        split.unknown_percent,
    ];
    assert_eq!(parts.map(f64::round), [60.0, 10.0, 10.0, 10.0, 6.0, 4.0]);
    let first = &found.places[0];
    assert_eq!((first.doing, first.call.as_deref()), (HolderDoing::Asleep, Some("fsync")));
    let at = (first.function.as_deref(), first.acquired, first.looks);
    assert_eq!(at, (Some("f400"), false, 60));
    let waits = found.places.iter().find(|place| place.doing == HolderDoing::Waiting);
    assert_eq!(waits.and_then(|place| place.lock.as_deref()), Some("lock_2000#2"));
    let runs = found.places.iter().find(|place| place.doing == HolderDoing::Running);
    assert!(runs.is_some_and(|place| place.acquired && place.line == Some(0x300)));
    let [one, two] = &found.waited_at[..] else { panic!("{:?}", found.waited_at) };
    assert_eq!((one.looks, one.split.asleep_percent.round()), (70, 86.0));
    assert_eq!((two.looks, two.split.free_percent.round()), (30, 20.0));
    let none = holder(&process, 1);
    assert_eq!((none.looks, none.enough, none.margin_percent), (0, false, None));
}

#[test]
fn readers_share_a_look_and_heavy_looks_count_for_fewer() {
    let area = Area::new();
    let ledger = area.ledger();
    thread(&ledger, 10, 0, 0);
    let index = lock(&ledger, 0x1000, 0x40, 1, &[100 * MS]);
    let life = WaitedLife::now(&ledger, index).expect("a record");
    let mut looks = HolderLooks::default();
    // Two who wait for two readers, one of which sleeps.
    let sleeps = MetHolder::Asleep(libc::SYS_read, AsleepAt::Acquired(0));
    for _ in 0..40 {
        let met =
            vec![(0, MetHolder::Running(0)), (0, MetHolder::Running(0)), (0, sleeps), (0, sleeps)];
        looks.add(&MetLock { life, met, ns: MS }, 2);
    }
    let report = process(&area, &looks, &ReportOptions::default());
    let found = holder(&report, 0);
    assert_eq!((found.looks, found.waiters, found.seen_ns), (40, 2.0, 80 * MS));
    assert_eq!((found.split.running_percent, found.split.asleep_percent), (50.0, 50.0));
    assert!(found.enough);
    // One look after a pause of ten times all that.
    looks.add(&MetLock { life, met: vec![(0, MetHolder::Free)], ns: 800 * MS }, 1);
    let report = process(&area, &looks, &ReportOptions::default());
    let found = holder(&report, 0);
    assert!(!found.enough, "{found:?}");
    assert_eq!(report.locks[0].verdict.as_ref().map(|it| it.rule), Some(VerdictRule::FewLooks));
}

#[test]
fn a_verdict_follows_from_the_largest_cause() {
    let verdict = |met: &[(MetHolder, u64)], waited: u64| {
        let area = Area::new();
        let ledger = area.ledger();
        // A thread that lived for a second.
        thread(&ledger, 10, 0, 0);
        let index = lock(&ledger, 0x1000, 0x40, 1, &[waited]);
        let mut looks = HolderLooks::default();
        for &(met, n) in met {
            meet(&mut looks, &ledger, index, 0x100, met, n);
        }
        let with = process(&area, &looks, &ReportOptions::default());
        let without = ReportOptions { verdicts: false, ..ReportOptions::default() };
        assert_eq!(process(&area, &looks, &without).locks[0].verdict, None);
        let verdict = with.locks[0].verdict.clone().expect("one");
        (verdict.rule, verdict.text)
    };
    let asleep = |call| MetHolder::Asleep(call, AsleepAt::Acquired(0));
    let (ran, ready, free) = (MetHolder::Running(0), MetHolder::Ready(0), MetHolder::Free);
    let fsync = asleep(libc::SYS_fsync);
    for (met, waited, rule, text) in [
        (&[(fsync, 90)][..], 9 * MS, VerdictRule::Small, "not worth fixing"),
        (
            &[(fsync, 90), (ran, 10)],
            500 * MS,
            VerdictRule::Asleep,
            "its holder was in fsync for 90% of that: move the call out of the lock",
        ),
        (&[(ran, 29)], 500 * MS, VerdictRule::FewLooks, "not looked at often enough to say why"),
        (
            &[(ready, 60), (ran, 40)],
            500 * MS,
            VerdictRule::NoProcessor,
            "its holder was ready and had no processor for 60% of that: run fewer threads, or give \
             them more processors",
        ),
        (
            &[(free, 70), (ran, 30)],
            500 * MS,
            VerdictRule::Free,
            "it was free and no waiter awake for 70% of that: take it less often, for waking took \
             longer than what was done under it",
        ),
        (
            &[(ran, 55), (fsync, 45)],
            500 * MS,
            VerdictRule::Running,
            "its holder ran for 55% of that: do less under it, or split it",
        ),
        (
            &[(ran, 45), (fsync, 15), (asleep(libc::SYS_read), 15), (free, 25)],
            500 * MS,
            VerdictRule::Mixed,
            "its holder ran 45%, slept 30%, it was free 25%: no single cause; to do less under \
             it, or to split it, helps with each",
        ),
        (
            &[(MetHolder::Unknown, 60), (ran, 40)],
            500 * MS,
            VerdictRule::Unseen,
            "somebody held it who was not seen for 60% of that: what its holder did cannot be seen",
        ),
    ] {
        assert_eq!(verdict(met, waited), (rule, text.to_owned()));
    }
}

#[test]
fn threads_that_were_idle_make_no_lock_small() {
    let area = Area::new();
    let ledger = area.ledger();
    // A thread that lived for a second, and waited for work for all of it but 50 ms.
    let thread = thread(&ledger, 10, 0, 0);
    lock(&ledger, 0x1000, 0x40, 1, &[9 * MS]);
    let rule = || {
        let process = process(&area, &HolderLooks::default(), &ReportOptions::default());
        process.locks[0].verdict.as_ref().map(|verdict| verdict.rule)
    };
    assert_eq!(rule(), Some(VerdictRule::Small));
    thread.record.idled.store(950 * MS, Relaxed);
    assert_eq!(rule(), Some(VerdictRule::FewLooks));
}

#[test]
fn every_rule_is_in_the_table_of_the_document() {
    let document = include_str!("../../../../docs/report.md");
    for rule in VerdictRule::ALL {
        let name = serde_json::to_value(rule).expect("a word");
        let row = format!("| `{}` |", name.as_str().expect("a word"));
        let row = document.lines().find(|line| line.starts_with(&row));
        assert!(row.is_some_and(|row| row.contains(rule.advice())), "{rule:?}");
    }
}
