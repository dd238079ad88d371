use super::*;
use crate::report::sample::{self, NASTY};
use roxmltree::{Document, ParsingOptions};

fn page(report: &RunReport) -> Result<String, askama::Error> {
    render(report, &Here::now())
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_page_is_well_formed_and_names_are_escaped() {
    let mut report =
        sample::report(vec![sample::process(100, 4_710_000_000), sample::process(101, 0)]);
    report.findings.push(sample::finding());
    report.silent_processes = 2;
    let page = page(&report).expect("a page");
    let document = parse(&page);
    let clean_name = NASTY.replace('\x1b', "\u{fffd}");
    let named = document.descendants().filter(|node| node.text() == Some(&clean_name)).count();
    assert!(named >= 2, "the name as it is, in the table and over its details: {named}");
    assert!(!page.contains("Map<int>"), "and nowhere unescaped");
    assert!(!page.contains('\x1b'));
    let texts: String = document.descendants().filter_map(|node| node.text()).collect();
    for part in [
        "DEADLOCK of 2 threads",
        "4.71 s",
        "12.0%",
        "cut after 2 frames",
        "2 processes used",
        "move the call out of the lock",
        "ready, no processor",
        "130 looks met 1.5 waiting: give or take 9 in 100",
        "62.0% was in fsync, in ",
    ] {
        assert!(texts.contains(part), "{part}");
    }
}

#[test]
fn the_spread_of_a_row_has_its_locks() {
    let mut process = sample::process(1, 5);
    process.groups.push(sample::group(3, 4));
    let page = page(&sample::report(vec![process])).expect("a page");
    let texts: String = parse(&page).descendants().filter_map(|node| node.text()).collect();
    for part in ["shards[*].mutex", "Spread among its locks", "93.7% in 1 of 64", "shards[3]"] {
        assert!(texts.contains(part), "{part}");
    }
}

#[test]
fn nothing_is_fetched() {
    let page = page(&sample::report(vec![sample::process(1, 5)])).expect("a page");
    let document = parse(&page);
    for node in document.descendants() {
        for attribute in node.attributes() {
            let local = attribute.value().starts_with('#');
            match attribute.name() {
                "href" => assert!(local, "{}", attribute.value()),
                "src" | "srcset" | "data" | "action" => panic!("{attribute:?}"),
                _ => {}
            }
        }
        assert!(!["link", "iframe", "img", "object"].contains(&node.tag_name().name()));
    }
    assert!(!page.contains("@import") && !page.contains("url("));
    assert!(page.contains("default-src 'none'"), "and could not be");
}

#[test]
fn ids_are_unique_and_every_link_leads_somewhere() {
    let report = sample::report((1..4).map(|pid| sample::process(pid, 5)).collect());
    let page = page(&report).expect("a page");
    let document = parse(&page);
    let ids: Vec<_> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let unique: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
    let links: Vec<_> = document.descendants().filter_map(|node| node.attribute("href")).collect();
    assert!(links.len() >= 9, "{links:?}");
    for link in links {
        assert!(ids.contains(&&link[1..]), "{link}");
    }
}

#[test]
fn each_lock_has_its_charts_places_and_stacks() {
    let page = page(&sample::report(vec![sample::process(1, 5)])).expect("a page");
    let document = parse(&page);
    let with =
        |name: &str| document.descendants().filter(|node| node.tag_name().name() == name).count();
    // Bars and time of the process, two histograms of each of two locks and
    // one of the condition's waits, and one of its holds.
    assert_eq!(with("svg"), 2 + 2 * 3);
    assert!(with("details") >= 3 * 4, "{}", with("details"));
    assert!(page.contains("prefers-color-scheme") && page.contains("@media print"));
}
