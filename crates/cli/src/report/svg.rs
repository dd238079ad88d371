//! The charts of the HTML report. Colours are the page's, by class, so that
//! light, dark and paper each have their own.

use super::words::{clean, fit};
use crate::table::{count, time};
use lockstead_inspect::report::model::{Durations, ProcessReport};
use std::fmt::Write;

const HISTOGRAM: (u32, u32) = (360, 130);
/// Height of the text below a histogram.
const AXIS: u32 = 18;
const BARS_WIDTH: u32 = 760;
const ROW: u32 = 24;
const NAMES: u32 = 300;

/// A text for XML.
pub(crate) fn escape(text: &str) -> String {
    clean(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The beginning of a picture.
pub(crate) fn open(width: u32, height: u32, label: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    )
}

/// How often which time occurred, a bar for each power of two.
pub(super) fn histogram(what: &str, times: &Durations, class: &str) -> String {
    let buckets = &times.histogram;
    let Some(first) = buckets.first() else { return String::new() };
    let (width, height) = HISTOGRAM;
    let base = height - AXIS;
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(1).max(1);
    let mut svg = open(width, height, &format!("histogram of {what} times"));
    let step = f64::from(width) / buckets.len() as f64;
    for (at, bucket) in buckets.iter().enumerate() {
        if bucket.count == 0 {
            continue;
        }
        // One among millions is still to be seen.
        let tall = (bucket.count as f64 / most as f64 * f64::from(base - 4)).max(2.0);
        let until = if bucket.from_ns == 0 { 2 } else { bucket.from_ns.saturating_mul(2) };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\">\
             <title>{} to {}: {}</title></rect>",
            at as f64 * step + 0.5,
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
        (((ns.max(1) as f64).log2() - skipped) * step).clamp(0.0, f64::from(width))
    };
    for (ns, name) in [(times.p50_ns, "p50"), (times.p99_ns, "p99")] {
        let x = place(ns);
        let anchor = if x > f64::from(width) * 0.8 { "end" } else { "start" };
        let shift = if anchor == "end" { -3.0 } else { 3.0 };
        let y = if name == "p50" { 10 } else { 22 };
        let _ = write!(
            svg,
            "<line class=\"mark\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{base}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{y}\" text-anchor=\"{anchor}\">{name}</text>",
            x + shift
        );
    }
    let last = buckets.last().map_or(0, |bucket| bucket.from_ns.saturating_mul(2));
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"0\" y1=\"{base}\" x2=\"{width}\" y2=\"{base}\"/>\
         <text class=\"small\" x=\"0\" y=\"{0}\">{1}</text>\
         <text class=\"small\" x=\"{width}\" y=\"{0}\" text-anchor=\"end\">{2}</text></svg>",
        height - 4,
        time(first.from_ns as f64),
        time(last as f64)
    );
    svg
}

/// The waiting for each of the worst locks.
pub(super) fn waiting_bars(process: &ProcessReport) -> String {
    let rows: Vec<_> = process.locks.iter().filter(|lock| lock.wait.total_ns != 0).collect();
    let most = rows.iter().map(|lock| lock.wait.total_ns).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let height = ROW * rows.len() as u32;
    let mut svg = open(BARS_WIDTH, height, "time of waiting for each lock");
    let room = f64::from(BARS_WIDTH - NAMES - 80);
    for (at, lock) in rows.iter().enumerate() {
        let top = ROW * at as u32;
        let middle = top + ROW / 2 + 4;
        let long = (lock.wait.total_ns as f64 / most as f64 * room).max(1.0);
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>\
             <rect class=\"wait\" x=\"{NAMES}\" y=\"{}\" width=\"{long:.1}\" height=\"{}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{middle}\">{}</text>",
            NAMES - 8,
            escape(&fit(&clean(&lock.name), 42)),
            top + 3,
            ROW - 6,
            f64::from(NAMES) + long + 6.0,
            time(lock.wait.total_ns as f64),
        );
    }
    svg + "</svg>"
}

/// What the threads spent their time on.
pub(super) fn thread_time(process: &ProcessReport) -> String {
    let waiting = &process.waiting;
    if waiting.thread_ns == 0 {
        return String::new();
    }
    let whole = waiting.thread_ns.max(waiting.waited_ns.saturating_add(waiting.idled_ns));
    let rest = whole.saturating_sub(waiting.waited_ns).saturating_sub(waiting.idled_ns);
    let mut svg = open(BARS_WIDTH, 22, "what the threads spent their time on");
    let mut x = 0.0;
    for (class, ns, what) in [
        ("wait", waiting.waited_ns, "waiting for locks"),
        ("run", rest, "running, runnable or in other system calls"),
        ("idle", waiting.idled_ns, "idle: conditions, semaphores, barriers, joins"),
    ] {
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
    use lockstead_inspect::report::model::Bucket;
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
        assert_eq!(count(&Document::parse(&time).expect("XML"), "rect"), 3);
    }

    #[test]
    fn odd_numbers_are_drawn_too() {
        assert_eq!(histogram("x", &Durations::default(), "wait"), "");
        let mut times = Durations { p50_ns: 1, p99_ns: u64::MAX, ..Durations::default() };
        times.histogram =
            vec![Bucket { from_ns: 0, count: 1 }, Bucket { from_ns: 1 << 47, count: 0 }];
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
