//! Imports inside a crate: in the core they only go down its layers, and nowhere do more than
//! two files import each other in a circle.
//!
//! The layers of the core are the order of the `mod`s in its `lib.rs`. An import is a path that
//! begins with `crate`, `super`, `self` or the name of a module declared in the same file: in a
//! `use`, in other code, or in what a macro is given. Code for tests does not count. What a file
//! shows by `pub use` ties it to nothing, unless its own code uses it too.

use crate::reading::{for_tests, parsed};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, Macro, Path, UseTree, Visibility};
use xtask::{files, root};

/// The place where a module stands in its crate: `["spin", "queue"]`; the root is empty.
type Module = Vec<String>;

/// Reads the paths of one file.
struct Imports {
    /// The module that is being read, with those that stand inline.
    here: Module,
    /// The modules that the file declares.
    children: BTreeSet<String>,
    /// Absolute paths in the crate, without the `crate`.
    found: BTreeSet<Module>,
    /// What `pub use` shows in the module under which name.
    shown: BTreeMap<String, Module>,
    /// First names of the paths in the file's code.
    used: BTreeSet<String>,
}

impl Imports {
    fn of(module: &[String], items: &[Item]) -> Self {
        let mut imports = Imports {
            here: module.to_vec(),
            children: declared(items).into_iter().collect(),
            found: BTreeSet::new(),
            shown: BTreeMap::new(),
            used: BTreeSet::new(),
        };
        items.iter().for_each(|item| imports.visit_item(item));
        let both = imports.shown.iter().filter(|(name, _)| imports.used.contains(*name));
        imports.found.extend(both.map(|(_, path)| path.clone()).collect::<Vec<_>>());
        imports
    }

    /// Returns the absolute path of these names, if they begin in this crate.
    fn absolute(&self, names: &[String]) -> Option<Module> {
        let mut at = self.here.clone();
        match names.first().map(String::as_str)? {
            "crate" => at.clear(),
            "self" | "super" => {}
            name if self.children.contains(name) => {}
            _ => return None,
        }
        for name in names {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                name => at.push(name.to_owned()),
            }
        }
        Some(at)
    }

    /// Takes note of an import of `names`, which the module shows under the last of them if
    /// `shows`.
    fn import(&mut self, names: &[String], name: &str, shows: bool) {
        let Some(path) = self.absolute(names) else { return };
        if shows {
            self.shown.insert(name.to_owned(), path);
        } else {
            self.found.insert(path);
        }
    }

    /// Reads the paths in what a macro is given. (`$crate` in the definition of one ties whoever
    /// uses it, not the file that defines it.)
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut after_dollar = false;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                other => {
                    self.end_of_path(&mut path);
                    match other {
                        TokenTree::Ident(name) if !after_dollar => path.push(name.to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Punct(punct) if punct.as_char() == '$' => {
                            after_dollar = true;
                            colons = 0;
                            continue;
                        }
                        _ => {}
                    }
                }
            }
            colons = 0;
            after_dollar = false;
        }
        self.end_of_path(&mut path);
    }

    fn end_of_path(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.import(path, "", false);
        }
        self.used.extend(path.drain(..).next());
    }

    fn tree(&mut self, before: &[String], tree: &UseTree, shows: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&with(&path.ident), &path.tree, shows),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(before, tree, shows));
            }
            UseTree::Name(name) => self.import(&with(&name.ident), &name.ident.to_string(), shows),
            UseTree::Rename(rename) => {
                self.import(&with(&rename.ident), &rename.rename.to_string(), shows);
            }
            UseTree::Glob(_) => self.import(before, "", false),
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        if !for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&[], &item.tree, !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.here.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.here.pop();
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1 {
            self.import(&names, "", false);
        }
        self.used.extend(names.into_iter().next());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        visit::visit_macro(self, invoked);
        self.tokens(invoked.tokens.clone());
    }
}

/// Returns the modules that these items declare, in their order.
fn declared(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .filter(|item| !for_tests(item))
        .filter_map(|item| match item {
            Item::Mod(module) => Some(module.ident.to_string()),
            _ => None,
        })
        .collect()
}

/// Returns the module in `file`, a path below the `src` of its crate.
fn module(file: &FilePath) -> Module {
    let mut names: Module =
        file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names
        .last()
        .is_some_and(|name| name == "mod" || names.len() == 1 && (name == "lib" || name == "main"))
    {
        names.pop();
    }
    names
}

/// Returns the modules of a crate, each a file, with what they import and what they show.
fn modules(folder: &str) -> BTreeMap<Module, Imports> {
    let source = root().join(folder);
    let read = |path: std::path::PathBuf| {
        let module = module(path.strip_prefix(&source).expect("below its folder"));
        let imports = Imports::of(&module, &parsed(&path).items);
        (module, imports)
    };
    // The root of a library, where the crate has a command beside it.
    let roots = |path: &std::path::PathBuf| {
        *path != source.join("main.rs") || !source.join("lib.rs").exists()
    };
    files(folder, &["rs"]).into_iter().filter(roots).map(read).collect()
}

#[test]
fn the_core_imports_only_from_lower_layers() {
    const FOLDER: &str = "crates/core/src";
    let order = declared(&parsed(&root().join(FOLDER).join("lib.rs")).items);
    let layer = |name: &String| order.iter().position(|module| module == name);
    let mut checked = 0;
    for (module, imports) in modules(FOLDER) {
        // The root shows the whole of it.
        let Some(own) = module.first().and_then(layer) else { continue };
        for import in imports.found.iter().chain(imports.shown.values()) {
            let shown = import.join("::");
            let Some(other) = import.first().and_then(layer) else {
                panic!("{}: imports {shown} from the root, which is above all", module.join("::"));
            };
            assert!(other <= own, "{}: imports {shown}, of a higher layer", module.join("::"));
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} imports found: the check reads the wrong text");
}

/// Returns the file of the crate in which a path ends: where it is declared, not where it is shown.
fn target<'a>(modules: &'a BTreeMap<Module, Imports>, path: &[String], depth: u32) -> &'a Module {
    let mut length = path.len();
    loop {
        if let Some((module, imports)) = modules.get_key_value(&path[..length]) {
            return match path.get(length).and_then(|name| imports.shown.get(name)) {
                Some(shown) if depth < 10 => {
                    target(modules, &[shown, &path[length + 1..]].concat(), depth + 1)
                }
                _ => module,
            };
        }
        length -= 1;
    }
}

/// Returns the modules that can be reached from `start`, by one import at least.
fn reached<'a>(
    graph: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
    start: &'a Module,
) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(next);
            }
        }
    }
    seen
}

/// Returns the largest set of files of a crate that all import each other, directly or not.
fn largest_circle(folder: &str) -> Vec<String> {
    let modules = modules(folder);
    let graph: BTreeMap<&Module, BTreeSet<&Module>> = modules
        .iter()
        .map(|(module, imports)| {
            let others = imports.found.iter().map(|path| target(&modules, path, 0));
            (module, others.filter(|other| *other != module).collect())
        })
        .collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (*module, reached(&graph, module))).collect();
    let circle = |module: &&Module| -> Vec<String> {
        let both = reached[*module].iter().filter(|other| reached[*other].contains(*module));
        both.map(|other| other.join("::")).collect()
    };
    graph.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn no_more_than_two_files_import_each_other_in_a_circle() {
    let mut crates = Vec::new();
    for folder in ["crates", "."] {
        for entry in std::fs::read_dir(root().join(folder)).expect("a readable folder") {
            let name = entry.expect("a readable entry").file_name();
            let source = format!("{folder}/{}/src", name.to_string_lossy());
            if root().join(&source).is_dir() {
                crates.push(source);
            }
        }
    }
    assert!(crates.len() > 10, "the check reads the wrong folders: {crates:?}");
    let mut wrong = Vec::new();
    for source in &crates {
        let circle = largest_circle(source);
        if circle.len() > 2 {
            wrong.push(format!("{source}: {} files: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "files import each other in a circle:\n{}", wrong.join("\n"));
}

/// An import is seen in whatever way it is written.
#[test]
fn an_import_is_seen_wherever_it_stands() {
    for (code, expected) in [
        ("use crate::a::X;", "a::X"),
        ("use super::super::a::X;", "a::X"),
        ("use {super::{super::a::X}};", "a::X"),
        ("use super::super::a::*;", "a"),
        ("fn f() -> crate::a::X { g() }", "a::X"),
        ("fn f() { assert!(crate::a::x() == 1) }", "a::x"),
        ("fn f() { write!(to, \"{}\", g(super::super::a::x())) }", "a::x"),
        ("pub(crate) use crate::a::X; fn f() -> X { X }", "a::X"),
        ("pub(crate) use crate::a::X as Y; fn f() { g!(Y) }", "a::X"),
        ("mod inside { fn f() -> super::super::super::a::X { g() } }", "a::X"),
        ("macro_rules! m { () => { crate::a::x() } }", "a::x"),
        // No import: it is shown only, or names whoever uses the macro.
        ("pub use crate::a::X;", ""),
        ("macro_rules! m { () => { $crate::a::x() } }", ""),
        ("fn f() { assert!(a::x() == 1 && self.crate_of::<a::X>()) }", ""),
    ] {
        let items = syn::parse_file(code).unwrap_or_else(|why| panic!("{code}: {why}")).items;
        let found = Imports::of(&["one".into(), "two".into()], &items).found;
        let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(found.join(" "), expected, "{code}");
    }
}
