//! The documents say what the code does: labels, commands, links.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use xtask::{files, root, text};

/// Returns `OSQ-1` and the like, wherever they stand in `line` behind `marker`.
pub(crate) fn label(line: &str, marker: &str) -> Option<String> {
    let rest = line.split(marker).nth(1)?.trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
    let name = &rest[..end];
    let (letters, number) = name.split_once('-')?;
    (!letters.is_empty()
        && letters.chars().all(|c| c.is_ascii_uppercase())
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit()))
    .then(|| name.to_owned())
}

/// The folders in which labels stand.
const LABELLED: [&str; 6] = [
    "crates/core/src",
    "crates/linux/src",
    "crates/lockstead/src",
    "crates/ledger/src",
    "crates/preload/src",
    "crates/inspect/src",
];

/// Returns the labels of the code, with the places that carry them.
fn labels_in_code() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in LABELLED {
        for path in files(folder, &["rs"]) {
            for (number, line) in text(&path).lines().enumerate() {
                if let Some(name) = label(line, "ord: ") {
                    let place = format!("{}:{}", path.display(), number + 1);
                    found.entry(name).or_default().push(place);
                }
            }
        }
    }
    found
}

#[test]
fn every_ordering_label_has_its_row_and_every_row_its_label() {
    let code = labels_in_code();
    assert!(code.len() > 10, "labels not found: {code:?}");
    let document = text(&root().join("docs/memory-ordering.md"));
    let rows: BTreeSet<String> =
        document.lines().filter(|l| l.starts_with("| ")).filter_map(|l| label(l, "| ")).collect();
    for (name, places) in &code {
        assert!(rows.contains(name), "{name} ({places:?}) has no row in docs/memory-ordering.md");
    }
    for name in &rows {
        assert!(code.contains_key(name), "docs/memory-ordering.md: no code carries {name}");
    }
}

#[test]
fn the_readme_shows_the_two_commands_and_ci_runs_the_second() {
    let readme = text(&root().join("README.md"));
    for command in ["cargo run --release -- demo", "cargo test --workspace"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
    let ci = text(&root().join(".ci/run"));
    assert!(ci.contains("cargo test --workspace"));
}

/// What someone new reads before the first command; as `wc -w` counts.
#[test]
fn the_readme_is_read_in_a_minute_or_two() {
    let words = text(&root().join("README.md")).split_whitespace().count();
    assert!(words <= 700, "README.md has {words} words");
}

/// The order of the pages is that of docs/README.md, so each has its place there.
#[test]
fn every_page_is_in_the_list_of_pages() {
    let list = text(&root().join("docs/README.md"));
    let pages = files("docs", &["md"]);
    assert!(pages.len() > 30, "only {} pages were found", pages.len());
    let folder = root().join("docs");
    for page in pages.iter().filter(|page| page.parent() == Some(&folder)) {
        let name = page.file_name().and_then(|name| name.to_str()).expect("text");
        let is_listed = name == "README.md" || list.contains(&format!("]({name})"));
        assert!(is_listed, "docs/README.md does not list {name}");
    }
}

/// Returns the anchor that a heading has on the code host.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Returns the anchors of a document: its headings, and those that it sets itself.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let own = document.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .chain(own.map(str::to_owned))
        .collect()
}

#[test]
fn relative_links_lead_somewhere() {
    let mut checked = 0;
    let mut dead = Vec::new();
    for path in files(".", &["md"]) {
        let folder = path.parent().expect("a file has a folder");
        let document = text(&path);
        for rest in document.split("](").skip(1) {
            let link = rest.split(')').next().unwrap_or_default();
            if link.contains("://") {
                continue;
            }
            checked += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            let is_there =
                target.exists() && (place.is_empty() || anchors(&text(&target)).contains(place));
            if !is_there {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
    assert!(checked > 100, "only {checked} links were read");
}

/// Returns the files of Rust and the documents that `line` names; alternatives in braces are several.
/// What has a place-holder in it, `NAME.rs` or `*.md`, names none.
fn named(line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./{},*".contains(c);
    let words =
        line.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['.', ',', '{', '}']));
    let mut found = Vec::new();
    for word in words.filter(|word| word.ends_with(".rs") || word.ends_with(".md")) {
        let names = match word.split_once('{') {
            Some((before, rest)) => {
                let (inside, after) = rest.split_once('}').unwrap_or((rest, ""));
                inside.split(',').map(|name| format!("{before}{name}{after}")).collect()
            }
            None => word.split(',').map(str::to_owned).collect::<Vec<_>>(),
        };
        let is_plain = |name: &String| {
            let stem = name.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or("");
            let is_placeholder = stem.len() > 3
                && stem.chars().all(|c| c.is_ascii_uppercase())
                && name.ends_with(".rs");
            !name.contains('*') && !is_placeholder && !stem.is_empty()
        };
        found.extend(names.into_iter().filter(is_plain));
    }
    found
}

#[test]
fn files_that_are_named_are_there() {
    // Each file, and each part of its path that ends with it.
    let mut known = BTreeSet::new();
    for path in files(".", &["rs", "md"]) {
        let mut rest: Vec<String> =
            path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        while !rest.is_empty() {
            known.insert(rest.join("/"));
            rest.remove(0);
        }
    }
    let (mut read, mut wrong) = (0, Vec::new());
    for path in files(".", &["rs", "md", "h", "hpp", "c", "cc", "toml"]) {
        let is_text = path.extension().is_some_and(|extension| extension == "md");
        for (number, line) in text(&path).lines().enumerate() {
            let said = if is_text { Some(line) } else { line.find("//").map(|at| &line[at..]) };
            let Some(said) = said.filter(|said| !said.contains("://")) else { continue };
            for name in named(said) {
                read += 1;
                let name = name.trim_start_matches(['.', '/']);
                if !known.contains(name) {
                    wrong.push(format!("{}:{}: no file {name}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read > 500, "only {read} names were read");
}

#[test]
fn a_file_is_named_in_whatever_words() {
    assert_eq!(
        named("as `sleep/mod.rs`, and (spin/queue.rs) say."),
        ["sleep/mod.rs", "spin/queue.rs"]
    );
    assert_eq!(named("`crates/core/src/{condvar,once}.rs`").len(), 2);
    assert!(named("`src/NAME.rs`, `examples/*.rs`, a .rs file, `page.html`").is_empty());
}

/// Returns the blocks of code in this language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    let blocks: Vec<&str> = document
        .split(&opening)
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(str::trim)
        .collect();
    assert!(!blocks.is_empty(), "no {language} is shown");
    blocks
}

#[test]
fn the_rust_that_is_shown_is_that_of_examples() {
    let examples: Vec<String> =
        files("crates/lockstead/examples", &["rs"]).iter().map(|path| text(path)).collect();
    let shown = ["README.md", "docs/library.md"].map(|file| text(&root().join(file)));
    for block in shown.iter().flat_map(|text| blocks(text, "rust")) {
        let shown = examples.iter().any(|example| example.contains(block));
        assert!(shown, "no crates/lockstead/examples/*.rs contains\n{block}");
    }
}

#[test]
fn the_c_that_is_shown_is_accepted() {
    for (page, package) in [("library", "capi"), ("cluster", "cluster-capi")] {
        let page = text(&root().join(format!("docs/{page}.md")));
        let shown = blocks(&page, "c");
        assert!(!shown.is_empty(), "no C is shown for {package}");
        let headers = root().join(format!("crates/{package}/include"));
        shown.iter().for_each(|block| accepted(block, &headers));
    }
}

/// Fails unless the system's compiler takes this C, with the headers in a folder.
fn accepted(block: &str, headers: &std::path::Path) {
    let compiler = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"])
        .arg("-I")
        .arg(headers)
        .stdin(Stdio::piped())
        .spawn();
    let mut compiler = match compiler {
        Ok(compiler) => compiler,
        Err(why) => return println!("skipped: no C compiler: {why}"),
    };
    let mut source = compiler.stdin.take().expect("a pipe");
    source.write_all(block.as_bytes()).expect("the compiler reads");
    drop(source);
    assert!(compiler.wait().expect("it ends").success(), "refused:\n{block}");
}
