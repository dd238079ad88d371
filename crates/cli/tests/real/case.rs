//! A program that runs to its end: without lockstead, watched, and checked.

use super::{Ended, Running, shown, watched};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What to run, and in which surroundings.
pub(super) struct Case<'a> {
    program: OsString,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    options: Vec<&'a str>,
    input: Option<&'a Path>,
    prepare: Box<dyn Fn(&Path) + 'a>,
    edit: fn(&str) -> String,
}

/// What lockstead saw of a run that was compared.
pub(super) struct Seen {
    pub(super) report: Value,
    pub(super) stdout: String,
    pub(super) status: Option<i32>,
}

impl<'a> Case<'a> {
    pub(super) fn new(program: impl AsRef<OsStr>) -> Case<'a> {
        Case {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            options: Vec::new(),
            input: None,
            prepare: Box::new(|_| ()),
            edit: str::to_owned,
        }
    }

    pub(super) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(super) fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    pub(super) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Adds an option of `lockstead run`.
    pub(super) fn option(mut self, option: &'a str) -> Self {
        self.options.push(option);
        self
    }

    pub(super) fn input(mut self, file: &'a Path) -> Self {
        self.input = Some(file);
        self
    }

    /// Sets what is done before each of the runs to the folder in which it runs.
    pub(super) fn prepare(mut self, prepare: impl Fn(&Path) + 'a) -> Self {
        self.prepare = Box::new(prepare);
        self
    }

    /// Sets what is done to output in which numbers differ from run to run.
    pub(super) fn edit(mut self, edit: fn(&str) -> String) -> Self {
        self.edit = edit;
        self
    }

    /// Runs it in all ways and compares status and output: nothing is found.
    pub(super) fn unharmed(self) -> Seen {
        let reports = tempfile::tempdir().expect("a folder");
        let json = reports.path().join("report.json");
        let bare = self.once(Command::new(&self.program));
        let [watched, checked] = [&[][..], &["--check"]].map(|how| {
            let options = [&self.options, how].concat();
            // The report is that of the run that only watches.
            let json = if how.is_empty() { json.clone() } else { reports.path().join("checked") };
            let mut command = watched(&json, &options);
            command.arg(&self.program);
            self.once(command)
        });
        let what = format!("{} {:?}", shown(&self.program), self.arguments);
        let edited = |bytes: &[u8]| (self.edit)(&without_the_verdict(bytes));
        for other in [&watched, &checked] {
            assert_eq!(bare.status, other.status, "{what}\nbare {bare:?}\nother {other:?}");
            let [one, two] = [&bare, other].map(|ended| edited(&ended.stdout));
            assert!(one == two, "{what}\nbare:\n{one}\nother:\n{two}");
            // Findings and complaints would be here.
            let [one, two] = [&bare, other].map(|ended| edited(&ended.stderr));
            assert!(one == two, "{what}\nbare:\n{one}\nother:\n{two}");
        }
        Seen {
            report: read(&json),
            stdout: String::from_utf8_lossy(&watched.stdout).into_owned(),
            status: watched.status.code(),
        }
    }

    fn once(&self, mut command: Command) -> Ended {
        let folder: TempDir = tempfile::tempdir().expect("a folder");
        (self.prepare)(folder.path());
        command.args(&self.arguments).current_dir(folder.path()).stdin(Stdio::null());
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        if let Some(input) = self.input {
            command.stdin(File::open(input).expect("the input is there"));
        }
        Running::start(&mut command).end()
    }
}

/// Returns text without what `--check` says at its end if there was nothing to find, and without
/// what the command says while a busy machine makes it work for seconds.
pub(super) fn without_the_verdict(text: &[u8]) -> String {
    const PROGRESS: &str = "lockstead: looking up names for the report ...\n";
    let text = String::from_utf8_lossy(text).replace(PROGRESS, "");
    let end = text.find("lockstead: check: nothing was found");
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Reads a report that was written to a file.
pub(super) fn read(json: &Path) -> Value {
    let text = std::fs::read_to_string(json).expect("a report");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns those processes of a report that were called so.
pub(super) fn processes<'r>(report: &'r Value, name: &str) -> Vec<&'r Value> {
    let called = |process: &&Value| {
        let command = process["command"][0].as_str().unwrap_or_default();
        command.rsplit('/').next() == Some(name)
    };
    let all = report["processes"].as_array().expect("an array");
    all.iter().filter(called).collect()
}

/// Returns the sum over processes of a number in each.
pub(super) fn sum(processes: &[&Value], pointer: &str) -> u64 {
    let number = |process: &&Value| process.pointer(pointer).and_then(Value::as_u64);
    processes.iter().map(|process| number(process).expect(pointer)).sum()
}

impl Seen {
    /// Checks that the processes of this name, taken together, had this many
    /// threads and acquisitions at least.
    pub(super) fn had(&self, name: &str, threads: u64, acquisitions: u64) {
        let processes = processes(&self.report, name);
        let [t, a] = ["/threads/created", "/totals/acquisitions"].map(|p| sum(&processes, p));
        assert!(t >= threads, "{name}: {t} of {threads} threads: {:#}", self.report);
        assert!(a >= acquisitions, "{name}: {a} acquisitions: {:#}", self.report);
    }

    /// Tells whether a lock, condition or semaphore has a name with this in it.
    pub(super) fn names(&self, part: &str) -> bool {
        names(&self.report, part)
    }
}

/// Tells the same as [`Seen::names`].
pub(super) fn names(report: &Value, part: &str) -> bool {
    let all = report["processes"].as_array().expect("an array");
    all.iter().any(|process| {
        ["locks", "idle"]
            .iter()
            .flat_map(|list| process[list].as_array().expect("an array"))
            .any(|lock| lock["name"].as_str().is_some_and(|name| name.contains(part)))
    })
}
