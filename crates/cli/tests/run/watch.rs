//! Waits that last: the waiter, the owner, where that acquired the lock and what
//! it does now.

use crate::common::PAUSE;
use crate::programs::{blocked, line, program, under};

/// Returns the first report of `owners WHAT`, with `#` for ids and times.
fn report(what: &str) -> Option<String> {
    let owners = program("owners.c")?;
    let command = [owners.as_os_str(), what.as_ref()];
    let running = under(&["--no-report", "--watch", "150ms"], &command);
    running.expect("lockstead: BLOCKED", 1);
    let ended = running.terminate();
    assert!(!ended.stderr.contains("DEADLOCK"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    blocked(&ended.stderr).into_iter().next()
}

fn at(function: &str, mark: &str) -> String {
    format!("      {function}() at {}", line("owners.c", mark))
}

/// Returns the lines of the waiter that is first in all but one of these reports.
fn waiter() -> [String; 3] {
    let head = "lockstead: BLOCKED: thread \"wants\" (tid #) of owners (pid #) waits for wanted \
                (mutex), since #";
    [head.into(), "    waits at:".into(), at("wants", "wants")]
}

/// Asserts that the report has these lines after those of the waiter, and no others; `...` stands
/// for frames of the C library.
fn expect(report: &str, lines: &[&str]) {
    let waiter = waiter();
    let mut found = report.lines().peekable();
    let mut skips = false;
    for wanted in waiter.iter().map(String::as_str).chain(lines.iter().copied()) {
        if wanted == "..." {
            skips = true;
            continue;
        }
        while skips && found.next_if(|line| *line != wanted && line.starts_with("      ")).is_some()
        {
        }
        skips = false;
        // How long it has been held is known of some holds only.
        let line = found.next().unwrap_or_default().replace(" for # by ", " by ");
        // So are callers that are looked for on the stack.
        let line = line.trim_end_matches(" (probable)");
        assert_eq!(line, wanted, "in:\n{report}");
    }
    // What a function keeps in a register may hide its callers.
    let rest: Vec<&str> = found.filter(|line| !line.starts_with("      (ends here: ")).collect();
    assert_eq!(rest, [""; 0], "in:\n{report}");
}

const OWNER: &str = "  held by thread \"owner\" (tid #), acquired at:";

#[test]
fn an_owner_that_sleeps() {
    let Some(report) = report("sleeps") else { return };
    let doing = "    is now in the system call clock_nanosleep:";
    let (holds, sleeps) = (at("sleeps", "sleeps-holds"), at("sleeps", "sleeps"));
    let nap = report.lines().find(|line| line.starts_with("      nap() at common.h:"));
    expect(&report, &[OWNER, &holds, doing, "...", nap.unwrap_or("nap()"), &sleeps]);
}

#[test]
fn an_owner_that_reads() {
    let Some(report) = report("reads") else { return };
    let doing = "    is now in the system call read:";
    expect(&report, &[OWNER, &at("reads", "reads-holds"), doing, "...", &at("reads", "reads")]);
}

#[test]
fn an_owner_that_runs() {
    let Some(report) = report("runs") else { return };
    let doing = "    is now running on a processor, or ready to:";
    let (holds, turns, runs) = (at("runs", "runs-holds"), at("turn", "turns"), at("runs", "runs"));
    expect(&report, &[OWNER, &holds, doing, &turns, &runs]);
}

#[test]
fn an_owner_that_has_ended() {
    let Some(report) = report("leaks") else { return };
    let leaked = "  held by thread \"owner\" (tid #), which has ended without releasing it; \
                  acquired at:";
    expect(&report, &[leaked, &at("leaks", "leaks-holds")]);
}

#[test]
fn an_owner_that_waits_itself_and_so_on() {
    let Some(owners) = program("owners.c") else { return };
    let command = [owners.as_os_str(), "waits".as_ref()];
    let running = under(&["--no-report", "--watch", "150ms"], &command);
    // Both wait: for the owner, and for the last one.
    running.expect("lockstead: BLOCKED", 2);
    let reports = blocked(&running.terminate().stderr);
    let report = reports.iter().find(|text| text.contains("waits for wanted")).expect("a report");
    let last = format!(
        "    which is held by thread \"last\" (tid #), acquired at holds_other() at {}",
        line("owners.c", "other-holds")
    );
    let pause = report.lines().find(|line| line.starts_with("      sleep_for_ever() at common.h:"));
    expect(
        report,
        &[
            OWNER,
            &at("waits", "waits-holds"),
            "    which itself waits for other (mutex), at:",
            &at("waits", "waits"),
            &last,
            &format!("    is now in the system call {PAUSE}:"),
            "...",
            pause.unwrap_or("sleep_for_ever()"),
            &at("holds_other", "other-sleeps"),
        ],
    );
}

#[test]
fn owners_that_read() {
    let Some(report) = report("readers") else { return };
    let head = "lockstead: BLOCKED: thread \"writer\" (tid #) of owners (pid #) waits to write for \
                table (rwlock), since #";
    assert_eq!(report.lines().next(), Some(head), "{report}");
    let owner = "  held for reading by thread \"reader\" (tid #), acquired at:";
    // As many as are worth a screen, the others are counted.
    assert_eq!(report.replace(" for # by ", " by ").matches(owner).count(), 3, "{report}");
    assert_eq!(report.matches(&at("reads_table", "table-holds")).count(), 3, "{report}");
    assert_eq!(report.matches(&at("reads_table", "table-sleeps")).count(), 3, "{report}");
    assert!(report.ends_with("  and 1 more that hold it\n"), "{report}");
}

#[test]
fn a_wait_is_reported_again_each_time_it_has_doubled() {
    let Some(owners) = program("owners.c") else { return };
    let command = [owners.as_os_str(), "sleeps".as_ref()];
    let running = under(&["--no-report", "--watch", "100ms"], &command);
    running.expect("lockstead: BLOCKED", 3);
    let stderr = running.terminate().stderr;
    let lasted: Vec<f64> = stderr
        .lines()
        .filter(|line| line.starts_with("lockstead: BLOCKED: "))
        .map(|text| {
            let time = text.rsplit_once(", since ").expect("a time").1;
            let (number, unit) = time.split_once(' ').expect("a number and a unit");
            number.parse::<f64>().expect("a number") * if unit == "s" { 1000.0 } else { 1.0 }
        })
        .collect();
    assert!(lasted[0] >= 100.0, "{lasted:?}");
    // Tenths of a second are what is printed.
    assert!(lasted.windows(2).all(|pair| pair[1] >= 2.0 * pair[0] - 100.0), "{lasted:?}");
    let silent = under(&["--no-report", "--watch", "off"], &command);
    silent.settle();
    assert_eq!(silent.terminate().stderr, "");
}
