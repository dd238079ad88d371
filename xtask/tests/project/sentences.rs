//! Documentation is sentences: no summary is a fragment, every SAFETY comment says why.

use crate::reading::{for_tests, parsed};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Field, ImplItem, Item, Lit, Meta, TraitItem, Variant};
use xtask::{files, text};

/// A summary that begins so speaks of something that it does not name.
const DANGLING: [&str; 22] = [
    "As", "By", "Like", "Of", "Told", "Whose", "With", "After", "At", "Beside", "Between",
    "During", "For", "From", "In", "Into", "Not", "On", "To", "Until", "Who", "Without",
];
/// The number of those, the first ones, with which no whole sentence of a test's begins either.
const DANGLING_OF_TESTS: usize = 7;

/// What is summed up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A function or a macro.
    Call,
    /// A test, whose summary may say in a sentence what holds.
    Test,
    /// A type, a field, a constant.
    Thing,
}

impl Kind {
    fn of_function(attributes: &[Attribute]) -> Self {
        let is_test = attributes.iter().any(|attribute| attribute.path().is_ident("test"));
        if is_test { Kind::Test } else { Kind::Call }
    }
}

struct Summaries {
    /// Line, what is summed up, and the summary.
    found: Vec<(usize, Kind, String)>,
}

impl Summaries {
    fn of(&mut self, attributes: &[Attribute], at: Span, kind: Kind) {
        let mut summary = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
            let Meta::NameValue(value) = &attribute.meta else { continue };
            let Expr::Lit(literal) = &value.value else { continue };
            let Lit::Str(line) = &literal.lit else { continue };
            let line = line.value();
            if line.trim().is_empty() {
                break;
            }
            summary.push(line.trim().to_owned());
        }
        if !summary.is_empty() {
            self.found.push((at.start().line, kind, summary.join(" ")));
        }
    }
}

impl<'ast> Visit<'ast> for Summaries {
    fn visit_item(&mut self, item: &'ast Item) {
        if !for_tests(item) {
            let kind = match item {
                Item::Fn(function) => Kind::of_function(&function.attrs),
                Item::Macro(_) => Kind::Call,
                _ => Kind::Thing,
            };
            self.of(crate::reading::attributes(item), item.span(), kind);
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Const(item) => self.of(&item.attrs, item.span(), Kind::Thing),
            ImplItem::Fn(item) => self.of(&item.attrs, item.span(), Kind::Call),
            ImplItem::Type(item) => self.of(&item.attrs, item.span(), Kind::Thing),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        match item {
            TraitItem::Const(item) => self.of(&item.attrs, item.span(), Kind::Thing),
            TraitItem::Fn(item) => self.of(&item.attrs, item.span(), Kind::Call),
            TraitItem::Type(item) => self.of(&item.attrs, item.span(), Kind::Thing),
            _ => {}
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        self.of(&field.attrs, field.span(), Kind::Thing);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.of(&variant.attrs, variant.span(), Kind::Thing);
        visit::visit_variant(self, variant);
    }
}

/// Words that end as a verb does and are none.
const NO_VERBS: &[&str] = &[
    "Acquisitions",
    "Always",
    "As",
    "Bounds",
    "Bytes",
    "Columns",
    "Descriptors",
    "Directories",
    "Executions",
    "Handlers",
    "Instructions",
    "Its",
    "Jobs",
    "Kinds",
    "Lines",
    "Nanoseconds",
    "Operations",
    "Participants",
    "Periods",
    "Permits",
    "Processors",
    "Seconds",
    "Sections",
    "Sleepers",
    "Spurious",
    "This",
    "Threads",
    "Timers",
    "Witnesses",
];

/// Tells whether `word` can be what a function does: a verb in the third person, or, of hooks, that
/// it is called.
fn is_verb(word: &str) -> bool {
    let word = word.trim_end_matches([',', '.', ':']);
    word == "Called" || word.ends_with('s') && !NO_VERBS.contains(&word)
}

/// Returns why `summary` is not one, if it is not.
fn complaint(summary: &str, kind: Kind) -> Option<&'static str> {
    let first = summary.split_whitespace().next().unwrap_or_default();
    if first.starts_with('#') {
        return Some("is a heading with nothing before it");
    }
    if first == "Whether" && kind == Kind::Call {
        return Some("says of a call no more than a question");
    }
    if first == "Returns" && kind == Kind::Thing {
        return Some("says of a thing that it returns something");
    }
    let dangling = if kind == Kind::Test { &DANGLING[..DANGLING_OF_TESTS] } else { &DANGLING[..] };
    if dangling.contains(&first.trim_end_matches(',')) {
        return Some("begins with a word that leaves its subject out");
    }
    // The documentation of a macro may begin with how it is used.
    if kind == Kind::Call && !is_verb(first) && !(first.starts_with('`') && first.ends_with('!')) {
        return Some("does not begin with what the call does");
    }
    // "Releases the lock." says all; "The lock." does not.
    let least = if kind == Kind::Call { 3 } else { 4 };
    (summary.split_whitespace().count() < least).then_some("too few words for a sentence")
}

/// Shows what is a summary, and what is none.
#[test]
fn a_summary_has_a_verb_or_names_a_thing() {
    for (summary, kind, passes) in [
        ("Returns the owner.", Kind::Call, true),
        ("Called before a wait.", Kind::Call, true),
        ("The owner of the lock.", Kind::Call, false),
        ("Of both halves.", Kind::Call, false),
        ("Threads of the process.", Kind::Call, false),
        ("Whether it is free.", Kind::Call, false),
        ("Releases it.", Kind::Call, false),
        ("# Safety As the function.", Kind::Call, false),
        ("A waiter gives up and loses nothing.", Kind::Test, true),
        ("As daemons do it.", Kind::Test, false),
        ("The owner of the lock.", Kind::Thing, true),
        ("The owner.", Kind::Thing, false),
        ("Without its owner.", Kind::Thing, false),
        ("Returns the owner.", Kind::Thing, false),
    ] {
        assert_eq!(complaint(summary, kind).is_none(), passes, "{summary} {kind:?}");
    }
}

/// Returns the SAFETY comments of a text, whole, each with its line.
fn safety(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let comment =
            line.trim_start().strip_prefix("//").filter(|rest| !rest.starts_with(['/', '!']));
        match comment {
            Some(rest) => match rest.trim_start().strip_prefix("SAFETY:") {
                Some(rest) => {
                    inside = true;
                    found.push((number + 1, rest.trim().to_owned()));
                }
                None if inside => {
                    let (_, text) = found.last_mut().expect("inside one");
                    *text += " ";
                    *text += rest.trim();
                }
                None => {}
            },
            None => inside = false,
        }
    }
    found
}

#[test]
fn every_summary_is_a_sentence() {
    let (mut read, mut wrong) = (0, Vec::new());
    for folder in ["crates", "bench", "hangs", "xtask"] {
        for path in files(folder, &["rs"]) {
            let mut summaries = Summaries { found: Vec::new() };
            summaries.visit_file(&parsed(&path));
            read += summaries.found.len();
            for (line, kind, summary) in summaries.found {
                if let Some(why) = complaint(&summary, kind) {
                    wrong.push(format!("{}:{line}: {why}: {summary}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {read}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read > 2000, "only {read} summaries were read");
}

#[test]
fn every_safety_comment_says_what_holds() {
    let (mut read, mut wrong) = (0, Vec::new());
    for folder in ["crates", "bench", "hangs", "xtask"] {
        for path in files(folder, &["rs"]) {
            for (line, comment) in safety(&text(&path)) {
                read += 1;
                if comment.split_whitespace().count() < 6 {
                    wrong.push(format!("{}:{line}: SAFETY: {comment}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {read}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read > 500, "only {read} comments were read");
}
