//! The page of a deadlock.

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
    let drawn = root.descendants().find(|node| {
        node.tag_name().name() == "svg"
            && node.attribute("aria-label") == Some("who waits for whom")
    });
    let drawn = texts(drawn.expect("a picture of the cycle"), "text");
    let threads: Vec<&String> = drawn.iter().filter(|text| text.ends_with(')')).collect();
    let threads: Vec<(&str, &str)> = threads
        .iter()
        .filter_map(|text| text.strip_suffix(')')?.split_once(" ("))
        .filter(|(_, tid)| tid.parse::<u32>().is_ok())
        .collect();
    let mut names: Vec<&str> = threads.iter().map(|&(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["books", "counter", "pays"], "{drawn:?}");
    for lock in ["one (mutex)", "two (mutex)", "three (mutex)"] {
        assert!(drawn.iter().any(|text| text == lock), "{lock}: {drawn:?}");
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
