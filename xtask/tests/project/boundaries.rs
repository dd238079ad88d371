//! Crate boundaries are the architecture: these tests hold them.

use crate::reading::{attributes, for_tests, names, parsed};
use serde_json::Value;
use std::process::Command;
use syn::Item;
use xtask::{all_files, files, root, text};

/// Returns the packages of the workspace, as cargo describes them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// Returns the names of the dependencies of `package`, of the given kinds (`null` in the metadata
/// is a normal one).
fn dependencies(package: &str, kinds: &[Option<&str>]) -> Vec<String> {
    let packages = packages();
    let package = packages
        .iter()
        .find(|p| p["name"] == package)
        .unwrap_or_else(|| panic!("no package {package} in the workspace"));
    package["dependencies"]
        .as_array()
        .expect("dependencies")
        .iter()
        .filter(|d| kinds.contains(&d["kind"].as_str()))
        .map(|d| d["name"].as_str().expect("name").to_owned())
        .collect()
}

#[test]
fn the_core_depends_on_nothing() {
    assert_eq!(dependencies("lockstead-core", &[None, Some("build")]), [""; 0]);
}

/// Fails for each name in the code of `folder`, tests left out, that `banned` gives a reason
/// against.
fn refuse(folder: &str, banned: impl Fn(&str) -> Option<&'static str>) {
    let mut seen = 0;
    for path in files(folder, &["rs"]) {
        for name in names(&parsed(&path)) {
            seen += 1;
            if let Some(why) = banned(&name.text) {
                panic!("{}:{}: `{}`: {why}", path.display(), name.line, name.text);
            }
        }
    }
    assert!(seen > 1000, "{folder}: only {seen} names were read");
}

/// Tells whether `lib.rs` in `folder` has the attribute `name`, or `name(argument)`.
fn has_attribute(folder: &str, name: &str, argument: Option<&str>) -> bool {
    parsed(&root().join(folder).join("lib.rs")).attrs.iter().any(|attribute| {
        attribute.path().is_ident(name)
            && argument.is_none_or(|argument| {
                attribute.parse_args::<syn::Ident>().is_ok_and(|found| found == argument)
            })
    })
}

/// Asserts that no crate but those in `may_link` is linked. In a crate with `#![no_std]` neither
/// `std` nor `alloc` can be named without that.
fn without_std(folder: &str, may_link: &[&str]) {
    assert!(has_attribute(folder, "no_std", None), "{folder}");
    for path in files(folder, &["rs"]) {
        for item in &parsed(&path).items {
            if let (Item::ExternCrate(linked), false) = (item, for_tests(item)) {
                let may = may_link.iter().any(|may| linked.ident == may);
                assert!(may, "{}: the crate links {}", path.display(), linked.ident);
            }
        }
    }
}

#[test]
fn the_core_uses_neither_std_nor_alloc_nor_assembly() {
    without_std("crates/core/src", &[]);
    refuse("crates/core/src", |name| match name {
        "arch" | "asm" | "global_asm" | "naked_asm" => Some("the core has no assembly"),
        "include" => Some("what is included, no test of the project reads"),
        "transmute" | "transmute_copy" => Some("the core makes no value out of another one's bits"),
        _ => None,
    });
    for path in files("crates/core/src", &["rs"]) {
        for item in &parsed(&path).items {
            let is_foreign = matches!(item, Item::ForeignMod(_));
            assert!(!is_foreign, "{}: the core calls nothing by name", path.display());
            let moved = attributes(item).iter().any(|attribute| attribute.path().is_ident("path"));
            assert!(!moved, "{}: a module lies where no test reads it", path.display());
        }
    }
}

#[test]
fn the_linux_crate_stands_on_the_core_alone() {
    let mut found = dependencies("lockstead-linux", &[None]);
    found.sort();
    assert_eq!(found, ["libc", "lockstead-core", "lockstead-told"]);
    assert_eq!(dependencies("lockstead-told", &[None, Some("build")]), [""; 0]);
}

/// Programs read the table of who runs where; only the command and the benchmarks link the
/// loader of the eBPF program that keeps it.
#[test]
fn programs_do_not_link_the_loader_of_the_table() {
    let mut found = dependencies("lockstead-oncpu", &[None, Some("build")]);
    found.sort();
    assert_eq!(found, ["libc", "lockstead-linux"]);
    let mut users = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().expect("name").to_owned();
        if dependencies(&name, &[None, Some("build")]).contains(&"lockstead-oncpu".into()) {
            users.push(name);
        }
    }
    users.sort();
    assert_eq!(users, ["lockstead-bench", "lockstead-cli"]);
}

/// Lists what everybody gets who uses the crate; `syn` comes with the macro crate only, which is a
/// feature.
#[test]
fn the_crate_stays_small() {
    let mut found = dependencies("lockstead", &[None]);
    found.sort();
    found.dedup();
    let optional = [
        "backtrace",
        "lock_api_0_4",
        "lockstead-derive",
        "lockstead-lockdep",
        "lockstead-rules",
        "serde",
    ];
    found.retain(|name| !optional.contains(&name.as_str()));
    assert_eq!(found, ["libc", "lock_api", "lockstead-core", "lockstead-linux"]);
    let manifest = text(&root().join("crates/lockstead/Cargo.toml"));
    for name in ["backtrace", "lockstead-derive", "lockstead-lockdep", "lockstead-rules", "serde"] {
        // A feature may have the name, too.
        let mut lines = manifest.lines().filter(|line| line.starts_with(&format!("{name} =")));
        assert!(lines.any(|line| line.contains("optional = true")), "{name} is not optional");
    }
    let mut derive = dependencies("lockstead-derive", &[None]);
    derive.sort();
    assert_eq!(derive, ["proc-macro2", "quote", "syn"]);
}

/// The installed command carries no benchmark, no peer and no simulator.
#[test]
fn the_command_carries_no_benchmarks() {
    for package in ["lockstead-cli", "lockstead-render", "lockstead-inspect", "lockstead"] {
        let dependencies = dependencies(package, &[None]);
        for banned in
            ["lockstead-bench", "lockstead-sim", "parking_lot", "usync", "plotters", "csv"]
        {
            assert!(!dependencies.iter().any(|name| name == banned), "{package} has {banned}");
        }
    }
}

/// Who needs no lock over a network builds and installs no client of one: for C there is a library of
/// its own, on which nothing depends either.
#[test]
fn nothing_depends_on_the_locks_over_etcd() {
    for package in packages() {
        let name = package["name"].as_str().expect("name").to_owned();
        // For its own tests it has all of its features.
        if ["lockstead-cluster", "lockstead-cluster-capi"].contains(&&*name) {
            continue;
        }
        let found = dependencies(&name, &[None, Some("dev"), Some("build")]);
        for needed in ["lockstead-cluster", "lockstead-cluster-capi"] {
            assert!(!found.contains(&needed.into()), "{name} depends on {needed}");
        }
    }
}

/// The tables of docs/json.md are for tests: who builds or installs does not compile what writes
/// them.
#[test]
fn what_is_installed_has_nothing_of_the_reference() {
    let mut installed: Vec<String> = packages()
        .iter()
        .map(|package| package["name"].as_str().expect("name").to_owned())
        .filter(|name| name != "lockstead-reference")
        .collect();
    installed.sort();
    assert!(installed.contains(&"lockstead-cli".into()), "{installed:?}");
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--edges", "no-dev", "--prefix", "none", "--format", "{p}"]);
    for package in &installed {
        tree.args(["--package", package]);
    }
    let output = tree.current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    for name in tree.lines().filter_map(|line| line.split(' ').next()) {
        let banned = ["schemars", "schemars_derive", "lockstead-reference"].contains(&name);
        assert!(!banned, "{name} is in what is installed:\n{tree}");
    }
    assert!(tree.lines().any(|line| line.starts_with("clap ")), "{tree}");
}

#[test]
fn the_model_never_sees_linux() {
    let found = dependencies("lockstead-model", &[None, Some("dev"), Some("build")]);
    let core = "lockstead-model-core";
    assert!(found.contains(&core.into()), "the test reads the wrong list: {found:?}");
    assert_eq!(dependencies(core, &[None, Some("dev"), Some("build")]), [""; 0]);
    let ledger = dependencies("lockstead-model-ledger", &[None, Some("dev"), Some("build")]);
    assert_eq!(ledger, [core, "lockstead-rules"]);
    for other in ["lockstead-linux", "lockstead", "lockstead-preload", "lockstead-inspect"] {
        assert!(!found.contains(&other.into()), "{other}");
    }
}

/// Two checkers that share code may share a mistake: they have the locks and the ledger in common, and
/// nothing else.
#[test]
fn the_second_checker_shares_nothing_with_the_first() {
    let found = dependencies("lockstead-second", &[None, Some("dev"), Some("build")]);
    assert_eq!(found, ["lockstead-model-core", "loom", "lockstead-model-ledger"]);
}

/// Both the program under `run` and the command link the ledger: it brings
/// nothing along.
#[test]
fn the_ledger_stands_on_the_core_and_the_rules_alone() {
    let found = dependencies("lockstead-ledger", &[None, Some("build")]);
    assert_eq!(found, ["lockstead-core", "lockstead-rules"]);
    assert_eq!(dependencies("lockstead-rules", &[None, Some("build")]), [""; 0]);
}

/// The command and the checking build of the crate both use the order graph, on
/// whatever facts they have: it is data and nothing else.
#[test]
fn the_order_graph_knows_nothing_but_data() {
    assert_eq!(
        dependencies("lockstead-lockdep", &[None, Some("build")]),
        ["hashbrown", "lockstead-rules"]
    );
    without_std("crates/lockdep/src", &["alloc"]);
    assert!(has_attribute("crates/lockdep/src", "forbid", Some("unsafe_code")));
    refuse("crates/lockdep/src", |name| match name {
        "atomic" | "cell" | "Cell" | "RefCell" | "UnsafeCell" => {
            Some("the order graph changes by `&mut` alone")
        }
        name if name.starts_with("Atomic") => Some("the order graph changes by `&mut` alone"),
        _ => None,
    });
}

/// The library that lies in somebody else's program allocates nothing and takes no lock of its
/// kind: not by itself, not through a dependency.
#[test]
fn the_preload_library_brings_little_into_a_program() {
    let mut found = dependencies("lockstead-preload", &[None]);
    found.sort();
    assert_eq!(found, ["libc", "lockstead-ledger", "lockstead-told", "lockstead-unwind"]);
    assert_eq!(dependencies("lockstead-unwind", &[None, Some("build")]), ["gimli"]);
    let manifest = text(&root().join("Cargo.toml"));
    let gimli = manifest.lines().find(|line| line.starts_with("gimli "));
    let gimli = gimli.expect("gimli in the workspace's manifest");
    assert!(gimli.contains("default-features = false"), "{gimli}");
    assert!(!gimli.contains("\"std\"") && !gimli.contains("\"read\""), "{gimli}");
}

/// The command embeds the preload library: cargo builds it again only if told what it is made of, and
/// away from the repository it is built of what the links lead to.
#[test]
fn the_preload_library_is_built_again_after_each_change_of_its_sources() {
    let script = text(&root().join("crates/cli/build.rs"));
    let (mut left, mut seen) = (vec!["lockstead-preload".to_owned()], Vec::new());
    while let Some(package) = left.pop() {
        if !package.starts_with("lockstead-") || seen.contains(&package) {
            continue;
        }
        let name = package.replace("lockstead-", "");
        let named = script.contains(&format!("\"{name}\""));
        assert!(named, "crates/cli/build.rs does not name {name}");
        for (link, part) in [("manifest.toml", "Cargo.toml"), ("src", "src")] {
            let link = root().join("crates/cli/embedded").join(&name).join(link);
            let leads = std::fs::canonicalize(&link).expect("a link of crates/cli/embedded");
            assert_eq!(leads, root().join("crates").join(&name).join(part));
        }
        left.extend(dependencies(&package, &[None, Some("build")]));
        seen.push(package);
    }
    assert!(seen.len() >= 5, "{seen:?}");
}

#[test]
fn the_ledger_the_rules_and_the_preload_library_use_neither_std_nor_alloc() {
    without_std("crates/unwind/src", &[]);
    assert!(has_attribute("crates/unwind/src", "forbid", Some("unsafe_code")));
    without_std("crates/ledger/src", &[]);
    without_std("crates/preload/src", &[]);
    without_std("crates/rules/src", &[]);
}

/// Long files that nobody writes by hand: data, pictures, what the types or cargo write.
const GENERATED: [&str; 4] =
    ["Cargo.lock", "crates/python/Cargo.lock", "docs/benchmarks", "docs/json.md"];

#[test]
fn files_stay_short() {
    let mut read = 0;
    for path in all_files(".") {
        let relative = path.strip_prefix(root().join(".")).expect("below the root");
        if GENERATED.iter().any(|generated| relative.starts_with(generated)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        read += 1;
        let lines = text.lines().count();
        assert!(lines <= 500, "{}: {lines} lines, at most 500", path.display());
    }
    assert!(read > 1000, "only {read} files were read");
}
