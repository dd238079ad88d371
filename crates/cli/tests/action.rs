//! The steps of `action.yml`, as a runner of a code host would start them.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::common::{Outcome, finish, text};
use crate::programs::{program, skip};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Returns the root of the repository.
fn repository() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("a package of the repository").to_owned()
}

/// A folder of a runner, in which the command is installed.
struct Runner(TempDir);

impl Runner {
    fn new() -> Option<Runner> {
        if Command::new("bash").arg("--version").output().is_err() {
            skip("there is no bash");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("lockstead/bin");
        fs::create_dir_all(&bin).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_lockstead"), bin.join("lockstead")).expect("a link");
        Some(Runner(folder))
    }

    /// Runs a step, and returns what it told the runner as well.
    fn step(&self, name: &str, variables: &[(&str, &str)]) -> (Outcome, String) {
        let told = self.0.path().join("told");
        fs::write(&told, "").expect("a file");
        let mut command = Command::new("bash");
        command.arg(repository().join(".ci/action.sh")).arg(name).current_dir(self.0.path());
        command.env("GITHUB_ACTION_PATH", repository()).env("RUNNER_TEMP", self.0.path());
        command.env("GITHUB_OUTPUT", &told).envs(variables.iter().copied()).env_remove("CARGO");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let outcome = finish(command.spawn().expect("bash starts"));
        (outcome, fs::read_to_string(told).expect("a file"))
    }

    /// Runs a command with its locks checked, and returns what was found as well.
    fn check(&self, what: &str) -> (Outcome, String, Value) {
        let variables = [
            ("LOCKSTEAD_COMMAND", what),
            ("LOCKSTEAD_OPTIONS", "--check --no-report"),
            ("LOCKSTEAD_SARIF", "found.sarif"),
        ];
        let (outcome, told) = self.step("run", &variables);
        let found = fs::read_to_string(self.0.path().join("found.sarif")).expect("findings");
        (outcome, told, serde_json::from_str(&found).expect("JSON"))
    }
}

#[test]
fn what_is_found_fails_the_job_and_is_there_to_upload() {
    let (Some(runner), Some(program)) = (Runner::new(), program("checked.c")) else { return };
    let (outcome, told, found) = runner.check(&format!("cd / && {} crossed", text(&program)));
    assert_eq!(
        (outcome.status, told.as_str()),
        (3, "status=3\nsarif=found.sarif\n"),
        "{outcome:?}"
    );
    assert_eq!(found["runs"][0]["results"].as_array().map(Vec::len), Some(1), "{found}");
}

#[test]
fn a_job_without_findings_has_the_status_of_its_command() {
    let Some(runner) = Runner::new() else { return };
    let (outcome, told, found) = runner.check("false | true; echo not reached");
    assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
    assert_eq!(told, "status=1\nsarif=found.sarif\n");
    assert_eq!(found["runs"][0]["results"], Value::Array(Vec::new()), "{found}");
}

#[test]
fn what_was_built_is_known_again_by_its_sources() {
    let Some(runner) = Runner::new() else { return };
    let [(first, key), (_, again)] = [(); 2].map(|()| runner.step("key", &[]));
    assert_eq!(first.status, 0, "{first:?}");
    let digits = key.trim_end().strip_prefix("key=").expect("a key");
    assert!(digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{key}");
    assert_eq!(key, again);
}

/// The action and its script know the same steps and the same variables.
#[test]
fn the_action_sets_what_its_script_reads() {
    let [action, script] = ["action.yml", ".ci/action.sh"].map(|file| {
        fs::read_to_string(repository().join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"))
    });
    let variables = |text: &str| -> BTreeSet<String> {
        let parts = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        parts.filter(|part| part.starts_with("LOCKSTEAD_")).map(str::to_owned).collect()
    };
    assert_eq!(variables(&action), variables(&script));
    assert_eq!(variables(&action).len(), 3);
    let called = action.lines().filter_map(|line| line.trim().split_once(".ci/action.sh\" "));
    let steps: Vec<_> = called.map(|(_, step)| step.trim_end_matches('\'')).collect();
    assert_eq!(steps, ["key", "install", "run"]);
    for step in steps {
        assert!(script.contains(&format!("\n{step})\n")), "no {step} in .ci/action.sh");
    }
}
