//! The exit report as one HTML page: nothing is fetched, everything is in it.
//!
//! The page is also well-formed XML, so that a test can read it.

use super::columns::{ColumnCell, ColumnGroup, GROUPS};
use super::graph::{self, Drawing};
use super::here::Here;
use super::ring::Ring;
use super::svg;
use super::words::{
    WAITS_ONLY, exactness, how_many, late, losses, place, process_name, python_place, thread_name,
    worst_verdicts,
};
use askama::Template;
use holders::HolderView;
use lockstead_inspect::report::Finding;
use lockstead_inspect::report::model::{
    Durations, LockReport, ProcessReport, ReportSite, RunReport, SiteCaller, ThreadReport,
};
use lockstead_inspect::report::python::PythonPlace;
use lockstead_inspect::stack::Stack;
use lockstead_render::table::{count, time};
use lockstead_render::words::{clean, percent, plural};

mod holders;
mod spread;
#[cfg(test)]
mod tests;

#[derive(Template)]
#[template(path = "report.html")]
struct HtmlPage {
    title: String,
    command: String,
    version: &'static str,
    wall: String,
    place: String,
    findings: Vec<FindingView>,
    processes: Vec<ProcessView>,
    groups: &'static [ColumnGroup],
    silent: Option<String>,
}

struct FindingView {
    title: String,
    /// The cycle, of those that are one.
    ring: Option<Ring>,
    text: String,
}

struct ProcessView {
    id: String,
    name: String,
    pid: u32,
    command: String,
    exit: String,
    verdicts: Vec<String>,
    facts: Vec<(&'static str, String)>,
    thread_time: String,
    parts: Vec<(&'static str, String)>,
    bars: String,
    locks: Vec<PageLock>,
    more: Option<String>,
    threads: Vec<ThreadView>,
    idle: Vec<PageLock>,
    losses: Vec<String>,
    order: Option<Drawing>,
}

struct Number {
    /// What the table is sorted by.
    value: u64,
    text: String,
}

struct PageLock {
    id: String,
    name: String,
    type_name: String,
    numbers: Vec<ColumnCell>,
    notes: String,
    spread: Option<spread::SpreadView>,
    wait_chart: String,
    hold_chart: String,
    wait_facts: String,
    hold_facts: String,
    waited_at: Vec<SiteView>,
    python: Vec<SiteView>,
    unseen: String,
    held_at: Vec<SiteView>,
    holder: Option<HolderView>,
    woken_at: Vec<SiteView>,
    initialised_at: Vec<String>,
}

struct SiteView {
    share: String,
    count: String,
    total: String,
    site: String,
    callers: Vec<CallerView>,
    stack: Vec<String>,
    end: String,
}

struct CallerView {
    share: String,
    total: String,
    site: String,
    stack: Vec<String>,
}

struct ThreadView {
    name: String,
    waited: Number,
    share: Number,
    idled: Number,
    lived: Number,
    acquisitions: Number,
    stuck: bool,
}

/// Returns the whole page.
///
/// # Errors
/// What the template says; there is nothing in it that can fail.
pub(super) fn render(report: &RunReport, here: &Here) -> Result<String, askama::Error> {
    let command = report.command.iter().map(|word| clean(word)).collect::<Vec<_>>().join(" ");
    let silent = report.silent_processes;
    HtmlPage {
        title: report.command.first().map_or_else(|| "report".into(), |word| clean(word)),
        command,
        version: report.lockstead,
        wall: time(report.wall_ns as f64),
        place: when_and_where(here),
        findings: report
            .findings
            .iter()
            .filter(|finding| finding.details.suppressed.is_none())
            .map(|finding| FindingView {
                title: finding_title(finding),
                ring: Ring::of(finding),
                text: lines(&finding.text),
            })
            .collect(),
        processes: report.processes.iter().map(|one| process(one, &report.findings)).collect(),
        groups: &GROUPS,
        silent: (silent != 0)
            .then(|| format!("{} used no lock.", plural(silent, "process", "processes"))),
    }
    .render()
}

/// Returns the first line of a finding, and when it was; the process where it does not say that.
fn finding_title(finding: &Finding) -> String {
    let (title, after) = (clean(&finding.title), time(finding.at_ns as f64));
    let title = title.strip_prefix("lockstead: ").unwrap_or(&title);
    match title.contains(&format!("(pid {})", finding.pid)) {
        true => format!("{title}, after {after}"),
        false => format!("{title} (pid {}, after {after})", finding.pid),
    }
}

/// Returns when and where, in a line.
fn when_and_where(Here { host, machine }: &Here) -> String {
    let processors = plural(machine.processors as u64, "processor", "processors");
    let parts = [
        Some(machine.date.clone()),
        host.clone(),
        machine.cpu.clone(),
        Some(processors),
        machine.kernel.as_ref().map(|release| format!("Linux {release}")),
        machine.libc.clone(),
    ];
    clean(&parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

/// Returns a text of several lines, harmless.
fn lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

fn number(value: u64, text: String) -> Number {
    Number { value, text }
}

fn duration(ns: u64) -> Number {
    number(ns, time(ns as f64))
}

/// Returns a share, sorted by its thousandths.
fn share(percent_of: f64) -> Number {
    number((percent_of.max(0.0) * 1000.0) as u64, percent(percent_of))
}

fn process(process: &ProcessReport, findings: &[Finding]) -> ProcessView {
    let waiting = &process.waiting;
    let more = &process.more_rows;
    ProcessView {
        id: format!("p{}", process.pid),
        name: process_name(process),
        pid: process.pid,
        command: process.command.iter().map(|word| clean(word)).collect::<Vec<_>>().join(" "),
        exit: process.exit.as_deref().map(clean).unwrap_or_default(),
        verdicts: worst_verdicts(process),
        facts: vec![
            ("lived", time(process.lived_ns as f64)),
            (
                "threads",
                format!(
                    "{}, at most {} at a time",
                    count(process.threads.created as f64),
                    count(process.threads.peak as f64)
                ),
            ),
            (
                "waited for locks",
                format!(
                    "{}, {} of the threads' time",
                    time(waiting.waited_ns as f64),
                    percent(waiting.waited_percent)
                ),
            ),
            ("threads waiting, on average", format!("{:.2}", waiting.waiting_threads)),
            (
                "idle",
                format!(
                    "{}, {} of the threads' time",
                    time(waiting.idled_ns as f64),
                    percent(waiting.idled_percent)
                ),
            ),
            (
                "locks used",
                format!(
                    "{}, acquired {} times, {} contended{}",
                    count(process.totals.locks as f64),
                    count(process.totals.acquisitions as f64),
                    count(process.totals.contended as f64),
                    match process.totals.still_waiting {
                        0 => String::new(),
                        waits => format!(
                            "; {} had not ended with the process",
                            plural(waits, "further wait", "further waits")
                        ),
                    }
                ),
            ),
        ],
        thread_time: svg::thread_time(process),
        parts: svg::parts(process)
            .iter()
            .map(|part| (part.class, format!("{}, {}", part.what, time(part.ns as f64))))
            .collect(),
        bars: svg::waiting_bars(process),
        locks: lock_views(process.rows(), process.pid, "l"),
        more: (more.locks != 0).then(|| {
            format!(
                "And {}: {} of waiting, {} acquisitions.",
                plural(more.locks, "more lock", "more locks"),
                time(more.waited_ns as f64),
                count(more.acquisitions as f64)
            )
        }),
        threads: process.threads.worst.iter().map(thread).collect(),
        idle: lock_views(process.idle.iter().collect(), process.pid, "i"),
        losses: losses(&process.losses)
            .into_iter()
            .chain(late(process.losses.late_acquisitions))
            .collect(),
        order: process.order.as_ref().and_then(|order| {
            let of = |finding: &&Finding| {
                finding.pid == process.pid && finding.details.suppressed.is_none()
            };
            graph::draw(order, &findings.iter().filter(of).collect::<Vec<_>>())
        }),
    }
}

fn lock_views(locks: Vec<&LockReport>, pid: u32, prefix: &str) -> Vec<PageLock> {
    locks
        .into_iter()
        .enumerate()
        .map(|(at, lock)| PageLock { id: format!("p{pid}{prefix}{at}"), ..lock_view(lock) })
        .collect()
}

fn lock_view(lock: &LockReport) -> PageLock {
    let (wait, hold) = (&lock.wait, &lock.hold);
    let mut notes = Vec::new();
    for (count, what) in [
        (lock.timed_out, "gave up at a deadline"),
        (lock.refused, if lock.refused == 1 { "trylock refused" } else { "trylocks refused" }),
        (lock.still_waiting, "waiting to the end"),
        (lock.still_held, "held to the end"),
    ] {
        if count != 0 {
            notes.push(format!("{} {what}", lockstead_render::table::count(count as f64)));
        }
    }
    if lock.locks > 1 {
        notes.push(how_many(lock));
    }
    notes.extend(lock.mutex.as_ref().map(|mutex| format!("with {}", clean(mutex))));
    if lock.life != "live" && lock.life != "several" {
        // How many they were has just been said.
        notes.push(lock.life.trim_start_matches("several ").into());
    }
    notes.extend(lock.waits_only.then(|| WAITS_ONLY.to_owned()));
    notes.extend(exactness(hold));
    notes.extend(lock.address.map(|address| format!("{address:#x}")));
    PageLock {
        id: String::new(),
        name: clean(&lock.name),
        type_name: lock.type_name.clone(),
        numbers: GROUPS
            .iter()
            .flat_map(|group| group.columns)
            .map(|column| (column.cell)(lock))
            .collect(),
        notes: notes.join(", "),
        spread: lock.spread.as_ref().map(|spread| spread::view(spread, lock.locks)),
        wait_chart: svg::histogram("waiting", wait, "wait"),
        hold_chart: svg::histogram("holding", hold, "hold"),
        wait_facts: facts(wait, "wait", "waits"),
        hold_facts: facts(hold, "hold", "holds"),
        waited_at: lock.waited_at.iter().map(site).collect(),
        python: lock.python.iter().flat_map(|python| &python.places).map(python_site).collect(),
        unseen: lock.python.as_ref().map_or_else(String::new, |it| percent(it.unseen_percent)),
        held_at: lock.held_at.iter().map(site).collect(),
        holder: lock.holder.as_ref().map(holders::view),
        woken_at: lock.woken_at.iter().map(site).collect(),
        initialised_at: lock.initialised_at.as_ref().map(frames).unwrap_or_default(),
    }
}

fn facts(times: &Durations, one: &str, many: &str) -> String {
    let longest = match &times.max_at {
        Some(place) => format!("{} in {}", time(times.max_ns as f64), clean(place)),
        None => time(times.max_ns as f64),
    };
    format!(
        "{}, {} altogether; the longest {longest}",
        plural(times.count, one, many),
        time(times.total_ns as f64)
    )
}

fn site(site: &ReportSite) -> SiteView {
    let end = site.stack.as_ref().map(|stack| &stack.end).filter(|end| !end.is_complete());
    SiteView {
        share: percent(site.share_percent),
        count: plural(site.count, "time", "times"),
        total: time(site.total_ns as f64),
        site: place(site),
        callers: site.callers.iter().map(caller).collect(),
        stack: site.stack.as_ref().map(frames).unwrap_or_default(),
        end: end.map(|end| clean(&end.to_string())).unwrap_or_default(),
    }
}

fn python_site(place: &PythonPlace) -> SiteView {
    SiteView {
        share: percent(place.share_percent),
        count: plural(place.waits, "wait", "waits"),
        total: time(place.seen_ns as f64),
        site: python_place(place, ""),
        callers: Vec::new(),
        stack: place.stack.frames.iter().map(|frame| clean(&frame.site())).collect(),
        end: if place.stack.cut { "more frames".into() } else { String::new() },
    }
}

fn caller(caller: &SiteCaller) -> CallerView {
    CallerView {
        share: percent(caller.share_percent),
        total: time(caller.total_ns as f64),
        site: clean(&caller.site),
        stack: caller.stack.as_ref().map(frames).unwrap_or_default(),
    }
}

fn frames(stack: &Stack) -> Vec<String> {
    stack.visible().map(|frame| clean(&frame.long())).collect()
}

fn thread(thread: &ThreadReport) -> ThreadView {
    let part = thread.waited_ns as f64 * 100.0 / thread.lived_ns.max(1) as f64;
    ThreadView {
        name: thread_name(thread),
        waited: duration(thread.waited_ns),
        share: share(part),
        idled: duration(thread.idled_ns),
        lived: duration(thread.lived_ns),
        acquisitions: number(thread.acquisitions, count(thread.acquisitions as f64)),
        stuck: thread.stuck,
    }
}
