//! What became of each mutant, for as long as nothing changes on which that depends.
//!
//! A kill depends on the function that is mutated, the files of the core that the killing test
//! comes to, the checker and the test's own files; that a mutant survives depends on everything.

use crate::mutants::plan::{Mutant, load, save};
use crate::mutants::sites::hash_of;
use crate::{files, root, text};
use proc_macro2::TokenStream;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// How a mutant was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A test fails with it.
    Killed,
    /// A test took ten times as long as usually, or searched without end, and none failed.
    TimedOut,
    /// All tests that come to its place pass.
    Survived,
    /// No test comes to its place.
    Unreached,
    /// The compiler refuses it.
    DoesNotCompile,
}

/// What is known of one mutant.
#[derive(Clone, Debug)]
pub struct Found {
    /// How it was decided.
    pub state: State,
    /// The test that killed it.
    pub by: Option<String>,
    /// The tests that come to its place, if it survived.
    pub reaching: Vec<String>,
}

/// The hashes of all sources that the tests are made of.
#[derive(Debug)]
pub struct Sources {
    by_path: BTreeMap<String, u64>,
}

impl Sources {
    /// Reads all of these sources.
    #[must_use]
    pub fn read() -> Self {
        let mut by_path = BTreeMap::new();
        for folder in ["core", "ledger", "model", "linux/src"] {
            for path in files(&format!("crates/{folder}"), &["rs"]) {
                let content = text(&path);
                let tokens = content.parse::<TokenStream>().map(|tokens| tokens.to_string());
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                by_path.insert(name, hash_of(&tokens.unwrap_or(content)));
            }
        }
        Sources { by_path }
    }

    fn everything(&self) -> u64 {
        // A file that lists the tests' modules says nothing.
        self.hash_where(|path| !path.ends_with("models/main.rs"))
    }

    fn hash_where(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let all = self.by_path.iter().filter(|(path, _)| wanted(path));
        hash_of(&all.map(|(path, hash)| format!("{path} {hash:x}\n")).collect::<String>())
    }

    /// Returns a hash of what a kill depends on: `reached` are the mutated files that the test
    /// comes to, of all of `mutated`.
    fn of_kill(&self, test: &str, reached: &BTreeSet<String>, mutated: &BTreeSet<String>) -> u64 {
        let own = self.sources_of(test);
        self.hash_where(|path| {
            let of_tests = path.contains("/tests/");
            let unreached = mutated.contains(path) && !reached.contains(path);
            own.contains(path) || !of_tests && !unreached
        })
    }

    /// Returns the files that a test is made of: its own, and those that these name.
    fn sources_of(&self, test: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let Some(name) = test.strip_prefix("model/models ") else {
            // A program is a file, or a folder with a file for each module and what these share.
            let (program, test) = test.split_once(' ').unwrap_or((test, ""));
            let (package, name) = program.split_once('/').unwrap_or((program, ""));
            let of = format!("crates/{package}/tests/");
            let module = test.split("::").next().unwrap_or_default();
            let own = [name.to_owned(), format!("{name}/main"), format!("{name}/{module}")];
            let made = |path: &&String| {
                let rest = path.strip_prefix(&of).and_then(|rest| rest.strip_suffix(".rs"));
                rest.is_some_and(|rest| {
                    own.iter().any(|own| own == rest) || rest.contains("common/")
                })
            };
            return self.by_path.keys().filter(made).cloned().collect();
        };
        let base = "crates/model/tests/models/";
        found.insert(format!("{base}common.rs"));
        let mut module: Vec<&str> = name.split("::").collect();
        module.pop();
        let mut open = vec![format!("{base}{}.rs", module.join("/"))];
        while let Some(path) = open.pop() {
            if !self.by_path.contains_key(&path) || !found.insert(path.clone()) {
                continue;
            }
            let content = text(&root().join(&path));
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            open.push(format!("{folder}.rs"));
            let named = self.by_path.keys().filter(|other| {
                let stem = other.rsplit('/').next().and_then(|name| name.strip_suffix(".rs"));
                other.starts_with(base)
                    && stem.is_some_and(|stem| content.contains(&format!("::{stem}")))
            });
            open.extend(named.cloned());
        }
        found
    }
}

/// The results of all runs.
#[derive(Debug)]
pub struct Results {
    all: Map<String, Value>,
    sources: Sources,
    mutated: BTreeSet<String>,
}

impl Results {
    /// Reads what earlier runs have left, of mutants of these files.
    #[must_use]
    pub fn read(mutated: BTreeSet<String>) -> Self {
        Results { all: load(&place()), sources: Sources::read(), mutated }
    }

    /// Returns what became of a mutant, if that still holds.
    #[must_use]
    pub fn get(&self, mutant: &Mutant) -> Option<Found> {
        let entry = self.all.get(&mutant.key)?;
        let strings = |name: &str| -> Vec<String> {
            let all = entry[name].as_array().map_or(&[][..], Vec::as_slice);
            all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        let by = entry["by"].as_str().map(ToOwned::to_owned);
        let state = match entry["state"].as_str()? {
            "killed" => State::Killed,
            "timed out" => State::TimedOut,
            "survived" => State::Survived,
            "unreached" => State::Unreached,
            _ => State::DoesNotCompile,
        };
        let depends = match (&state, &by) {
            (State::Killed, Some(by)) => {
                let reached = strings("files").into_iter().collect();
                self.sources.of_kill(by, &reached, &self.mutated)
            }
            (State::DoesNotCompile, _) => 0,
            _ => self.sources.everything(),
        };
        let now = format!("{:016x} {depends:016x}", mutant.hash);
        (entry["depends"] == now).then(|| Found { state, by, reaching: strings("reaching") })
    }

    /// Returns the test that killed a mutant of this name last, whatever has changed since.
    #[must_use]
    pub fn killer(&self, mutant: &Mutant) -> Option<String> {
        let entry = self.all.get(&mutant.key).filter(|entry| entry["state"] == "killed")?;
        entry["by"].as_str().map(ToOwned::to_owned)
    }

    /// Notes what became of a mutant; `reached` are the files that the killing test comes to.
    pub fn put(&mut self, mutant: &Mutant, found: &Found, reached: &BTreeSet<String>) {
        let (state, depends) = match found.state {
            State::Killed => {
                let by = found.by.as_deref().unwrap_or_default();
                ("killed", self.sources.of_kill(by, reached, &self.mutated))
            }
            State::TimedOut => ("timed out", self.sources.everything()),
            State::Survived => ("survived", self.sources.everything()),
            State::Unreached => ("unreached", self.sources.everything()),
            State::DoesNotCompile => ("does not compile", 0),
        };
        let entry = json!({
            "state": state,
            "by": found.by,
            "files": if found.state == State::Killed { json!(reached) } else { json!([]) },
            "reaching": found.reaching,
            "depends": format!("{:016x} {depends:016x}", mutant.hash),
        });
        self.all.insert(mutant.key.clone(), entry);
    }

    /// Writes all down.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save(&self) -> Result<(), String> {
        save(&place(), self.all.clone())
    }
}

fn place() -> PathBuf {
    root().join("target/mutants/results.json")
}
