//! The tables of `docs/validator.md` have what the catalogue has, each rule is decided by the
//! validators that are named, and a test of each breaks it.

use lockstead_rules::{By, Level, Rule};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validator.md");
    fs::read_to_string(path).expect("the document")
}

/// Returns the anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let letter = |c: &char| c.is_ascii_alphanumeric() || " -_".contains(*c);
    heading.to_lowercase().chars().filter(letter).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn row(rule: Rule) -> String {
    format!("| `{}` | {} | {} | {} |", rule.id(), rule.by(), rule.meaning(), rule.remedy())
}

#[test]
fn every_rule_has_its_row_in_its_section_and_every_row_its_rule() {
    let document = document();
    let mut section = String::new();
    let mut found = Vec::new();
    for line in document.lines() {
        if let Some(heading) = line.trim_start_matches('#').strip_prefix(' ')
            && line.starts_with('#')
        {
            section = anchor(heading);
        }
        // Other tables have no validator in their second column.
        let mut cells = line.split(" | ");
        let is_id = cells.next().is_some_and(|cell| cell.starts_with("| `"));
        let is_row = is_id
            && cells.next().is_some_and(|by| by.split(", ").all(|by| "run crate C".contains(by)));
        if is_row {
            found.push((section.clone(), line.to_owned()));
        }
    }
    for &rule in Rule::ALL {
        let wanted = (rule.section().to_owned(), row(rule));
        assert!(found.contains(&wanted), "docs/validator.md#{}: no row\n{}", wanted.0, wanted.1);
    }
    assert_eq!(found.len(), Rule::ALL.len(), "docs/validator.md has rows of no rule");
}

#[test]
fn numbers_and_ids_are_unique_and_texts_are_sentences() {
    let numbers: BTreeSet<u32> = Rule::ALL.iter().map(|&rule| rule as u32).collect();
    let ids: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    assert_eq!((numbers.len(), ids.len()), (Rule::ALL.len(), Rule::ALL.len()));
    for &rule in Rule::ALL {
        assert_eq!(Rule::from_id(rule.id()), Some(rule));
        assert_eq!(Rule::from_number(rule as u32), Some(rule));
        assert_eq!(rule.phrase().replace(' ', "-"), rule.id());
        assert!(rule.meaning().ends_with('.') && rule.remedy().ends_with('.'), "{rule:?}");
    }
    assert_eq!(Rule::from_number(0), None);
    assert_eq!(Rule::from_id("no-such-rule"), None);
}

/// A report of a run tells all that the run finds, and nothing of what it does not.
#[test]
fn what_a_run_finds_has_a_story() {
    for &rule in Rule::ALL {
        let told = rule.is_found_by(By::RUN) && rule.level() == Level::Rule;
        assert_eq!(rule.story().is_some(), told, "{rule:?}");
        for text in rule.story().into_iter().flat_map(|s| [s.does, s.before_by_other, s.before]) {
            assert!(!text.is_empty() && !text.ends_with('.'), "{rule:?}: {text}");
        }
    }
}

/// Returns all texts below these folders of the workspace, one after the other.
fn texts(folders: &[&str]) -> String {
    let mut all = String::new();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open: Vec<_> = folders.iter().map(|folder| workspace.join(folder)).collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                all += &text;
            }
        }
    }
    all
}

#[test]
fn each_validator_decides_its_rules_and_a_test_of_it_breaks_them() {
    for (validator, code, tests) in [
        (
            By::RUN,
            "crates/preload/src/rules",
            &["crates/cli/tests/programs/check", "crates/preload/tests"][..],
        ),
        (By::C, "crates/capi/src/check", &["crates/capi/tests"]),
        (By::CRATE, "crates/lockstead/src", &["crates/lockstead/tests"]),
    ] {
        let (code, tests) = (texts(&[code]), texts(tests));
        for &rule in Rule::ALL {
            if !rule.is_found_by(validator) || rule.level() != Level::Rule {
                continue;
            }
            let name = format!("Rule::{rule:?}");
            assert!(code.contains(&name), "{validator}: nothing decides {name}");
            let is_broken =
                [rule.phrase(), rule.id(), &name].iter().any(|said| tests.contains(said));
            assert!(is_broken, "{validator}: no test breaks the rule `{}`", rule.phrase());
        }
    }
}
