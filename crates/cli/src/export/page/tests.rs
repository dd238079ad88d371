//! Tests of the page, on a recording with hostile names.

use super::super::flags::BlameBy;
use super::columns::PageColumn;
use super::frames::PageFrames;
use super::timeline::Timeline;
use super::write;
use crate::recording::{
    FrameNames, HolderDoing, HolderSample, LockNames, ProcessFacts, ProcessNames, RecordedProcess,
    RecordedRun, RecordedTotals, Recording, StackFrames, ThreadFacts,
};
use lockstead_ledger::events::{Event, EventKind, hold};
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;

/// What would end an element, a string, a comment or a section somewhere.
const NASTY: &str = "</script><!--]]>&amp;\"'`\\\u{2028}\x1b[2J\0 <b>λ</b>";

fn event(kind: EventKind, thread: u32, began: u64, lasted: u64, how: u8) -> Event {
    let (lock, generation, stack) = (3, 1, 7);
    Event { kind, began, lasted, how, ending: 0, lock, generation, stack, thread, tid: 0 }
}

/// Returns a recording in which thread 2 waits while thread 1 holds.
fn recording(name: &str) -> Recording {
    let thread = |thread, tid| ThreadFacts {
        thread,
        tid,
        name: Some(name.into()),
        began: 1_000,
        lost: 2,
        ..ThreadFacts::default()
    };
    let names = ProcessNames {
        ended: 9_000_000_000,
        threads: vec![thread(1, 71), thread(2, 72)],
        locks: vec![LockNames {
            lock: 3,
            generation: 1,
            name: name.into(),
            kind: "mutex".into(),
            address: 16,
        }],
        stacks: vec![StackFrames { stack: 7, frames: vec![0] }],
        frames: vec![FrameNames {
            name: name.into(),
            file: Some(name.into()),
            line: Some(4),
            module: Some(name.into()),
        }],
        ..ProcessNames::default()
    };
    let events = vec![
        event(EventKind::Hold, 1, 2_000, 6_000_000_000, hold::WAITED_FOR),
        event(EventKind::Wait, 2, 3_000, 6_000_000_500, 1),
        event(EventKind::Wait, 2, 7_000_000_000, 40, 1),
    ];
    let samples = vec![HolderSample {
        at: 5_000,
        tid: 71,
        lock: 3,
        generation: 1,
        doing: HolderDoing::LacksProcessor,
    }];
    let facts = ProcessFacts { process: 0, pid: 70, program: name.into(), began: 1_000 };
    Recording {
        run: RecordedRun {
            lockstead: "0".into(),
            command: vec![name.into(), name.into()],
            began: 1_000,
            date: 0,
        },
        processes: vec![RecordedProcess { facts, names, events, samples }],
        totals: RecordedTotals { events: 3, lost: 4, cut: 5 },
    }
}

fn page(recording: &Recording) -> String {
    let mut page = Vec::new();
    write(recording, (BlameBy::Holder, true), &mut page).expect("a page");
    String::from_utf8(page).expect("text")
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the text of the element with an id.
fn element<'d>(document: &'d Document<'_>, id: &str) -> &'d str {
    let node = document.descendants().find(|node| node.attribute("id") == Some(id));
    node.and_then(|node| node.text()).unwrap_or_else(|| panic!("no {id}"))
}

#[test]
fn hostile_names_stay_names() {
    let nasty = NASTY.repeat(300);
    for name in [NASTY, &nasty, ""] {
        let page = page(&recording(name));
        let document = parse(&page);
        let scripts = document.descendants().filter(|node| node.has_tag_name("script"));
        assert_eq!(scripts.count(), 12, "ten columns, the facts, the script");
        assert!(!page.contains("<b>") && !page.contains('\x1b') && !page.contains('\0'));
        // A browser ends an element where this is, whatever it is in.
        assert_eq!(page.matches("</script").count(), 12);
        assert_eq!(page.matches("<!--").count(), 0);
        let facts: Value = serde_json::from_str(element(&document, "facts")).expect("JSON");
        let clean = lockstead_render::words::clean(name);
        assert_eq!(facts["rows"][0]["name"], clean);
        assert_eq!(facts["things"][0]["name"], clean);
        assert_eq!(facts["frames"][0][0], clean);
        assert_eq!(facts["frames"][0][1], format!("{clean}:4"));
        assert_eq!((&facts["by"], &facts["idle"]), (&"holder".into(), &true.into()));
    }
}

#[test]
fn nothing_is_fetched() {
    let page = page(&recording("plain"));
    assert!(page.contains("default-src 'none'"), "and could not be");
    assert!(!page.contains("@import") && !page.contains("url("));
    for node in parse(&page).descendants() {
        assert!(!["link", "iframe", "img", "object"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            assert!(!["href", "src", "srcset", "data", "action"].contains(&attribute.name()));
        }
    }
}

#[test]
fn columns_have_the_events_by_row_lane_and_time() {
    let recording = recording("plain");
    let timeline = Timeline::of(&recording, &mut PageFrames::default());
    let columns = timeline.columns();
    let of = |name: &str| {
        let column = columns.iter().find(|column| column.name == name);
        column.map(PageColumn::numbers).expect("a column")
    };
    assert_eq!(
        timeline.rows.iter().map(|row| row.lanes).collect::<Vec<_>>(),
        [[0, 0, 1, 0], [2, 0, 0, 0]]
    );
    assert_eq!(of("began"), [1_000, 2_000, 6_999_999_000]);
    assert_eq!(of("lasted"), [6_000_000_000, 6_000_000_500, 40]);
    // The hold woke the first waiter; the second one came when it was over.
    assert_eq!(of("waker"), [0, 1, 0]);
    assert_eq!(of("stack"), [1, 1, 1]);
    assert_eq!((of("sample-at"), of("sample-thing")), (vec![4_000], vec![1]));
    assert_eq!(timeline.doings, [("lacks", "could run, has no processor".to_owned())]);
    assert_eq!(timeline.rows[0].samples, 1);
}

#[test]
fn what_is_lacking_is_said_on_top_of_tables_that_need_no_script() {
    let page = page(&recording("plain"));
    let document = parse(&page);
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    let has = |part: &str| texts.iter().any(|text| text.contains(part));
    assert!(has("4 events were lost"), "{texts:?}");
    assert!(has("plain (tid 71): 2 events"), "{texts:?}");
    assert!(has("5 events were left out"), "{texts:?}");
    assert!(has("3 events of 2 threads in 1 process: 2 waits for locks (6.00 s in all)"));
    let cells: Vec<&str> = document
        .descendants()
        .filter(|node| node.has_tag_name("td"))
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(cells, ["plain", "mutex", "6.00 s", "2", "6.00 s", "1", "6.00 s"]);
    assert!(page.contains("<noscript>"));
}

#[test]
fn a_recording_without_events_says_so() {
    let mut empty = recording("plain");
    empty.processes.clear();
    empty.totals = RecordedTotals::default();
    let page = page(&empty);
    parse(&page);
    assert!(page.contains("No event was recorded"));
    assert!(!page.contains("<script") && !page.contains("<noscript"));
}
