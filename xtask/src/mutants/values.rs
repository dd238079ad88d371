//! What stands for an operator, an ordering, or what a function returns.

use syn::{BinOp, ReturnType, Signature, Type};

/// Returns what stands for a comparison: its neighbours and its contrary.
#[must_use]
pub fn comparison(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", "=="],
        BinOp::Le(_) => &["<", "=="],
        BinOp::Gt(_) => &[">=", "=="],
        BinOp::Ge(_) => &[">", "=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        _ => &[],
    }
}

/// Returns what stands for an operator on numbers or bits.
#[must_use]
pub fn arithmetic(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) | BinOp::Rem(_) => &["*"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        _ => &[],
    }
}

/// Returns the weaker orderings that an operation of this name may have.
#[must_use]
fn weaker(ordering: &str, operation: &str) -> &'static [&'static str] {
    match ordering {
        "Acquire" | "Release" => &["Relaxed"],
        "AcqRel" => &["Acquire", "Release", "Relaxed"],
        "SeqCst" if operation.starts_with("load") => &["Acquire", "Relaxed"],
        "SeqCst" if operation.starts_with("store") => &["Release", "Relaxed"],
        "SeqCst" if operation == "fence" => &["AcqRel"],
        "SeqCst" => &["AcqRel", "Relaxed"],
        _ => &[],
    }
}

/// Returns what may stand in the place of this text where it is an ordering of `operation`: each weaker
/// one, by a path that is known where the names are.
#[must_use]
pub fn orderings(text: &str, operation: &str) -> Vec<String> {
    let (path, name) = match text.strip_prefix("Ordering::") {
        Some(name) => ("Ordering", name),
        None => ("core::sync::atomic::Ordering", text),
    };
    weaker(name, operation).iter().map(|weaker| format!("{path}::{weaker}")).collect()
}

/// Returns values that a function may return in the place of what it does, by its declared type.
/// An empty one is the unit.
#[must_use]
pub fn default_returns(of: &Signature) -> Vec<String> {
    let declared = match &of.output {
        ReturnType::Default => return vec![String::new()],
        ReturnType::Type(_, declared) => &**declared,
    };
    let takes_self = of
        .inputs
        .first()
        .is_some_and(|first| matches!(first, syn::FnArg::Receiver(it) if it.reference.is_none()));
    let Type::Path(path) = declared else {
        let unit = matches!(declared, Type::Tuple(tuple) if tuple.elems.is_empty());
        return if unit { vec![String::new()] } else { Vec::new() };
    };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let first_argument = match &last.arguments {
        syn::PathArguments::AngleBracketed(all) => all.args.first(),
        _ => None,
    };
    let some = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    match last.ident.to_string().as_str() {
        "bool" => some(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => some(&["0", "1"]),
        "Option" => some(&["None"]),
        "Result" => match first_argument {
            Some(syn::GenericArgument::Type(Type::Tuple(unit))) if unit.elems.is_empty() => {
                some(&["Ok(())"])
            }
            Some(syn::GenericArgument::Type(Type::Path(path))) if path.path.is_ident("bool") => {
                some(&["Ok(true)", "Ok(false)"])
            }
            _ => Vec::new(),
        },
        "Self" | "Word" | "State" if takes_self => some(&["self"]),
        "Word"
            if of.inputs.iter().any(|input| {
                matches!(input, syn::FnArg::Typed(typed)
            if matches!(&*typed.pat, syn::Pat::Ident(name) if name.ident == "word"))
            }) =>
        {
            some(&["word"])
        }
        _ => Vec::new(),
    }
}
