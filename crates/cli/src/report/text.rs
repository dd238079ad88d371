//! The exit report as text: 80 columns suffice, a wide terminal gets longer
//! lines. Colour is in it; whoever prints it drops that where it is not wanted.

use super::columns;
use super::words::{
    self, WAITS_ONLY, exactness, how_many, late, losses, place, process_name, thread_name,
};
use anstyle::{AnsiColor, Style};
use lockstead_inspect::check::model::Level;
use lockstead_inspect::report::model::{
    Glimpse, LockReport, LockTotals, ProcessReport, ReportSite, RunReport, ThreadReport,
};
use lockstead_inspect::report::{Finding, Sort};
use lockstead_ledger::SAMPLE;
use lockstead_render::table::{amount, time};
use lockstead_render::words::{brief, clean, fit, percent, plural};
use std::fmt::Write;

const TITLE: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default().bold();
const HOT: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// The number of columns from which on a lock's name stands in front of its numbers.
const WIDE: usize = 120;
/// How many processes get a table of their own, and how many a line.
const TABLES: usize = 10;
const LINES: usize = 20;
/// The most places shown on each side of a lock, and the share that each needs.
const SITES: usize = 3;
const SHARE: f64 = 5.0;

/// The words for a process whose threads waited, but for nothing that has a holder.
const OF_THESE: &str = "no thread waited for a mutex, a reader-writer lock or a spin lock";

struct TextPage {
    text: String,
    /// The columns of the terminal; none: lines are as long as they are.
    width: Option<usize>,
    /// Whether there was anything to explain by a footnote.
    sampled: bool,
}

/// Returns the report for a terminal of this width, or for a file.
pub(super) fn render(report: &RunReport, width: Option<usize>) -> String {
    let mut page = TextPage { text: String::new(), width, sampled: false };
    let (busy, quiet): (Vec<_>, Vec<_>) =
        report.processes.iter().partition(|process| is_worth_a_table(process, report.sort));
    if busy.is_empty() && told(report).next().is_none() && quiet.len() <= 1 {
        page.nothing(quiet.first().copied(), report);
        page.glimpses(report);
        page.late(report);
        return page.text;
    }
    for process in busy.iter().take(TABLES) {
        page.process(process, report);
    }
    for process in busy.iter().skip(TABLES).take(LINES) {
        page.one_line(process);
    }
    let others = busy.iter().skip(TABLES + LINES);
    let others = others.map(|process| process.waiting.waited_ns);
    page.rest(others, &quiet, report.silent_processes, !report.glimpses.is_empty());
    for process in &quiet {
        page.losses(process);
    }
    page.findings(report);
    page.glimpses(report);
    if page.sampled {
        let note = format!(
            "* timed after a wait, and else as far as that is cheap, or one in up to {SAMPLE}: scaled"
        );
        page.line(FAINT, &note);
    }
    page.late(report);
    page.text
}

fn is_worth_a_table(process: &ProcessReport, sort: Sort) -> bool {
    let asked_for = !matches!(sort, Sort::Wait | Sort::MaxWait | Sort::Name);
    process.waiting.waited_ns != 0 || asked_for && !process.locks.is_empty()
}

impl TextPage {
    fn line(&mut self, style: Style, text: &str) {
        let text = match self.width {
            Some(width) => fit(text, width),
            None => text.to_owned(),
        };
        let _ = writeln!(self.text, "{style}{text}{style:#}");
    }

    fn nothing(&mut self, process: Option<&ProcessReport>, report: &RunReport) {
        let events = process.is_some_and(|process| !process.idle.is_empty());
        let text = match process {
            None if report.glimpses.is_empty() => "lockstead: no thread acquired a lock".to_owned(),
            None => format!("lockstead: {OF_THESE}"),
            Some(process) if process.totals.locks == 0 && process.idle.is_empty() => format!(
                "lockstead: {} acquired no lock that can be seen (not seen are static programs, Go, Java \
                 monitors, and what is free when other libraries' locks are taken)",
                plural(process.threads.created, "thread", "threads")
            ),
            Some(process) if events || !report.glimpses.is_empty() => {
                format!("lockstead: {OF_THESE} ({})", usage(process))
            }
            Some(process) => format!("lockstead: no thread waited for a lock ({})", usage(process)),
        };
        self.line(Style::new(), &text);
        if report.silent_processes != 0 && process.is_some() {
            let count = plural(report.silent_processes, "process", "processes");
            self.line(Style::new(), &format!("           {count} more acquired none"));
        }
        if let Some(process) = process {
            self.idle(&process.idle, &process.more_idle);
            self.python_looks(process);
            self.losses(process);
        }
    }

    fn process(&mut self, process: &ProcessReport, report: &RunReport) {
        let waiting = &process.waiting;
        let title = format!(
            "lockstead: {} (pid {}) waited {} for locks, {} of its threads' time",
            process_name(process),
            process.pid,
            time(waiting.waited_ns as f64),
            percent(waiting.waited_percent),
        );
        self.line(TITLE, &title);
        let mut facts = format!(
            "  {} in {}; on average {:.2} waited for a lock at a time; {} idle",
            plural(process.threads.created, "thread", "threads"),
            time(process.lived_ns as f64),
            waiting.waiting_threads,
            percent(waiting.idled_percent),
        );
        if let Some(exit) = &process.exit {
            facts += &format!("; {}", clean(exit));
        }
        self.line(FAINT, &facts);
        self.verdicts(process);
        let rows = process.rows();
        if !rows.is_empty() {
            self.head(process.totals.locks, report);
        }
        for (number, lock) in rows.into_iter().enumerate() {
            self.lock(number + 1, lock);
        }
        self.more(&process.more_rows, report);
        self.threads(&process.threads.worst);
        self.idle(&process.idle, &process.more_idle);
        self.python_looks(process);
        self.losses(process);
        self.text.push('\n');
    }

    fn is_wide(&self) -> bool {
        self.width.is_some_and(|width| width >= WIDE)
    }

    /// Returns the number of columns for names in front of the numbers.
    fn name_width(&self) -> usize {
        self.width.unwrap_or(WIDE).saturating_sub(columns::width() + 6)
    }

    fn head(&mut self, locks: u64, report: &RunReport) {
        let by = report.sort.words();
        let title = format!("\n  The worst of {} by {by}", plural(locks, "lock", "locks"));
        let _ = writeln!(self.text, "{TITLE}{title}{TITLE:#}");
        let indent = if self.is_wide() { self.name_width() + 6 } else { 4 };
        let pad = " ".repeat(indent);
        let [above, below] = columns::heads().map(|line| format!("{pad}{line}"));
        let _ = writeln!(self.text, "{FAINT}{above}\n{below}{FAINT:#}");
        self.sampled = true;
    }

    fn lock(&mut self, number: usize, lock: &LockReport) {
        let numbers = columns::line(lock);
        let name = brief(&lock.name);
        let note = annotation(lock, &name);
        if self.is_wide() {
            let width = self.name_width();
            let shown = fit(&format!("{name}{note}"), width);
            let pad = " ".repeat(width - shown.chars().count());
            let _ = writeln!(self.text, "{number:>3}  {NAME}{shown}{NAME:#}{pad} {numbers}");
        } else {
            let room =
                self.width.map_or(usize::MAX, |w| w.saturating_sub(5 + note.chars().count()));
            let shown = fit(&name, room.max(20));
            let style = if lock.share_percent >= 50.0 { HOT } else { Style::new() };
            let _ = writeln!(self.text, "{number:>3}  {NAME}{shown}{NAME:#}{FAINT}{note}{FAINT:#}");
            let _ = writeln!(self.text, "    {style}{numbers}{style:#}");
        }
        if let Some(spread) = &lock.spread {
            self.part("      spread ", spread.most_percent, &words::spread(spread, lock.locks));
        }
        self.sites("waited", &lock.waited_at);
        self.python(lock);
        self.sites("held", &lock.held_at);
        self.holder(lock);
        self.sites("woken", &lock.woken_at);
    }

    fn sites(&mut self, what: &str, sites: &[ReportSite]) {
        let is_shown = |(at, site): &(usize, &ReportSite)| {
            *at == 0 || site.share_percent >= SHARE && (*at < SITES || site.others)
        };
        for (at, site) in sites.iter().enumerate().filter(is_shown) {
            let label = if at == 0 { what } else { "" };
            self.part(&format!("      {label:<6} "), site.share_percent, &place(site));
            // Of one caller alone there is nothing to tell apart.
            let callers = site.callers.iter().filter(|_| site.callers.len() > 1);
            for caller in callers.take(SITES).filter(|caller| caller.share_percent >= SHARE) {
                let from = format!("from {}", brief(&caller.site));
                self.part("               ", caller.share_percent, &from);
            }
        }
    }

    /// Adds a place and its part.
    fn part(&mut self, label: &str, share: f64, place: &str) {
        let start = format!("{label}{:>6}  ", percent(share));
        let place = match self.width {
            Some(width) => fit(place, width.saturating_sub(start.len()).max(20)),
            None => place.to_owned(),
        };
        let _ = writeln!(self.text, "{FAINT}{start}{FAINT:#}{place}");
    }

    fn more(&mut self, more: &LockTotals, report: &RunReport) {
        if more.locks == 0 {
            return;
        }
        let mut text = format!("     and {}: ", plural(more.locks, "more lock", "more locks"));
        text += &format!(
            "{} of waiting, {} acquisitions",
            time(more.waited_ns as f64),
            amount(more.acquisitions)
        );
        if report.each_lock && more.locks > 100 && more.waited_ns != 0 {
            text += " (--by-class adds up those of one origin)";
        }
        self.line(FAINT, &text);
    }

    fn threads(&mut self, worst: &[ThreadReport]) {
        if worst.is_empty() {
            return;
        }
        self.text.push('\n');
        self.line(TITLE, "  The threads that waited longest for locks");
        for thread in worst {
            let share = thread.waited_ns as f64 * 100.0 / (thread.lived_ns.max(1) as f64);
            let stuck = if thread.stuck { ", waiting to the end" } else { "" };
            let text = format!(
                "    {}, {} of {}{stuck}  {}",
                cell(time(thread.waited_ns as f64)),
                percent(share),
                time(thread.lived_ns as f64),
                thread_name(thread),
            );
            self.line(Style::new(), &text);
        }
    }

    fn idle(&mut self, idle: &[LockReport], more: &LockTotals) {
        if idle.is_empty() {
            return;
        }
        self.text.push('\n');
        self.line(TITLE, "  Idle waits: for conditions, semaphores, barriers and other events");
        let columns = ["total", "p50", "p99", "max"];
        let titles: String = columns.iter().map(|title| format!("{title:>8}")).collect();
        self.line(FAINT, &format!("    {titles}{:>9}", "waits"));
        for object in idle {
            let name = brief(&object.name);
            let place = object.waited_at.first().map(|site| format!(", at {}", brief(&site.site)));
            let text = format!(
                "    {}{:>9}  {name}{}{}",
                columns::waits(object),
                amount(object.wait.count),
                annotation(object, &name),
                place.unwrap_or_default(),
            );
            self.line(Style::new(), &text);
            self.python(object);
        }
        if more.waited_ns != 0 {
            let text = format!(
                "    {}  at {}",
                cell(time(more.waited_ns as f64)),
                plural(more.locks, "more", "more")
            );
            self.line(FAINT, &text);
        }
    }

    fn losses(&mut self, process: &ProcessReport) {
        for line in losses(&process.losses) {
            let text = format!("{WARNING}warning:{WARNING:#} pid {}: {line}", process.pid);
            self.text += &(text + "\n");
        }
    }

    fn late(&mut self, report: &RunReport) {
        let each = report.processes.iter().map(|process| process.losses.late_acquisitions);
        // What a program has written over its ledger may be any number.
        if let Some(text) = late(each.fold(0, u64::saturating_add)) {
            self.line(FAINT, &text);
        }
    }

    fn one_line(&mut self, process: &ProcessReport) {
        let text = format!(
            "lockstead: {} (pid {}) waited {} for locks ({})",
            process_name(process),
            process.pid,
            time(process.waiting.waited_ns as f64),
            usage(process)
        );
        self.line(Style::new(), &text);
    }

    /// Adds one line on all processes that got none.
    fn rest(
        &mut self,
        others: impl ExactSizeIterator<Item = u64>,
        quiet: &[&ProcessReport],
        silent: u64,
        glimpses: bool,
    ) {
        if others.len() != 0 {
            let count = plural(others.len() as u64, "more process", "more processes");
            let waited = time(others.sum::<u64>() as f64);
            self.line(
                Style::new(),
                &format!("lockstead: {count} waited {waited} for locks; --json FILE has them all"),
            );
        }
        let (events, quiet): (Vec<&ProcessReport>, Vec<_>) =
            quiet.iter().copied().partition(|process| !process.idle.is_empty());
        let without = quiet.len() as u64 + silent;
        if without != 0 {
            let count = plural(without, "process", "processes");
            let what = if glimpses { OF_THESE } else { "no thread waited for a lock" };
            self.line(Style::new(), &format!("lockstead: in {count} {what}"));
        }
        if !events.is_empty() {
            let count = plural(events.len() as u64, "process", "processes");
            self.line(Style::new(), &format!("lockstead: in {count} {OF_THESE}"));
        }
        for process in events.iter().take(LINES) {
            let title = format!("  {} (pid {})", process_name(process), process.pid);
            self.line(Style::new(), &title);
            self.idle(&process.idle, &process.more_idle);
            self.python_looks(process);
        }
        if events.len() > LINES {
            let more = plural((events.len() - LINES) as u64, "more", "more");
            self.line(Style::new(), &format!("  {more}; --json FILE has them all"));
        }
    }

    /// Shows the waits that no ledger has, those of one kind in one line.
    fn glimpses(&mut self, report: &RunReport) {
        let mut groups: Vec<(&Glimpse, u64, u64)> = Vec::new();
        for glimpse in &report.glimpses {
            let same = |group: &&mut (&Glimpse, u64, u64)| {
                let one = group.0;
                (one.pid, one.ended, &one.what) == (glimpse.pid, glimpse.ended, &glimpse.what)
            };
            match groups.iter_mut().find(same) {
                Some((_, longest, more)) => {
                    (*longest, *more) = ((*longest).max(glimpse.waited_ns), *more + 1);
                }
                None => groups.push((glimpse, glimpse.waited_ns, 0)),
            }
        }
        for (glimpse, longest, more) in groups.iter().take(LINES) {
            let (at_end, verb) =
                if glimpse.ended { ("", "waited") } else { ("when last seen, ", "had waited") };
            let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
            let text = format!(
                "lockstead: {at_end}thread {}{more} of {} (pid {}) {verb} {} {}",
                glimpse.tid,
                clean(&glimpse.program),
                glimpse.pid,
                time(*longest as f64),
                clean(&glimpse.what),
            );
            self.line(Style::new(), &text);
        }
        let more = groups.len().saturating_sub(LINES);
        if more != 0 {
            let text = format!("           and {more} more such waits; --json FILE has them all");
            self.line(Style::new(), &text);
        }
    }

    fn findings(&mut self, report: &RunReport) {
        for finding in told(report) {
            let text = format!(
                "reported after {}, pid {}: {}",
                time(finding.at_ns as f64),
                finding.pid,
                clean(&finding.title)
            );
            self.line(HOT, &text);
        }
    }
}

/// Returns the findings that are listed: those of the checks have a summary of their own.
fn told(report: &RunReport) -> impl Iterator<Item = &Finding> {
    let is_of_checks =
        |finding: &&Finding| finding.details.level.is_some_and(|level| level != Level::Deadlock);
    report.findings.iter().filter(move |finding| !is_of_checks(finding))
}

/// Returns what a process did without waiting.
fn usage(process: &ProcessReport) -> String {
    format!(
        "{}, {}, {}, {}",
        plural(process.totals.acquisitions, "acquisition", "acquisitions"),
        plural(process.totals.locks, "lock", "locks"),
        plural(process.threads.created, "thread", "threads"),
        time(process.lived_ns as f64),
    )
}

fn cell(text: String) -> String {
    format!("{text:>8}")
}

/// Returns the type, where the name does not say it, and what else is special.
fn annotation(lock: &LockReport, name: &str) -> String {
    let mut notes = Vec::new();
    let is_one_kind = lock.address.is_some() || lock.spread.is_some();
    if !name.starts_with(&lock.type_name) && is_one_kind || !lock.attributes.is_empty() {
        notes.push(lock.type_name.clone());
    }
    if lock.locks > 1 {
        notes.push(how_many(lock));
    }
    if lock.life != "live" && lock.life != "several" {
        notes.push("destroyed".into());
    }
    for (count, what) in [
        (lock.timed_out, "timed out"),
        (lock.still_waiting, "waiting to the end"),
        (lock.still_held, "held to the end"),
    ] {
        if count != 0 {
            notes.push(format!("{} {what}", lockstead_render::table::count(count as f64)));
        }
    }
    notes.extend(lock.waits_only.then(|| WAITS_ONLY.to_owned()));
    notes.extend(exactness(&lock.hold));
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
}

mod holders;
mod python;
#[cfg(test)]
mod tests;
