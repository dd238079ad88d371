//! The comparison as people read it.

use super::model::{ComparedFigure, ComparedLock, Comparison, DiffReport};
use super::verdict::ChangeVerdict;
use lockstead_render::table::{TextTable, time};
use lockstead_render::words::{brief, clean, plural};
use std::fmt::Write;

/// The most locks that are shown without `--all`.
const LOCKS: usize = 20;
/// The most places of one lock.
const SITES: usize = 3;
/// The part of a lock's change below which a place is not shown.
const PART: f64 = 0.1;

/// Writes the comparison. `all`: what may be noise, too.
pub(super) fn render(report: &DiffReport, all: bool) -> String {
    let runs = |files: &[String]| plural(files.len() as u64, "run", "runs");
    let mut text =
        format!("lockstead diff: {} before, {} after\n", runs(&report.before), runs(&report.after));
    for note in &report.notes {
        let _ = writeln!(text, "  {}", clean(note));
    }
    let mut table = TextTable::new(&["", "before", "after", "change", ""]);
    for figure in &report.figures {
        table.row([
            what(figure),
            time(figure.time.before_ns),
            time(figure.time.after_ns),
            percent(&figure.time),
            word(&figure.time).to_owned(),
        ]);
    }
    let _ = write!(text, "\n{}", table.render());
    locks(&mut text, report, all);
    if let Some(limit) = report.fail_on_percent {
        let how = if report.failed { "something got worse" } else { "nothing got worse" };
        let _ = writeln!(text, "\n  {how} by more than {limit}%");
    }
    text
}

/// Adds the locks whose waiting has changed.
fn locks(text: &mut String, report: &DiffReport, all: bool) {
    let changed = |lock: &&ComparedLock| lock.time.change() != 0.0;
    let told = |lock: &&ComparedLock| lock.time.verdict != ChangeVerdict::Noise;
    let changed: Vec<&ComparedLock> = report.locks.iter().filter(changed).collect();
    let shown: Vec<&ComparedLock> = if all {
        changed.clone()
    } else {
        changed.iter().copied().filter(told).take(LOCKS).collect()
    };
    if !shown.is_empty() {
        text.push_str("\n  Waiting for locks, the largest change first\n");
    }
    for lock in &shown {
        let (before, after) = (time(lock.time.before_ns), time(lock.time.after_ns));
        let _ = writeln!(text, "  {}", whose(&lock.lock, &lock.program));
        let mut facts = vec![format!("{before} -> {after}")];
        if lock.small {
            // A percentage of so little, which may be in the thousands, would look important.
            facts.push("below 1% of the threads' time".into());
        } else {
            facts.push(percent(&lock.time));
            facts.extend(Some(word(&lock.time).to_owned()).filter(|word| !word.is_empty()));
        }
        facts.extend(lock.acquisitions().map(|[a, b]| format!("{a} -> {b} acquisitions")));
        let _ = writeln!(text, "      {}", facts.join(", "));
        let least = PART * lock.time.change().abs();
        for site in lock.sites.iter().filter(|site| site.change().abs() >= least).take(SITES) {
            let (before, after) = (time(site.before_ns), time(site.after_ns));
            let _ = writeln!(text, "      {before} -> {after} at {}", brief(&site.place));
        }
    }
    let noise = changed.iter().filter(|lock| !told(lock)).count();
    let less = (changed.len() - noise).saturating_sub(LOCKS);
    for (count, what) in [(less, "changed too, by less"), (noise, "may differ by noise alone")] {
        if !all && count > 0 {
            let locks = plural(count as u64, "lock", "locks");
            let _ = writeln!(text, "  {locks} {what} (--all shows them)");
        }
    }
    if changed.is_empty() {
        text.push_str("\n  the waiting for no lock has changed\n");
    }
}

/// Names a lock and its program: `cache in srv`. A name may say already which file it lies in.
fn whose(lock: &str, program: &str) -> String {
    let program = format!(" in {}", clean(program));
    let name = brief(lock);
    if name.ends_with(&program) { name } else { name + &program }
}

/// Names a figure: `waiting for locks in srv`.
pub(super) fn what(figure: &ComparedFigure) -> String {
    match &figure.program {
        Some(program) => format!("{} for locks in {}", figure.figure, clean(program)),
        None => figure.figure.to_owned(),
    }
}

/// Writes the change: `+21.3%`, `-4.0%`, `new`.
pub(super) fn percent(time: &Comparison) -> String {
    match time.change_percent {
        Some(percent) => format!("{percent:+.1}%"),
        None if time.after_ns > 0.0 => "new".into(),
        None => "0%".into(),
    }
}

/// Says what the runs show.
pub(super) fn word(time: &Comparison) -> &'static str {
    match (time.verdict, time.fails) {
        (ChangeVerdict::Worse | ChangeVerdict::TooFewRuns, true) => "WORSE",
        (ChangeVerdict::Worse, _) => "worse",
        (ChangeVerdict::Better, _) => "better",
        (ChangeVerdict::Noise, _) => "noise",
        (ChangeVerdict::TooFewRuns, _) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_name_ends_with_is_said_once() {
        assert_eq!(whose("cache", "srv"), "cache in srv");
        assert_eq!(whose("mutex made at 0x1f in srv", "srv"), "mutex made at 0x1f in srv");
        assert_eq!(whose("cache in libx.so", "srv"), "cache in libx.so in srv");
    }
}
