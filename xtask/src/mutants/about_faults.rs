//! Which tests ask whether a fault is noticed: these kill no mutant, since with a mutant the fault
//! may be hidden, and the lock no worse.
//!
//! (What first shows that a scenario passes as shipped, and asks whether a mutant is chosen, ends
//! there if one is: `missed!`, `breaks!` and the functions called `missed`. A test that only uses these
//! counts.)

use crate::{files, root, text};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};
use syn::visit::{self, Visit};

/// What a test says that expects a failure.
const SIGNS: &[&str] =
    &["expect_err", "unwrap_err", "broken", "weaker", "weaker_without_fences", "failure"];

/// The names of such tests.
#[derive(Debug)]
pub struct AboutFaults {
    names: HashSet<String>,
}

/// The functions of a file, and the names that each uses.
struct Uses(HashMap<String, HashSet<String>>);

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut names = HashSet::new();
        collect(quote::ToTokens::to_token_stream(&item.block), &mut names);
        let panics = item.attrs.iter().any(|attribute| attribute.path().is_ident("should_panic"));
        if panics {
            names.insert("expect_err".into());
        }
        self.0.insert(item.sig.ident.to_string(), names);
        visit::visit_item_fn(self, item);
    }
}

fn collect(tokens: TokenStream, into: &mut HashSet<String>) {
    let mut before = String::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), into),
            TokenTree::Ident(name) => {
                before = name.to_string();
                into.insert(before.clone());
                continue;
            }
            TokenTree::Punct(mark) if mark.as_char() == '!' => {
                into.remove(&before);
            }
            _ => {}
        }
        before.clear();
    }
}

impl AboutFaults {
    /// Reads the models.
    ///
    /// # Panics
    /// If a model is no Rust.
    #[must_use]
    pub fn read() -> Self {
        let folder = root().join("crates/model/tests/models");
        let mut names = HashSet::new();
        for path in files("crates/model/tests/models", &["rs"]) {
            let file = syn::parse_file(&text(&path)).expect("a model is Rust");
            let place = path.strip_prefix(&folder).expect("below it").with_extension("");
            let module = place.display().to_string().replace('/', "::");
            names.extend(found_in(&file).into_iter().map(|name| format!("{module}::{name}")));
        }
        AboutFaults { names }
    }

    /// Returns whether a test must not count.
    #[must_use]
    pub fn is(&self, program: &str, test: &str) -> bool {
        let modules = test.starts_with("checker::");
        let threads = program.contains("/stress_");
        threads || (program == "model/models" && (modules || self.names.contains(test)))
    }
}

fn found_in(file: &syn::File) -> HashSet<String> {
    let mut uses = Uses(HashMap::new());
    uses.visit_file(file);
    let mut found: HashSet<String> = HashSet::new();
    loop {
        let more: Vec<String> = uses
            .0
            .iter()
            .filter(|(name, used)| {
                !found.contains(*name)
                    && !used.contains("mutated")
                    && (SIGNS.iter().any(|sign| used.contains(*sign))
                        || used.iter().any(|name| found.contains(name)))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}
