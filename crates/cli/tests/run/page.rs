//! The page of a deadlock, with its ring, which a browser draws whole.

use crate::browser::{Browser, with_user};
use crate::common::text;
use crate::programs::{program, under};
use roxmltree::{Document, Node, ParsingOptions};

fn texts<'a>(under: Node<'a, 'a>, tag: &'a str) -> Vec<String> {
    let nodes = under.descendants().filter(|node| node.tag_name().name() == tag);
    let text = |node: Node<'a, 'a>| {
        let parts = node.descendants().filter(|part| part.is_text());
        parts.filter_map(|part| part.text()).collect()
    };
    nodes.map(text).collect()
}

#[test]
fn a_deadlock_is_drawn_and_each_of_its_threads_has_one_name() {
    let Some(unnamed) = program("unnamed.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    let running = under(&["--no-report", "--html", text(&file)], &[&unnamed]);
    running.expect("lockstead: DEADLOCK", 1);
    running.terminate();
    let page = std::fs::read_to_string(&file).expect("the page was written");
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).expect("well-formed");
    let root = document.root_element();
    let ring = root.descendants().find(|node| {
        node.tag_name().name() == "ol" && node.attribute("aria-label") == Some("who waits for whom")
    });
    let ring = ring.expect("a ring");
    let of = |class: &str| -> Vec<String> {
        let items = ring.descendants().filter(|node| {
            let classes = node.attribute("class").unwrap_or_default();
            node.tag_name().name() == "li" && classes.split(' ').any(|one| one == class)
        });
        items.map(|item| texts(item, "li").concat()).collect()
    };
    let drawn = of("thread");
    let threads: Vec<(&str, &str)> = drawn
        .iter()
        .filter_map(|text| {
            text.strip_prefix("thread \"")?.strip_suffix(')')?.split_once("\" (tid ")
        })
        .collect();
    let mut names: Vec<&str> = threads.iter().map(|&(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["books", "counter", "pays"], "{drawn:?}");
    let locks = of("lock");
    for lock in ["one (mutex)", "two (mutex)", "three (mutex)"] {
        assert!(locks.iter().any(|text| text == lock), "{lock}: {locks:?}");
    }
    for (arrows, words) in
        [(of("waits"), "waits for it, since "), (of("held"), "held by thread \"")]
    {
        assert!(arrows.len() == 3 && arrows.iter().all(|said| said.contains(words)), "{arrows:?}");
        assert!(arrows.iter().all(|said| said.contains(" at unnamed.c:")), "{arrows:?}");
    }
    let (told, rows) = (texts(root, "pre").concat(), texts(root, "td"));
    for (name, tid) in threads {
        let called = format!("thread \"{name}\" (tid {tid})");
        assert!(told.contains(&called), "{called}: {told}");
        // The function it began with stands behind the name that it has given itself.
        let row = rows.iter().find(|row| row.contains(tid)).expect("its row");
        assert!(row.starts_with(&format!("{name} (")), "{row}");
    }
    let facts = texts(root, "dd").join("\n");
    let waits = "3, acquired 3 times, 0 contended; 3 further waits had not ended with the process";
    assert!(facts.contains(waits), "{facts}");
    let contended = rows.iter().filter(|cell| cell.ends_with("% + 1 waiting"));
    assert_eq!(contended.count(), 3, "{rows:?}");
}

/// Measures the ring: whether anything is wider than the page, or lies on its neighbour.
const LOOKS: &str = r##"
const seen = { wide: document.documentElement.scrollWidth - document.documentElement.clientWidth };
const items = Array.from(document.querySelectorAll(".ring li"));
const places = items.map(item => item.getBoundingClientRect());
const gap = (a, b, from, to) => Math.max(a[from] - b[to], b[from] - a[to]);
const apart = (a, b) => Math.max(gap(a, b, "left", "right"), gap(a, b, "top", "bottom")) > -1;
seen.items = items.length;
seen.overlaps = places.filter((one, at) => places.slice(0, at).some(other => !apart(one, other))).length;
seen.clipped = items.filter(item => item.scrollWidth - item.clientWidth > 60).length;
seen.columns = new Set(places.map(place => Math.round(place.left))).size;
document.body.setAttribute("data-seen", JSON.stringify(seen));
"##;

#[test]
fn a_browser_draws_the_ring_in_two_columns_or_in_one() {
    let (Some(browser), Some(three)) = (Browser::find(), program("deadlocks.c")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [file, used] = ["report.html", "used.html"].map(|name| folder.path().join(name));
    let command = [three.as_os_str(), "three".as_ref()];
    let running = under(&["--no-report", "--html", text(&file)], &command);
    running.expect("lockstead: DEADLOCK", 1);
    running.terminate();
    let page = std::fs::read_to_string(&file).expect("the page was written");
    std::fs::write(&used, with_user(&page, LOOKS)).expect("written");
    for (size, columns) in [("1280,900", 2), ("390,844", 1)] {
        let seen = browser.seen(&used, size);
        assert_eq!(seen["columns"], columns, "{size}: {seen}");
        let wanted = [("items", 12), ("wide", 0), ("overlaps", 0), ("clipped", 0)];
        for (what, count) in wanted {
            assert_eq!(seen[what], count, "{what} at {size}: {seen}");
        }
    }
}
