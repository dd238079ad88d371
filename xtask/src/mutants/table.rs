//! What a run has come to: a table by file, the survivors, and the same as JSON.

use crate::mutants::equivalents::Equivalents;
use crate::mutants::plan::Plan;
use crate::mutants::results::{Results, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many mutants became what.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// The number of those that compile.
    pub made: u32,
    /// Those that fail a test.
    pub killed: u32,
    /// Those with which tests take too long.
    pub timed_out: u32,
    /// Those that an argument excuses.
    pub equivalent: u32,
    /// The number of all others.
    pub open: u32,
    /// The open ones that no run has decided yet.
    pub undecided: u32,
    /// The open ones whose place no test comes to.
    pub unreached: u32,
    /// Those that the compiler refuses, which are not made.
    pub does_not_compile: u32,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.made += other.made;
        self.killed += other.killed;
        self.timed_out += other.timed_out;
        self.equivalent += other.equivalent;
        self.open += other.open;
        self.undecided += other.undecided;
        self.unreached += other.unreached;
        self.does_not_compile += other.does_not_compile;
    }

    fn cells(&self) -> [u32; 8] {
        let Counts { made, killed, timed_out, equivalent, open, undecided, unreached, .. } = *self;
        [made, killed, timed_out, equivalent, open, undecided, unreached, self.does_not_compile]
    }
}

/// One mutant that no test kills and no argument excuses.
#[derive(Clone, Debug)]
pub struct Open {
    /// Where it stands, and what it changes.
    pub at: String,
    /// The key of the mutant.
    pub key: String,
    /// Whether no test comes to its place.
    pub unreached: bool,
    /// The tests that come to its place.
    pub reaching: Vec<String>,
}

/// The figures of a run, and what is open.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// The figures of each function, by file, name and hash.
    pub functions: BTreeMap<(String, String, u64), Counts>,
    /// The mutants that are open and decided.
    pub open: Vec<Open>,
}

impl Summary {
    /// Counts the mutants of the plan that are `wanted`.
    #[must_use]
    pub fn of(
        plan: &Plan,
        results: &Results,
        equivalents: &Equivalents,
        wanted: impl Fn(usize) -> bool,
    ) -> Self {
        let mut summary = Summary::default();
        for (index, mutant) in plan.mutants.iter().enumerate().filter(|(index, _)| wanted(*index)) {
            let file = &plan.files[mutant.file];
            let function = file.sites[mutant.site].function.clone();
            let place = (file.short().to_owned(), function, mutant.hash);
            let counts = summary.functions.entry(place).or_default();
            let found = results.get(mutant);
            let state = found.as_ref().map(|found| &found.state);
            if state == Some(&State::DoesNotCompile) {
                counts.does_not_compile += 1;
                continue;
            }
            counts.made += 1;
            if equivalents.arguments.contains_key(&mutant.key) {
                counts.equivalent += 1;
                continue;
            }
            match state {
                Some(State::Killed) => counts.killed += 1,
                Some(State::TimedOut) => counts.timed_out += 1,
                None => {
                    counts.open += 1;
                    counts.undecided += 1;
                }
                _ => {
                    let unreached = state == Some(&State::Unreached);
                    counts.open += 1;
                    counts.unreached += u32::from(unreached);
                    summary.open.push(Open {
                        at: plan.describe(&plan.mutants[index]),
                        key: mutant.key.clone(),
                        unreached,
                        reaching: found.map(|found| found.reaching).unwrap_or_default(),
                    });
                }
            }
        }
        summary
    }

    /// Returns the counts of each file.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Counts> {
        let mut files: BTreeMap<String, Counts> = BTreeMap::new();
        for ((file, _, _), counts) in &self.functions {
            files.entry(file.clone()).or_default().add(counts);
        }
        files
    }

    /// Returns the counts of all.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.functions.values().for_each(|counts| total.add(counts));
        total
    }

    /// Returns the survivors and the table, for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for open in &self.open {
            let reached = match open.reaching.len() {
                0 => "no test comes here".into(),
                1..=3 => open.reaching.join(", "),
                many => format!("{} and {} more tests", open.reaching[..2].join(", "), many - 2),
            };
            let _ = writeln!(text, "open: {}\n      {reached}", open.at);
        }
        let heads = [
            "made",
            "killed",
            "timed out",
            "equivalent",
            "open",
            "undecided",
            "unreached",
            "not compiled",
        ];
        let _ = write!(text, "\n{:<24}", "file");
        heads.iter().for_each(|head| {
            let _ = write!(text, " {head:>12}");
        });
        text.push('\n');
        let total = ("in all".to_owned(), self.total());
        for (file, counts) in self.files().into_iter().chain([total]) {
            let _ = write!(text, "{file:<24}");
            counts.cells().iter().for_each(|cell| {
                let _ = write!(text, " {cell:>12}");
            });
            text.push('\n');
        }
        text
    }

    /// Returns all of it as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let counts = |counts: &Counts| {
            let [made, killed, timed_out, equivalent, open, undecided, unreached, not_compiled] =
                counts.cells();
            json!({
                "made": made, "killed": killed, "timed_out": timed_out, "equivalent": equivalent,
                "open": open, "undecided": undecided, "unreached": unreached,
                "does_not_compile": not_compiled,
            })
        };
        let files: BTreeMap<String, Value> =
            self.files().iter().map(|(file, of)| (file.clone(), counts(of))).collect();
        let open: Vec<Value> = self
            .open
            .iter()
            .map(|open| {
                json!({
                    "at": open.at, "mutant": open.key, "unreached": open.unreached,
                    "reached_by": open.reaching,
                })
            })
            .collect();
        json!({ "files": files, "total": counts(&self.total()), "open": open })
    }
}
