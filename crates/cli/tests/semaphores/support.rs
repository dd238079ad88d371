//! The program of these tests, run with `--semaphores`.

use crate::common::{documented, finish, lockstead, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

const SOURCE: &str = include_str!("uses.c");

static PROGRAM: LazyLock<Result<(tempfile::TempDir, PathBuf), String>> = LazyLock::new(build);

fn build() -> Result<(tempfile::TempDir, PathBuf), String> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Err("`lockstead run` exists for Linux with glibc".into());
    }
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [source, program] = ["uses.c", "uses"].map(|name| folder.path().join(name));
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let compiler = Command::new("cc")
        .args(["-g", "-O0", "-pthread", "-o"])
        .args([&program, &source])
        .output()
        .map_err(|error| format!("no C compiler: {error}"))?;
    let text = String::from_utf8_lossy(&compiler.stderr);
    assert!(compiler.status.success(), "the test's own program does not compile: {text}");
    Ok((folder, program))
}

/// Returns the number of the line with this remark.
pub(crate) fn line(remark: &str) -> u64 {
    let remark = format!("/* {remark} */");
    let at = SOURCE.lines().position(|line| line.contains(&remark));
    at.unwrap_or_else(|| panic!("no line with {remark}")) as u64 + 1
}

/// What a run of a case came to.
pub(crate) struct Told {
    /// `semaphores` of the JSON.
    pub(crate) json: Value,
    /// The text that was printed.
    pub(crate) text: String,
}

/// Runs a case; `None`, with the reason printed, where that is not possible.
pub(crate) fn told(case: &str) -> Option<Told> {
    let (_, program) = match &*PROGRAM {
        Ok(built) => built,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return None;
        }
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let options = ["run", "--semaphores", "--no-report", "--json", text(&file), "--"];
    let command = [&options[..], &[text(program), case]].concat();
    let outcome = finish(lockstead(&command).spawn().expect("the command starts"));
    if outcome.status == 77 {
        eprintln!("skipped: this system does not do {case}");
        return None;
    }
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, ""), "{case}: {outcome:?}");
    assert!(!outcome.stderr.contains('\x1b'), "no terminal, no colours: {}", outcome.stderr);
    let json = std::fs::read_to_string(&file).expect("the report was written");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    documented(&report);
    let json = report["semaphores"].clone();
    assert_eq!(json["not_recorded"], 0);
    Some(Told { json, text: outcome.stderr })
}

impl Told {
    /// Returns the origins, in their order.
    pub(crate) fn origins(&self) -> &[Value] {
        self.json["origins"].as_array().expect("origins")
    }

    /// Returns the one origin that there is.
    pub(crate) fn only(&self) -> &Value {
        match self.origins() {
            [one] => one,
            several => panic!("{} origins: {several:#?}\n{}", several.len(), self.text),
        }
    }

    /// Returns the reasons of an origin, by their slugs.
    pub(crate) fn reasons(origin: &Value) -> Vec<&str> {
        let reasons = origin["reasons"].as_array().expect("reasons");
        reasons.iter().map(|reason| reason["reason"].as_str().expect("a slug")).collect()
    }

    /// Returns the one act of the only reason of this name.
    pub(crate) fn act<'v>(&self, origin: &'v Value, reason: &str) -> &'v Value {
        let reasons = origin["reasons"].as_array().expect("reasons");
        let found = reasons.iter().find(|one| one["reason"] == reason);
        let found = found.unwrap_or_else(|| panic!("no {reason}: {origin:#}"));
        match found["acts"].as_array().map(Vec::as_slice) {
            Some([act]) => act,
            acts => panic!("{acts:#?}"),
        }
    }

    /// Expects this line, whatever stands before and behind.
    pub(crate) fn says(&self, part: &str) {
        assert!(self.text.contains(part), "no {part:?} in\n{}", self.text);
    }
}

/// Returns a place as the text has it.
pub(crate) fn place(function: &str, remark: &str) -> String {
    format!("{function}() at uses.c:{}", line(remark))
}

/// Returns the places of a list with their counts.
pub(crate) fn places(sites: &Value) -> Vec<(&str, u64)> {
    let sites = sites.as_array().expect("a list");
    let one = |site: &'_ Value| site["count"].as_u64().expect("a number");
    sites.iter().map(|site| (site["site"].as_str().expect("a place"), one(site))).collect()
}
