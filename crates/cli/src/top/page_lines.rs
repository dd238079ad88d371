//! The page of one lock as lines of text.

use super::lines::{LEAST, Tone, TonedLine, head, held, lock_row, title};
use super::page::{LockPage, PageThread, PageThreads, frames};
use super::screen::ScreenChoices;
use lockstead_inspect::report::OneLock;
use lockstead_inspect::report::model::{Durations, ReportSite};
use lockstead_render::table::{amount, count, time};
use lockstead_render::words::{clean, fit, percent};

/// The lines of the page that stay where they are: title and keys.
const FIXED: usize = 2;

/// Returns all lines for a terminal of this size, and how many lines of the page lie above it: no
/// more than there are.
pub(super) fn of_page(
    (name, interval_ns): (&str, u64),
    page: &LockPage,
    choices: &ScreenChoices,
    (width, height): (usize, usize),
) -> (Vec<TonedLine>, usize) {
    let (width, height) = (width.max(LEAST.0), height.max(LEAST.1));
    let body = body(page, choices, width);
    let room = height - FIXED;
    let above = choices.scrolled.min(body.len().saturating_sub(room));
    let below = body.len().saturating_sub(above + room);
    let mut lines = vec![title(name, interval_ns, choices, width)];
    lines.extend(body.into_iter().skip(above).take(room));
    lines.resize(height - 1, (Tone::Plain, String::new()));
    let more = if below == 0 { String::new() } else { format!("  {below} more below") };
    lines.push((Tone::Keys, fit(&format!(" Esc back  ↑↓ scroll  p pause  h help{more}"), width)));
    (lines, above)
}

fn body(page: &LockPage, choices: &ScreenChoices, width: usize) -> Vec<TonedLine> {
    let mut lines = Vec::new();
    lines.push((Tone::Head, head(choices.sort, width)));
    match &page.row {
        Some(row) => lines.push(lock_row(row, width, Tone::Plain)),
        None => {
            let name = fit(&clean(&page.name), width - 1);
            lines.push((Tone::Plain, format!(" {name}")));
            lines.push((Tone::Faint, " not used in this interval".into()));
        }
    }
    let Some(one) = &page.one else {
        let text = " This lock is gone: it was destroyed, or its memory was given back.";
        lines.push((Tone::Faint, fit(text, width)));
        return lines;
    };
    lines.extend(facts(page, one).into_iter().map(|text| (Tone::Plain, fit(&text, width))));
    threads(&mut lines, "WAITING NOW", &page.waiters, width);
    threads(&mut lines, "HELD NOW", &page.holders, width);
    sites(&mut lines, "WAITED FOR AT", &one.waited_at, width);
    sites(&mut lines, "HELD FROM", &one.held_at, width);
    sites(&mut lines, "WAITERS WOKEN AT", &one.woken_at, width);
    if let Some(stack) = &one.initialised_at {
        lines.push((Tone::Head, " INITIALISED AT".into()));
        lines.extend(frames(stack).iter().map(|frame| indented(frame, 1, Tone::Plain, width)));
    }
    lines
}

/// Returns what the lock is, and its sums.
fn facts(page: &LockPage, one: &OneLock) -> Vec<String> {
    let mut facts = vec![format!(" {} at {:#x}", one.type_name, one.address)];
    if let Some((all, contended)) = page.acquisitions {
        let part = if all == 0 { 0.0 } else { contended as f64 * 100.0 / all as f64 };
        facts.push(format!(
            " since its first use: {} acquisitions, {} contended",
            amount(all),
            percent(part.min(100.0)),
        ));
    }
    facts.extend(durations("waited", &one.wait));
    facts.extend(durations("held", &one.hold));
    facts
}

fn durations(what: &str, of: &Durations) -> Vec<String> {
    if of.count == 0 {
        return Vec::new();
    }
    let time = |ns: u64| time(ns as f64);
    let (all, total, longest) = (amount(of.count), time(of.total_ns), time(of.max_ns));
    let (half, most) = (time(of.p50_ns), time(of.p99_ns));
    let times =
        format!(" {what} {all} times, {total} in all: half ≤ {half}, 99% ≤ {most}, max {longest}");
    let place = of.max_at.as_ref().map(|at| format!("    the longest at {}", clean(at)));
    std::iter::once(times).chain(place).collect()
}

fn threads(lines: &mut Vec<TonedLine>, what: &str, threads: &PageThreads, width: usize) {
    lines.push((Tone::Head, format!(" {what}  {}", count(threads.all as f64))));
    if threads.all == 0 {
        lines.push((Tone::Faint, " no thread".into()));
    }
    for thread in &threads.longest {
        let PageThread { thread, time, reads, stack } = thread;
        let reads = if *reads { "  (read)" } else { "" };
        let text = format!(" {}  {}{reads}", clean(thread), held(*time));
        lines.push((Tone::Plain, fit(&text, width)));
        lines.extend(stack.iter().map(|frame| indented(frame, 5, Tone::Faint, width)));
    }
    let more = threads.all - threads.longest.len();
    if more != 0 {
        lines.push((Tone::Faint, format!(" and {} more", count(more as f64))));
    }
}

/// Adds places, each with the stack that has the largest part of it.
fn sites(lines: &mut Vec<TonedLine>, what: &str, sites: &[ReportSite], width: usize) {
    if sites.is_empty() {
        return;
    }
    lines.push((Tone::Head, format!(" {what}")));
    for site in sites {
        let text = format!(
            " {:>6} {:>9} {:>9}×  {}",
            percent(site.share_percent),
            time(site.total_ns as f64),
            amount(site.count),
            clean(&site.site)
        );
        lines.push((Tone::Plain, fit(&text, width)));
        let frames = site.stack.as_ref().map(frames).unwrap_or_default();
        // The place itself is the row.
        let rest = frames.iter().filter(|frame| **frame != site.site);
        lines.extend(rest.map(|frame| indented(frame, 29, Tone::Faint, width)));
    }
}

fn indented(text: &str, by: usize, tone: Tone, width: usize) -> TonedLine {
    let room = width.saturating_sub(by);
    (tone, format!("{:by$}{}", "", fit(&clean(text), room)))
}
