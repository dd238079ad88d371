//! Documentation is sentences: no summary is a fragment, every SAFETY comment says why.

use crate::reading::{for_tests, parsed};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Field, ImplItem, Item, Lit, Meta, TraitItem, Variant};
use xtask::{files, text};

/// A summary that begins so speaks of something that it does not name.
const DANGLING: [&str; 18] = [
    "As", "At", "Beside", "Between", "By", "During", "For", "From", "In", "Into", "Like", "Of",
    "On", "To", "Told", "Who", "Whose", "Without",
];

struct Summaries {
    /// Line, whether a call is summed up, and the summary.
    found: Vec<(usize, bool, String)>,
}

impl Summaries {
    fn of(&mut self, attributes: &[Attribute], at: Span, call: bool) {
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
            self.found.push((at.start().line, call, summary.join(" ")));
        }
    }
}

impl<'ast> Visit<'ast> for Summaries {
    fn visit_item(&mut self, item: &'ast Item) {
        if !for_tests(item) {
            let call = matches!(item, Item::Fn(_) | Item::Macro(_));
            self.of(crate::reading::attributes(item), item.span(), call);
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Const(item) => self.of(&item.attrs, item.span(), false),
            ImplItem::Fn(item) => self.of(&item.attrs, item.span(), true),
            ImplItem::Type(item) => self.of(&item.attrs, item.span(), false),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        match item {
            TraitItem::Const(item) => self.of(&item.attrs, item.span(), false),
            TraitItem::Fn(item) => self.of(&item.attrs, item.span(), true),
            TraitItem::Type(item) => self.of(&item.attrs, item.span(), false),
            _ => {}
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_field(&mut self, field: &'ast Field) {
        self.of(&field.attrs, field.span(), false);
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.of(&variant.attrs, variant.span(), false);
        visit::visit_variant(self, variant);
    }
}

/// Why `summary` is not one, if it is not.
fn complaint(summary: &str, call: bool) -> Option<&'static str> {
    let first = summary.split_whitespace().next().unwrap_or_default();
    if first == "Whether" && call {
        return Some("says of a call no more than a question");
    }
    if first == "Returns" && !call {
        return Some("says of a thing that it returns something");
    }
    if DANGLING.contains(&first.trim_end_matches(',')) {
        return Some("begins with a word that leaves its subject out");
    }
    // "Releases the lock." says all; "The lock." does not.
    let least = if call && first.ends_with('s') { 3 } else { 4 };
    (summary.split_whitespace().count() < least).then_some("too few words for a sentence")
}

/// The SAFETY comments of a text, whole, each with its line.
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
    for folder in ["crates", "bench", "xtask"] {
        for path in files(folder, &["rs"]) {
            if path.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            let mut summaries = Summaries { found: Vec::new() };
            summaries.visit_file(&parsed(&path));
            read += summaries.found.len();
            for (line, call, summary) in summaries.found {
                if let Some(why) = complaint(&summary, call) {
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
    for folder in ["crates", "bench", "xtask"] {
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
