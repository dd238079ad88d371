//! The comparison as one HTML page: nothing is fetched, everything is in it.
//!
//! The page is also well-formed XML, so that a test can read it. Its frame, its style and the script
//! that sorts its tables are those of the report's page.

use super::model::{ComparedLock, ComparedSite, Comparison, DiffReport};
use super::strip;
use super::text::{percent, what, word};
use super::verdict::{ChangeVerdict, RULE};
use askama::Template;
use lockstead_render::table::time;
use lockstead_render::words::{brief, clean, plural};

#[derive(Template)]
#[template(path = "comparison.html")]
struct ComparisonPage<'a> {
    version: &'static str,
    /// What the runs show of the locks, in a sentence.
    headline: String,
    /// What `--fail-on` came to, if it was given.
    limit: Option<String>,
    failed: bool,
    notes: Vec<String>,
    before: SideView<'a>,
    after: SideView<'a>,
    figures: Vec<ChangeView>,
    told: Vec<LockView>,
    noise: Vec<LockView>,
    noise_said: String,
    rule: &'static str,
}

/// The runs of one side.
struct SideView<'a> {
    runs: String,
    files: &'a [String],
}

/// A time before and after.
struct ChangeView {
    what: String,
    before: Value,
    after: Value,
    change: Value,
    percent: Value,
    /// The verdict, in a word, and its class.
    verdict: &'static str,
    class: &'static str,
    /// The single runs, drawn.
    strip: String,
    /// The single runs of both sides, run by run; nothing where one side has no such run.
    runs: Vec<[String; 2]>,
}

struct LockView {
    id: String,
    name: String,
    program: String,
    time: ChangeView,
    acquisitions: String,
    small: bool,
    sites: Vec<ChangeView>,
}

/// A number, and what a table is sorted by.
struct Value {
    by: i64,
    text: String,
}

/// Returns the whole page.
///
/// # Errors
/// What the template says; there is nothing in it that can fail.
pub(super) fn render(report: &DiffReport) -> Result<String, askama::Error> {
    let told = |lock: &ComparedLock| {
        lock.time.verdict != ChangeVerdict::Noise && lock.time.change() != 0.0
    };
    let (told, noise): (Vec<_>, Vec<_>) = report.locks.iter().partition(|lock| told(lock));
    let side = |files| SideView { runs: runs(files), files };
    let view = |(at, lock): (usize, &&ComparedLock), prefix| of_lock(report, lock, prefix, at);
    ComparisonPage {
        version: report.lockstead,
        headline: headline(&told, noise.len()),
        limit: report.fail_on_percent.map(|limit| {
            let how = if report.failed { "Something got worse" } else { "Nothing got worse" };
            format!("{how} by more than {limit} %, which is what --fail-on allows.")
        }),
        failed: report.failed,
        notes: report.notes.iter().map(|note| clean(note)).collect(),
        before: side(&report.before),
        after: side(&report.after),
        figures: report
            .figures
            .iter()
            .map(|figure| of_time(report, what(figure), &figure.time))
            .collect(),
        noise_said: noise_said(&noise),
        told: told.iter().enumerate().map(|lock| view(lock, "t")).collect(),
        noise: noise.iter().enumerate().map(|lock| view(lock, "n")).collect(),
        rule: RULE,
    }
    .render()
}

fn runs(files: &[String]) -> String {
    plural(files.len() as u64, "run", "runs")
}

/// Says how many locks got worse, better, or neither.
fn headline(told: &[&ComparedLock], noise: usize) -> String {
    let of = |verdict| told.iter().filter(|lock| lock.time.verdict == verdict).count();
    let counts = [
        (of(ChangeVerdict::Worse), "is worse", "are worse"),
        (of(ChangeVerdict::Better), "is better", "are better"),
        (
            of(ChangeVerdict::TooFewRuns),
            "has changed, without a verdict",
            "have changed, without a verdict",
        ),
        (noise, "is not told from noise", "are not told from noise"),
    ];
    let counts = counts.iter().filter(|(count, ..)| *count != 0);
    let said: Vec<String> = counts
        .map(|&(count, one, many)| {
            let verb = if count == 1 { one } else { many };
            format!("{} {verb}", plural(count as u64, "lock", "locks"))
        })
        .collect();
    match said.is_empty() {
        true => "No lock was waited for.".into(),
        false => format!("Of the waiting for locks: {}.", said.join("; ")),
    }
}

/// Says what is folded away.
fn noise_said(noise: &[&ComparedLock]) -> String {
    let same = noise.iter().filter(|lock| lock.time.change() == 0.0).count();
    let all = plural(noise.len() as u64, "lock may differ", "locks may differ");
    let same = match same {
        0 => String::new(),
        same => format!("; of {} the median is the same", plural(same as u64, "lock", "locks")),
    };
    format!("{all} by noise alone{same}")
}

fn of_lock(report: &DiffReport, lock: &ComparedLock, prefix: &str, at: usize) -> LockView {
    let acquisitions = lock.acquisitions().map_or(String::new(), |often| often.join(" → "));
    let mut time = of_time(report, clean(&lock.lock), &lock.time);
    if lock.small {
        // A percentage of so little, which may be in the thousands, would look important.
        time.percent = Value { by: 0, text: "small".into() };
    }
    LockView {
        id: format!("{prefix}{at}"),
        name: brief(&lock.lock),
        program: clean(&lock.program),
        time,
        acquisitions,
        small: lock.small,
        sites: lock.sites.iter().map(|site| of_site(report, site)).collect(),
    }
}

fn of_time(report: &DiffReport, what: String, compared: &Comparison) -> ChangeView {
    let class = match compared.verdict {
        ChangeVerdict::Worse => "worse",
        ChangeVerdict::TooFewRuns if compared.fails => "worse",
        ChangeVerdict::Better => "better",
        ChangeVerdict::Noise | ChangeVerdict::TooFewRuns => "untold",
    };
    let verdict = match word(compared) {
        "" => "too few runs",
        word => word,
    };
    let runs = (&compared.before_runs_ns[..], &compared.after_runs_ns[..]);
    ChangeView {
        verdict,
        class,
        percent: Value {
            // What is new is above all that there was.
            by: compared.change_percent.map_or_else(
                || if compared.after_ns > 0.0 { i64::MAX >> 10 } else { 0 },
                |percent| (percent * 1000.0) as i64,
            ),
            text: percent(compared),
        },
        ..of_medians(report, what, (compared.before_ns, compared.after_ns), runs)
    }
}

/// Returns the waiting at a place, which has no verdict: a report lists the worst places of a lock,
/// not all.
fn of_site(report: &DiffReport, site: &ComparedSite) -> ChangeView {
    let runs = (&site.before_runs_ns[..], &site.after_runs_ns[..]);
    of_medians(report, brief(&site.place), (site.before_ns, site.after_ns), runs)
}

fn of_medians(
    report: &DiffReport,
    what: String,
    (before, after): (f64, f64),
    (before_runs, after_runs): (&[u64], &[u64]),
) -> ChangeView {
    let value = |ns: f64| Value { by: ns as i64, text: time(ns) };
    let change = after - before;
    let sign = if change > 0.0 { "+" } else { "-" };
    let said = if change == 0.0 { "0".into() } else { format!("{sign}{}", time(change.abs())) };
    let of_run =
        |runs: &[u64], at: usize| runs.get(at).map(|&ns| time(ns as f64)).unwrap_or_default();
    let count = before_runs.len().max(after_runs.len());
    ChangeView {
        strip: strip::draw(
            (&report.before, before_runs, before),
            (&report.after, after_runs, after),
        ),
        what,
        before: value(before),
        after: value(after),
        change: Value { by: change as i64, text: said },
        percent: Value { by: 0, text: String::new() },
        verdict: "",
        class: "",
        runs: (0..count).map(|at| [before_runs, after_runs].map(|runs| of_run(runs, at))).collect(),
    }
}

#[cfg(test)]
mod tests;
