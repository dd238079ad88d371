//! Builds the libraries that `lockstead run` puts under a program, for the
//! command to embed: one that observes, and one that checks as well.
//!
//! On a target that the library does not support, or without its sources (a
//! package on its own), the command is built without, and says so when asked to
//! `run`.

use std::env;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

include!("../preload/shared_object.rs");

fn main() {
    println!("cargo::rustc-check-cfg=cfg(preload_image)");
    println!("cargo::rerun-if-changed=build.rs");
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let Some(workspace) = package.ancestors().nth(2) else { return };
    if !is_supported() {
        return;
    }
    for input in [
        "Cargo.toml",
        "Cargo.lock",
        "crates/preload/Cargo.toml",
        "crates/preload/shared_object.rs",
        "crates/preload/src",
        "crates/unwind/Cargo.toml",
        "crates/unwind/src",
        "crates/rules/Cargo.toml",
        "crates/rules/src",
        "crates/told/Cargo.toml",
        "crates/told/src",
        "crates/ledger/Cargo.toml",
        "crates/ledger/src",
        "crates/core/Cargo.toml",
        "crates/core/src",
    ] {
        println!("cargo::rerun-if-changed={}", workspace.join(input).display());
    }
    println!("cargo::rustc-cfg=preload_image");
    build(workspace, "preload", false);
    build(workspace, "check", true);
}

/// Builds one of them, in a directory `name`, and tells the command where it is.
fn build(workspace: &Path, name: &str, checks: bool) {
    let target_dir = Path::new(&variable("OUT_DIR")).join(name);
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    match build_shared_object(&cargo, workspace, &target_dir, &variable("TARGET"), checks) {
        Ok(image) => {
            let name = name.to_uppercase();
            println!("cargo::rustc-env=LOCKSTEAD_{name}_IMAGE={}", image.display());
            let bytes = std::fs::read(&image).expect("it was just built");
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            println!("cargo::rustc-env=LOCKSTEAD_{name}_HASH={:016x}", hasher.finish());
        }
        Err(reason) => {
            eprintln!("the library for `lockstead run` could not be built: {reason}");
            std::process::exit(1);
        }
    }
}

fn is_supported() -> bool {
    [("OS", "linux"), ("ARCH", "x86_64"), ("ENV", "gnu"), ("POINTER_WIDTH", "64")]
        .iter()
        .all(|(what, value)| variable(&format!("CARGO_CFG_TARGET_{what}")) == *value)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
