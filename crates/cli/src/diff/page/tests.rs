//! The page of a comparison, from what is compared.

use super::super::compare::compare;
use super::super::recorded::RecordedRun;
use super::super::side::Side;
use super::render;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::json;

/// A name with everything that needs escaping somewhere.
const NASTY: &str = "Map<int>::find(\"x\", 'y') & </script><script>alert(1)</script>\u{1b}[2J";

/// Returns a side of runs in which these locks are waited for so long, with a little noise.
fn side(name: &str, runs: u64, locks: &[(&str, u64)]) -> Side {
    let run = |number: u64| {
        let lock = |(name, waited): &(&str, u64)| {
            let waited = waited + number * waited / 100;
            json!({
                "name": name, "acquisitions": 5,
                "waited_at": [{ "site": "f.c:7", "function": NASTY, "total_ns": waited }],
                "wait": { "total_ns": waited },
            })
        };
        let all: u64 = locks.iter().map(|lock| lock.1).sum();
        let run = json!({
            "wall_ns": 1_000_000_000 + number, "cpu_ns": 7, "processors": 2,
            "machine": { "cpu": "A" },
            "processes": [{
                "exe": format!("/bin/{NASTY}/srv&<b>"),
                "waiting": { "thread_ns": 1_000_000_000, "waited_ns": all },
                "more": { "waited_ns": 0, "acquisitions": 0 },
                "locks": locks.iter().map(lock).collect::<Vec<_>>(),
            }],
        });
        serde_json::from_value::<RecordedRun>(run).expect("all that is read")
    };
    let runs: Vec<RecordedRun> = (0..runs).map(run).collect();
    // As a path that is no UTF-8 is shown.
    Side::of((0..runs.len()).map(|at| format!("{name}\u{fffd}<{at}>.json")).collect(), &runs)
}

fn page(before: &Side, after: &Side, fail_on: Option<f64>) -> String {
    render(&compare(before, after, fail_on)).expect("a page")
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect()
}

/// Returns the rows of locks in the table of those that are told, or in that of those that are not.
fn rows(document: &Document<'_>, folded: bool) -> Vec<String> {
    let is_folded = |node: Node<'_, '_>| {
        node.ancestors().any(|above| above.attribute("class") == Some("noise"))
    };
    let tables = document.descendants().filter(|node| {
        node.attribute("class") == Some("sortable compared") && is_folded(*node) == folded
    });
    let rows = tables.flat_map(|table| table.descendants());
    let rows = rows.filter(|node| node.tag_name().name() == "tr" && node.has_attribute("class"));
    rows.map(text).collect()
}

#[test]
fn what_changed_stands_first_and_what_may_be_noise_is_folded() {
    let before = side("before", 4, &[("hot", 100_000_000), ("same", 50_000_000), (NASTY, 900)]);
    let after = side("after", 3, &[("hot", 200_000_000), ("same", 50_400_000), (NASTY, 90)]);
    let page = page(&before, &after, Some(10.0));
    let document = parse(&page);
    let told = rows(&document, false);
    assert_eq!(told.len(), 2, "{told:?}");
    for part in ["hot", "102 ms", "202 ms", "+100 ms", "+99.0%", "WORSE"] {
        assert!(told[0].contains(part), "{part}: {}", told[0]);
    }
    assert!(told[1].contains("better"), "{}", told[1]);
    let folded = rows(&document, true);
    assert!(folded.len() == 1 && folded[0].contains("noise"), "{folded:?}");
    let texts = text(document.root());
    for part in [
        "1 lock is worse; 1 lock is better; 1 lock is not told from noise",
        "4 runs before, 3 runs after",
        "Something got worse by more than 10 %",
        "1 lock may differ by noise alone",
        "rank test of Mann and Whitney",
        "before\u{fffd}<3>.json",
        "waiting for locks in srv&<b>",
        "run time",
    ] {
        assert!(texts.contains(part), "{part}: {texts}");
    }
}

#[test]
fn each_run_of_each_time_is_shown() {
    let (before, after) = (side("b", 4, &[("hot", 1000)]), side("a", 3, &[("hot", 9000)]));
    let page = page(&before, &after, None);
    let document = parse(&page);
    // Of three figures of the run, the lock, and its place.
    let strips = document.descendants().filter(|node| {
        node.attribute("aria-label").is_some_and(|label| label.starts_with("before: "))
    });
    let mut drawn = 0;
    for strip in strips {
        let dots = |side| {
            let all = strip.descendants();
            all.filter(|node| node.attribute("class") == Some(side)).count()
        };
        assert_eq!((dots("before"), dots("after")), (4, 3), "{strip:?}");
        drawn += 1;
    }
    assert_eq!(drawn, 5);
    let labels = document.descendants().filter_map(|node| node.attribute("aria-label"));
    let wanted = "before: 1.00 µs, 1.01 µs, 1.02 µs, 1.03 µs; after: 9.00 µs, 9.09 µs, 9.18 µs";
    assert_eq!(labels.filter(|label| *label == wanted).count(), 2, "{page}");
}

#[test]
fn names_do_no_harm_and_nothing_is_fetched() {
    let long = "x".repeat(5000);
    let before = side("before", 3, &[(NASTY, 1000), (&long, 1000)]);
    let page = page(&before, &side("after", 3, &[(NASTY, 5000), (&long, 9000)]), None);
    let document = parse(&page);
    assert!(!page.contains("<script>alert") && !page.contains('\x1b'));
    assert!(!page.contains("@import") && !page.contains("url("));
    assert!(page.contains("default-src 'none'"), "and could not be");
    let scripts = document.descendants().filter(|node| node.tag_name().name() == "script");
    assert_eq!(scripts.count(), 1);
    let ids: Vec<_> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    for node in document.descendants() {
        if let Some(link) = node.attribute("href") {
            assert!(ids.contains(&&link[1..]), "{link}");
        }
        assert!(node.attribute("src").is_none());
    }
}

#[test]
fn sides_without_locks_and_with_one_run_have_a_page_too() {
    let none = page(&side("b", 1, &[]), &side("a", 1, &[]), None);
    assert!(text(parse(&none).root()).contains("No lock was waited for."), "{none}");
    let one = page(&side("b", 1, &[("hot", 7)]), &side("a", 1, &[("hot", 9)]), None);
    let told = rows(&parse(&one), false);
    assert!(told[0].contains("too few runs"), "{told:?}");
    assert!(one.contains("three runs of each side are the fewest"), "{one}");
}
