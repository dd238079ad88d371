//! Reads the workspace's Rust: which names a file uses, and where, tests left out.

use proc_macro2::{Ident, TokenStream, TokenTree};
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, Macro};
use xtask::text;

/// Returns a file of the workspace as Rust.
pub(crate) fn parsed(path: &Path) -> File {
    syn::parse_file(&text(path)).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Returns the attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Tells whether only the tests of its crate have this item.
pub(crate) fn for_tests(item: &Item) -> bool {
    attributes(item).iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// A name in a file's code: in a path, an import, a declaration, a macro.
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) line: usize,
}

struct Names(Vec<Name>);

impl Names {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => self.visit_ident(&ident),
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        if !for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.0.push(Name { text: ident.to_string(), line: ident.span().start().line });
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        visit::visit_path(self, &invoked.path);
        self.tokens(invoked.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Returns every name in the code of `file`; without its tests and attributes.
pub(crate) fn names(file: &File) -> Vec<Name> {
    let mut names = Names(Vec::new());
    names.visit_file(file);
    names.0
}
