//! The copy of the workspace in which mutants are compiled, and its builds.

use crate::mutants::plan::{Plan, Verdict};
use crate::mutants::rewrite::{Mark, Rewritten, replace, rewrite};
use crate::mutants::switch;
use crate::{all_files, root, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The packages of the tree.
const PACKAGES: &[&str] = &["core", "model", "ledger", "rules", "linux", "told"];

/// Returns the arguments by which cargo builds the programs of tests that may kill, the quickest
/// first: each group a package. The tests on real threads of the core kill nothing.
#[must_use]
pub fn groups() -> [Vec<String>; 3] {
    let of = |arguments: &[&str]| arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
    let core = of(&["-p", "lockstead-core", "--lib", "--test", "steps"]);
    let ledger = of(&["-p", "lockstead-ledger", "--lib", "--tests"]);
    [core, ledger, of(&["-p", "lockstead-model", "--test", "models"])]
}

/// Returns the same for builds of one mutant, each with what the names of its programs begin with: of
/// the core each program is a group, and of the ledger one, since most of these mutants need one.
#[must_use]
pub fn groups_of_singles() -> Vec<(String, Vec<String>)> {
    let [core, others @ ..] = groups();
    let names = core.iter().skip(3).filter(|word| *word != "--test");
    let tests = names.map(|name| {
        let arguments = ["-p", "lockstead-core", "--test", name].map(ToOwned::to_owned).to_vec();
        (format!("core/{name}"), arguments)
    });
    let own = ("core/lockstead_core".to_owned(), core[..3].to_vec());
    let ledger = ["-p", "lockstead-ledger", "--test", "steps"].map(ToOwned::to_owned).to_vec();
    let own = [own, ("ledger/steps".to_owned(), ledger)];
    let others = others.into_iter().map(|of| (of[1].replace("lockstead-", "") + "/", of));
    tests.chain(own).chain(others).collect()
}

/// Returns whether a group may have a test whose name has one of the parts `wanted`: a part that
/// begins with the name of a package and a stroke is about that package alone.
fn may_have(group: &[String], wanted: &[String]) -> bool {
    let of = |part: &String| {
        let package = part.split_once('/').map(|(package, _)| package);
        package.is_none_or(|package| {
            let known = groups().iter().any(|group| group[1] == format!("lockstead-{package}"));
            !known || group[1] == format!("lockstead-{package}")
        })
    };
    wanted.is_empty() || wanted.iter().any(of)
}

/// The tree and what was written into it.
pub struct Tree {
    folder: PathBuf,
    target: PathBuf,
    written: BTreeMap<String, Rewritten>,
}

/// A program of tests.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its package and its own name.
    pub name: String,
    /// The file that is run.
    pub executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    pub folder: PathBuf,
}

impl Tree {
    /// Returns the tree of all mutants, below `target/mutants`.
    #[must_use]
    pub fn new() -> Self {
        Self::at("tree", "target")
    }

    /// Returns the tree in which one mutant at a time is built, so that the other one stays as it is
    /// built.
    #[must_use]
    pub fn of_singles() -> Self {
        Self::at("single/tree", "single/target")
    }

    fn at(folder: &str, target: &str) -> Self {
        let mutants = root().join("target/mutants");
        Tree {
            folder: mutants.join(folder),
            target: mutants.join(target),
            written: BTreeMap::new(),
        }
    }

    /// Writes all files: those of the plan with their mutants, or as they are but for `single`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self, plan: &Plan, single: Option<usize>) -> Result<(), String> {
        let mut wanted = BTreeMap::new();
        for package in PACKAGES {
            for path in all_files(&format!("crates/{package}")) {
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                let content = std::fs::read(&path).map_err(|error| format!("{name}: {error}"))?;
                wanted.insert(name, content);
            }
        }
        self.written.clear();
        for (index, file) in plan.files.iter().enumerate() {
            let switch = if file.path.starts_with("crates/core/") {
                "crate::mutant"
            } else {
                "::lockstead_core::mutant"
            };
            if single.is_none() {
                let rewritten = rewrite(file, &plan.numbers(index), switch);
                wanted.insert(file.path.clone(), rewritten.text.clone().into_bytes());
                self.written.insert(file.path.clone(), rewritten);
            }
        }
        if let Some(mutant) = single.map(|index| &plan.mutants[index]) {
            let file = &plan.files[mutant.file];
            let changed = replace(file, mutant.site, mutant.alternative);
            wanted.insert(file.path.clone(), changed.into_bytes());
        }
        let lib = "crates/core/src/lib.rs";
        let with = String::from_utf8_lossy(&wanted[lib]).replacen(
            "#![no_std]",
            "#![no_std] #[doc(hidden)] pub mod mutant;",
            1,
        );
        wanted.insert(lib.into(), with.into_bytes());
        let module = switch::module(plan.mutants.len() as u32);
        wanted.insert("crates/core/src/mutant.rs".into(), module.into_bytes());
        wanted.insert("Cargo.toml".into(), manifest().into_bytes());
        wanted.insert("Cargo.lock".into(), text(&root().join("Cargo.lock")).into_bytes());
        self.put(&wanted)
    }

    /// Writes what differs and removes what is too much, so that cargo compiles little.
    fn put(&self, wanted: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        let failed = |path: &Path, error| format!("{}: {error}", path.display());
        for (name, content) in wanted {
            let path = self.folder.join(name);
            let same = std::fs::read(&path).is_ok_and(|there| there == *content);
            let kept = name == "Cargo.lock" && path.exists();
            if !same && !kept {
                std::fs::create_dir_all(path.parent().expect("a folder"))
                    .and_then(|()| std::fs::write(&path, content))
                    .map_err(|error| failed(&path, error))?;
            }
        }
        let crates = self.folder.join("crates");
        let below = crates.strip_prefix(root()).expect("below the root").display().to_string();
        for path in all_files(&below) {
            let name = path.strip_prefix(&self.folder).expect("below the tree");
            if !wanted.contains_key(&name.display().to_string()) {
                std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            }
        }
        Ok(())
    }

    fn cargo(&self, arguments: &[&str]) -> Result<(bool, Vec<Value>), String> {
        let output = Command::new("cargo")
            .args(arguments)
            .args(["--offline", "--message-format", "json"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUSTFLAGS", "--cap-lints=allow")
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo cannot be started: {error}"))?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let messages = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok((output.status.success(), messages))
    }

    /// Compiles the programs of tests, those that have none of the `wanted` left out. Leaves mutants
    /// out that do not compile, or cannot stand behind a switch, until the build succeeds.
    ///
    /// # Errors
    /// What does not compile for no mutant's sake.
    pub fn build(&mut self, plan: &mut Plan, wanted: &[String]) -> Result<Vec<Program>, String> {
        let check: &[&str] = &[
            "check",
            "-p",
            "lockstead-core",
            "-p",
            "lockstead-ledger",
            "-p",
            "lockstead-model-core",
            "-p",
            "lockstead-model-ledger",
        ];
        let mut rounds = 0;
        loop {
            self.write(plan, None)?;
            let (mut good, mut messages) = self.cargo(check)?;
            if good {
                let mut programs = Vec::new();
                for of in groups().iter().filter(|group| may_have(group, wanted)) {
                    (good, messages) = self.build_group(of)?;
                    if !good {
                        break;
                    }
                    programs.extend(programs_of(&messages));
                }
                if good {
                    plan.save_verdicts()?;
                    return Ok(programs);
                }
            }
            rounds += 1;
            let left_out = self.blame(plan, &messages);
            eprintln!("mutants: build {rounds} does not compile; {left_out} mutants less");
            plan.save_verdicts()?;
            if left_out == 0 || rounds > 60 {
                let text = rendered(&messages);
                return Err(format!("the mutated tree does not compile:\n{text}"));
            }
        }
    }

    fn build_group(&self, of: &[String]) -> Result<(bool, Vec<Value>), String> {
        let build: Vec<&str> =
            ["test", "--no-run"].into_iter().chain(of.iter().map(String::as_str)).collect();
        self.cargo(&build)
    }

    /// Compiles the programs of tests of one of the [`groups`], with one mutant in the place of
    /// the text, which [`write`](Self::write) has written. Returns nothing if it does not compile.
    ///
    /// # Errors
    /// Cargo that cannot be started.
    pub fn build_single(&self, of: &[String]) -> Result<Option<Vec<Program>>, String> {
        let (good, messages) = self.build_group(of)?;
        Ok(good.then(|| programs_of(&messages)))
    }

    /// Finds the mutants that errors are about, and leaves them out. Returns how many.
    fn blame(&self, plan: &mut Plan, messages: &[Value]) -> usize {
        let mut blamed = BTreeSet::new();
        for message in messages.iter().filter(|message| message["message"]["level"] == "error") {
            let mut places = Vec::new();
            collect_places(&message["message"], &mut places);
            // An error that the compiler meets while it evaluates is about the switch.
            let evaluates = message["message"]["code"]["code"] == "E0080";
            let found = !evaluates
                && places.iter().fold(false, |found, (name, range, primary)| {
                    let looks = *primary || !found;
                    found | (looks && self.blame_place(plan, name, range, true, &mut blamed))
                });
            for (name, range, _) in places.iter().filter(|_| !found) {
                if (self.blame_place(plan, name, range, false, &mut blamed)
                    || self.blame_end(plan, name, range, &mut blamed))
                    && !evaluates
                {
                    break;
                }
            }
        }
        for (mutant, verdict) in &blamed {
            plan.leave_out(*mutant, *verdict);
        }
        blamed.len()
    }

    /// Blames the alternative in which a place lies, or the innermost site.
    fn blame_place(
        &self,
        plan: &Plan,
        name: &str,
        range: &Range<usize>,
        exact: bool,
        blamed: &mut BTreeSet<(usize, Verdict)>,
    ) -> bool {
        let Some((file, written)) = self.written_as(plan, name) else { return false };
        let within = written.marks.iter().filter(|mark| {
            mark.range.start <= range.start
                && range.end <= mark.range.end
                && exact == mark.alternative.is_some()
        });
        let Some(mark) = within.min_by_key(|mark| mark.range.len()) else { return false };
        let shape = plan.files[file].sites[mark.site].shape;
        let verdict = if exact || shape != crate::mutants::sites::Shape::Value {
            Verdict::DoesNotCompile
        } else {
            Verdict::Single
        };
        blame_mark(plan, file, mark, verdict, blamed)
    }

    /// Blames the last statement that may be left out of a block, which then has an end.
    fn blame_end(
        &self,
        plan: &Plan,
        name: &str,
        range: &Range<usize>,
        blamed: &mut BTreeSet<(usize, Verdict)>,
    ) -> bool {
        let Some((file, written)) = self.written_as(plan, name) else { return false };
        let within = written.marks.iter().filter(|mark| {
            range.start <= mark.range.start
                && mark.range.end <= range.end
                && mark.alternative.is_none()
        });
        let Some(mark) = within.max_by_key(|mark| mark.range.end) else { return false };
        blame_mark(plan, file, mark, Verdict::DoesNotCompile, blamed)
    }

    /// Returns the index of the file that the compiler calls `name`, and how it was written. (The
    /// checker's build calls files by way of its own folder.)
    fn written_as(&self, plan: &Plan, name: &str) -> Option<(usize, &Rewritten)> {
        let called = |path: &str| name.ends_with(path.trim_start_matches("crates/"));
        let file = plan.files.iter().position(|file| called(&file.path))?;
        Some((file, self.written.get(&plan.files[file].path)?))
    }
}

/// Blames the mutants of a mark. Returns whether it has some.
fn blame_mark(
    plan: &Plan,
    file: usize,
    mark: &Mark,
    verdict: Verdict,
    blamed: &mut BTreeSet<(usize, Verdict)>,
) -> bool {
    let all = plan.mutants.iter().enumerate().filter(|(_, mutant)| {
        (mutant.file, mutant.site) == (file, mark.site)
            && mark.alternative.is_none_or(|alternative| alternative == mutant.alternative)
    });
    let mut built = all.filter(|(_, mutant)| mutant.verdict.is_none()).peekable();
    // Two packages compile the core, and both say what is wrong: the second finds it blamed.
    let known = built.peek().is_some();
    blamed.extend(built.map(|(index, _)| (index, verdict)));
    known
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

/// Packages whose tests take milliseconds however they are compiled.
const QUICK: &[&str] = &["core", "ledger", "linux", "rules", "told"];

/// Returns the manifest of the tree: the workspace's, with fewer members and no lints. What has quick
/// tests is compiled as fast as it can be; the models compile the same sources as other packages.
fn manifest() -> String {
    let own = text(&root().join("Cargo.toml"));
    let end = own.find("[workspace.lints.rust]").unwrap_or(own.len());
    let profiles = own.find("[profile.dev]").map_or("", |at| &own[at..]);
    let head: String = own[..end]
        .lines()
        .filter(|line| !line.starts_with("default-members"))
        .map(|line| match line {
            line if line.starts_with("members") => {
                "members = [\"crates/*\", \"crates/model/core\", \"crates/model/ledger\"]\n".into()
            }
            line => format!("{line}\n"),
        })
        .collect();
    let lints = "[workspace.lints.rust]\n\n";
    // Settings of packages that are not there are warnings; the first profile is the tests'.
    let ends = profiles.find("[profile.dev.package").unwrap_or(profiles.len());
    let quick = QUICK.iter().map(|package| {
        format!("[profile.dev.package.lockstead-{package}]\nopt-level = 0\ndebug = 0\n\n")
    });
    format!("{head}{lints}{}{}", &profiles[..ends], quick.collect::<String>())
}

fn programs_of(messages: &[Value]) -> Vec<Program> {
    let tests = messages.iter().filter(|message| message["profile"]["test"] == true);
    tests
        .filter_map(|message| {
            let executable = PathBuf::from(message["executable"].as_str()?);
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
            let package = folder.file_name()?.to_string_lossy().into_owned();
            let name = format!("{package}/{}", message["target"]["name"].as_str()?);
            Some(Program { name, executable, folder })
        })
        .collect()
}

/// Collects the places of a message and of what hangs below it, those that it is about first.
fn collect_places(message: &Value, into: &mut Vec<(String, Range<usize>, bool)>) {
    let add = |span: &Value, into: &mut Vec<_>| {
        let mut span = span;
        while span.is_object() {
            let (Some(from), Some(to)) = (span["byte_start"].as_u64(), span["byte_end"].as_u64())
            else {
                return;
            };
            let name = span["file_name"].as_str().unwrap_or_default().to_owned();
            let primary = span["is_primary"] == true;
            into.push((name, from as usize..to as usize, primary));
            span = &span["expansion"]["span"];
        }
    };
    let spans = message["spans"].as_array().map_or(&[][..], Vec::as_slice);
    for primary in [true, false] {
        for span in spans.iter().filter(|span| (span["is_primary"] == true) == primary) {
            add(span, into);
        }
    }
    // Below it are suggestions; and where the compiler evaluates, the calls that it was in.
    if message["code"]["code"] != "E0080" {
        return;
    }
    for child in message["children"].as_array().map_or(&[][..], Vec::as_slice) {
        for span in child["spans"].as_array().map_or(&[][..], Vec::as_slice) {
            add(span, into);
        }
    }
}

fn rendered(messages: &[Value]) -> String {
    let all = messages.iter().filter(|message| message["message"]["level"] == "error");
    all.filter_map(|message| message["message"]["rendered"].as_str()).take(5).collect()
}
