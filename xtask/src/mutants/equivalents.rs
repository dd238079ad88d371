//! The mutants that change nothing that matters, each with the argument for it, as the files called
//! `*.equivalent` of `crates/core/mutants` list them, one for each folder of the source.
//!
//! ```text
//! mutant: sleep/mod.rs, orphaned
//! was: K::holder(seen)?
//! now: None
//! nth: 2
//! because: A sentence that says why no execution differs in what the lock promises.
//! ```

use crate::mutants::parts;
use crate::mutants::plan::Plan;
use std::collections::HashMap;

/// The arguments, by the key of the mutant.
#[derive(Debug, Default)]
pub struct Equivalents {
    /// The arguments, by the key of the mutant.
    pub arguments: HashMap<String, String>,
}

/// What the names of these files end in.
pub const EXTENSION: &str = "equivalent";

impl Equivalents {
    /// Reads the files of the project.
    ///
    /// # Errors
    /// A line that means nothing, an entry without an argument, or one in the file of another folder.
    pub fn read() -> Result<Self, String> {
        let mut all = Self::default();
        for (part, text) in parts::read(EXTENSION) {
            let named = |error| format!("{}: {error}", parts::file(&part, EXTENSION));
            let Self { arguments } = Self::parse(&text).map_err(named)?;
            if let Some(key) = arguments.keys().find(|key| parts::of(key) != part) {
                return Err(named(format!("{key} belongs into another file")));
            }
            all.arguments.extend(arguments);
        }
        Ok(all)
    }

    /// Reads the text of such a file.
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
                    let field = fields.get_mut(last).ok_or(line.to_owned())?;
                    field.push(' ');
                    field.push_str(more.trim());
                } else {
                    let (name, value) = line.split_once(':').ok_or(line.to_owned())?;
                    last = name;
                    fields.insert(name, value.trim().into());
                }
            }
            if fields.is_empty() {
                continue;
            }
            let field =
                |name: &str| fields.get(name).cloned().ok_or(format!("no {name} in:\n{entry}"));
            let mutant = field("mutant")?;
            let (file, function) =
                mutant.split_once(", ").ok_or(format!("no function in: {mutant}"))?;
            let nth = fields.get("nth").map_or("1", String::as_str);
            let key = format!("{file}|{function}|{}|{}|{nth}", field("was")?, field("now")?);
            let because = field("because")?;
            if because.split_whitespace().count() < 4 {
                return Err(format!("no argument in:\n{entry}"));
            }
            if arguments.insert(key, because).is_some() {
                return Err(format!("twice:\n{entry}"));
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
