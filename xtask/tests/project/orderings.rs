//! Every atomic operation of the core and the ledger that is stronger than relaxed carries a label
//! of its own.
//!
//! The code is read as Rust, not as text: an ordering is found under whatever name it was
//! imported, in macros too. Its label stands in its own statement or directly above it, and a label
//! serves one operation: the nearest one that has none yet.

use crate::documents::label;
use crate::reading::for_tests;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Expr, ExprCall, ExprMethodCall, ExprPath, FieldValue, Item, ItemUse, Local, Macro, Pat,
    Stmt, UseTree,
};
use xtask::{files, text};

const STRONG: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

/// Tells whether a method of this name, given so many arguments, takes an ordering as its last one.
fn is_atomic(method: &str, arguments: usize) -> bool {
    let named = matches!(method, "load" | "store" | "swap" | "erase_low")
        || method.starts_with("compare_exchange")
        || method.starts_with("fetch_");
    named && arguments > usize::from(method != "load")
}

/// Reads one file and keeps what is wrong in it.
struct Reader<'a> {
    lines: Vec<&'a str>,
    /// First lines of the statements, arms and fields that are being read, innermost last.
    anchors: Vec<usize>,
    /// Whether the expression that is read next is an argument of a call.
    argument: bool,
    /// Lines of the labels that an operation has claimed.
    claimed: BTreeSet<usize>,
    /// Whether the operation that is being read has claimed a label.
    has_label: bool,
    checked: usize,
    wrong: BTreeSet<(usize, &'static str)>,
}

impl Reader<'_> {
    fn line(span: Span) -> usize {
        span.start().line
    }

    /// Claims a label for an operation at `here`, whose statement begins at `anchor`, both counted
    /// from 1: the nearest above that no other operation has claimed. Returns false if there is
    /// none.
    fn claim(&mut self, anchor: usize, here: usize) -> bool {
        let is_comment = |line: &&&str| {
            let line = line.trim_start();
            line.starts_with("//") || line.starts_with("#[")
        };
        let above = self.lines[..anchor - 1].iter().rev().take_while(is_comment).count();
        let free = (anchor - above..=here).rev().find(|line| {
            label(self.lines[line - 1], "ord: ").is_some() && !self.claimed.contains(line)
        });
        free.is_some_and(|line| self.claimed.insert(line))
    }

    /// Reads what belongs to one operation.
    fn operation(&mut self, read: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.has_label);
        read(self);
        self.has_label = outer;
    }

    fn ordering(&mut self, ident: &Ident) {
        if !STRONG.iter().any(|strong| ident == strong) {
            return;
        }
        self.checked += 1;
        let here = Self::line(ident.span());
        let anchor = self.anchors.last().copied().unwrap_or(here);
        if !self.has_label && !self.claim(anchor, here) {
            self.wrong.insert((here, "an ordering without a label of its own"));
        }
        self.has_label = true;
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => self.ordering(&ident),
                TokenTree::Group(group) => {
                    self.operation(|reader| reader.tokens(group.stream()));
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn imports(&mut self, tree: &UseTree, below_ordering: bool) {
        let strong = |ident: &Ident| STRONG.iter().any(|strong| ident == strong);
        match tree {
            UseTree::Path(path) => self.imports(&path.tree, path.ident == "Ordering"),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.imports(tree, below_ordering));
            }
            UseTree::Rename(rename) if strong(&rename.ident) => {
                self.wrong
                    .insert((Self::line(rename.ident.span()), "an ordering under another name"));
            }
            UseTree::Glob(glob) if below_ordering => {
                let line = Self::line(glob.star_token.spans[0]);
                self.wrong.insert((line, "orderings imported by a glob"));
            }
            UseTree::Rename(_) | UseTree::Glob(_) | UseTree::Name(_) => {}
        }
    }

    fn anchored(&mut self, line: usize, read: impl FnOnce(&mut Self)) {
        self.anchors.push(line);
        read(self);
        self.anchors.pop();
    }

    fn arguments<'ast>(&mut self, arguments: impl Iterator<Item = &'ast Expr>) {
        self.operation(|reader| {
            for argument in arguments {
                reader.argument = true;
                reader.visit_expr(argument);
                reader.argument = false;
            }
        });
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.imports(&item.tree, false);
    }

    /// Reads `let (success, failure) = (…, …);`, which is as near to its use as an argument.
    fn visit_local(&mut self, local: &'ast Local) {
        if let (Pat::Tuple(_), Some(init)) = (&local.pat, &local.init)
            && let Expr::Tuple(pair) = &*init.expr
        {
            return self.arguments(pair.elems.iter());
        }
        visit::visit_local(self, local);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let line = Self::line(statement.span());
        self.anchored(line, |reader| visit::visit_stmt(reader, statement));
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let line = Self::line(arm.span());
        self.anchored(line, |reader| visit::visit_arm(reader, arm));
    }

    fn visit_field_value(&mut self, field: &'ast FieldValue) {
        let line = Self::line(field.span());
        self.anchored(line, |reader| visit::visit_field_value(reader, field));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if !matches!(&*call.func, Expr::Path(_)) {
            return visit::visit_expr_call(self, call);
        }
        self.arguments(call.args.iter());
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.argument = false;
        self.visit_expr(&call.receiver);
        self.arguments(call.args.iter());
        let Some(Expr::Path(last)) = call.args.last() else { return };
        let Some(name) = last.path.segments.last() else { return };
        let is_constant =
            name.ident.to_string().chars().all(|c| c.is_ascii_uppercase() || c == '_');
        if is_constant && is_atomic(&call.method.to_string(), call.args.len()) {
            let line = Self::line(name.ident.span());
            self.wrong.insert((line, "an ordering that is not written where it is used"));
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let argument = std::mem::take(&mut self.argument);
        if let Expr::Path(ExprPath { path, .. }) = expression {
            let last = &path.segments.last().expect("a path has a last segment").ident;
            if STRONG.iter().any(|strong| last == strong) && !argument {
                let line = Self::line(last.span());
                self.wrong.insert((line, "an ordering that is not written where it is used"));
            }
            self.ordering(last);
        } else {
            visit::visit_expr(self, expression);
        }
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.operation(|reader| reader.tokens(invoked.tokens.clone()));
    }
}

fn read(text: &str, path: &Path) -> (usize, BTreeSet<(usize, &'static str)>) {
    let file = syn::parse_file(text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let mut reader = Reader {
        lines: text.lines().collect(),
        anchors: Vec::new(),
        argument: false,
        claimed: BTreeSet::new(),
        has_label: false,
        checked: 0,
        wrong: BTreeSet::new(),
    };
    reader.visit_file(&file);
    (reader.checked, reader.wrong)
}

#[test]
fn every_ordering_stronger_than_relaxed_carries_a_label() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    let folders = ["crates/core/src", "crates/ledger/src"];
    for path in folders.into_iter().flat_map(|folder| files(folder, &["rs"])) {
        let (orderings, found) = read(&text(&path), &path);
        checked += orderings;
        wrong.extend(found.iter().map(|(line, what)| format!("{}:{line}: {what}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 50, "only {checked} orderings found: the check reads the wrong files");
}

/// Lists what must not pass, each with the number of complaints.
#[test]
fn what_would_walk_around_the_rule_is_found() {
    for (code, complaints) in [
        ("fn f() {\n    // ord: X-1\n    a.load(Ordering::Acquire);\n}", 0),
        ("fn f() {\n    a.load(Ordering::Acquire); // ord: X-1\n}", 0),
        ("fn f() {\n    a.load(Ordering::Acquire);\n}", 1),
        // Near the label of another.
        (
            "fn f() {\n    // ord: X-1\n    a.load(Ordering::Acquire);\n    b.store(1, Ordering::Release);\n}",
            1,
        ),
        (
            "fn f() {\n    // ord: X-1\n    if a.load(Ordering::Acquire) {\n        b.store(1, Ordering::Release);\n    }\n}",
            1,
        ),
        (
            "fn f() {\n    // ord: X-1\n    if a.load(Ordering::Acquire) {\n        g();\n    } else if b.load(Ordering::Acquire) {\n    }\n}",
            1,
        ),
        (
            "fn f() {\n    // ord: X-1\n    g(a.load(Ordering::Acquire), b.load(Ordering::Acquire));\n}",
            1,
        ),
        (
            "fn f() {\n    // ord: X-1\n    a.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire);\n}",
            0,
        ),
        // By a glob, by other names, by a constant, in a macro.
        ("use Ordering::*;\nfn f() {\n    a.load(SeqCst);\n}", 2),
        ("use Ordering::SeqCst as S;\nfn f() {\n    a.load(S);\n}", 2),
        ("use Ordering as O;\nfn f() {\n    a.load(O::SeqCst);\n}", 1),
        ("// ord: X-1\nconst S: Ordering = Ordering::SeqCst;\n", 1),
        ("fn f() {\n    check!(a.load(Ordering::SeqCst));\n}", 1),
        ("fn f() {\n    a.load(P::STRONGEST);\n}", 1),
        ("fn f() {\n    compiler_fence(Ordering::SeqCst);\n}", 1),
        (
            "#[cfg(test)]\nmod tests {\n    fn f() {\n        a.load(Ordering::Acquire);\n    }\n}",
            0,
        ),
    ] {
        let (_, wrong) = read(code, Path::new("example"));
        assert_eq!(wrong.len(), complaints, "{code}\n{wrong:?}");
    }
}
