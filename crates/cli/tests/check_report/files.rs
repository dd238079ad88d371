//! Findings in files: JSON, SARIF, HTML and text.

use super::{INVERSION, checked, heads, under_check};
use crate::common::{documented, run, text};
use crate::programs::{line, under};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).expect("it was written")).expect("JSON")
}

#[test]
fn the_report_has_the_findings_and_the_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.json");
    let Some(ended) = under_check(&["--json", text(&file)], &["crossed", "unlock"]) else { return };
    let report = json(&file);
    documented(&report);
    let findings = report["findings"].as_array().expect("a list");
    let levels: Vec<&str> = findings.iter().filter_map(|one| one["level"].as_str()).collect();
    let mut sorted = levels.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["POTENTIAL", "RULE"]);
    let of = |level: &str| findings.iter().find(|one| one["level"] == level).expect("one");
    let (order, violation) = (of("POTENTIAL"), of("RULE"));
    assert_eq!((&order["kind"], &order["rule"]), (&"order".into(), &"lock-order-inversion".into()));
    assert!(ended.stderr.contains(order["text"].as_str().expect("text")));
    let step = |name: &str| {
        let steps = order["order"]["steps"].as_array().expect("steps");
        steps.iter().find(|step| step["thread"]["name"] == name).expect("its step")
    };
    assert_eq!(step("transfer")["holds"]["name"], "accounts");
    assert_eq!(step("transfer")["timed"], false);
    assert_eq!(step("audit")["asks"]["name"], "accounts");
    assert_eq!(violation["kind"], "violation");
    assert_eq!(violation["rule"], "unlock-of-an-unlocked-lock");
    assert_eq!(violation["violation"]["lock"]["name"], "queue");
    let recorded = &report["processes"][0]["order"];
    assert_eq!(recorded["edges"].as_array().map(Vec::len), Some(2));
    assert_eq!(recorded["left_out"], 0);
}

#[test]
fn sarif_names_rules_places_and_causes() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["1.sarif", "2.sarif"].map(|name| folder.path().join(name));
    let Some(_) = under_check(&["--sarif", text(&first)], &["crossed", "unlock"]) else { return };
    let log = json(&first);
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "lockstead");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        let file = place["artifactLocation"]["uri"].as_str().expect("a file");
        assert!(file.ends_with("checked.c"), "{file}");
        // Of the working copy that the tests are called in, which lies below the root.
        let base = place["artifactLocation"]["uriBaseId"].as_str().expect("a root");
        let root = run["originalUriBaseIds"][base]["uri"].as_str().expect("its place");
        let root = root.strip_prefix("file://").expect("a folder");
        assert!(Path::new(root).join(file).is_file(), "{root}{file}");
        let help = &rules[index]["help"];
        assert!(help["text"].is_string() && help["markdown"].is_string(), "{help}");
        assert!(place["region"]["startLine"].is_u64(), "{place}");
        assert!(result["suppressions"].is_null());
        let frames = result["stacks"][0]["frames"].as_array().expect("frames");
        assert!(!frames.is_empty());
    }
    let inversion = results.iter().find(|one| one["ruleId"] == "lock-order-inversion");
    let inversion = inversion.expect("it is there");
    assert_eq!(inversion["level"], "warning");
    assert_eq!(inversion["stacks"].as_array().map(Vec::len), Some(4));
    assert!(inversion["message"]["text"].as_str().is_some_and(|it| it.starts_with(INVERSION)));
    // Another run has the same causes, and what is suppressed is there as such.
    let list = folder.path().join("list.toml");
    fs::write(&list, "[[suppress]]\nrule = '*'\n").expect("written");
    let flags = ["--sarif", text(&second), "--suppressions", text(&list)];
    let Some(_) = under_check(&flags, &["crossed", "unlock"]) else { return };
    let again = json(&second);
    let causes = |log: &Value| {
        let results = log["runs"][0]["results"].as_array().expect("results").clone();
        let mut causes: Vec<String> =
            results.iter().map(|one| one["partialFingerprints"].to_string()).collect();
        causes.sort_unstable();
        causes
    };
    assert_eq!(causes(&log), causes(&again));
    assert_eq!(again["runs"][0]["results"][0]["suppressions"][0]["kind"], "external");
}

#[test]
fn sarif_can_be_made_of_a_report_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let [report, of_run, of_report] =
        ["r.json", "1.sarif", "2.sarif"].map(|name| folder.path().join(name));
    let flags = ["--json", text(&report), "--sarif", text(&of_run)];
    let Some(_) = under_check(&flags, &["crossed"]) else { return };
    let outcome = run(&["check", "--sarif", text(&of_report), text(&report)]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert_eq!(json(&of_run), json(&of_report));
}

#[test]
fn the_page_draws_the_order_with_its_cycle() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.html");
    let Some(_) = under_check(&["--html", text(&file)], &["crossed", "path"]) else { return };
    let page = fs::read_to_string(&file).expect("it was written");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
    let with = |tag: &str, class: &str| {
        let all = document.descendants().filter(|node| node.tag_name().name() == tag);
        all.filter(|node| node.attribute("class") == Some(class)).count()
    };
    assert_eq!((with("rect", "lock cycle"), with("rect", "lock")), (2, 1), "queue is in none");
    assert_eq!((with("path", "cycle"), with("path", "order")), (2, 1));
    assert_eq!((with("polygon", "cycle"), with("polygon", "order")), (2, 1));
    assert!(page.contains("lock order inversion of 2 locks"));
}

#[test]
fn the_report_file_has_what_was_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("findings.txt");
    fs::write(&file, "of an earlier run\n").expect("written");
    let flags = ["--report-file", text(&file)];
    let Some(ended) = under_check(&flags, &["crossed", "unlock"]) else { return };
    assert_eq!(fs::read_to_string(&file).expect("it is there"), ended.stderr);
    assert_eq!(heads(&ended.stderr).len(), 2);
    let places = line("checked.c", "audit-has");
    assert!(ended.stderr.contains(&places));
}

#[test]
fn locks_of_a_child_are_called_the_same_everywhere() {
    let Some(program) = checked() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [report, page] = ["r.json", "r.html"].map(|name| folder.path().join(name));
    let script = format!("{} crossed; true", program.display());
    let flags = ["--check", "--no-report", "--json", text(&report), "--html", text(&page)];
    let ended = under(&flags, &["sh", "-c", &script]).end();
    assert_eq!(heads(&ended.stderr), [INVERSION], "{}", ended.stderr);
    let report = json(&report);
    let processes = report["processes"].as_array().expect("a list");
    let ordered = processes.iter().map(|process| &process["order"]["edges"]);
    let at = ordered.map(|edges| edges.as_array().map_or(0, Vec::len)).position(|count| count == 2);
    let locks = processes[at.expect("a process with both")]["order"]["locks"].clone();
    let mut names: Vec<_> = locks.as_array().expect("locks").iter().collect();
    names.sort_by_key(|lock| lock["name"].to_string());
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&"accounts".into(), &"journal".into()));
    let page = fs::read_to_string(&page).expect("it was written");
    assert_eq!(page.matches("<rect class=\"lock").count(), 2, "each has one box");
}
