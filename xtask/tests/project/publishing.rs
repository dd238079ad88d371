//! What a registry asks of the packages that it gets: that all they are built of is there as well, and
//! that somebody who finds one learns what it is for. `cargo publish --workspace --dry-run`, which asks
//! the registry, builds each from what would be sent.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use xtask::{files, root, text};

/// Returns what cargo knows of the packages that are published.
fn published() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").expect("cargo runs the tests");
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let sent = packages.iter().filter(|package| package["publish"].is_null());
    let found: Vec<_> = sent.cloned().collect();
    let names: Vec<_> = found.iter().map(|package| package["name"].as_str()).collect();
    for name in ["lockstead", "lockstead-cli", "lockstead-core"] {
        assert!(names.contains(&Some(name)), "{name} is not published: {names:?}");
    }
    found
}

/// Returns the folder of a package.
fn folder(package: &Value) -> PathBuf {
    let manifest = package["manifest_path"].as_str().expect("a package has a manifest");
    Path::new(manifest).parent().expect("a manifest lies in a folder").to_owned()
}

#[test]
fn what_a_published_package_is_built_of_is_published() {
    let packages = published();
    let names: BTreeSet<_> = packages.iter().map(|package| package["name"].as_str()).collect();
    let mut of_the_project = 0;
    for package in &packages {
        for needed in package["dependencies"].as_array().expect("a list of dependencies") {
            // From elsewhere; or for tests and without a version, which cargo leaves out.
            let for_tests = needed["kind"] == "dev";
            if needed["path"].is_null() || (for_tests && needed["req"] == "*") {
                continue;
            }
            of_the_project += 1;
            let what = format!("{} needs {}", package["name"], needed["name"]);
            assert!(names.contains(&needed["name"].as_str()), "{what}, which nobody publishes");
            assert_ne!(needed["req"], "*", "{what} of no version");
        }
    }
    assert!(of_the_project > 20, "the packages of the project need each other");
}

#[test]
fn a_published_package_says_what_it_is() {
    for package in published() {
        let name = package["name"].as_str().expect("a package has a name");
        let folder = folder(&package);
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{name} has no {field}");
        }
        for file in [package["readme"].as_str().unwrap(), "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(folder.join(file).is_file(), "{name}: there is no {file}");
        }
        let words = package["keywords"].as_array().expect("a list of keywords");
        assert!((1..=5).contains(&words.len()), "{name} has {} keywords", words.len());
        let long = words.iter().find(|word| word.as_str().is_none_or(|word| word.len() > 20));
        assert_eq!(long, None, "{name}: a registry takes no keyword of more than 20 letters");
        assert_ne!(package["categories"], Value::Array(Vec::new()), "{name} has no category");
        let targets = &package["metadata"]["docs"]["rs"]["targets"];
        assert!(targets.is_array(), "{name}: docs.rs would build it for systems it is not for");
    }
}

#[test]
fn a_published_package_reads_no_file_that_stays_behind() {
    let mut seen = 0;
    for package in published() {
        let folder = folder(&package);
        let sources = folder.join("src");
        let below = sources.strip_prefix(root()).expect("a package of the project");
        let mut sources = files(&below.display().to_string(), &["rs"]);
        sources.extend(Some(folder.join("build.rs")).filter(|script| script.exists()));
        for source in sources {
            let text = text(&source);
            // Unit tests, which stand at the end, run in the repository.
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let included = code.lines().filter(|line| line.contains("include"));
            let named = included.flat_map(|line| line.split('"'));
            for named in named.filter(|piece| piece.starts_with("../")) {
                seen += 1;
                let mut path = source.parent().expect("a file lies in a folder").to_owned();
                for component in Path::new(named).components() {
                    match component {
                        Component::ParentDir => drop(path.pop()),
                        other => path.push(other),
                    }
                }
                let what = source.display();
                assert!(path.starts_with(&folder), "{what}: {named} is not packed");
            }
        }
    }
    assert!(seen > 10, "the command carries sources of others");
}
