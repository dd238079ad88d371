//! The words of `cargo xtask mutants`.

use std::time::Duration;

/// The text that `--help` prints.
pub const USAGE: &str = "\
usage: cargo xtask mutants [OPTIONS]

Changes each step of each protocol of the core and the ledger, one at a time, and runs the
models and the tests on the scripted machine with it. A mutant that none of them notices is
open, unless crates/core/mutants/*.equivalent has an argument that it changes nothing.

  --file NAME       only of this file (mutex.rs, ww/wait.rs) or folder (sleep/); may be repeated
  --function NAME   only of this function (lock_slow, Word::closed); may be repeated
  --mutant TEXT     only those whose key has this text (see \"mutant\" in --json)
  --tests TEXT      only with tests whose name has this text (locks::, core/); may be repeated.
                    What they do not kill stays undecided
  --changed         only of functions that have changed since crates/core/mutants/*.record
  --again           also those that have survived before: after new tests were written
  --for TIME        stop after so long (90s, 30m, 2h); the next run goes on from there
  --jobs NUMBER     so many tests at once: as many as there are processors
  --list            say which mutants there are, and run nothing
  --table           say what is known, and run nothing
  --json            the table and the survivors as JSON
  --record          write crates/core/mutants/*.record

The exit status is 0 if nothing is open, 1 if something is, or went wrong.
";

/// What is to be done.
#[derive(Clone, Debug, Default)]
pub struct MutantOptions {
    /// The files or folders whose mutants are meant; all, if there is none.
    pub files: Vec<String>,
    /// The functions that are meant; all, if there is none.
    pub functions: Vec<String>,
    /// A part of the keys that are meant.
    pub mutant: Option<String>,
    /// The tests that may kill, by a part of their names; all, if there is none.
    pub tests: Vec<String>,
    /// Only functions that have changed since they were decided.
    pub changed: bool,
    /// Runs also what has survived before.
    pub again: bool,
    /// Lists and runs nothing.
    pub list: bool,
    /// Shows what is known and runs nothing.
    pub table: bool,
    /// Prints the table as JSON.
    pub json: bool,
    /// Writes the record of decided functions.
    pub record: bool,
    /// Stops after so long.
    pub time: Option<Duration>,
    /// So many tests run at once.
    pub at_once: usize,
}

impl MutantOptions {
    /// Reads the words behind `mutants`. Returns nothing if they ask for help.
    ///
    /// # Errors
    /// A word that means nothing, or lacks its value.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = MutantOptions { at_once, ..Self::default() };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} wants a value\n\n{USAGE}"));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--file" => options.files.push(value()?),
                "--function" => options.functions.push(value()?),
                "--tests" => options.tests.push(value()?),
                "--mutant" => options.mutant = Some(value()?),
                "--for" => options.time = Some(duration(&value()?)?),
                "--jobs" => {
                    let number = value()?;
                    options.at_once = number
                        .parse()
                        .ok()
                        .filter(|jobs| *jobs > 0)
                        .ok_or(format!("--jobs wants a number of tests, not {number}"))?;
                }
                "--changed" => options.changed = true,
                "--again" => options.again = true,
                "--list" => options.list = true,
                "--table" => options.table = true,
                "--json" => options.json = true,
                "--record" => options.record = true,
                _ => return Err(format!("{word} means nothing\n\n{USAGE}")),
            }
        }
        Ok(Some(options))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("--for wants a time such as 90s, 30m or 2h, not {text}");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number * seconds))
}
