//! Crate boundaries are the architecture: these tests hold them.

use serde_json::Value;
use std::process::Command;
use xtask::{files, root, text};

/// Names of the dependencies of `package`, of the given kinds (`null` in the
/// metadata is a normal one).
fn dependencies(package: &str, kinds: &[Option<&str>]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
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

#[test]
fn the_core_uses_neither_std_nor_alloc_nor_assembly() {
    for path in files("crates/core/src", &["rs"]) {
        for (number, line) in text(&path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for banned in ["std::", "alloc::", "extern crate", "asm!", "extern \"C\""] {
                assert!(
                    !code.contains(banned),
                    "{}:{}: the core must not use {banned}",
                    path.display(),
                    number + 1
                );
            }
        }
    }
    assert!(text(&root().join("crates/core/src/lib.rs")).contains("#![no_std]"));
}

#[test]
fn the_linux_crate_stands_on_the_core_alone() {
    let mut found = dependencies("lockstead-linux", &[None]);
    found.sort();
    assert_eq!(found, ["libc", "lockstead-core"]);
}

/// What everybody gets who uses the crate; `syn` comes with the macro crate only, which is
/// a feature.
#[test]
fn the_crate_stays_small() {
    let mut found = dependencies("lockstead", &[None]);
    found.sort();
    found.dedup();
    let optional = ["backtrace", "lock_api_0_4", "lockstead-derive", "lockstead-lockdep"];
    found.retain(|name| !optional.contains(&name.as_str()));
    assert_eq!(found, ["libc", "lock_api", "lockstead-core", "lockstead-linux"]);
    let manifest = text(&root().join("crates/lockstead/Cargo.toml"));
    for name in ["backtrace", "lockstead-derive", "lockstead-lockdep"] {
        let line = manifest.lines().find(|line| line.starts_with(&format!("{name} =")));
        assert!(line.is_some_and(|line| line.contains("optional = true")), "{name}: {line:?}");
    }
    let mut derive = dependencies("lockstead-derive", &[None]);
    derive.sort();
    assert_eq!(derive, ["proc-macro2", "quote", "syn"]);
}

#[test]
fn the_model_never_sees_linux() {
    let found = dependencies("lockstead-model", &[None, Some("dev"), Some("build")]);
    assert!(found.contains(&"lockstead-core".into()), "the test reads the wrong list: {found:?}");
    for other in ["lockstead-linux", "lockstead", "lockstead-preload", "lockstead-inspect"] {
        assert!(!found.contains(&other.into()), "{other}");
    }
}

/// Both the program under `run` and the command link the ledger: it brings
/// nothing along.
#[test]
fn the_ledger_stands_on_the_core_alone() {
    assert_eq!(dependencies("lockstead-ledger", &[None, Some("build")]), ["lockstead-core"]);
}

/// The command and the checking build of the crate both use the order graph, on
/// whatever facts they have: it is data and nothing else.
#[test]
fn the_order_graph_knows_nothing_but_data() {
    assert_eq!(dependencies("lockstead-lockdep", &[None, Some("build")]), ["hashbrown"]);
    let main = text(&root().join("crates/lockdep/src/lib.rs"));
    assert!(main.contains("#![no_std]") && main.contains("#![forbid(unsafe_code)]"));
    for path in files("crates/lockdep/src", &["rs"]) {
        for (number, line) in text(&path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for banned in ["std::", "extern crate std", "Atomic", "Cell"] {
                assert!(
                    !code.contains(banned),
                    "{}:{}: {banned} in the order graph",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

/// What lies in somebody else's program allocates nothing and takes no lock of
/// its kind: not by itself, not through a dependency.
#[test]
fn the_preload_library_brings_little_into_a_program() {
    let mut found = dependencies("lockstead-preload", &[None]);
    found.sort();
    assert_eq!(found, ["gimli", "libc", "lockstead-ledger"]);
    let manifest = text(&root().join("Cargo.toml"));
    let gimli = manifest.lines().find(|line| line.starts_with("gimli "));
    let gimli = gimli.expect("gimli in the workspace's manifest");
    assert!(gimli.contains("default-features = false"), "{gimli}");
    assert!(!gimli.contains("\"std\"") && !gimli.contains("\"read\""), "{gimli}");
}

#[test]
fn the_ledger_and_the_preload_library_use_neither_std_nor_alloc() {
    for folder in ["crates/ledger/src", "crates/preload/src"] {
        assert!(text(&root().join(folder).join("lib.rs")).contains("#![no_std]"), "{folder}");
        for path in files(folder, &["rs"]) {
            let text = text(&path);
            let mut lines = text.lines().enumerate().peekable();
            while let Some((number, line)) = lines.next() {
                if line.trim() == "#[cfg(test)]" {
                    // Tests may; modules of tests stand at the end.
                    match lines.next() {
                        Some((_, next)) if next.contains("mod ") => break,
                        _ => continue,
                    }
                }
                let code = line.split("//").next().unwrap_or_default();
                for banned in ["std::", "alloc::", "extern crate"] {
                    assert!(
                        !code.contains(banned),
                        "{}:{}: {banned} in a library for other programs",
                        path.display(),
                        number + 1
                    );
                }
            }
        }
    }
}

#[test]
fn only_the_linux_crate_makes_lock_system_calls() {
    let mut seen_in_linux = false;
    for folder in ["crates", "bench"] {
        for path in files(folder, &["rs"]) {
            let relative = path.strip_prefix(root()).expect("below the root").to_path_buf();
            for (number, line) in text(&path).lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                if !code.contains("SYS_futex") {
                    continue;
                }
                if relative.starts_with("crates/linux") {
                    seen_in_linux = true;
                } else {
                    panic!("{}:{}: a futex call outside crates/linux", path.display(), number + 1);
                }
            }
        }
    }
    assert!(seen_in_linux, "the check looks for a name that crates/linux does not use");
}

#[test]
fn files_stay_short() {
    for folder in ["crates", "bench", "xtask"] {
        for path in files(folder, &["rs", "c", "h", "cc", "hpp"]) {
            let lines = text(&path).lines().count();
            assert!(lines <= 500, "{}: {lines} lines, at most 500", path.display());
        }
    }
}
