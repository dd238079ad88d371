//! Which functions were decided, as the files called `*.record` of `crates/core/mutants` say for
//! everybody: what is there with the same hash need not be run again.
//!
//! A line is a file, a function, the hash of its tokens, and how many of its mutants were made,
//! killed, timed out, equivalent and open. Files that no line names have not been run yet.

use crate::mutants::parts;
use crate::mutants::plan::{Mutant, Plan};
use crate::mutants::table::{Counts, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// What the names of these files end in.
pub const EXTENSION: &str = "record";

const HEAD: &str = "\
# Which functions `cargo xtask mutants` has decided. It writes this file (`--record`).
# file | function | hash | made killed timed-out equivalent open
";

/// The lines of the record.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Record {
    /// The figures, by file, function and hash.
    pub lines: BTreeMap<(String, String, u64), [u32; 5]>,
}

impl Record {
    /// Reads the project's.
    ///
    /// # Errors
    /// A line that is none.
    pub fn read() -> Result<Self, String> {
        let texts = parts::read(EXTENSION).into_iter().map(|(_, text)| text);
        Self::parse(&texts.collect::<String>())
    }

    /// Writes the project's.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self) -> Result<(), String> {
        let part = |(file, _, _): &(String, String, u64)| parts::of(file).to_owned();
        let names: BTreeSet<String> = self.lines.keys().map(part).collect();
        names.iter().try_for_each(|name| {
            let lines = self.lines.iter().filter(|(key, _)| part(key) == *name);
            let lines = lines.map(|(key, figures)| (key.clone(), *figures)).collect();
            parts::write(name, EXTENSION, &Record { lines }.text())
        })
    }

    /// Reads such a text.
    ///
    /// # Errors
    /// A line that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let wrong = || format!("no line of a record: {line}");
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [file, function, hash, figures] = fields[..] else { return Err(wrong()) };
            let hash = u64::from_str_radix(hash, 16).map_err(|_| wrong())?;
            let figures: Result<Vec<u32>, _> = figures.split(' ').map(str::parse).collect();
            let figures = figures.map_err(|_| wrong())?.try_into().map_err(|_| wrong())?;
            lines.insert((file.into(), function.into(), hash), figures);
        }
        Ok(Record { lines })
    }

    /// Takes over those functions of a summary of all mutants that have nothing undecided, and
    /// forgets what they were before. A file gets its first lines when all of it is decided.
    pub fn update(&mut self, summary: &Summary) {
        let decided = summary.files().into_iter().filter(|(_, counts)| counts.undecided == 0);
        let mut files: BTreeSet<String> = decided.map(|(file, _)| file).collect();
        files.extend(self.files().into_iter().map(ToOwned::to_owned));
        for ((file, function, hash), counts) in &summary.functions {
            if counts.undecided == 0 && files.contains(file) {
                let Counts { made, killed, timed_out, equivalent, open, .. } = *counts;
                self.lines.retain(|(of, name, old), _| {
                    (of, name) != (file, function)
                        || summary.functions.contains_key(&(of.clone(), name.clone(), *old))
                });
                let figures = [made, killed, timed_out, equivalent, open];
                self.lines.insert((file.clone(), function.clone(), *hash), figures);
            }
        }
    }

    /// Returns the text of a file with these lines.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for ((file, function, hash), figures) in &self.lines {
            let figures = figures.map(|figure| figure.to_string()).join(" ");
            let _ = writeln!(text, "{file} | {function} | {hash:016x} | {figures}");
        }
        text
    }

    /// Returns whether a mutant is of a function that has changed since it was decided, in a file
    /// that has been run.
    #[must_use]
    pub fn is_changed(&self, plan: &Plan, mutant: &Mutant) -> bool {
        let file = &plan.files[mutant.file];
        let place =
            (file.short().to_owned(), file.sites[mutant.site].function.clone(), mutant.hash);
        self.files().contains(file.short()) && !self.lines.contains_key(&place)
    }

    /// Returns the files that have been run.
    #[must_use]
    pub fn files(&self) -> BTreeSet<&str> {
        self.lines.keys().map(|(file, _, _)| file.as_str()).collect()
    }

    /// Returns the lines about functions that the plan's files do not have.
    #[must_use]
    pub fn stale(&self, plan: &Plan) -> Vec<String> {
        let known: BTreeSet<(&str, &str)> = plan
            .files
            .iter()
            .flat_map(|file| {
                file.functions.iter().map(|function| (file.short(), function.name.as_str()))
            })
            .collect();
        self.lines
            .keys()
            .filter(|(file, function, _)| !known.contains(&(file.as_str(), function.as_str())))
            .map(|(file, function, _)| format!("{file}: {function}"))
            .collect()
    }
}
