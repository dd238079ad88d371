//! Invariants have names that are unique in the workspace, and are cited by them.
//!
//! A file's header, or a document, defines one by `- **NAME** …`; comments and documents cite
//! it as NAME. A name is two words or more in capitals, with hyphens between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask::{files, root, text};

/// Words in capitals with hyphens that name something else.
const OTHERS: [&str; 0] = [];

/// Tells whether `word` has the form of an invariant's name.
fn is_name(word: &str) -> bool {
    let part = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
    word.contains('-') && word.split('-').all(part)
}

/// The name that `line` of a comment or a document defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches("- ").strip_prefix("**")?;
    rest.split("**").next().filter(|name| is_name(name))
}

/// The text of a comment, if the line is one or ends in one.
fn comment(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("//")?;
    Some(rest.trim_start_matches(['/', '!']))
}

/// What a file's lines say for people: comments of code, all of a document.
fn prose(path: &Path) -> Vec<(usize, String)> {
    let document = path.extension().is_some_and(|extension| extension == "md");
    text(path)
        .lines()
        .enumerate()
        .filter_map(|(number, line)| {
            let line = if document { Some(line) } else { comment(line) };
            line.map(|line| (number + 1, line.to_owned()))
        })
        .collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
}

/// Files and lines in which each name is defined and cited.
fn names() -> (BTreeMap<String, Vec<String>>, BTreeMap<String, Vec<String>>) {
    let (mut definitions, mut citations) = (BTreeMap::new(), BTreeMap::new());
    let code = ["crates", "bench"].into_iter().flat_map(|folder| files(folder, &["rs", "h", "c"]));
    let documents = files("docs", &["md"]).into_iter().chain([root().join("ARCHITECTURE.md")]);
    for path in code.chain(documents) {
        let shown = path.strip_prefix(root()).expect("below the root").display().to_string();
        for (line, prose) in prose(&path) {
            let place = format!("{shown}:{line}");
            let defined = defined(&prose);
            if let Some(name) = defined {
                definitions.entry(name.to_owned()).or_insert_with(Vec::new).push(place.clone());
            }
            for word in words(&prose).filter(|word| is_name(word) && Some(*word) != defined) {
                citations.entry(word.to_owned()).or_insert_with(Vec::new).push(place.clone());
            }
        }
    }
    (definitions, citations)
}

#[test]
fn each_is_defined_once_and_each_citation_exists() {
    let (definitions, citations) = names();
    assert!(definitions.len() > 50, "only {} invariants were read", definitions.len());
    let mut wrong = Vec::new();
    for (name, places) in &definitions {
        if places.len() > 1 {
            wrong.push(format!("{name} is defined in {}", places.join(", ")));
        }
    }
    for (name, places) in &citations {
        if !definitions.contains_key(name) && !OTHERS.contains(&name.as_str()) {
            wrong.push(format!("{name} is defined nowhere: {}", places.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A bold word in a list that opens with a letter and a number was an invariant's name once.
#[test]
fn no_invariant_is_a_letter_and_a_number() {
    let mut wrong = BTreeSet::new();
    for folder in ["crates", "bench", "docs"] {
        for path in files(folder, &["rs", "md"]) {
            for (line, prose) in prose(&path) {
                let Some(rest) = prose.trim_start().strip_prefix("- **") else { continue };
                let name = rest.split("**").next().unwrap_or_default();
                let short = name.len() < 6 && name.ends_with(|c: char| c.is_ascii_digit());
                if short && name.starts_with(|c: char| c.is_ascii_uppercase()) {
                    wrong.insert(format!("{}:{line}: {name}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
