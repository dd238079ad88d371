//! All mutants that there are, what each is called, and which of them are in the one build.

use crate::mutants::rewrite::Numbers;
use crate::mutants::sites::SourceFile;
use crate::{files, root, text};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::PathBuf;

/// Files of the core that have no protocol: numbers, interfaces, markers.
const NO_PROTOCOL: &[&str] =
    &["lib.rs", "fault.rs", "platform.rs", "policy.rs", "hooks.rs", "state/tests.rs"];

/// The files of the ledger that models run.
const LEDGER: &[&str] = &[
    "publish.rs",
    "publish/bits.rs",
    "publish/held.rs",
    "futexes.rs",
    "table.rs",
    "growth.rs",
    "ring.rs",
];

/// Why a mutant is not in the one build.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// The compiler refuses it: it is no mutant.
    DoesNotCompile,
    /// It cannot stand behind a switch and needs a build of its own.
    Single,
}

/// One change of the source.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Indices of the file, its site and the site's alternative.
    pub file: usize,
    /// The index of its site in the file.
    pub site: usize,
    /// The index of what it is among the alternatives of the site.
    pub alternative: usize,
    /// File, function, what was, what is, and which of those that are alike.
    pub key: String,
    /// The hash of its function.
    pub hash: u64,
    /// Why it is not in the one build.
    pub verdict: Option<Verdict>,
    /// Its number in the build, from 1, if it has one.
    pub number: Option<u32>,
}

/// The mutants of all protocol files.
#[derive(Debug, Default)]
pub struct Plan {
    /// The files whose mutants are made.
    pub files: Vec<SourceFile>,
    /// Their mutants, in the order of the files.
    pub mutants: Vec<Mutant>,
}

impl Plan {
    /// Reads the protocol files, and what earlier builds have said of their mutants.
    ///
    /// # Errors
    /// A file that is no Rust.
    pub fn read() -> Result<Self, String> {
        let mut plan = Self::of(protocol_files()?);
        plan.load_verdicts();
        Ok(plan)
    }

    /// Returns all mutants of these files.
    #[must_use]
    pub fn of(files: Vec<SourceFile>) -> Self {
        let mut mutants = Vec::new();
        for (file, source) in files.iter().enumerate() {
            let mut alike: HashMap<String, usize> = HashMap::new();
            for (site, at) in source.sites.iter().enumerate() {
                let function = source.functions.iter().rev().find(|function| {
                    function.name == at.function
                        && function.range.start <= at.range.start
                        && at.range.end <= function.range.end
                });
                for (alternative, what) in at.alternatives.iter().enumerate() {
                    let key = format!(
                        "{}|{}|{}|{}",
                        source.short(),
                        at.function,
                        cropped(&what.was),
                        cropped(&what.now)
                    );
                    let nth = alike.entry(key.clone()).or_default();
                    *nth += 1;
                    let key = format!("{key}|{nth}");
                    let hash = function.map_or(0, |function| function.hash);
                    let verdict = at.constant.then_some(Verdict::Single);
                    mutants.push(Mutant {
                        file,
                        site,
                        alternative,
                        key,
                        hash,
                        verdict,
                        number: None,
                    });
                }
            }
        }
        let mut plan = Plan { files, mutants };
        plan.number();
        plan
    }

    /// Gives numbers to those that are in the build.
    fn number(&mut self) {
        let mut next = 1;
        for mutant in &mut self.mutants {
            mutant.number = mutant.verdict.is_none().then_some(next);
            next += u32::from(mutant.number.is_some());
        }
    }

    /// Keeps those that `wanted` says, before a build of few.
    pub fn keep(&mut self, wanted: impl Fn(&Mutant) -> bool) {
        self.mutants.retain(wanted);
        self.number();
    }

    /// Leaves a mutant out of the one build.
    pub fn leave_out(&mut self, mutant: usize, verdict: Verdict) {
        self.mutants[mutant].verdict = Some(verdict);
        self.number();
    }

    /// Returns the numbers of the mutants of a file, by site and alternative.
    #[must_use]
    pub fn numbers(&self, file: usize) -> Numbers {
        let sites = &self.files[file].sites;
        let mut numbers: Numbers =
            sites.iter().map(|site| vec![None; site.alternatives.len()]).collect();
        for mutant in self.mutants.iter().filter(|mutant| mutant.file == file) {
            numbers[mutant.site][mutant.alternative] = mutant.number;
        }
        numbers
    }

    /// Returns where a mutant stands, and what it changes, for people.
    #[must_use]
    pub fn describe(&self, mutant: &Mutant) -> String {
        let file = &self.files[mutant.file];
        let site = &file.sites[mutant.site];
        let what = &site.alternatives[mutant.alternative];
        let (was, now) = (cropped(&what.was), cropped(&what.now));
        format!("{}:{} {}: {was}  =>  {now}", file.short(), site.line, site.function)
    }

    /// Remembers what the builds have said.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn save_verdicts(&self) -> Result<(), String> {
        let mut all = load(&verdicts());
        for mutant in &self.mutants {
            let Some(verdict) = mutant.verdict else { continue };
            let said = match verdict {
                Verdict::DoesNotCompile => "does not compile",
                Verdict::Single => "single",
            };
            all.insert(known_as(mutant), said.into());
        }
        save(&verdicts(), all)
    }

    fn load_verdicts(&mut self) {
        let all = load(&verdicts());
        for mutant in &mut self.mutants {
            match all.get(&known_as(mutant)).and_then(Value::as_str) {
                Some("does not compile") => mutant.verdict = Some(Verdict::DoesNotCompile),
                Some("single") => mutant.verdict = Some(Verdict::Single),
                _ => {}
            }
        }
        self.number();
    }
}

/// Reads the files whose mutants are made.
///
/// # Errors
/// A file that is no Rust.
pub fn protocol_files() -> Result<Vec<SourceFile>, String> {
    let core = files("crates/core/src", &["rs"]);
    let core = core.into_iter().filter(|path| !NO_PROTOCOL.iter().any(|name| path.ends_with(name)));
    let ledger = LEDGER.iter().map(|name| root().join("crates/ledger/src").join(name));
    core.chain(ledger)
        .map(|path| {
            let name = path.strip_prefix(root()).expect("below the root").display().to_string();
            SourceFile::parse(&name, text(&path))
        })
        .collect()
}

/// Returns a text that is short enough for a line.
#[must_use]
pub fn cropped(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into(),
    }
}

fn known_as(mutant: &Mutant) -> String {
    format!("{}|{:016x}", mutant.key, mutant.hash)
}

fn verdicts() -> PathBuf {
    root().join("target/mutants/verdicts.json")
}

/// Returns what a file of JSON holds, or nothing.
#[must_use]
pub fn load(path: &std::path::Path) -> Map<String, Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Writes a file of JSON, whole or not at all.
///
/// # Errors
/// Why it cannot be written.
pub fn save(path: &std::path::Path, all: Map<String, Value>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(path.parent().expect("a folder")).map_err(failed)?;
    let beside = path.with_extension("new");
    let text = serde_json::to_string_pretty(&Value::Object(all)).expect("text");
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path)).map_err(failed)
}
