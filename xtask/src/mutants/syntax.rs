//! Questions about a piece of syntax.

use proc_macro2::{Span, TokenStream};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, UnOp};

/// Returns whether an expression is a marker of a wrong step, or made of such, or the name of one:
/// one of `markers`.
#[must_use]
pub fn is_fault(at: &Expr, markers: &BTreeSet<String>) -> bool {
    let marks = |at| is_fault(at, markers);
    match at {
        Expr::Macro(call) => call.mac.path.is_ident("fault"),
        Expr::Path(name) => {
            name.path.get_ident().is_some_and(|it| markers.contains(&it.to_string()))
        }
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && marks(&unary.expr),
        Expr::Paren(inner) => marks(&inner.expr),
        Expr::Binary(pair) => marks(&pair.left) && marks(&pair.right),
        _ => false,
    }
}

/// Returns whether an expression is false where no fault is chosen, because of a marker in it.
#[must_use]
pub fn is_never(at: &Expr, markers: &BTreeSet<String>) -> bool {
    match at {
        Expr::Macro(_) | Expr::Path(_) => is_fault(at, markers),
        Expr::Paren(inner) => is_never(&inner.expr, markers),
        Expr::Binary(pair) => {
            matches!(pair.op, syn::BinOp::And(_))
                && (is_never(&pair.left, markers) || is_never(&pair.right, markers))
        }
        _ => false,
    }
}

/// Returns whether an expression is true where no fault is chosen, because of a marker in it.
#[must_use]
pub fn is_always(at: &Expr, markers: &BTreeSet<String>) -> bool {
    match at {
        Expr::Paren(inner) => is_always(&inner.expr, markers),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && is_never(&unary.expr, markers),
        Expr::Binary(pair) => {
            matches!(pair.op, syn::BinOp::Or(_))
                && (is_always(&pair.left, markers) || is_always(&pair.right, markers))
        }
        _ => false,
    }
}

/// Collects the names that a function gives to markers of wrong steps.
#[derive(Default)]
pub struct Markers(pub BTreeSet<String>);

impl<'ast> Visit<'ast> for Markers {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let (syn::Pat::Ident(name), Some(init)) = (&local.pat, &local.init)
            && (is_fault(&init.expr, &self.0) || is_never(&init.expr, &self.0))
        {
            self.0.insert(name.ident.to_string());
        }
        visit::visit_local(self, local);
    }
}

/// Returns whether what is called has this name.
#[must_use]
pub fn calls(call: &syn::ExprCall, name: &str) -> bool {
    let Expr::Path(path) = &*call.func else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == name)
}

/// Returns whether an expression is made of constants.
#[must_use]
pub fn is_mask(at: &Expr) -> bool {
    match at {
        Expr::Lit(_) => true,
        Expr::Path(name) => name.path.segments.last().is_some_and(|last| {
            last.ident.to_string().chars().all(|letter| !letter.is_lowercase())
        }),
        Expr::Unary(unary) => is_mask(&unary.expr),
        Expr::Paren(inner) => is_mask(&inner.expr),
        Expr::Cast(cast) => is_mask(&cast.expr),
        Expr::Binary(pair) => is_mask(&pair.left) && is_mask(&pair.right),
        _ => false,
    }
}

/// Returns whether an expression without the conditions within it has a `let`.
#[must_use]
pub fn binds(at: &Expr) -> bool {
    match at {
        Expr::Let(_) => true,
        Expr::Binary(pair) => binds(&pair.left) || binds(&pair.right),
        Expr::Paren(inner) => binds(&inner.expr),
        _ => false,
    }
}

/// Returns whether an expression is a constructor such as `Ok(…)`: no step, and of use to somebody.
#[must_use]
pub fn makes_value(at: &Expr) -> bool {
    let Expr::Call(call) = at else { return false };
    let Expr::Path(path) = &*call.func else { return false };
    let last = path.path.segments.last().map(|last| last.ident.to_string());
    last.is_some_and(|name| name.starts_with(char::is_uppercase))
}

/// Returns whether an item is for tests alone.
#[must_use]
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
    })
}

/// Looks for a `break` that gives the loop around it a value.
#[derive(Default)]
pub struct Breaks {
    /// Whether one has been seen.
    pub with_value: bool,
}

impl<'ast> Visit<'ast> for Breaks {
    fn visit_expr_break(&mut self, at: &'ast syn::ExprBreak) {
        self.with_value |= at.expr.is_some() && at.label.is_none();
    }

    // Those within are of other loops.
    fn visit_expr_loop(&mut self, _: &'ast syn::ExprLoop) {}
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
}

/// Syntax that can be written as text.
pub trait Tokens {
    /// Returns the span from its first token to its last.
    fn whole(&self) -> Span;
    /// Returns its tokens.
    fn stream(&self) -> TokenStream;
}

impl<T: quote::ToTokens> Tokens for T {
    fn whole(&self) -> Span {
        self.span()
    }
    fn stream(&self) -> TokenStream {
        self.to_token_stream()
    }
}
