//! The markers of faults in the source of locks and ledger (`crates/core/src/fault.rs`): a test
//! of the model checker chooses each. (A test that chooses one without a marker fails by
//! itself.)

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;
use xtask::{files, root, text};

fn tokens(path: &Path) -> Vec<TokenTree> {
    let tokens: TokenStream = text(path).parse().unwrap_or_else(|why| panic!("{path:?}: {why}"));
    tokens.into_iter().collect()
}

fn is_punct(token: Option<&TokenTree>, punct: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == punct)
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

/// Returns the text of a plain string literal.
fn quoted(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Literal(literal)) => {
            literal.to_string().strip_prefix('"')?.strip_suffix('"').map(str::to_owned)
        }
        _ => None,
    }
}

/// Calls `read` with each group of tokens in `tokens`, and with the tokens before it.
fn groups(tokens: &[TokenTree], read: &mut impl FnMut(&[TokenTree], &[TokenTree])) {
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            read(&tokens[..at], &inside);
            groups(&inside, read);
        }
    }
}

/// Returns the macro that is invoked with the group behind `before`.
fn invoked(before: &[TokenTree]) -> Option<String> {
    let [.., name, mark] = before else { return None };
    if is_punct(Some(mark), '!') { word(Some(name)) } else { None }
}

/// Returns the names of all markers in the code.
fn markers(code: &[TokenTree]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    groups(code, &mut |before, inside| {
        if invoked(before).as_deref() == Some("fault") {
            found.insert(word(inside.first()).expect("a marker has a name"));
        }
    });
    found
}

/// Returns the names of the faults that the code of a test chooses: the second argument of
/// `missed!` and `missed_if_broken!`, the second name of an entry of `misses!`, and what `broken` is called with.
fn chosen(code: &[TokenTree]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    groups(code, &mut |before, inside| match invoked(before).as_deref() {
        Some("missed" | "missed_if_broken") => {
            let comma = inside.iter().position(|token| is_punct(Some(token), ','));
            found.extend(comma.and_then(|comma| word(inside.get(comma + 1))));
        }
        Some("misses") => {
            for entry in inside.windows(4) {
                let named = word(entry.first()).is_some() && is_punct(entry.get(1), ':');
                if named && is_punct(entry.get(3), ',') {
                    found.extend(word(entry.get(2)));
                }
            }
        }
        _ if word(before.last()).as_deref() == Some("broken") => {
            found.extend(quoted(inside.first()))
        }
        _ => {}
    });
    found
}

#[test]
fn a_test_chooses_each_fault() {
    let mut marked = BTreeSet::new();
    for folder in ["crates/core/src", "crates/ledger/src"] {
        for path in files(folder, &["rs"]) {
            marked.extend(markers(&tokens(&path)));
        }
    }
    let mut used = BTreeSet::new();
    for path in files("crates/model/tests", &["rs"]) {
        used.extend(chosen(&tokens(&path)));
    }
    let unused: Vec<_> = marked.difference(&used).collect();
    assert!(unused.is_empty(), "no test of crates/model chooses {unused:?}");
    let stated = format!("{} faults", marked.len());
    let document = text(&root().join("docs/verification.md"));
    assert!(document.contains(&stated), "docs/verification.md does not say `{stated}`");
}

#[test]
fn a_marker_counts_whatever_its_name_and_a_like_name_chooses_nothing() {
    let code = |text: &str| -> Vec<TokenTree> {
        text.parse::<TokenStream>().expect("Rust").into_iter().collect()
    };
    let names = |found: BTreeSet<String>| found.into_iter().collect::<Vec<_>>();
    let found = markers(&code("fn f() { if a && crate::fault!(short) { fault!(long_name) } }"));
    assert_eq!(names(found), ["long_name", "short"]);
    let test = "fn long_name() { let short = 1; missed!(scene(1, 2), one, K, c()); }\
                misses! { in m; name: two, K, c(), { scene() } }\
                fn g() { c().broken(\"three\"); }";
    assert_eq!(names(chosen(&code(test))), ["one", "three", "two"]);
}
