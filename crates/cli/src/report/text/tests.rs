use super::*;
use crate::report::sample::{self, NASTY};
use lockstead_inspect::report::model::Losses;
use lockstead_inspect::report::python::PythonLooks;
use lockstead_inspect::report::verdict::VerdictRule;

fn plain(report: &RunReport, width: Option<usize>) -> String {
    anstream::adapter::strip_str(&render(report, width)).to_string()
}

#[test]
fn the_report_says_all_that_was_asked_for() {
    let mut report = sample::report(vec![sample::process(100, 4_710_000_000)]);
    report.findings.push(sample::finding());
    let text = plain(&report, None);
    for part in [
        "srv (pid 100) waited 4.71 s for locks, 12.0% of its threads' time",
        "12 threads in 9.81 s; on average 0.48 waited for a lock at a time; 61.0% idle",
        "exit status 0",
        "The worst of 1,216 locks by total waiting",
        "  1  cache_lock (recursive mutex, 2 timed out, 1 waiting to the end)",
        "     4.71 s 1.20 ms 9.80 ms  120 ms 1.20 ms 9.80 ms  120 ms    84.1k   31.2%",
        "waited  62.0%  cache_get() at cache.c:77",
        "        37.0%  cache_put() at cache.c:90",
        "held     100%  Map<int>",
        "31.0% of the time that 12 threads were not idle went into waiting for cache_lock; its holder was in \
         fsync for 62% of that: move the call out of the lock",
        "      holder  62.0%  was in fsync, in Map<int>",
        "              20.0%  ran, acquired in cache_put() at cache.c:90",
        "              18.0%  free, its waiters not yet awake",
        "              130 looks: give or take 9 in 100",
        "and 1,214 more locks: 12.0 ms of waiting, 84.2k acquisitions\n",
        "48.1% of 9.80 s, waiting to the end  worker-3 (run_worker, 101)",
        "Idle waits",
        "queue_cond (recursive condition",
        "* timed after a wait, and else as far as that is cheap, or one in up to 256: scaled",
        "reported after 1.50 s, pid 100: DEADLOCK of 2 threads",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    assert!(!text.contains("rare()"), "below the share that is shown");
}

#[test]
fn places_in_python_stand_below_and_what_has_none_is_said() {
    let report = sample::report(vec![sample::process(100, 4_710_000_000)]);
    let text = plain(&report, None);
    let below = text.split_once("queue_cond (recursive condition").expect("the row").1;
    let lines: Vec<&str> = below.lines().skip(1).collect();
    let place = "      python  50.0%  Map<int>";
    assert!(lines[0].starts_with(place), "{text}");
    assert!(lines[0].ends_with("at app.py:99, by Queue.get, for queue.Queue"), "{text}");
    let rest = [
        "              35.0%  other places in Python",
        "              15.0%  not looked at, or not in Python",
        "  frames of Python by 67 looks at what waited; waits between two looks have none",
    ];
    assert_eq!(lines[1..4], rest);
    let mut report = report;
    let why = "its Python is 3.8".to_owned();
    report.processes[0].python =
        Some(PythonLooks { version: None, unreadable: Some(why), looks: 0 });
    assert!(plain(&report, None).contains("\n  no frames of Python: its Python is 3.8\n"));
}

#[test]
fn what_comes_from_the_program_moves_no_cursor() {
    let report = sample::report(vec![sample::process(100, 5)]);
    assert!(NASTY.contains('\x1b'));
    let text = render(&report, Some(80));
    assert!(text.contains("\x1b["), "there is colour for a terminal");
    assert!(!text.contains("\x1b[2J"));
    assert!(!plain(&report, Some(80)).contains('\x1b'));
}

#[test]
fn lines_fit_the_terminal() {
    let report = sample::report(vec![sample::process(100, 4_710_000_000)]);
    for width in [80, 100, 120, 200] {
        for line in plain(&report, Some(width)).lines() {
            assert!(line.chars().count() <= width, "{width}: {line:?}");
        }
    }
    let wide = plain(&report, Some(200));
    let row = wide.lines().find(|line| line.contains("1  cache_lock")).expect("the lock's row");
    assert!(row.contains("4.71 s") && row.contains("31.2%"), "{row}");
}

#[test]
fn little_is_said_where_little_was_seen_or_lost() {
    let mut process = sample::process(100, 4_710_000_000);
    for lock in &mut process.locks {
        lock.verdict.as_mut().expect("one").rule = VerdictRule::Small;
        lock.holder.as_mut().expect("one").enough = false;
    }
    let text = plain(&sample::report(vec![process.clone()]), None);
    assert_eq!(text.matches("went into waiting for").count(), 1, "{text}");
    assert!(text.contains("      holder not looked at often enough (130 looks)"), "{text}");
    assert!(!text.contains("fsync, in"), "{text}");
    process.locks.iter_mut().for_each(|lock| (lock.verdict, lock.holder) = (None, None));
    let text = plain(&sample::report(vec![process]), None);
    assert!(!text.contains("went into") && !text.contains("\n      holder"), "{text}");
}

#[test]
fn nothing_to_report_is_one_quiet_line() {
    let quiet = plain(&sample::report(vec![sample::process(100, 0)]), None);
    assert_eq!(
        quiet,
        "lockstead: no thread waited for a lock (84,200 acquisitions, 1,216 locks, 12 threads, \
         9.81 s)\n"
    );
    assert_eq!(plain(&sample::report(vec![]), None), "lockstead: no thread acquired a lock\n");
    let mut process = sample::process(100, 0);
    process.totals = LockTotals::default();
    let blind = plain(&sample::report(vec![process]), None);
    assert!(
        blind.starts_with("lockstead: 12 threads acquired no lock that can be seen ("),
        "{blind}"
    );
}

#[test]
fn many_processes_are_grouped_and_none_is_forgotten() {
    let mut processes: Vec<_> = (0..40).map(|n| sample::process(100 + n, 1_000_000)).collect();
    processes.extend((0..5).map(|n| sample::process(900 + n, 0)));
    let mut report = sample::report(processes);
    report.silent_processes = 7;
    let text = plain(&report, None);
    assert_eq!(text.matches("The worst of").count(), 10);
    assert_eq!(text.matches("1.00 ms for locks (").count(), 20);
    assert!(text.contains("lockstead: 10 more processes waited 10.0 ms for locks"), "{text}");
    assert!(text.contains("lockstead: in 12 processes no thread waited for a lock"), "{text}");
}

#[test]
fn losses_are_always_said() {
    for waited in [0, 5] {
        let mut process = sample::process(100, waited);
        process.losses = Losses { locks: 3, late_acquisitions: 7, ..Losses::default() };
        let text = plain(&sample::report(vec![process]), None);
        assert!(text.contains("warning: pid 100: not recorded: 3 locks"), "{text}");
        let last = "\nnot recorded: which of the destroyed locks had 7 acquisitions\n";
        assert!(text.ends_with(last), "{text}");
    }
}

#[test]
fn an_order_that_was_asked_for_shows_locks_that_nobody_waited_for() {
    let mut process = sample::process(100, 0);
    let lock = sample::lock("idle_lock", "mutex", 0);
    process.locks.push(LockReport { row: Some(1), ..lock });
    let mut report = sample::report(vec![process]);
    assert!(!plain(&report, None).contains("idle_lock"));
    report.sort = Sort::Acquisitions;
    let text = plain(&report, None);
    assert!(text.contains("idle_lock") && text.contains("by acquisitions"), "{text}");
}

#[test]
fn locks_of_one_array_are_one_row_with_their_spread() {
    let mut process = sample::process(100, 4_710_000_000);
    process.groups.push(sample::group(1, 4_000_000_000));
    process.locks[0].row = None;
    let mut report = sample::report(vec![process]);
    let text = plain(&report, Some(80));
    for part in [
        "  1  shards[*].mutex (mutex, 64 locks, 2 timed out, 1 waiting to the end)\n",
        "      spread  93.7%  in 1 of 64: [17] 93.7%, [3] 0.1%\n",
        "  2  Map<int>",
    ] {
        assert!(text.contains(part), "{part}\n---\n{text}");
    }
    assert!(!text.contains("cache_lock ("), "it has no row");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(plain(&report, None).contains("went into waiting for shards[*].mutex; its holder"));
    report.each_lock = true;
    assert!(plain(&report, None).contains("84.2k acquisitions (--by-class adds up"));
}
