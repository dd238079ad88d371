//! The mutants that change nothing that matters, each with the argument for it, as
//! `crates/core/mutants.equivalent` lists them.
//!
//! ```text
//! mutant: sleep/mod.rs, orphaned
//! was: K::holder(seen)?
//! now: None
//! nth: 2
//! because: A sentence that says why no execution differs in what the lock promises.
//! ```

use crate::mutants::plan::Plan;
use crate::{root, text};
use std::collections::HashMap;

/// The arguments, by the key of the mutant.
#[derive(Debug, Default)]
pub struct Equivalents {
    /// The arguments, by the key of the mutant.
    pub arguments: HashMap<String, String>,
}

/// The file, below the workspace.
pub const FILE: &str = "crates/core/mutants.equivalent";

impl Equivalents {
    /// Reads the file of the project.
    ///
    /// # Errors
    /// A line that means nothing, or an entry without an argument.
    pub fn read() -> Result<Self, String> {
        Self::parse(&text(&root().join(FILE)))
    }

    /// Reads such a text.
    ///
    /// # Errors
    /// A line that means nothing, or an entry without an argument.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut arguments = HashMap::new();
        for entry in text.split("\n\n") {
            let mut fields: HashMap<&str, String> = HashMap::new();
            let mut last = "";
            for line in entry.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
                if let Some(more) = line.strip_prefix("  ") {
                    let field = fields.get_mut(last).ok_or(format!("{FILE}: {line}"))?;
                    field.push(' ');
                    field.push_str(more.trim());
                } else {
                    let (name, value) = line.split_once(':').ok_or(format!("{FILE}: {line}"))?;
                    last = name;
                    fields.insert(name, value.trim().into());
                }
            }
            if fields.is_empty() {
                continue;
            }
            let field = |name: &str| {
                fields.get(name).cloned().ok_or(format!("{FILE}: no {name} in:\n{entry}"))
            };
            let mutant = field("mutant")?;
            let (file, function) =
                mutant.split_once(", ").ok_or(format!("{FILE}: no function in: {mutant}"))?;
            let nth = fields.get("nth").map_or("1", String::as_str);
            let key = format!("{file}|{function}|{}|{}|{nth}", field("was")?, field("now")?);
            let because = field("because")?;
            if because.split_whitespace().count() < 4 {
                return Err(format!("{FILE}: no argument in:\n{entry}"));
            }
            if arguments.insert(key, because).is_some() {
                return Err(format!("{FILE}: twice:\n{entry}"));
            }
        }
        Ok(Equivalents { arguments })
    }

    /// Returns the entries that are about no mutant of the plan.
    #[must_use]
    pub fn stale(&self, plan: &Plan) -> Vec<String> {
        let known: std::collections::HashSet<&str> =
            plan.mutants.iter().map(|mutant| mutant.key.as_str()).collect();
        let mut stale: Vec<String> =
            self.arguments.keys().filter(|key| !known.contains(key.as_str())).cloned().collect();
        stale.sort();
        stale
    }
}
