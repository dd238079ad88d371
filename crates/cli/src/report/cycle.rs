//! The cycle of a deadlock as a picture: threads on the left, what they wait for on the right,
//! and from each lock the way to the thread that has it, which stands in the next row.

use lockstead_inspect::report::Finding;
use lockstead_inspect::report::finding::{FindingThread, FindingWait};
use lockstead_render::html::{escape, open};
use lockstead_render::words::{clean, fit};
use std::fmt::Write;

/// The most characters of a name.
const NAME: usize = 34;
/// The size of a box, but for its text, and of a character.
const HEIGHT: f64 = 30.0;
const PADDING: f64 = 20.0;
const LETTER: f64 = 7.6;
/// The distance from one row to the next.
const ROW: f64 = 78.0;
/// The space between the columns, where the arrows have their words.
const BETWEEN: f64 = 124.0;
/// The space left of the threads, where the way back from the last lock leads, and at the other
/// sides.
const LEFT: f64 = 34.0;
const MARGIN: f64 = 8.0;
/// How far below the last row the way back lies.
const BELOW: f64 = 26.0;

/// Returns the picture of a finding that is a cycle; of others there is none.
pub(super) fn draw(finding: &Finding) -> Option<String> {
    let is_cycle =
        matches!(finding.kind.as_str(), "deadlock" | "probable_deadlock" | "timed_cycle");
    let parties = &finding.threads;
    if !is_cycle || parties.is_empty() {
        return None;
    }
    let rows: Vec<CycleRow> = parties.iter().map(CycleRow::of).collect::<Option<_>>()?;
    Some(svg(&rows))
}

/// A thread, what it waits for, and how the next thread is to that.
struct CycleRow {
    thread: String,
    waits: &'static str,
    timed: bool,
    target: String,
    next: &'static str,
}

impl CycleRow {
    fn of(party: &FindingThread) -> Option<CycleRow> {
        let waits = party.waits.as_ref()?;
        let (target, next) = target(waits);
        Some(CycleRow {
            thread: thread(party),
            waits: match waits.how {
                "read" => "waits to read",
                "write" => "waits to write",
                "condition" => "waits to have back",
                _ => "waits for",
            },
            timed: waits.timed,
            target,
            next,
        })
    }
}

/// Returns what a thread waits for, and why the next thread stands in its way.
fn target(waits: &FindingWait) -> (String, &'static str) {
    match &waits.lock {
        None => ("the end of a thread".into(), "which is"),
        Some(lock) if waits.behind_writer => (lock.text(), "before it waits to write"),
        Some(lock) => (lock.text(), "held by"),
    }
}

fn thread(party: &FindingThread) -> String {
    let thread = match &party.name {
        Some(name) => format!("{name} ({})", party.tid),
        None => format!("thread {}", party.tid),
    };
    match &party.process {
        Some(process) => format!("{thread} of {process}"),
        None => thread,
    }
}

fn width(names: impl Iterator<Item = String>) -> f64 {
    names.map(|name| fit(&name, NAME).chars().count()).max().unwrap_or(0) as f64 * LETTER + PADDING
}

fn svg(rows: &[CycleRow]) -> String {
    let threads = width(rows.iter().map(|row| row.thread.clone()));
    let targets = width(rows.iter().map(|row| row.target.clone()));
    let (left, right) = (LEFT, LEFT + threads + BETWEEN);
    let middle = |row: usize| MARGIN + HEIGHT / 2.0 + row as f64 * ROW;
    let last = rows.len() - 1;
    let all = (right + targets + MARGIN, middle(last) + HEIGHT / 2.0 + BELOW + MARGIN);
    let mut svg = open(all.0.ceil() as u32, all.1.ceil() as u32, "who waits for whom");
    for (at, row) in rows.iter().enumerate() {
        let y = middle(at);
        named(&mut svg, "thread", (left, y), threads, &row.thread);
        named(&mut svg, "lock cycle", (right, y), targets, &row.target);
        let (from, to) = (left + threads, right);
        arrow(&mut svg, &[(from, y), (to, y)]);
        said(&mut svg, ((from + to) / 2.0 - 4.0, y - 6.0), "middle", row.waits);
        if row.timed {
            said(&mut svg, ((from + to) / 2.0 - 4.0, y + 15.0), "middle", "until a deadline");
        }
        if at < last {
            let (top, foot) = (y + HEIGHT / 2.0, middle(at + 1) - HEIGHT / 2.0);
            let (from, to) = ((right + 24.0, top), (left + threads - 24.0, foot));
            arrow(&mut svg, &[from, to]);
            // Right of the arrow, which leads down to the left.
            let at = ((from.0 + to.0) / 2.0 + 18.0, (top + foot) / 2.0 + 10.0);
            said(&mut svg, at, "start", row.next);
        } else {
            let (foot, x) = (y + HEIGHT / 2.0, right + targets / 2.0);
            let (below, aside) = (foot + BELOW, LEFT / 2.0 - 4.0);
            let back =
                [(x, foot), (x, below), (aside, below), (aside, middle(0)), (left, middle(0))];
            arrow(&mut svg, &back);
            said(&mut svg, ((aside + x) / 2.0, below - 6.0), "middle", row.next);
        }
    }
    svg + "</svg>"
}

fn named(svg: &mut String, class: &str, (x, y): (f64, f64), width: f64, name: &str) {
    let _ = write!(
        svg,
        "<g><title>{}</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
         height=\"{HEIGHT}\" rx=\"{}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></g>",
        escape(name),
        y - HEIGHT / 2.0,
        if class == "thread" { 15 } else { 4 },
        x + width / 2.0,
        y + 4.5,
        escape(&fit(&clean(name), NAME)),
    );
}

fn said(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = write!(
        svg,
        "<text class=\"small\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

/// Adds a line through these points with a tip at its end.
fn arrow(svg: &mut String, points: &[(f64, f64)]) {
    let [.., back, tip] = points else { return };
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
    }
    let (dx, dy) = (tip.0 - back.0, tip.1 - back.1);
    // Not by `hypot`, as in the picture of the order.
    let long = (dx * dx + dy * dy).sqrt().max(0.1);
    let (dx, dy) = (dx / long * 9.0, dy / long * 9.0);
    let _ = write!(
        svg,
        "<path class=\"cycle\" d=\"{path}\"/><polygon class=\"cycle\" \
         points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\"/>",
        tip.0,
        tip.1,
        tip.0 - dx - dy * 0.5,
        tip.1 - dy + dx * 0.5,
        tip.0 - dx + dy * 0.5,
        tip.1 - dy - dx * 0.5,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, NASTY};
    use lockstead_inspect::report::finding::NamedLock;
    use roxmltree::Document;

    fn party(name: &str, lock: Option<&str>) -> FindingThread {
        let lock = lock.map(|lock| NamedLock { name: lock.into(), ..NamedLock::default() });
        let waits = FindingWait { how: "mutex", lock, ..FindingWait::default() };
        FindingThread {
            tid: 7,
            name: Some(name.into()),
            waits: Some(waits),
            ..FindingThread::default()
        }
    }

    fn cycle(threads: Vec<FindingThread>) -> Finding {
        Finding { threads, ..sample::finding() }
    }

    fn texts(svg: &str) -> Vec<String> {
        let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        let texts = document.descendants().filter(|node| node.tag_name().name() == "text");
        texts.map(|node| node.text().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn a_cycle_has_its_threads_and_locks_in_their_order() {
        let two = cycle(vec![party("transfer", Some("journal")), party("audit", Some("accounts"))]);
        let svg = draw(&two).expect("a picture");
        let wanted = [
            ["transfer (7)", "journal", "waits for", "held by"],
            ["audit (7)", "accounts", "waits for", "held by"],
        ];
        assert_eq!(texts(&svg), wanted.concat());
        let document = Document::parse(&svg).expect("XML");
        let tips = document.descendants().filter(|node| node.tag_name().name() == "polygon");
        assert_eq!(tips.count(), 4, "to a lock and to a thread each");
    }

    #[test]
    fn one_alone_joins_deadlines_and_nasty_names_are_drawn_too() {
        let mut ends = party(NASTY, None);
        ends.waits.as_mut().expect("it waits").timed = true;
        let svg = draw(&cycle(vec![ends])).expect("a picture");
        let texts = texts(&svg);
        assert!(texts.contains(&"which is".to_owned()), "{texts:?}");
        assert!(texts.contains(&"until a deadline".to_owned()), "{texts:?}");
        assert!(!svg.contains("Map<int>") && !svg.contains("NaN"));
    }

    #[test]
    fn what_is_no_cycle_has_no_picture() {
        assert!(draw(&sample::finding()).is_none(), "nobody is known");
        let blocked = Finding { kind: "blocked".into(), ..cycle(vec![party("a", Some("l"))]) };
        assert!(draw(&blocked).is_none());
    }
}
