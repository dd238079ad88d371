//! A report with something of everything, for the tests of its renderers.

use lockstead_inspect::check::model::{
    CycleKind, Details, HoldMode, Level, LockIdentity, LockOrder, OrderStep, ThreadIdentity,
};
use lockstead_inspect::python::{PythonFrame, PythonStack};
use lockstead_inspect::report::Finding;
use lockstead_inspect::report::holders::{
    HolderDoing, HolderPlace, HolderReport, HolderSplit, SplitSite,
};
use lockstead_inspect::report::model::{
    DurationBucket, Durations, LockReport, LockTotals, Losses, ProcessReport, ReportSite,
    RunReport, SCHEMA, SiteCaller, Sort, ThreadReport, ThreadsReport, VERSION, WaitingShare,
};
use lockstead_inspect::report::python::{PythonLooks, PythonPlace, PythonPlaces};
use lockstead_inspect::report::spread::{LockSpread, SpreadLock, SpreadOf};
use lockstead_inspect::report::verdict::{Verdict, VerdictRule};
use lockstead_inspect::stack::{Frame, Stack, StackEnd};

/// A name with everything that needs escaping somewhere.
pub(super) const NASTY: &str = "Map<int>::find(char const*, \"x\", 'y') & </script>\x1b[2J";

const MS: u64 = 1_000_000;

fn stack() -> Stack {
    let frame = |function: &str, line| Frame {
        address: 0x1234,
        function: Some(function.into()),
        file: Some("/src/cache.c".into()),
        line: Some(line),
        ..Frame::default()
    };
    Stack { frames: vec![frame(NASTY, 77), frame("main", 9)], end: StackEnd::Limit { frames: 2 } }
}

fn site(site: &str, share_percent: f64) -> ReportSite {
    ReportSite {
        site: site.into(),
        function: Some("cache_get".into()),
        file: Some("/src/cache.c".into()),
        line: Some(77),
        count: 100,
        total_ns: (share_percent * 1e6) as u64,
        share_percent,
        others: false,
        through: None,
        stack: Some(stack()),
        callers: vec![caller("serve() at srv.c:7", share_percent)],
    }
}

pub(super) fn caller(site: &str, share_percent: f64) -> SiteCaller {
    SiteCaller {
        site: site.into(),
        function: Some("serve".into()),
        file: Some("/src/srv.c".into()),
        line: Some(7),
        count: 50,
        total_ns: (share_percent * 1e6) as u64,
        share_percent,
        others: false,
        stack: Some(stack()),
    }
}

pub(super) fn durations(count: u64, total_ns: u64) -> Durations {
    Durations {
        count,
        total_ns,
        p50_ns: 1_200_000,
        p99_ns: 9_800_000,
        max_ns: 120 * MS,
        max_at: Some("cache_get() at cache.c:77".into()),
        histogram: (8..27).map(|at| DurationBucket { from_ns: 1 << at, count: at }).collect(),
        timed: count,
        ..Durations::default()
    }
}

pub(super) fn lock(name: &str, kind: &'static str, waited_ns: u64) -> LockReport {
    LockReport {
        name: name.into(),
        kind,
        attributes: vec!["recursive"],
        type_name: format!("recursive {kind}"),
        address: Some(0x7f00),
        locks: 1,
        life: "live",
        acquisitions: 84_100,
        contended: 26_239,
        contended_percent: 31.2,
        timed_out: 2,
        refused: 1,
        share_percent: 60.0,
        still_waiting: 1,
        wait: durations(if waited_ns == 0 { 0 } else { 26_239 }, waited_ns),
        hold: durations(84_100, 700 * MS),
        waited_at: vec![
            site("cache_get() at cache.c:77", 62.0),
            site("cache_put() at cache.c:90", 37.0),
            site("rare() at cache.c:99", 1.0),
        ],
        held_at: vec![site(NASTY, 100.0)],
        holder: Some(holder()),
        verdict: Some(Verdict {
            rule: VerdictRule::Asleep,
            text: "its holder was in fsync for 62% of that: move the call out of the lock".into(),
        }),
        initialised_at: Some(stack()),
        ..LockReport::default()
    }
}

/// Returns a row of 64 locks, one of which has the most.
pub(super) fn group(row: u64, waited_ns: u64) -> LockReport {
    let member = |name: &str, share_percent| SpreadLock {
        name: name.into(),
        address: Some(0x7f00),
        locks: 1,
        share_percent,
        waited_ns,
        max_wait_ns: 120 * MS,
        acquisitions: 84,
        contended: 26,
    };
    let spread = LockSpread {
        of: SpreadOf::Waiting,
        most: 1,
        most_percent: 93.7,
        even: false,
        worst: vec![member("shards[17].mutex", 93.7), member("shards[3].mutex", 0.1)],
    };
    LockReport {
        attributes: Vec::new(),
        type_name: "mutex".into(),
        address: None,
        locks: 64,
        row: Some(row),
        spread: Some(spread),
        life: "several",
        ..lock("shards[*].mutex", "mutex", waited_ns)
    }
}

/// Returns a holder that slept in a call at a place of a strange name, ran, and let go.
fn holder() -> HolderReport {
    let place = |doing, call: Option<&str>, site: &str, share_percent| HolderPlace {
        doing,
        call: call.map(str::to_owned),
        site: Some(site.into()),
        acquired: call.is_none(),
        seen_ns: 2900 * MS,
        looks: 80,
        share_percent,
        stack: Some(stack()),
        ..HolderPlace::default()
    };
    let split = HolderSplit {
        running_percent: 20.0,
        asleep_percent: 62.0,
        free_percent: 18.0,
        ..HolderSplit::default()
    };
    let at = |site: &str| SplitSite { site: site.into(), looks: 70, margin_percent: 11.7, split };
    HolderReport {
        looks: 130,
        seen_ns: 4700 * MS,
        enough: true,
        margin_percent: Some(8.6),
        waiters: 1.5,
        split,
        places: vec![
            place(HolderDoing::Asleep, Some("fsync"), NASTY, 62.0),
            place(HolderDoing::Running, None, "cache_put() at cache.c:90", 20.0),
        ],
        more: 0,
        waited_at: vec![at(NASTY), at("cache_put() at cache.c:90")],
    }
}

/// Returns places in Python: one of a strange name, and ten with a small part each.
pub(super) fn python() -> PythonPlaces {
    let frame = |function: &str, file: &str, line: u32| PythonFrame {
        function: function.into(),
        file: file.into(),
        line: Some(line),
    };
    let place = |function: &str, line: u32, share_percent: f64| {
        let frames = vec![
            frame("Queue.get", "/usr/lib/python3.12/queue.py", 171),
            frame(function, "/srv/app.py", line),
        ];
        PythonPlace {
            site: frames[1].site(),
            function: function.into(),
            file: "/srv/app.py".into(),
            line: Some(line),
            through: Some("Queue.get".into()),
            waits_for: Some("queue.Queue".into()),
            seen_ns: 4000 * MS,
            share_percent,
            waits: 3,
            longest_ns: 120 * MS,
            stack: PythonStack { frames, cut: true },
        }
    };
    let few = (1..=10).map(|line| place("job", line, 3.5));
    let places = [place(NASTY, 99, 50.0)].into_iter().chain(few).collect();
    PythonPlaces { seen_ns: 7000 * MS, unseen_percent: 15.0, places, more: 0 }
}

pub(super) fn process(pid: u32, waited_ns: u64) -> ProcessReport {
    let totals = |locks, waited_ns| LockTotals {
        locks,
        acquisitions: 84_200,
        contended: 9,
        waited_ns,
        still_waiting: 0,
    };
    let busy = waited_ns != 0;
    let worst = ThreadReport {
        tid: pid + 1,
        name: Some("worker-3".into()),
        start: Some("run_worker".into()),
        lived_ns: 9800 * MS,
        waited_ns,
        idled_ns: 0,
        acquisitions: 5,
        contended: 4,
        stuck: true,
    };
    ProcessReport {
        pid,
        parent: Some(1),
        exe: Some("/opt/bin/srv".into()),
        command: vec!["./srv".into(), "--fast".into()],
        exit: Some("exit status 0".into()),
        lived_ns: 9810 * MS,
        threads: ThreadsReport {
            created: 12,
            peak: 8,
            worst: if busy { vec![worst] } else { vec![] },
            kinds: Vec::new(),
        },
        waiting: WaitingShare {
            thread_ns: 39_200 * MS,
            waited_ns,
            waited_percent: 12.0,
            waiting_threads: 0.48,
            idled_ns: 24_000 * MS,
            idled_percent: 61.0,
            ran_ns: Some(2_000 * MS),
            queued_ns: Some(30 * MS),
        },
        totals: totals(1216, waited_ns),
        locks: if busy {
            let rows = [lock("cache_lock", "mutex", waited_ns), lock(NASTY, "rwlock", 1000)];
            let rows = (1..).zip(rows);
            rows.map(|(row, lock)| LockReport { row: Some(row), ..lock }).collect()
        } else {
            vec![]
        },
        more: totals(if busy { 1214 } else { 1216 }, 12 * MS),
        groups: Vec::new(),
        more_rows: totals(if busy { 1214 } else { 1216 }, 12 * MS),
        idle: if busy {
            let queue = lock("queue_cond", "condition", 8200 * MS);
            vec![LockReport { python: Some(python()), ..queue }]
        } else {
            vec![]
        },
        more_idle: LockTotals::default(),
        python: busy.then(|| PythonLooks {
            version: Some("3.12".into()),
            unreadable: None,
            looks: 67,
        }),
        losses: Losses::default(),
        order: None,
    }
}

pub(super) fn report(processes: Vec<ProcessReport>) -> RunReport {
    RunReport {
        schema: SCHEMA,
        version: VERSION,
        lockstead: "0.1.0",
        command: vec!["./srv".into(), "<&\">".into()],
        wall_ns: 9900 * MS,
        processors: 2,
        cpu_ns: 12_000 * MS,
        others_ns: Some(100 * MS),
        sort: Sort::Wait,
        top: 10,
        by_class: false,
        each_lock: false,
        processes,
        silent_processes: 0,
        checked: false,
        findings: Vec::new(),
        semaphores: None,
        glimpses: Vec::new(),
    }
}

pub(super) fn finding() -> Finding {
    Finding {
        kind: "deadlock".into(),
        pid: 100,
        at_ns: 1_500 * MS,
        title: "DEADLOCK of 2 threads".into(),
        text: format!("lockstead: DEADLOCK\n  {NASTY}"),
        ..Finding::default()
    }
}

/// Returns an inversion of two locks.
pub(super) fn inversion(one: &str, other: &str) -> Finding {
    let lock = |name: &str| LockIdentity {
        name: name.into(),
        class: name.into(),
        ..LockIdentity::default()
    };
    let step = |tid, holds: &str, asks: &str| OrderStep {
        thread: ThreadIdentity { tid, name: Some(NASTY.into()) },
        holds: lock(holds),
        holds_how: HoldMode::Write,
        tried: false,
        timed: false,
        acquired: Some(stack()),
        asks: lock(asks),
        asks_how: HoldMode::Write,
        asked: Some(stack()),
        gates: Vec::new(),
        alone: false,
    };
    let order = LockOrder {
        cycle: CycleKind::Locks,
        signal: None,
        handler: None,
        excuse: None,
        gate: None,
        steps: vec![step(7, one, other), step(8, other, one)],
    };
    let details = Details {
        level: Some(Level::Potential),
        rule: Some("lock-order-inversion".into()),
        cause: Some("00ff".into()),
        order: Some(order),
        ..Details::default()
    };
    Finding { kind: "order".into(), pid: 100, details, ..finding() }
}
