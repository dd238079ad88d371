//! The places of a source file at which it is changed, and what stands there instead.
//!
//! A [`Site`] is a range of the file with its alternatives. Sites nest as the syntax does: what
//! stands for an alternative is text of the file as it was, since one mutant at a time is chosen,
//! and only the unchanged branch of a site has sites within.

use crate::mutants::operators::Finder;
use proc_macro2::{Span, TokenStream};
use std::ops::Range;
use syn::visit::Visit;

/// How a site is written into the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shape {
    /// A statement: another one, or none, stands in its place.
    Statement,
    /// An expression: another one stands in its place.
    Value,
    /// Nothing: a statement is inserted.
    Insert,
    /// The pattern of a match arm, which gets a guard in addition, or the condition of its guard.
    Guard,
    /// A `let` in a condition, which never matches.
    Never,
}

/// One thing that may stand at a site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alternative {
    /// The text that is compiled.
    pub text: String,
    /// The text of the file that it stands for, as reports show it.
    pub was: String,
    /// What it becomes, as reports show it.
    pub now: String,
}

/// A place and what may stand there.
#[derive(Clone, Debug)]
pub struct Site {
    /// The bytes of the file that it takes the place of.
    pub range: Range<usize>,
    /// How it is written.
    pub shape: Shape,
    /// The function that it lies in.
    pub function: String,
    /// The line of its beginning.
    pub line: usize,
    /// Whether the compiler evaluates it, so that no switch can stand there.
    pub constant: bool,
    /// What may stand there.
    pub alternatives: Vec<Alternative>,
}

/// A function of a file, or a constant.
#[derive(Clone, Debug)]
pub struct Function {
    /// What it is called, behind its type if it has one.
    pub name: String,
    /// The bytes of the file that it takes.
    pub range: Range<usize>,
    /// A hash of its tokens: comments and the form of the lines make no difference.
    pub hash: u64,
}

/// A source file as it is mutated.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path below the workspace.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Its functions and constants.
    pub functions: Vec<Function>,
    /// The places of its mutants, in the order of their beginnings, the outer one first.
    pub sites: Vec<Site>,
    /// A hash of all tokens.
    pub hash: u64,
}

impl SourceFile {
    /// Reads a file, given as text, and finds all sites of it.
    ///
    /// # Errors
    /// What is wrong with the syntax.
    pub fn parse(path: &str, text: String) -> Result<Self, String> {
        let file = syn::parse_file(&text).map_err(|error| format!("{path}: {error}"))?;
        let mut finder = Finder::new(&text);
        finder.visit_file(&file);
        let (functions, mut sites) = finder.finish();
        sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end), site.shape));
        sites.retain(|site| !site.alternatives.is_empty());
        let tokens: TokenStream = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let hash = hash_of(&tokens.to_string());
        Ok(SourceFile { path: path.into(), text, functions, sites, hash })
    }

    /// Returns the path below the folder `src` of its crate, by which people call the file.
    #[must_use]
    pub fn short(&self) -> &str {
        short(&self.path)
    }
}

/// Returns what follows `src/` in a path; with the crate in front of it where that is not the core.
#[must_use]
pub fn short(path: &str) -> &str {
    path.strip_prefix("crates/core/src/").or(path.strip_prefix("crates/")).unwrap_or(path)
}

/// Returns the bytes of the file from which a span was parsed.
#[must_use]
pub fn bytes(span: Span) -> Range<usize> {
    span.byte_range()
}

/// Returns a hash that is the same on every machine (FNV-1a).
#[must_use]
pub fn hash_of(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
