//! What is done to which syntax: one rule for each kind of step that a protocol takes.
//!
//! Markers `fault!(…)` are left alone, with what stands behind them: they are false in every lock
//! that runs. So are messages, assertions, formatting and tests.

use crate::mutants::sites::{Alternative, Function, Shape, Site, bytes, hash_of};
use crate::mutants::syntax::{
    Breaks, Markers, Tokens, binds, calls, is_always, is_fault, is_mask, is_never, is_test,
    makes_value,
};
use crate::mutants::values::{arithmetic, comparison, default_returns, orderings};
use std::collections::BTreeSet;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Stmt, UnOp};

/// Goes through a file and collects its sites.
pub struct Finder<'a> {
    text: &'a str,
    functions: Vec<Function>,
    sites: Vec<Site>,
    within: String,
    owner: String,
    /// The names of markers in the function around.
    markers: BTreeSet<String>,
    constant: bool,
    /// Whether the loop around has a value, so that a `break` needs one.
    valued: bool,
}

impl<'a> Finder<'a> {
    /// Returns one that has found nothing yet in `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Finder {
            text,
            functions: Vec::new(),
            sites: Vec::new(),
            within: String::new(),
            owner: String::new(),
            markers: BTreeSet::new(),
            constant: false,
            valued: false,
        }
    }

    /// Returns what it has found.
    #[must_use]
    pub fn finish(self) -> (Vec<Function>, Vec<Site>) {
        (self.functions, self.sites)
    }

    fn is_fault(&self, at: &Expr) -> bool {
        is_fault(at, &self.markers)
    }

    /// Returns syntax on one line, without comments.
    fn flat(&self, syntax: &impl Tokens) -> String {
        let text = &self.text[bytes(syntax.whole())];
        if text.contains("//") || text.contains("/*") {
            return syntax.stream().to_string();
        }
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn add(&mut self, range: Range<usize>, shape: Shape, text: String, was: String, now: String) {
        if self.within.is_empty() {
            return;
        }
        let alternative = Alternative { text, was, now };
        let same = |site: &&mut Site| site.range == range && site.shape == shape;
        let mergeable = !matches!(shape, Shape::Insert);
        if let Some(site) = self.sites.iter_mut().rev().find(same).filter(|_| mergeable) {
            if site.alternatives.iter().all(|known| known.text != alternative.text) {
                site.alternatives.push(alternative);
            }
            return;
        }
        let line = self.text[..range.start].matches('\n').count() + 1;
        self.sites.push(Site {
            range,
            shape,
            function: self.within.clone(),
            line,
            constant: self.constant,
            alternatives: vec![alternative],
        });
    }

    /// Replaces an expression.
    fn value(&mut self, at: &Expr, now: &str) {
        let was = self.flat(at);
        self.add(bytes(at.span()), Shape::Value, now.into(), was, now.into());
    }

    /// Replaces a statement.
    fn statement(&mut self, at: &Stmt, now: &str) {
        let was = self.flat(at);
        let told = if now.is_empty() { "(left out)" } else { now };
        self.add(bytes(at.span()), Shape::Statement, now.into(), was, told.into());
    }

    /// Inserts a statement.
    fn insert(&mut self, at: usize, text: &str, was: &str) {
        self.add(at..at, Shape::Insert, text.into(), was.into(), text.into());
    }

    /// Makes a condition true and false, and its parts if it binds names.
    fn condition(&mut self, condition: &Expr) {
        match condition {
            Expr::Paren(inner) => self.condition(&inner.expr),
            Expr::Let(binding) => {
                let (range, was) = (bytes(binding.span()), self.flat(condition));
                self.add(range, Shape::Never, String::new(), was, "false".into());
            }
            Expr::Binary(pair) if matches!(pair.op, BinOp::And(_)) && binds(condition) => {
                self.condition(&pair.left);
                self.condition(&pair.right);
            }
            Expr::Binary(pair) if self.is_fault(&pair.right) => self.condition(&pair.left),
            Expr::Binary(pair) if self.is_fault(&pair.left) => self.condition(&pair.right),
            Expr::Lit(_) => {}
            _ => {
                self.value(condition, "true");
                self.value(condition, "false");
            }
        }
    }

    fn binary(&mut self, at: &Expr, pair: &syn::ExprBinary) {
        if self.is_fault(&pair.left) || self.is_fault(&pair.right) || binds(at) {
            return;
        }
        let (left, right) = (self.flat(&*pair.left), self.flat(&*pair.right));
        // Another operator must not bind other operands.
        let operand = |of: &Expr, text: &str| match of {
            Expr::Binary(_) => format!("({text})"),
            _ => text.to_owned(),
        };
        let operands = (operand(&pair.left, &left), operand(&pair.right, &right));
        // Masks have no bit in common: whether it stands in one or the other makes no difference.
        let masks =
            matches!(pair.op, BinOp::BitOr(_)) && is_mask(&pair.left) && is_mask(&pair.right);
        for other in comparison(&pair.op).iter().chain(arithmetic(&pair.op)) {
            if masks && *other == "^" {
                continue;
            }
            self.value(at, &format!("{} {other} {}", operands.0, operands.1));
        }
        match pair.op {
            BinOp::And(_) | BinOp::Or(_) | BinOp::BitOr(_) => {
                self.value(at, &left);
                self.value(at, &right);
            }
            BinOp::BitAnd(_) | BinOp::Add(_) | BinOp::Sub(_) | BinOp::Shl(_) | BinOp::Shr(_) => {
                self.value(at, &left);
            }
            _ => {}
        }
    }

    fn assigning(&mut self, at: &Expr, pair: &syn::ExprBinary) {
        let others: &[&str] = match pair.op {
            BinOp::AddAssign(_) => &["-=", "="],
            BinOp::SubAssign(_) => &["+=", "="],
            BinOp::BitOrAssign(_) => &["&=", "="],
            BinOp::BitAndAssign(_) => &["|=", "="],
            BinOp::BitXorAssign(_) => &["|=", "="],
            BinOp::MulAssign(_) => &["="],
            _ => return,
        };
        if self.is_fault(&pair.right) {
            return;
        }
        let (left, right) = (self.flat(&*pair.left), self.flat(&*pair.right));
        for other in others {
            self.value(at, &format!("{left} {other} {right}"));
        }
    }

    fn method(&mut self, at: &Expr, call: &syn::ExprMethodCall) {
        if self.is_fault(&call.receiver) {
            return;
        }
        let receiver = self.flat(&*call.receiver);
        let arguments: Vec<String> = call.args.iter().map(|argument| self.flat(argument)).collect();
        let name = call.method.to_string();
        // Whether the types allow it, the compiler says.
        self.value(at, &receiver);
        match name.as_str() {
            "min" => self.value(at, &format!("{receiver}.max({})", arguments.join(", "))),
            "max" => self.value(at, &format!("{receiver}.min({})", arguments.join(", "))),
            "is_some" => self.value(at, &format!("{receiver}.is_none()")),
            "is_none" => self.value(at, &format!("{receiver}.is_some()")),
            "is_ok" => self.value(at, &format!("{receiver}.is_err()")),
            "is_err" => self.value(at, &format!("{receiver}.is_ok()")),
            "is_some_and" | "is_ok_and" | "then" | "then_some" | "filter" | "is_none_or" => {
                let of_bool = if name.starts_with("is_") { "true" } else { "None" };
                self.value(at, of_bool);
                if of_bool == "true" {
                    self.value(at, "false");
                }
            }
            _ => {}
        }
        for argument in &call.args {
            self.ordering(argument, &name);
        }
    }

    /// Weakens an ordering that is an argument of `of`.
    fn ordering(&mut self, at: &Expr, of: &str) {
        for weaker in orderings(&self.flat(at), of) {
            self.value(at, &weaker);
        }
    }

    fn arms(&mut self, arms: &[syn::Arm]) {
        for (index, arm) in arms.iter().enumerate() {
            let guard = arm.guard.as_ref().map(|(_, guard)| &**guard);
            if guard.is_some_and(|guard| self.is_fault(guard)) {
                continue;
            }
            let taken_by_others = arms[index + 1..].iter().any(|later| {
                later.guard.is_none()
                    && matches!(&later.pat, syn::Pat::Wild(_) | syn::Pat::Ident(_))
                    && !self.flat(&later.pat).chars().next().is_some_and(char::is_uppercase)
            });
            match guard {
                Some(guard) => self.condition(guard),
                None if taken_by_others => {
                    let end = bytes(arm.pat.span()).end;
                    let was = format!("{} => …", self.flat(&arm.pat));
                    self.add(end..end, Shape::Guard, String::new(), was, "(no such arm)".into());
                }
                None => {}
            }
        }
    }

    /// Lets a loop end after its first round.
    fn once(&mut self, body: &Block, kind: &str) {
        let end = bytes(body.span()).end - 1;
        self.insert(end, "break", &format!("end of {kind}"));
    }

    fn function(&mut self, name: String, whole: &impl Tokens, sig: &syn::Signature, body: &Block) {
        let before = std::mem::replace(&mut self.within, name.clone());
        let hash = hash_of(&whole.stream().to_string());
        self.functions.push(Function { name, range: bytes(whole.whole()), hash });
        let was = format!("fn {} {{ … }}", sig.ident);
        for value in default_returns(sig) {
            let text = if value.is_empty() { "return".into() } else { format!("return {value}") };
            let start = bytes(body.span()).start + 1;
            let all = self.flat(body);
            let same = all.trim_matches(['{', '}', ' ']) == value;
            if !body.stmts.is_empty() && !same {
                self.insert(start, &text, &was);
            }
        }
        let mut markers = Markers::default();
        markers.visit_block(body);
        self.markers = markers.0;
        self.visit_block(body);
        self.within = before;
    }

    fn item(&mut self, name: String, whole: &impl Tokens, value: &Expr) {
        let before = std::mem::replace(&mut self.within, name.clone());
        let constant = std::mem::replace(&mut self.constant, true);
        let hash = hash_of(&whole.stream().to_string());
        self.functions.push(Function { name, range: bytes(whole.whole()), hash });
        self.visit_expr(value);
        self.within = before;
        self.constant = constant;
    }

    fn named(&self, name: &syn::Ident) -> String {
        if self.owner.is_empty() { name.to_string() } else { format!("{}::{name}", self.owner) }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        let before = std::mem::replace(&mut self.owner, of.unwrap_or_default());
        let traits = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !traits.is_some_and(|name| name.ident == "Debug" || name.ident == "Display") {
            visit::visit_item_impl(self, item);
        }
        self.owner = before;
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let before = std::mem::replace(&mut self.owner, item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = before;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.function(self.named(&item.sig.ident), item, &item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(self.named(&item.sig.ident), item, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(self.named(&item.sig.ident), item, &item.sig, body);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.item(self.named(&item.ident), item, &item.expr);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.item(self.named(&item.ident), item, &item.expr);
    }

    // What is no step: patterns, types, attributes, names.
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_macro(&mut self, _: &'ast syn::ItemMacro) {}

    fn visit_stmt(&mut self, at: &'ast Stmt) {
        // A fence for the compiler is no step: no test can see that it is missing.
        if matches!(at, Stmt::Expr(Expr::Call(call), Some(_)) if calls(call, "compiler_fence")) {
            return;
        }
        match at {
            Stmt::Expr(Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_), Some(_)) => {
                self.statement(at, "");
            }
            Stmt::Expr(Expr::Return(_) | Expr::Unsafe(_), Some(_)) => self.statement(at, ""),
            Stmt::Expr(Expr::Binary(pair), Some(_))
                if !matches!(pair.op, BinOp::And(_)) && !self.is_fault(&pair.right) =>
            {
                self.statement(at, "");
            }
            Stmt::Expr(Expr::Try(tried), Some(_)) => {
                let ignored = format!("let _ = {};", self.flat(&*tried.expr));
                self.statement(at, &ignored);
                self.statement(at, "");
            }
            Stmt::Expr(Expr::Break(jump), Some(_)) if jump.expr.is_none() => {
                self.statement(at, "");
            }
            Stmt::Expr(Expr::Continue(_), Some(_)) => self.statement(at, ""),
            _ => {}
        }
        visit::visit_stmt(self, at);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        // A call at the end of a block whose value nobody uses.
        match block.stmts.last() {
            Some(Stmt::Expr(value, None)) if makes_value(value) => {}
            Some(last @ Stmt::Expr(Expr::Call(_) | Expr::MethodCall(_), None)) => {
                self.statement(last, "");
            }
            _ => {}
        }
        visit::visit_block(self, block);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if arm.guard.as_ref().is_some_and(|(_, guard)| self.is_fault(guard)) {
            return;
        }
        let steps = matches!(&*arm.body, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_));
        if steps && !makes_value(&arm.body) {
            self.value(&arm.body, "{}");
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_if(&mut self, at: &'ast syn::ExprIf) {
        if is_never(&at.cond, &self.markers) || self.is_fault(&at.cond) {
            if let Some((_, otherwise)) = &at.else_branch {
                self.visit_expr(otherwise);
            }
            return;
        }
        if is_always(&at.cond, &self.markers) {
            self.visit_block(&at.then_branch);
            return;
        }
        self.condition(&at.cond);
        visit::visit_expr_if(self, at);
    }

    fn visit_expr_while(&mut self, at: &'ast syn::ExprWhile) {
        self.condition(&at.cond);
        self.once(&at.body, "while");
        let before = std::mem::replace(&mut self.valued, false);
        visit::visit_expr_while(self, at);
        self.valued = before;
    }

    fn visit_expr_loop(&mut self, at: &'ast syn::ExprLoop) {
        let mut breaks = Breaks::default();
        breaks.visit_block(&at.body);
        if !breaks.with_value {
            self.once(&at.body, "loop");
        }
        let before = std::mem::replace(&mut self.valued, breaks.with_value);
        visit::visit_expr_loop(self, at);
        self.valued = before;
    }

    fn visit_expr_for_loop(&mut self, at: &'ast syn::ExprForLoop) {
        self.once(&at.body, "for");
        let before = std::mem::replace(&mut self.valued, false);
        visit::visit_expr_for_loop(self, at);
        self.valued = before;
    }

    fn visit_expr(&mut self, at: &'ast Expr) {
        let decided = is_never(at, &self.markers) || is_always(at, &self.markers);
        if matches!(at, Expr::Binary(_)) && decided {
            return;
        }
        match at {
            Expr::Binary(pair) => {
                self.binary(at, pair);
                self.assigning(at, pair);
            }
            Expr::Unary(unary) if !self.is_fault(at) => {
                if let UnOp::Not(_) | UnOp::Neg(_) = unary.op {
                    let inner = self.flat(&*unary.expr);
                    self.value(at, &inner);
                }
            }
            Expr::MethodCall(call) => self.method(at, call),
            Expr::Call(call) => {
                let name = self.flat(&*call.func);
                if name == "Some" {
                    self.value(at, "None");
                }
                for argument in &call.args {
                    self.ordering(argument, name.rsplit("::").next().unwrap_or_default());
                }
            }
            Expr::Lit(literal) => match &literal.lit {
                syn::Lit::Bool(value) => {
                    self.value(at, if value.value { "false" } else { "true" });
                }
                syn::Lit::Int(number) => {
                    let Ok(value) = number.base10_parse::<u128>() else { return };
                    let suffix = number.suffix();
                    self.value(at, &format!("{}{suffix}", value + 1));
                    if value > 0 {
                        self.value(at, &format!("{}{suffix}", value - 1));
                    }
                }
                _ => {}
            },
            Expr::Break(jump) if jump.expr.is_none() && jump.label.is_none() => {
                self.value(at, "continue");
            }
            Expr::Continue(jump) if jump.label.is_none() && !self.valued => self.value(at, "break"),
            Expr::Tuple(all) => all.elems.iter().for_each(|it| self.ordering(it, "exchange")),
            Expr::Match(matching) => self.arms(&matching.arms),
            Expr::Struct(literal) => {
                if let Some(base) = &literal.rest {
                    let base = self.flat(&**base);
                    let path = literal.path.clone();
                    for left_out in 0..literal.fields.len() {
                        let kept = literal.fields.iter().enumerate();
                        let kept = kept.filter(|(index, _)| *index != left_out);
                        let kept: String =
                            kept.map(|(_, field)| format!("{}, ", self.flat(field))).collect();
                        let path = self.flat(&path);
                        self.value(at, &format!("{path} {{ {kept}..{base} }}"));
                    }
                }
            }
            _ => {}
        }
        visit::visit_expr(self, at);
    }
}
