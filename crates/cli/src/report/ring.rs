//! A cycle as a ring: of a deadlock the threads and the locks, each thread waiting for a lock that the
//! next one holds; of an inversion the locks, each asked for by a thread that holds the one before.
//!
//! ```text
//! wide:   N0 ───┐       narrow:  ┌▶ N0
//!         ▲     │ E0             │   │ E0     N: a box, with the name of a thread or a lock
//!      E3 │     ▼                │   ▼        E: an arrow, with its words and a place beside it
//!         N3    N1               │  N1
//!         ▲     │ E1             │   │ E1
//!      E2 │     ▼                │   ▼
//!         └──── N2               └── ...
//! ```
//!
//! The ring is a list in HTML, in its order, and the style sheet draws the lines: names and places may
//! be of any length and wrap, those who cannot see it have it read out, and it can be copied.

use crate::cycle_text::{self, ShownFrames};
use crate::finding_text;
use lockstead_inspect::check::model::{CycleKind, HoldMode, LockOrder, OrderStep};
use lockstead_inspect::report::Finding;
use lockstead_inspect::report::finding::{FindingThread, FindingWait};
use lockstead_inspect::snapshot::model::HolderEvidence;
use lockstead_render::words::{brief, clean};

/// The number of frames of a place, and from so many boxes on.
const FRAMES: usize = 3;
const MANY: usize = 12;
const FEW_FRAMES: usize = 2;

/// A ring as the page's template has it.
pub(super) struct Ring {
    /// What it shows, in words.
    pub(super) label: &'static str,
    /// The boxes, each with the arrow to the next one.
    pub(super) links: Vec<RingLink>,
    /// Whether it is too small for two columns.
    pub(super) single: bool,
}

/// A box, and the arrow that leads from it to the next box, from the last one to the first.
#[derive(Debug, Default)]
pub(super) struct RingLink {
    /// The class of the box: `thread` or `lock`.
    pub(super) class: &'static str,
    /// The name in the box.
    pub(super) name: String,
    /// The class of the arrow: `waits` or `held`.
    pub(super) arrow: &'static str,
    /// The words of the arrow, in paragraphs, each with the frames below it.
    pub(super) said: Vec<(String, Vec<String>)>,
    /// The places of box and arrow in a grid of two columns: `row / column`, `row / column / rows`.
    pub(super) box_at: String,
    pub(super) arrow_at: String,
    /// The classes of box and arrow for where they stand: at the corners, on the way up.
    pub(super) box_turn: &'static str,
    pub(super) arrow_turn: &'static str,
}

impl Ring {
    /// Makes the ring of a finding that is a cycle; of others there is none.
    pub(super) fn of(finding: &Finding) -> Option<Ring> {
        let is_cycle =
            matches!(finding.kind.as_str(), "deadlock" | "probable_deadlock" | "timed_cycle");
        if is_cycle && !finding.threads.is_empty() {
            let threads = &finding.threads;
            let shown = shown(2 * threads.len());
            let next = threads.iter().cycle().skip(1);
            let links = threads.iter().zip(next).map(|(one, next)| of_thread(one, next, shown));
            let links = links.collect::<Option<Vec<_>>>()?;
            return Some(Ring::placed("who waits for whom", links.into_iter().flatten().collect()));
        }
        let order = finding.details.order.as_ref().filter(|order| !order.steps.is_empty())?;
        let shown = shown(order.steps.len());
        let steps = (0..order.steps.len()).map(|at| of_step(order, at, shown)).collect();
        Some(Ring::placed("which lock is asked for under which", steps))
    }

    /// Gives each box and arrow its place in two columns: down in the right one, and up in the left.
    fn placed(label: &'static str, mut links: Vec<RingLink>) -> Ring {
        let count = links.len();
        // The number of boxes right; of an odd number the last arrow spans the missing box.
        let right = count.div_ceil(2);
        let last_row = 2 * right + 1;
        for (at, link) in links.iter_mut().enumerate() {
            if at == 0 {
                link.box_at = "1 / 1".into();
                link.box_turn = "first";
            } else if at <= right {
                link.box_at = format!("{} / 2", 2 * at + 1);
                link.box_turn = if at == right { "corner" } else { "" };
            } else {
                link.box_at = format!("{} / 1", last_row - 2 * (at - right));
            }
            if at < right {
                link.arrow_at = format!("{} / 2", 2 * at + 2);
            } else {
                let row = last_row - 1 - 2 * (at - right);
                let top = if at + 1 == count { 2 } else { row };
                link.arrow_at = format!("{top} / 1 / span {}", row + 1 - top);
                link.arrow_turn = if at + 1 == count { "up last" } else { "up" };
            }
        }
        Ring { label, links, single: count < 2 }
    }

    /// Returns the class of the arrow that closes the ring.
    pub(super) fn back(&self) -> &'static str {
        self.links.last().map_or("", |link| link.arrow)
    }
}

fn shown(boxes: usize) -> ShownFrames {
    ShownFrames::Most(if boxes < MANY { FRAMES } else { FEW_FRAMES })
}

/// Returns the lines of a text of frames, harmless.
fn frames(text: &str) -> Vec<String> {
    text.lines().map(|line| clean(line.trim())).collect()
}

/// Returns a thread, and what it waits for.
fn of_thread(
    party: &FindingThread,
    next: &FindingThread,
    shown: ShownFrames,
) -> Option<[RingLink; 2]> {
    let waits = party.waits.as_ref()?;
    let mut place = String::new();
    cycle_text::stacks(&mut place, waits.stack.as_ref(), waits.python.as_ref(), shown);
    let words = cycle_text::waits_how(waits, "it");
    let thread = RingLink {
        class: "thread",
        name: cycle_text::called(party),
        arrow: "waits",
        said: vec![(format!("{words}{}, at", cycle_text::since(waits)), frames(&place))],
        ..RingLink::default()
    };
    let target = RingLink {
        class: "lock",
        name: match &waits.lock {
            Some(lock) => brief(&lock.text()),
            None => format!("the end of {}", cycle_text::called(next)),
        },
        arrow: "held",
        said: held(waits, next, shown),
        ..RingLink::default()
    };
    Some([thread, target])
}

/// Says why the next thread stands in the way of who waits, and from where on.
fn held(
    waits: &FindingWait,
    next: &FindingThread,
    shown: ShownFrames,
) -> Vec<(String, Vec<String>)> {
    let who = cycle_text::called(next);
    let Some(lock) = &waits.lock else { return vec![("which has not ended".into(), Vec::new())] };
    if waits.behind_writer {
        return vec![(format!("{who} waits to write it, and came before"), Vec::new())];
    }
    let holds = next.holds.as_ref().filter(|holds| holds.lock.address == lock.address);
    let Some(holds) = holds else { return vec![(format!("held by {who}"), Vec::new())] };
    let how = match holds.evidence {
        HolderEvidence::Likely if holds.lock.type_name.contains("semaphore") => {
            "would be released by"
        }
        HolderEvidence::Likely => "likely held by",
        _ => "held by",
    };
    let reading = if holds.shared { ", for reading" } else { "" };
    let mut said = if holds.by_word {
        vec![(format!("{how} {who}{reading}, as its word says"), Vec::new())]
    } else if holds.stack.is_some() || holds.rests_on.is_none() {
        let mut place = String::new();
        cycle_text::stacks(&mut place, holds.stack.as_ref(), None, shown);
        vec![(format!("{how} {who}{reading}, acquired at"), frames(&place))]
    } else {
        vec![(format!("{how} {who}{reading}"), Vec::new())]
    };
    if let Some(rests_on) = &holds.rests_on {
        said.push((format!("{}: {}", holds.evidence.word(), clean(rests_on)), Vec::new()));
    }
    said
}

/// Returns a lock, and who asked for the next one under it.
fn of_step(order: &LockOrder, at: usize, shown: ShownFrames) -> RingLink {
    let (steps, step) = (&order.steps, &order.steps[at]);
    let next = &steps[(at + 1) % steps.len()];
    let reading = if step.holds_how == HoldMode::Write { "" } else { " for reading" };
    let tried = if step.tried { " by trylock" } else { "" };
    let who = finding_text::called(&step.thread);
    let acquired = format!("{who} held it{reading}, acquired{tried} at");
    let in_handler = order.cycle == CycleKind::Handler && at + 1 == steps.len();
    let asks = if step.asks_how == HoldMode::Write { "asked for" } else { "asked to read" };
    let target = if step.asks == next.holds || step.asks.name == next.holds.name {
        "the next".to_owned()
    } else {
        format!("{}, of the same origin as the next,", brief(&step.asks.text()))
    };
    let by = if in_handler { "a signal handler that interrupts it" } else { "and" };
    let asked = format!("{by} {asks} {target}{}, at", finding_text::limit(step.timed));
    let place = |stack: &OrderStep, acquired: bool| {
        let mut text = String::new();
        let stack = if acquired { stack.acquired.as_ref() } else { stack.asked.as_ref() };
        cycle_text::stacks(&mut text, stack, None, shown);
        frames(&text)
    };
    RingLink {
        class: "lock",
        name: brief(&step.holds.text()),
        arrow: "waits",
        said: vec![(acquired, place(step, true)), (asked, place(step, false))],
        ..RingLink::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{self, NASTY};
    use lockstead_inspect::report::finding::{FindingHold, NamedLock};

    fn lock(name: &str) -> NamedLock {
        NamedLock { name: name.into(), ..NamedLock::default() }
    }

    fn party(name: &str, waits_for: Option<&str>) -> FindingThread {
        let waits =
            FindingWait { how: "mutex", lock: waits_for.map(lock), ..FindingWait::default() };
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

    fn said(link: &RingLink) -> Vec<&str> {
        link.said.iter().map(|(words, _)| words.as_str()).collect()
    }

    #[test]
    fn threads_and_locks_stand_in_their_order() {
        let mut audit = party("audit", Some("accounts"));
        audit.holds = Some(FindingHold { lock: lock("journal"), ..FindingHold::default() });
        let ring = Ring::of(&cycle(vec![party("transfer", Some("journal")), audit]));
        let ring = ring.expect("a ring");
        let names: Vec<&str> = ring.links.iter().map(|link| &*link.name).collect();
        let wanted =
            ["thread \"transfer\" (tid 7)", "journal", "thread \"audit\" (tid 7)", "accounts"];
        assert_eq!(names, wanted);
        assert_eq!(said(&ring.links[0]), ["waits for it, at"]);
        assert_eq!(said(&ring.links[1]), ["held by thread \"audit\" (tid 7), acquired at"]);
        assert_eq!(ring.links[1].said[0].1, ["(its stack was not recorded)"]);
        assert_eq!(said(&ring.links[3]), ["held by thread \"transfer\" (tid 7)"]);
        assert_eq!((ring.back(), ring.single), ("held", false));
    }

    #[test]
    fn joins_deadlines_and_waiting_writers_have_their_words() {
        let mut ends = party(NASTY, None);
        ends.waits.as_mut().expect("it waits").timed = true;
        let mut reads = party("reads", Some("table"));
        let waits = reads.waits.as_mut().expect("it waits");
        (waits.how, waits.behind_writer) = ("read", true);
        let ring = Ring::of(&cycle(vec![ends, reads])).expect("a ring");
        assert_eq!(said(&ring.links[0]), ["waits for it, with a time-out, at"]);
        assert_eq!(ring.links[1].name, "the end of thread \"reads\" (tid 7)");
        assert_eq!(said(&ring.links[1]), ["which has not ended"]);
        assert_eq!(said(&ring.links[2]), ["waits to read it, behind a waiting writer, at"]);
        assert!(said(&ring.links[3])[0].ends_with("waits to write it, and came before"));
        assert!(!said(&ring.links[3])[0].contains('\x1b'));
    }

    #[test]
    fn an_inversion_is_a_ring_of_locks() {
        let ring = Ring::of(&sample::inversion("accounts", "journal")).expect("a ring");
        let names: Vec<&str> = ring.links.iter().map(|link| &*link.name).collect();
        assert_eq!(names, ["accounts", "journal"]);
        let words = said(&ring.links[0]);
        assert!(words[0].ends_with("held it, acquired at"), "{words:?}");
        assert_eq!(words[1], "and asked for the next, at");
        assert!(ring.links[0].said[1].1.contains(&"main() at cache.c:9".to_owned()));
    }

    #[test]
    fn each_box_and_arrow_has_a_place_of_its_own() {
        for count in 1_usize..30 {
            let links = (0..count).map(|_| RingLink::default()).collect();
            let ring = Ring::placed("", links);
            let mut taken = std::collections::BTreeSet::new();
            for at in ring.links.iter().flat_map(|link| [&link.box_at, &link.arrow_at]) {
                let numbers: Vec<usize> =
                    at.split(['/', ' ']).filter_map(|part| part.parse().ok()).collect();
                let rows = numbers.get(2).copied().unwrap_or(1);
                for row in numbers[0]..numbers[0] + rows {
                    assert!(taken.insert((row, numbers[1])), "{count}: {at} is taken");
                }
            }
            let rows = 2 * count.div_ceil(2) + 1;
            let corners = [(1, 2), (rows, 1)];
            let all = (1..=rows).flat_map(|row| [(row, 1), (row, 2)]);
            let free: Vec<_> = all.filter(|at| !taken.contains(at)).collect();
            if count > 1 {
                assert_eq!(free, corners, "{count}: nothing is left open");
            }
        }
    }

    #[test]
    fn what_is_no_cycle_has_no_ring() {
        assert!(Ring::of(&sample::finding()).is_none(), "nobody is known");
        let blocked = Finding { kind: "blocked".into(), ..cycle(vec![party("a", Some("l"))]) };
        assert!(Ring::of(&blocked).is_none());
    }
}
