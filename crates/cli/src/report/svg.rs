//! The charts of the HTML report. Colours are the page's, by class, so that
//! light, dark and paper each have their own.

use lockstead_inspect::report::model::{Durations, ProcessReport};
use lockstead_render::html::{escape, open};
use lockstead_render::table::{count, time};
use lockstead_render::words::{clean, fit};
use std::fmt::Write;

const HISTOGRAM: (u32, u32) = (360, 152);
/// The height of the text below a histogram, and of the two lines of text above its bars.
const AXIS: u32 = 18;
const MARKS: u32 = 26;
/// The room at both sides of a histogram for the names of marks at its ends.
const SIDE: u32 = 28;
const BARS_WIDTH: u32 = 760;
const ROW: u32 = 24;
/// The most characters of a name, and the room that each surely finds.
const NAME: usize = 36;
const LETTER: u32 = 8;

/// Returns how often which time occurred, a bar for each power of two.
pub(super) fn histogram(what: &str, times: &Durations, class: &str) -> String {
    let buckets = &times.histogram;
    let Some(first) = buckets.first() else { return String::new() };
    let (width, height) = HISTOGRAM;
    let base = height - AXIS;
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    let mut svg = open(width, height, &format!("histogram of {what} times"));
    let step = f64::from(width - 2 * SIDE) / buckets.len() as f64;
    for (at, bucket) in buckets.iter().enumerate() {
        if bucket.count == 0 {
            continue;
        }
        // One among millions is still to be seen.
        let tall = (bucket.count as f64 / most as f64 * f64::from(base - MARKS)).max(2.0);
        let until = if bucket.from_ns == 0 { 2 } else { bucket.from_ns.saturating_mul(2) };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\">\
             <title>{} to {}: {}</title></rect>",
            f64::from(SIDE) + at as f64 * step + 0.5,
            f64::from(base) - tall,
            (step - 1.0).max(1.0),
            time(bucket.from_ns as f64),
            time(until as f64),
            count(bucket.count as f64),
        );
    }
    let place = |ns: u64| {
        let start = first.from_ns.max(1) as f64;
        let skipped = if first.from_ns == 0 { 0.0 } else { start.log2() };
        let across =
            (((ns.max(1) as f64).log2() - skipped) * step).clamp(0.0, f64::from(width - 2 * SIDE));
        f64::from(SIDE) + across
    };
    // The names stand above all bars: that of the larger one higher and right of its line, that
    // of the smaller one left of it, so that neither line runs through a name.
    for (ns, name, top, side, anchor) in
        [(times.p99_ns, "p99", 0, 3.0, "start"), (times.p50_ns, "p50", MARKS / 2, -3.0, "end")]
    {
        let x = place(ns);
        let _ = write!(
            svg,
            "<line class=\"mark\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{base}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{name}</text>",
            x + side,
            top + 10
        );
    }
    let last = buckets.last().map_or(0, |bucket| bucket.from_ns.saturating_mul(2));
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{SIDE}\" y1=\"{base}\" x2=\"{0}\" y2=\"{base}\"/>\
         <text class=\"small\" x=\"{SIDE}\" y=\"{1}\">{2}</text>\
         <text class=\"small\" x=\"{0}\" y=\"{1}\" text-anchor=\"end\">{3}</text></svg>",
        width - SIDE,
        height - 4,
        time(first.from_ns as f64),
        time(last as f64)
    );
    svg
}

/// Returns the waiting for each of the worst locks.
pub(super) fn waiting_bars(process: &ProcessReport) -> String {
    let mut rows = process.rows();
    rows.retain(|lock| lock.wait.total_ns != 0);
    let most = rows.iter().map(|lock| lock.wait.total_ns).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let height = ROW * rows.len() as u32;
    let names: Vec<String> = rows.iter().map(|lock| fit(&clean(&lock.name), NAME)).collect();
    let left = names.iter().map(|name| name.chars().count() as u32).max().unwrap_or(0) * LETTER + 8;
    let mut svg = open(BARS_WIDTH, height, "time of waiting for each lock");
    let room = f64::from(BARS_WIDTH - left - 80);
    for (at, (lock, name)) in rows.iter().zip(&names).enumerate() {
        let top = ROW * at as u32;
        let middle = top + ROW / 2 + 4;
        let long = (lock.wait.total_ns as f64 / most as f64 * room).max(1.0);
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}<title>{}</title></text>\
             <rect class=\"wait\" x=\"{left}\" y=\"{}\" width=\"{long:.1}\" height=\"{}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{middle}\">{}</text>",
            left - 8,
            escape(name),
            escape(&lock.name),
            top + 3,
            ROW - 6,
            f64::from(left) + long + 6.0,
            time(lock.wait.total_ns as f64),
        );
    }
    svg + "</svg>"
}

/// A part of the threads' time: the class of its colour, how long, and what they did.
pub(super) struct TimePart {
    pub(super) class: &'static str,
    pub(super) ns: u64,
    pub(super) what: &'static str,
}

/// Returns what the threads spent their time on, as far as that is known: whoever neither waits nor
/// is idle may sleep in any system call, so that only processor time tells that one ran.
pub(super) fn parts(process: &ProcessReport) -> Vec<TimePart> {
    let waiting = &process.waiting;
    let rest = waiting.thread_ns.saturating_sub(waiting.waited_ns).saturating_sub(waiting.idled_ns);
    let part = |class, ns, what| TimePart { class, ns, what };
    let mut parts = vec![part("wait", waiting.waited_ns, "waiting for locks")];
    match waiting.ran_ns {
        // Whoever spins for a lock runs and waits.
        Some(ran) => {
            let ran = ran.min(rest);
            parts.push(part("run", ran, "running"));
            let other = "asleep in other calls, or ready to run";
            parts.push(part("other", rest - ran, other));
        }
        None => {
            parts.push(part("other", rest, "running, ready to run, or asleep in other calls"));
        }
    }
    parts.push(part("idle", waiting.idled_ns, "idle: conditions, semaphores, barriers, joins"));
    parts
}

/// Returns the same as a bar.
pub(super) fn thread_time(process: &ProcessReport) -> String {
    let waiting = &process.waiting;
    if waiting.thread_ns == 0 {
        return String::new();
    }
    let whole = waiting.thread_ns.max(waiting.waited_ns.saturating_add(waiting.idled_ns));
    let mut svg = open(BARS_WIDTH, 22, "what the threads spent their time on");
    let mut x = 0.0;
    for TimePart { class, ns, what } in parts(process) {
        let long = ns as f64 / whole as f64 * f64::from(BARS_WIDTH);
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"0\" width=\"{long:.1}\" height=\"22\">\
             <title>{what}: {}</title></rect>",
            time(ns as f64)
        );
        x += long;
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use lockstead_inspect::report::model::DurationBucket;
    use roxmltree::Document;

    #[test]
    fn charts_are_xml_and_show_every_figure() {
        let process = sample::process(1, 4_710_000_000);
        let bars = waiting_bars(&process);
        let bars = Document::parse(&bars).expect("XML");
        let count = |svg: &Document<'_>, tag| {
            svg.descendants()
                .filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", tag)))
                .count()
        };
        assert_eq!(count(&bars, "rect"), 2);
        let texts: Vec<_> = bars.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"cache_lock") && texts.contains(&"4.71 s"), "{texts:?}");
        assert!(texts.iter().any(|text| text.starts_with("Map<int>")), "{texts:?}");

        let histogram = histogram("waiting", &process.locks[0].wait, "wait");
        let histogram = Document::parse(&histogram).expect("XML");
        assert_eq!(count(&histogram, "rect"), 19);
        let time = thread_time(&process);
        assert_eq!(count(&Document::parse(&time).expect("XML"), "rect"), 4);
    }

    #[test]
    fn only_processor_time_is_called_running() {
        let mut process = sample::process(1, 4_710_000_000);
        let of = |process: &ProcessReport, class: &str| {
            parts(process).iter().find(|part| part.class == class).map(|part| part.ns)
        };
        let rest = 39_200_000_000 - 4_710_000_000 - 24_000_000_000;
        assert_eq!(of(&process, "run"), Some(2_000_000_000));
        assert_eq!(of(&process, "other"), Some(rest - 2_000_000_000), "somebody slept in sleep");
        process.waiting.ran_ns = None;
        assert_eq!((of(&process, "run"), of(&process, "other")), (None, Some(rest)));
        // Those who spin for a lock run while they wait.
        process.waiting.ran_ns = Some(u64::MAX);
        assert_eq!((of(&process, "run"), of(&process, "other")), (Some(rest), Some(0)));
    }

    #[test]
    fn no_name_of_a_mark_stands_on_a_bar_or_on_a_line() {
        for (p50_ns, p99_ns) in [(1, 1 << 20), (1, 1), (1 << 19, 1 << 20), (1 << 20, 1 << 20)] {
            let histogram =
                (0..20).map(|at| DurationBucket { from_ns: 1 << at, count: 9 }).collect();
            let times = Durations { p50_ns, p99_ns, histogram, ..Durations::default() };
            let svg = histogram_of(&times);
            let document = Document::parse(&svg).expect("XML");
            let number = |node: &roxmltree::Node<'_, '_>, name: &str| {
                node.attribute(name).expect(name).parse::<f64>().expect("a number")
            };
            let with = |tag| document.descendants().filter(move |n| n.tag_name().name() == tag);
            let bars = with("rect").map(|bar| number(&bar, "y")).fold(f64::INFINITY, f64::min);
            for name in with("text").filter(|text| text.text().is_some_and(|t| t.starts_with('p')))
            {
                let (x, y) = (number(&name, "x"), number(&name, "y"));
                assert!(y < bars, "{y} {bars}");
                // Three characters of eleven pixels' height.
                let (from, to) = match name.attribute("text-anchor") {
                    Some("end") => (x - 25.0, x),
                    _ => (x, x + 25.0),
                };
                assert!(from >= 0.0 && to <= f64::from(HISTOGRAM.0), "{from} {to}");
                for line in with("line").filter(|line| line.attribute("class") == Some("mark")) {
                    let (at, top) = (number(&line, "x1"), number(&line, "y1"));
                    assert!(!(from..to).contains(&at) || top >= y, "{svg}");
                }
            }
        }
    }

    fn histogram_of(times: &Durations) -> String {
        histogram("x", times, "wait")
    }

    #[test]
    fn odd_numbers_are_drawn_too() {
        assert_eq!(histogram("x", &Durations::default(), "wait"), "");
        let mut times = Durations { p50_ns: 1, p99_ns: u64::MAX, ..Durations::default() };
        times.histogram = vec![
            DurationBucket { from_ns: 0, count: 1 },
            DurationBucket { from_ns: 1 << 47, count: 0 },
        ];
        let svg = histogram("x", &times, "wait");
        Document::parse(&svg).expect("XML");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let mut process = sample::process(1, 0);
        process.waiting = Default::default();
        assert_eq!((waiting_bars(&process), thread_time(&process)), (String::new(), String::new()));
        // More than there is: the ledger was damaged.
        process.waiting.thread_ns = 1;
        (process.waiting.waited_ns, process.waiting.idled_ns) = (u64::MAX, u64::MAX);
        Document::parse(&thread_time(&process)).expect("XML");
    }
}
