//! `lockstead explain`: the table, the JSON and the page.

use crate::common::{run, succeed, text};
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;

#[test]
fn json_and_page_of_a_quick_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("explain.html");
    let outcome = succeed(&["explain", "--quick", "--json", "--html", text(&page)]);
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
    crate::common::documented(&report);
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2);
    for cell in cells {
        // Nine ingredients of the mutex, seven of the semaphore.
        assert_eq!(cell["effects"].as_array().expect("effects").len(), 16);
        assert_eq!(cell["results"].as_array().expect("results").len(), 19);
    }
    assert_eq!(report["sizes"][0]["bytes"], 8);

    let page = std::fs::read_to_string(&page).expect("the page is written");
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).expect("well-formed");
    let charts = document.descendants().filter(|node| node.tag_name().name() == "svg").count();
    assert_eq!(charts, 3 + 2 * 4);
    for node in document.descendants() {
        assert!(node.attribute("src").is_none() && node.attribute("href").is_none(), "{node:?}");
    }
}

#[test]
fn the_table_ends_with_questions_and_conclusions() {
    let outcome = succeed(&["explain", "--quick"]);
    for part in [
        "Bytes of the locks",
        "without read-first",
        "without one-wake",
        "mutex without owner",
        "semaphore with owner",
        "mutex between processes",
        "semaphore of 2005",
        "Can a semaphore be tuned to scale the same?",
        "What is there that only a mutex can give?",
        "the announcement of 2005",
    ] {
        assert!(outcome.stdout.contains(part), "no {part:?} in {}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains('\x1b'), "no colour where there is no terminal");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let outcome = run(&["explain", "--quick", "--html", "/nowhere/at/all.html"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("--html"), "{}", outcome.stderr);
}
