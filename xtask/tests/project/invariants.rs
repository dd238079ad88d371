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

/// Returns the names that `line` of a comment or a document defines: those in bold.
fn defined(line: &str) -> impl Iterator<Item = &str> {
    line.split("**").skip(1).step_by(2).filter(|name| is_name(name))
}

/// Returns the text of comments in a line, of which `inside` says whether the one before has left a
/// comment open. Rust's comments are those of lines: `blocks` is false.
fn comment<'a>(line: &'a str, blocks: bool, inside: &mut bool) -> Option<&'a str> {
    if *inside {
        let (text, rest) = line.split_once("*/").map_or((line, None), |(a, b)| (a, Some(b)));
        *inside = rest.is_none();
        return Some(text);
    }
    let block = line.find("/*").filter(|_| blocks);
    let line_comment = line.find("//");
    match (block, line_comment) {
        (Some(at), other) if other.is_none_or(|other| at < other) => {
            let text = &line[at + 2..];
            let (text, rest) = text.split_once("*/").map_or((text, None), |(a, b)| (a, Some(b)));
            *inside = rest.is_none();
            Some(text)
        }
        (_, Some(at)) => Some(line[at..].trim_start_matches(['/', '!'])),
        _ => None,
    }
}

/// Returns what the lines of a text say for people: comments of code, all of a document.
/// `extension`: that of its file.
fn prose(text: &str, extension: &str) -> Vec<(usize, String)> {
    let mut inside = false;
    let mut of_line = |line| match extension {
        "md" => Some(line),
        _ => comment(line, extension != "rs", &mut inside),
    };
    let lines = text.lines().enumerate();
    lines.filter_map(|(number, line)| Some((number + 1, of_line(line)?.to_owned()))).collect()
}

/// Returns the text of a file, as [`prose`].
fn prose_of(path: &Path) -> Vec<(usize, String)> {
    prose(&text(path), path.extension().and_then(|name| name.to_str()).unwrap_or_default())
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
}

/// Returns the files and lines in which each name is defined and cited.
fn names() -> (BTreeMap<String, Vec<String>>, BTreeMap<String, Vec<String>>) {
    let (mut definitions, mut citations) = (BTreeMap::new(), BTreeMap::new());
    for path in files(".", &["rs", "h", "c", "hpp", "cc", "md"]) {
        let shown = path.strip_prefix(root()).expect("below the root").display().to_string();
        for (line, prose) in prose_of(&path) {
            let place = format!("{shown}:{line}");
            for name in defined(&prose) {
                definitions.entry(name.to_owned()).or_insert_with(Vec::new).push(place.clone());
            }
            for word in words(&prose).filter(|word| is_name(word)) {
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
            for (line, prose) in prose_of(&path) {
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

/// Finds names wherever they stand. (They are written with other strokes here, lest the test above
/// finds these.)
#[test]
fn a_definition_and_a_citation_are_read_in_any_comment() {
    let read = |text: &str, extension: &str| -> (Vec<String>, Vec<String>) {
        let lines = prose(&text.replace('_', "-"), extension);
        let plain = |name: &str| name.replace('-', "_");
        let of_lines = lines.iter().map(|(_, line)| line);
        (
            of_lines.clone().flat_map(|line| defined(line)).map(plain).collect(),
            of_lines.flat_map(|line| words(line)).filter(|word| is_name(word)).map(plain).collect(),
        )
    };
    let header =
        "/* See ONE_NAME.\n * **OTHER_NAME** holds.\n */\nint MY_INT; /* THIRD_NAME */ int y;";
    let (defined, cited) = read(header, "h");
    assert_eq!(defined, ["OTHER_NAME"]);
    assert_eq!(cited, ["ONE_NAME", "OTHER_NAME", "THIRD_NAME"]);
    let (defined, _) =
        read("It keeps **ONE_NAME**: and **bold** text.\n- **OTHER_NAME** so\n", "md");
    assert_eq!(defined, ["ONE_NAME", "OTHER_NAME"]);
    assert_eq!(read("let x = MY_NAME; // - **ONE_NAME**: so", "rs").0, ["ONE_NAME"]);
}
