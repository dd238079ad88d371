//! `lockstead check`: the findings of a report that was kept.

use super::flags::{SHIPPED_NAME, read_suppressions};
use super::recorded::{self, RecordedFinding};
use super::sarif;
use clap::Args;
use lockstead_inspect::check::model::{Details, Level};
use lockstead_inspect::check::suppress::suggestion;
use lockstead_render::failure::Failure;
use lockstead_render::output;
use lockstead_render::words::{clean, plural};
use lockstead_rules::{By, Rule};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead run --check --json locks.json -- ./tests
  lockstead check locks.json
  lockstead check --suggest locks.json > lockstead.toml
  lockstead check --suppressions lockstead.toml --sarif locks.sarif locks.json
  lockstead check --list-rules

Exit status:
  0    nothing is left of the level, or what was asked for is written
  1    the report cannot be read, or is of a run that did not check and found no deadlock
  2    wrong usage
  3    there are findings")]
pub(crate) struct CheckCommand {
    /// A report of `lockstead run --check --json FILE`, or - for standard input
    #[arg(value_name = "REPORT.json")]
    pub(crate) report: Option<PathBuf>,
    /// Write suppressions for all findings to standard output
    #[arg(long)]
    pub(crate) suggest: bool,
    /// Leave out the findings that this file lists; may be given again
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// What well-known programs do on purpose is a finding too
    #[arg(long)]
    pub(crate) no_shipped_suppressions: bool,
    /// What cannot hurt as it was seen (`ORDER`) is a finding too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write the findings to a file in SARIF 2.1.0 as well
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// List all rules and what they mean
    #[arg(long, conflicts_with_all = [
        "report", "suggest", "suppressions", "no_shipped_suppressions", "strict", "sarif"
    ])]
    pub(crate) list_rules: bool,
}

/// Shows the findings of a report, or what the flags ask for instead.
///
/// # Errors
/// [`Failure::Program`] with status 3 if there are findings.
pub(crate) fn run(flags: &CheckCommand) -> Result<(), Failure> {
    if flags.list_rules {
        return output::print(&list());
    }
    let mut suppressions = read_suppressions(&flags.suppressions, !flags.no_shipped_suppressions)?;
    let Some(file) = &flags.report else {
        return Err(Failure::Usage(
            "name a report that `lockstead run --check --json FILE` has written, or give \
             --list-rules"
                .into(),
        ));
    };
    let least = if flags.strict { Level::Order } else { Level::Potential };
    let recorded::Report { mut findings, checked, .. } = recorded::read(file)?;
    // Deadlocks are reported by every run; of the rest such a report says nothing.
    if !checked && findings.is_empty() {
        return Err(Failure::Run(format!(
            "{} was made without --check: it says nothing of orders and rules",
            file.display()
        )));
    }
    findings.retain(|found| found.details.level.is_some_and(|level| level >= least));
    for found in &mut findings {
        // A new file may lack what an old one had.
        if !flags.suppressions.is_empty() {
            let details = &found.details;
            let may = details.level != Some(Level::Deadlock);
            let fit = may.then(|| suppressions.fit(details, &found.text)).flatten();
            found.details.suppressed = fit;
        } else if flags.no_shipped_suppressions && is_shipped(&found.details) {
            found.details.suppressed = None;
        }
    }
    let shipped = findings.iter().filter(|found| is_shipped(&found.details)).count() as u64;
    if let Some(file) = &flags.sarif {
        sarif::write(file, &findings)?;
    }
    findings.retain(|found| found.details.suppressed.is_none());
    if flags.suggest {
        return output::print(&suggestions(&findings));
    }
    let mut text = String::new();
    for found in &findings {
        text.extend(found.text.lines().map(|line| clean(line) + "\n"));
    }
    for place in suppressions.unused() {
        output::note(format_args!("lockstead: {place}: this suppression fitted nothing"));
    }
    if shipped != 0 {
        output::note(format_args!(
            "lockstead: suppressed by the shipped list: {} (--no-shipped-suppressions shows what)",
            plural(shipped, "finding", "findings")
        ));
    }
    output::print(&text)?;
    if findings.is_empty() { Ok(()) } else { Err(Failure::Program(FOUND)) }
}

/// Returns whether the shipped list leaves a finding out.
fn is_shipped(details: &Details) -> bool {
    details.suppressed.as_ref().is_some_and(|place| place.starts_with(SHIPPED_NAME))
}

/// The status if there are findings.
const FOUND: u8 = 3;

/// Lists each rule by its id, with what it means and what to do.
fn list() -> String {
    let mut text = String::new();
    for rule in Rule::found_by(By::RUN) {
        let _ = writeln!(text, "{}\n    {}\n    {}", rule.id(), rule.meaning(), rule.remedy());
    }
    text
}

/// Returns a file of suppressions for all of these.
fn suggestions(findings: &[RecordedFinding]) -> String {
    let mut text = String::from(
        "# Suppressions for `lockstead run --check --suppressions FILE`. All that a block says\n\
         # has to fit; * and ? stand for any characters and for one. Say why in `reason`.\n",
    );
    let mut known = HashSet::new();
    for found in findings.iter().filter(|found| found.details.level != Some(Level::Deadlock)) {
        let block = suggestion(&found.details, &found.title);
        if known.insert(block.clone()) {
            text.push('\n');
            text += &block;
        }
    }
    text
}
