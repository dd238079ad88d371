//! The comments in the programs that say what must be reported.

use std::collections::HashMap;
use std::path::Path;

/// A case of a program, as its comment describes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) flags: Vec<String>,
    /// It is to be ended when all has been reported.
    pub(crate) hangs: bool,
    pub(crate) silent: Silent,
    pub(crate) findings: Vec<Expected>,
}

#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Silent {
    #[default]
    No,
    Yes,
    EvenWhenStrict,
}

/// A finding that must be made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Its first line, less `lockstead: `.
    pub(crate) head: String,
    pub(crate) has: Vec<String>,
    pub(crate) lacks: Vec<String>,
}

impl Expected {
    /// Tells whether only `--strict` shows it.
    pub(crate) fn is_strict(&self) -> bool {
        self.head.starts_with("ORDER")
    }
}

/// Returns all cases of a source.
pub(crate) fn cases(source: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/check").join(source);
    let text = std::fs::read_to_string(&path).expect("a source");
    let cases = parse(source, &text);
    let described: Vec<_> = cases.iter().map(|case| &*case.name).collect();
    for (at, name) in described.iter().enumerate() {
        assert!(!described[..at].contains(name), "{source}: {name} is described twice");
    }
    for name in listed(&text) {
        assert!(described.contains(&name), "{source}: nothing says what {name} comes to");
    }
    cases
}

/// Returns the names in the table of `main`.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    let table = text.split(" all[] = {").nth(1).unwrap_or_default();
    table.lines().filter_map(|line| line.trim().strip_prefix("{\"")?.split('"').next())
}

fn parse(source: &str, text: &str) -> Vec<Case> {
    let marks = marks(source, text);
    let mut cases: Vec<Case> = Vec::new();
    for comment in text.split("/* CASE ").skip(1) {
        let comment = comment.split("*/").next().unwrap_or_default();
        for (at, line) in comment.lines().enumerate() {
            let line = line.trim().trim_start_matches('*').trim();
            if at == 0 {
                cases.push(headed(line));
            } else if let Some(head) = line.strip_prefix("CASE ") {
                cases.push(headed(head));
            } else if !line.is_empty() {
                let case = cases.last_mut().expect("the first line is one");
                add(case, line, &marks).unwrap_or_else(|| panic!("{source}: {line:?}"));
            }
        }
    }
    cases
}

/// Parses `NAME with --flag --flag hangs`.
fn headed(line: &str) -> Case {
    let mut case = Case::default();
    for (at, word) in line.split_whitespace().enumerate() {
        match word {
            name if at == 0 => case.name = name.to_owned(),
            "hangs" => case.hangs = true,
            "with" => {}
            flag => case.flags.push(flag.to_owned()),
        }
    }
    case
}

fn add(case: &mut Case, line: &str, marks: &HashMap<&str, String>) -> Option<()> {
    match line.split_once(": ") {
        Some(("has", text)) => case.findings.last_mut()?.has.push(text.to_owned()),
        Some(("lacks", text)) => case.findings.last_mut()?.lacks.push(text.to_owned()),
        Some(("at", text)) => {
            let (text, mark) = text.rsplit_once(" @")?;
            let place = format!("{text} at {}", marks.get(mark)?);
            case.findings.last_mut()?.has.push(place);
        }
        _ if line == "silent" => case.silent = Silent::Yes,
        _ if line == "silent even with --strict" => case.silent = Silent::EvenWhenStrict,
        _ if ["RULE: ", "POTENTIAL: ", "ORDER: ", "DEADLOCK: "]
            .iter()
            .any(|l| line.starts_with(l)) =>
        {
            case.findings.push(Expected { head: line.to_owned(), ..Expected::default() });
        }
        _ => return None,
    }
    Some(())
}

/// Returns `file.c:12` for each line that carries a comment `@mark`.
fn marks<'a>(source: &str, text: &'a str) -> HashMap<&'a str, String> {
    let mut marks = HashMap::new();
    for (at, line) in text.lines().enumerate() {
        let Some(mark) = line.split("/* @").nth(1) else { continue };
        let mark = mark.split_whitespace().next().unwrap_or_default();
        let old = marks.insert(mark, format!("{source}:{}", at + 1));
        assert!(old.is_none(), "{source}: @{mark} twice");
    }
    marks
}

#[test]
fn comments_are_read() {
    let text = "/* CASE one with --sleepy hangs\n *   RULE: recursion\n *     has: a (mutex)\n\
                 *     at: f() @here\n *     lacks: b\n * CASE two\n *   silent even with --strict\n\
                 */\n    lock(); /* @here */\n";
    let finding = Expected {
        head: "RULE: recursion".into(),
        has: vec!["a (mutex)".into(), "f() at x.c:9".into()],
        lacks: vec!["b".into()],
    };
    let one = Case {
        name: "one".into(),
        flags: vec!["--sleepy".into()],
        hangs: true,
        silent: Silent::No,
        findings: vec![finding],
    };
    let two = Case { name: "two".into(), silent: Silent::EvenWhenStrict, ..Case::default() };
    assert_eq!(parse("x.c", text), [one, two]);
}
