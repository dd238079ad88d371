//! The checker against litmus tests with known outcomes.
//!
//! # The tests
//! `litmus/published/` holds tests of the literature's shapes, with the verdict by RC11's formula;
//! `litmus/families/` all combinations of orderings over the usual cycles. The complete set of
//! outcomes of each, under three models, is what herd 7.58 of herdtools7 says:
//! `rc11.cat` is herd's own, `cxx20.cat` has the two rules of C++20 that differ from it, and
//! `checker.cat` the one rule by which our checker differs from C++20. The checker must find the
//! outcomes of the last, all of them and no others; published tests with the reductions and without.
//!
//! # How to add one
//! Write its first four lines, as others have them, and an empty fifth, or the head of a table, and
//! have herd fill in the rest: `LOCKSTEAD_HERD=write cargo test -p lockstead-model --test models --
//! --ignored herd_says`, with `herd7` on the path. Without the variable the same compares.

mod families;
mod herd;
mod program;
mod verdict;

use program::Program;
use std::path::{Path, PathBuf};
use verdict::{Outcomes, Verdict};

/// What was published of a test.
enum Published {
    /// Whether there is an outcome like this one, where `*` stands for anything.
    Outcome(String, bool),
    Race(bool),
}

/// A test from the literature.
struct Test {
    /// Its lines but the last: name, source, program, and what was published.
    head: [String; 4],
    published: Published,
    verdict: String,
}

impl Test {
    fn parse(text: &str) -> Test {
        let lines: Vec<&str> = text.lines().collect();
        let [name, source, program, said, ref rest @ ..] = lines[..] else { panic!("{text}") };
        let published = match said.split_once(' ') {
            Some(("allowed", outcome)) => Published::Outcome(outcome.into(), true),
            Some(("forbidden", outcome)) => Published::Outcome(outcome.into(), false),
            Some(("no", "race")) => Published::Race(false),
            None if said == "race" => Published::Race(true),
            _ => panic!("{text}"),
        };
        let head = [name, source, program, said].map(String::from);
        Test { head, published, verdict: rest.join(" ") }
    }

    fn program(&self) -> Program {
        Program::parse(&self.head[2])
    }

    /// Returns whether these outcomes are what was published.
    fn fits(&self, outcomes: &Outcomes) -> bool {
        match (&self.published, outcomes) {
            (Published::Outcome(like, allowed), Some(outcomes)) => {
                let found = outcomes.iter().any(|outcome| {
                    outcome.len() == like.len()
                        && like.chars().zip(outcome.chars()).all(|(a, b)| a == '*' || a == b)
                });
                found == *allowed
            }
            (Published::Race(race), outcomes) => outcomes.is_none() == *race,
            (Published::Outcome(..), None) => false,
        }
    }
}

fn published() -> Vec<(PathBuf, String, Vec<Test>)> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/checker/litmus/published");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the tests").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let read = files.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).expect("text");
        let (head, tests) = text.split_once("\n\n").expect("a head");
        let tests = tests.split("\n\n").filter(|text| !text.trim().is_empty());
        let tests = tests.map(Test::parse).collect();
        (path, head.to_string(), tests)
    });
    read.collect()
}

#[test]
fn published_tests_have_the_outcomes_that_are_known() {
    let mut wrong = Vec::new();
    let mut tests = 0;
    for (_, _, some) in published() {
        for test in some {
            tests += 1;
            let verdict = Verdict::parse(&test.verdict);
            let name = &test.head[0];
            if !test.fits(verdict.of_rc11()) {
                wrong.push(format!("{name}: published otherwise: {verdict}"));
            }
            let found = test.program().outcomes(true);
            if found != *verdict.of_checker() {
                wrong.push(format!("{name} {}\n  {found:?}\n  {verdict}", test.head[2]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tests}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tests >= 100, "{tests} tests");
    println!("{tests} tests");
}

#[test]
fn families_have_the_outcomes_that_are_known() {
    let (mut wrong, mut tests) = (Vec::new(), 0);
    for (_, families) in families::all() {
        for family in families {
            let (texts, verdicts) = (family.tests(), family.verdicts());
            assert_eq!(texts.len(), verdicts.len(), "{}", family.name);
            tests += texts.len();
            for (text, verdict) in texts.iter().zip(verdicts) {
                let found = Program::parse(text).outcomes(false);
                if found != *verdict.of_checker() {
                    wrong.push(format!("{} {text}\n  {found:?}\n  {verdict}", family.name));
                }
            }
        }
    }
    let first: Vec<_> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(tests > 3000, "{tests} tests");
    assert!(wrong.is_empty(), "{} of {tests}, first:\n{}", wrong.len(), first.join("\n"));
    println!("{tests} tests");
}

/// Asks herd about every test, and writes what it says with `LOCKSTEAD_HERD=write`.
#[test]
#[ignore = "needs herd7 and minutes"]
fn herd_says_what_the_files_say() {
    let Some(version) = herd::version() else { return println!("skipped: herd7 is not here") };
    let write = std::env::var("LOCKSTEAD_HERD").is_ok_and(|v| v == "write");
    let mut asked = 0;
    for (path, head, tests) in published() {
        let programs: Vec<_> = tests.iter().map(Test::program).collect();
        asked += programs.len();
        let said = herd::verdicts(&programs);
        let tests = tests
            .iter()
            .zip(said)
            .map(|(test, said)| format!("\n{}\n{said}\n", test.head.join("\n")));
        let text = format!("{head}\n{}", tests.collect::<String>());
        if write {
            std::fs::write(&path, text).expect("written");
        } else {
            let known = std::fs::read_to_string(&path).expect("text");
            assert!(text == known, "herd says something else of {}", path.display());
        }
    }
    asked += families::ask_herd(write);
    println!("herd {version}: {asked} tests");
}
