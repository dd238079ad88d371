//! `cargo xtask mutants`: changes each step of each protocol, one at a time, and asks whether the
//! models notice.
//!
//! ```text
//!   source ──▶ sites ──▶ one tree with all mutants ──▶ programs of tests
//!            (operators)   behind a switch (rewrite)        │
//!                                                           │ each test once, with none chosen:
//!   results ◀── killed, timed out, survived, unreached ◀────┘ how long, and what it comes to
//! ```
//! `docs/mutants.md` says how to use it, and what it has shown.

pub mod about_faults;
pub mod equivalents;
pub mod operators;
pub mod options;
pub mod parts;
pub mod plan;
pub mod programs;
pub mod record;
pub mod results;
pub mod rewrite;
pub mod run;
pub mod sites;
pub mod switch;
pub mod syntax;
pub mod table;
pub mod tree;
pub mod values;

use equivalents::Equivalents;
use options::MutantOptions;
use plan::{Mutant, Plan};
use record::Record;
use results::{Results, State};
use run::Limits;
use sites::SourceFile;
use std::time::{Duration, Instant};
use table::Summary;

/// How long the mutants of changed functions may take.
const CHANGED: Duration = Duration::from_secs(15 * 60);

/// Does what the options say. Returns whether nothing is open.
///
/// # Errors
/// What went wrong, in a sentence for people.
pub fn mutants(options: &MutantOptions) -> Result<bool, String> {
    let mut plan = Plan::read()?;
    let meant = |wanted: &String| plan.files.iter().any(|file| names_file(&plan, wanted, file));
    if let Some(none) = options.files.iter().find(|wanted| !meant(wanted)) {
        return Err(format!("no protocol file is called {none}; a folder ends in /, as in sleep/"));
    }
    let equivalents = Equivalents::read()?;
    if let Some(stale) = equivalents.stale(&plan).first() {
        return Err(format!("{}: no such mutant any more: {stale}", parts::FOLDER));
    }
    let mut record = Record::read()?;
    if options.changed {
        let recorded = record.clone();
        let of = Plan { files: plan.files.clone(), mutants: Vec::new() };
        plan.keep(|mutant| recorded.is_changed(&of, mutant));
        if plan.mutants.is_empty() {
            println!("mutants: no function has changed since it was decided");
            return Ok(true);
        }
    }
    let wanted: Vec<usize> = (0..plan.mutants.len())
        .filter(|&index| is_wanted(&plan, &plan.mutants[index], options))
        .collect();
    if wanted.is_empty() {
        return Err("there are no such mutants; --list shows all".into());
    }
    if options.list {
        for &index in &wanted {
            println!("{}", plan.describe(&plan.mutants[index]));
        }
        return Ok(true);
    }
    let mutated = plan.files.iter().map(|file| file.path.clone()).collect();
    let mut results = Results::read(mutated);
    let todo = undecided(&plan, &wanted, &results, &equivalents, options);
    let most = options.time.or(options.changed.then_some(CHANGED));
    if !todo.is_empty() && !options.table {
        let until = most.map(|time| Instant::now() + time);
        let limits = Limits { tests: &options.tests, until, at_once: options.at_once };
        run::run(&mut plan, &todo, &mut results, limits)?;
    }
    let summary = Summary::of(&plan, &results, &equivalents, |index| wanted.contains(&index));
    if options.json {
        println!("{}", serde_json::to_string_pretty(&summary.json()).expect("text"));
    } else {
        print!("{}", summary.text());
    }
    if options.record {
        let whole = Plan::read()?;
        record.update(&Summary::of(&whole, &results, &equivalents, |_| true));
        record.write()?;
    }
    let total = summary.total();
    if options.changed && total.undecided > 0 {
        let minutes = most.unwrap_or(CHANGED).as_secs() / 60;
        return Err(format!(
            "{} mutants of changed functions are not decided after {minutes} minutes: run \
             `cargo xtask mutants --changed --for 2h --record`, and commit {}",
            total.undecided,
            parts::FOLDER
        ));
    }
    Ok(total.open == 0)
}

/// Tells whether `wanted` means this name: as a whole, as a folder, or as what stands behind `sign` at its
/// end, unless there is something that is called just so.
fn names(wanted: &str, name: &str, sign: char, exact: bool) -> bool {
    wanted == name
        || (!exact && name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with(sign)))
        || (wanted.ends_with('/') && name.starts_with(wanted))
}

/// Tells whether `wanted`, a word of the command line, means this file.
fn names_file(plan: &Plan, wanted: &str, file: &SourceFile) -> bool {
    let exact = plan.files.iter().any(|file| file.short() == wanted);
    names(wanted, file.short(), '/', exact)
}

fn is_wanted(plan: &Plan, mutant: &Mutant, options: &MutantOptions) -> bool {
    let file = &plan.files[mutant.file];
    let function = &file.sites[mutant.site].function;
    let in_file = options.files.is_empty()
        || options.files.iter().any(|wanted| names_file(plan, wanted, file));
    let in_function = options.functions.is_empty()
        || options.functions.iter().any(|wanted| names(wanted, function, ':', false));
    in_file
        && in_function
        && options.mutant.as_ref().is_none_or(|key| mutant.key.contains(key.as_str()))
}

fn undecided(
    plan: &Plan,
    wanted: &[usize],
    results: &Results,
    equivalents: &Equivalents,
    options: &MutantOptions,
) -> Vec<usize> {
    let open = |&index: &usize| {
        let mutant = &plan.mutants[index];
        let known = results.get(mutant).map(|found| found.state);
        let again = options.again && !matches!(known, Some(State::Killed | State::DoesNotCompile));
        !equivalents.arguments.contains_key(&mutant.key) && (known.is_none() || again)
    };
    wanted.iter().copied().filter(open).collect()
}
