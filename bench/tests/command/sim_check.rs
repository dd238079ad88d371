//! `lockstead sim measure`, `check`, `trace` and `whatif` in the forms that programs read.

use serde_json::Value;
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_lockstead-bench"))
        .arg("sim")
        .args(arguments)
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&sim(arguments).stdout).expect("JSON and nothing else")
}

#[test]
fn the_measured_machine_is_a_machine_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("here.toml");
    std::fs::write(&file, sim(&["measure"]).stdout).expect("written");
    let name = file.to_str().expect("a plain name");
    let run = ["run", "--lock", "lockstead", "--workload", "storm", "--json", "--machine", name];
    assert!(json(&run)["jobs_per_second"].as_f64() > Some(0.0));
}

#[test]
fn a_check_gives_the_error_of_each_cell() {
    let grid = ["--threads", "2", "--section", "1us", "--think", "0,1x", "--seeds", "1"];
    let report = json(&[&["check", "--quick", "--json"], &grid[..]].concat());
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 8, "two cells of four locks");
    for cell in cells {
        let figure = |name: &str| cell[name].as_f64().expect("a number");
        let (measured, simulated) = (figure("measured_per_s"), figure("simulated_per_s"));
        assert!(measured > 0.0 && simulated > 0.0, "{cell}");
        let error = (simulated / measured - 1.0) * 100.0;
        assert!((error - figure("error_percent")).abs() < 0.2, "{cell}");
    }
    assert!(report["median_error_percent"].as_f64() >= Some(0.0));
    assert!(report["machine"].as_str().is_some_and(|text| text.contains("[scheduler]")));
}

#[test]
fn a_trace_has_spans_of_one_holder_at_a_time() {
    let storm = ["--machine", "vm-2", "--workload", "storm", "--lock", "futex", "--json"];
    let report = json(&[&["trace", "--length", "30"], &storm[..]].concat());
    assert!(!report["steps"].as_array().expect("steps").is_empty());
    let mut holds: Vec<(f64, f64)> = report["spans"]
        .as_array()
        .expect("spans")
        .iter()
        .filter(|span| span["what"].as_str().is_some_and(|what| what.starts_with("holds")))
        .map(|span| (span["from"].as_f64().expect("a time"), span["to"].as_f64().expect("one")))
        .collect();
    assert!(holds.len() > 3, "{holds:?}");
    holds.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert!(holds.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-9), "{holds:?}");
}

#[test]
fn a_page_has_the_picture_and_what_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("page.html");
    let name = file.to_str().expect("a plain name");
    let storm = ["--machine", "vm-2", "--workload", "storm", "--html", name];
    for arguments in [
        vec!["run", "--lock", "lockstead"],
        vec!["trace", "--lock", "queued-2013", "--tasks", "3"],
        vec!["sweep", "--locks", "lockstead,futex", "--seeds", "1"],
    ] {
        let printed = sim(&[&arguments[..], &storm].concat()).stdout;
        let printed = String::from_utf8(printed).expect("text");
        let page = std::fs::read_to_string(&file).expect("written");
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let page = roxmltree::Document::parse_with_options(&page, options).expect("well formed");
        let part = |name| page.descendants().find(|node| node.has_tag_name(name));
        let shown = part("pre").and_then(|pre| pre.text()).expect("the figures");
        assert_eq!(shown.trim_end(), printed.trim_end());
        assert!(page.descendants().any(|node| node.tag_name().name() == "svg"), "a picture");
    }
}
