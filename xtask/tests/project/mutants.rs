//! `cargo xtask mutants`: what it makes of given source, and that its files speak of functions and
//! mutants that exist.

use std::collections::BTreeSet;
use xtask::mutants::about_faults::AboutFaults;
use xtask::mutants::equivalents::Equivalents;
use xtask::mutants::options::MutantOptions;
use xtask::mutants::plan::{Plan, protocol_files};
use xtask::mutants::record::Record;
use xtask::mutants::rewrite::{replace, rewrite};
use xtask::mutants::sites::{Shape, SourceFile};
use xtask::mutants::table::{Counts, Summary};

const TOY: &str = "\
const FLAG: u32 = 1 << 3;

fn take(word: &Atomic, me: u32) -> bool {
    let mut seen = word.load(Ordering::Acquire);
    // A comment, which stays in its line.
    while seen & FLAG == 0 && !fault!(takes_anything) {
        match word.compare_exchange(seen, seen | me) {
            Ok(_) => return true,
            Err(found) => seen = found,
        }
    }
    false
}

fn give(word: &Atomic) {
    if fault!(keeps) {
        return;
    }
    if let Some(left) = word.erase()
        && left != 0
    {
        wake(word);
    }
}

fn told(outcome: Outcome) -> Option<u32> {
    let told = match outcome {
        Outcome::Woken if is_late() => 1,
        Outcome::Changed => 2,
        _ => return None,
    };
    Some(told)
}
";

fn toy() -> Plan {
    Plan::of(vec![SourceFile::parse("crates/core/src/toy.rs", TOY.into()).expect("it is Rust")])
}

/// Returns what becomes of `was` in a function of this body.
fn of(body: &str, was: &str) -> BTreeSet<String> {
    let text = format!("fn f() {{ {body} }}");
    let file = SourceFile::parse("crates/core/src/f.rs", text).expect("it is Rust");
    let all = file.sites.iter().flat_map(|site| &site.alternatives);
    all.filter(|what| what.was == was).map(|what| what.now.clone()).collect()
}

#[track_caller]
fn becomes(body: &str, was: &str, now: &[&str]) {
    assert_eq!(of(body, was), now.iter().map(ToString::to_string).collect(), "{body}");
}

#[test]
fn operators_become_their_neighbours() {
    becomes("let x = a < b;", "a < b", &["a <= b", "a == b"]);
    becomes("let x = a >= b;", "a >= b", &["a > b", "a == b"]);
    becomes("let x = a == b;", "a == b", &["a != b"]);
    becomes("let x = a && b;", "a && b", &["a || b", "a", "b"]);
    becomes("let x = a | b;", "a | b", &["a & b", "a ^ b", "a", "b"]);
    becomes("let x = a & b;", "a & b", &["a | b", "a ^ b", "a"]);
    let grouped = ["(a | b) & c", "(a | b) ^ c", "a | b", "c"];
    becomes("let x = a | b | c;", "a | b | c", &grouped);
    becomes("let x = a + b;", "a + b", &["a - b", "a"]);
    becomes("let x = a << b;", "a << b", &["a >> b", "a"]);
    becomes("let x = !a;", "!a", &["a"]);
    becomes("a |= b;", "a |= b", &["a &= b", "a = b"]);
    becomes("let x = 7;", "7", &["6", "8"]);
    becomes("let x = true;", "true", &["false"]);
}

#[test]
fn conditions_become_true_and_false() {
    becomes("if a {}", "a", &["true", "false"]);
    becomes("while a < b {}", "a < b", &["true", "false", "a <= b", "a == b"]);
    becomes("if let Some(x) = y {}", "let Some(x) = y", &["false"]);
    becomes("match x { A if b => 1, _ => 2 }", "b", &["true", "false"]);
    becomes("match x { A => 1, _ => 2 }", "A => …", &["(no such arm)"]);
    becomes("match x { A => 1, B => 2 }", "A => …", &[]);
}

#[test]
fn steps_are_left_out_or_exchanged() {
    becomes("f(x); g()", "f(x);", &["(left out)"]);
    becomes("x = y; g()", "x = y;", &["(left out)"]);
    becomes("f(x)?; g()", "f(x)?;", &["(left out)", "let _ = f(x);"]);
    becomes("if a { return x; } g()", "return x;", &["(left out)"]);
    becomes("loop { continue }", "continue", &["break"]);
    becomes("loop { break }", "break", &["continue"]);
    becomes("loop { break; }", "end of loop", &["break"]);
    becomes("let x = loop { break 1 };", "end of loop", &[]);
    becomes("let x = B { a: 1, ..c };", "B { a: 1, ..c }", &["B { ..c }"]);
    becomes("let x = Some(y);", "Some(y)", &["None"]);
    becomes("let x = y.closed();", "y.closed()", &["y"]);
}

#[test]
fn orderings_lose_each_half() {
    becomes("a.load(Ordering::Acquire);", "Ordering::Acquire", &["Ordering::Relaxed"]);
    let halves = ["Ordering::Acquire", "Ordering::Release", "Ordering::Relaxed"];
    becomes("a.swap(1, Ordering::AcqRel);", "Ordering::AcqRel", &halves);
    let weaker = ["Ordering::Release", "Ordering::Relaxed"];
    becomes("a.store(1, Ordering::SeqCst);", "Ordering::SeqCst", &weaker);
    becomes("P::fence(Ordering::SeqCst);", "Ordering::SeqCst", &["Ordering::AcqRel"]);
    becomes("a.load(Ordering::Relaxed);", "Ordering::Relaxed", &[]);
    becomes("a.load(Acquire);", "Acquire", &["core::sync::atomic::Ordering::Relaxed"]);
    becomes("a.load(Relaxed);", "Relaxed", &[]);
    let both = "let (success, failure) = (Ordering::Release, Ordering::Relaxed);";
    becomes(both, "Ordering::Release", &["Ordering::Relaxed"]);
}

#[test]
fn faults_are_no_steps() {
    becomes("if a && !fault!(x) {}", "a", &["true", "false"]);
    assert!(of("if a && !fault!(x) {}", "a && !fault!(x)").is_empty());
    becomes("if fault!(x) { f(y); }", "f(y);", &[]);
    becomes("let x = a || fault!(x);", "a || fault!(x)", &[]);
    // Nor what a marker keeps from being reached, or what has the name of one.
    becomes("if a && fault!(x) { f(y); }", "a", &[]);
    becomes("if a && fault!(x) { f(y); }", "f(y);", &[]);
    becomes("let s = fault!(x); if s { f(y); } else { g(y); }", "f(y);", &[]);
    becomes("let s = fault!(x); if s { f(y); } else { g(y); }", "s", &[]);
    becomes("let s = fault!(x); if s { f(y); } else { g(y); }", "g(y);", &["(left out)"]);
    becomes("a &= !fault!(x);", "a &= !fault!(x);", &[]);
    becomes("if a || !fault!(x) { f(y); }", "a", &[]);
    becomes("let x = fault!(x).then(|| y);", "fault!(x).then(|| y)", &[]);
}

#[test]
fn what_makes_no_difference_is_no_mutant() {
    becomes("let x = A | B;", "A | B", &["A & B", "A", "B"]);
    becomes("compiler_fence(Ordering::SeqCst);", "compiler_fence(Ordering::SeqCst);", &[]);
    becomes("compiler_fence(Ordering::SeqCst);", "Ordering::SeqCst", &[]);
}

#[test]
fn a_file_with_all_mutants_keeps_its_lines() {
    let plan = toy();
    let written = rewrite(&plan.files[0], &plan.numbers(0), "crate::mutant");
    syn::parse_file(&written.text).expect("it is Rust");
    for (was, now) in TOY.lines().zip(written.text.lines()) {
        assert_eq!(was.contains("//"), now.contains("//"), "{now}");
    }
    assert_eq!(TOY.lines().count(), written.text.lines().count());
    let numbers: Vec<u32> = plan.mutants.iter().filter_map(|mutant| mutant.number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    assert!(!written.text.contains("(1 << 3)"), "a constant has no switch");
    for mark in written.marks.iter().filter(|mark| mark.alternative.is_some()) {
        assert!(!written.text[mark.range.clone()].contains('\n'));
    }
}

#[test]
fn each_mutant_is_one_change_that_is_still_rust() {
    let plan = toy();
    let shapes: BTreeSet<Shape> = plan.files[0].sites.iter().map(|site| site.shape).collect();
    assert_eq!(shapes.len(), 5, "each way to write a mutant: {shapes:?}");
    let keys: BTreeSet<&str> = plan.mutants.iter().map(|mutant| mutant.key.as_str()).collect();
    assert_eq!(keys.len(), plan.mutants.len(), "each has a key of its own");
    for mutant in &plan.mutants {
        let text = replace(&plan.files[0], mutant.site, mutant.alternative);
        assert_ne!(text, TOY);
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
}

#[test]
fn tests_that_expect_a_failure_do_not_count() {
    let about = AboutFaults::read();
    let without = "locks::orderings::model_queue_passes_headship_without_ordering_3t";
    assert!(about.is("model/models", without));
    assert!(!about.is("model/models", "locks::orderings::model_queue_misses_each_ordering"));
    assert!(about.is("core/stress_once", "any"));
    assert!(about.is("model/models", "shared_locks::broken_deep::two_hand_off_waiters"));
    assert!(!about.is("model/models", "ledger::broken::broken_a_reader_that_looks_once"));
    assert!(!about.is("model/models", "locks::mutex::model_mutex_excludes_sleeping_2t"));
    assert!(!about.is("model/models", "locks::broken_mutex::model_queue_misses_broken_steps"));
}

#[test]
fn the_words_of_the_command_are_checked() {
    let parse = |words: &[&str]| MutantOptions::parse(words.iter().map(ToString::to_string));
    assert_eq!(parse(&["--for", "2h"]).unwrap().unwrap().time.unwrap().as_secs(), 7200);
    assert!(parse(&["--for", "soon"]).is_err());
    assert!(parse(&["--jobs", "0"]).is_err());
    assert!(parse(&["--file"]).is_err());
    assert!(parse(&["--fiel", "mutex.rs"]).is_err());
    assert!(parse(&["--help"]).unwrap().is_none());
}

/// What the project says of its mutants is said of mutants and functions that exist.
#[test]
fn the_record_and_the_arguments_are_about_what_there_is() {
    let plan = Plan::of(protocol_files().expect("the core is Rust"));
    let equivalents = Equivalents::read().expect("a readable list");
    assert_eq!(equivalents.stale(&plan), Vec::<String>::new());
    let record = Record::read().expect("a readable record");
    assert_eq!(record.stale(&plan), Vec::<String>::new());
    assert_eq!(Record::parse(&record.text()), Ok(record));
}

/// A file of which a part is decided stays out of the record, so that CI does not run the rest.
#[test]
fn the_record_takes_whole_files() {
    let mut summary = Summary::default();
    let place = |name: &str| ("toy.rs".to_owned(), name.to_owned(), 7);
    let killed = Counts { made: 3, killed: 3, ..Counts::default() };
    let undecided = Counts { made: 2, open: 2, undecided: 2, ..Counts::default() };
    summary.functions.insert(place("take"), killed);
    summary.functions.insert(place("give"), undecided);
    let mut record = Record::default();
    record.update(&summary);
    assert_eq!(record, Record::default());
    summary.functions.insert(place("give"), killed);
    record.update(&summary);
    assert_eq!(record.lines.len(), 2);
    assert_eq!(record.lines[&place("give")], [3, 3, 0, 0, 0]);
    // What has changed since is another function, and the old one is forgotten when it is decided.
    summary.functions.remove(&place("give"));
    summary.functions.insert(("toy.rs".into(), "give".into(), 8), killed);
    record.update(&summary);
    assert!(!record.lines.contains_key(&place("give")) && record.lines.len() == 2);
}
