//! Every lock of the core has what the recipe "a lock type" in CONTRIBUTING.md asks for.

use xtask::{root, text};

/// Returns the modules of `file` that export a type whose name `is_lock` accepts.
fn locks(file: &str, is_lock: fn(&str) -> bool) -> Vec<String> {
    let source = text(&root().join(file));
    let parsed = syn::parse_file(&source).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut found = Vec::new();
    for item in parsed.items {
        let syn::Item::Use(syn::ItemUse { tree: syn::UseTree::Path(path), .. }) = item else {
            continue;
        };
        let mut exported = Vec::new();
        names(&path.tree, &mut exported);
        if exported.iter().any(|name| is_lock(name)) {
            found.push(path.ident.to_string());
        }
    }
    found
}

fn names(tree: &syn::UseTree, found: &mut Vec<String>) {
    match tree {
        syn::UseTree::Name(name) => found.push(name.ident.to_string()),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| names(tree, found)),
        _ => {}
    }
}

fn demand(lock: &str, what: &str, places: &[String]) {
    let is_there = places.iter().any(|place| root().join(place).exists());
    assert!(is_there, "the lock `{lock}` of the core has no {what}: {}", places.join(" or "));
}

#[test]
fn each_lock_has_a_model_and_a_type() {
    let is_lock = |name: &str| name.starts_with("Raw") || name.ends_with("Semaphore");
    let all = locks("crates/core/src/lib.rs", is_lock);
    assert!(all.len() >= 7, "{all:?}");
    for lock in all {
        let tests = format!("crates/model/tests/models/locks/{lock}");
        demand(&lock, "model", &[format!("{tests}.rs"), tests]);
        let types = format!("crates/lockstead/src/{lock}");
        demand(&lock, "type for programs", &[format!("{types}.rs"), types]);
    }
}

#[test]
fn each_lock_between_processes_has_a_model_and_two_types() {
    let all = locks("crates/core/src/robust/mod.rs", |name| name.starts_with("RawShared"));
    assert_eq!(all.len(), 4, "{all:?}");
    for lock in all {
        demand(&lock, "model", &[format!("crates/model/tests/models/shared_locks/{lock}.rs")]);
        for kind in ["shared", "shared/raw"] {
            demand(&lock, "type for programs", &[format!("crates/lockstead/src/{kind}/{lock}.rs")]);
        }
    }
}
