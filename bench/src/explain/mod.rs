//! Where the mutex's advantages over the semaphore come from, ingredient by
//! ingredient, and whether a semaphore can have them too.
//!
//! # Role
//! When the kernel's mutex was proposed in 2005 as smaller, faster and better
//! checked than the semaphore, a reviewer asked back: from where do the savings
//! come, and would a semaphore that had been given the same work not have them as
//! well? Here each of those questions has its measurement. The mutex and a
//! semaphore that shares its slow path are measured whole and with one ingredient
//! left out at a time; the conclusions ([`answers`]) follow from the figures.
//!
//! | module | what it gives |
//! |---|---|
//! | `ingredients` | what can be left out, and the policy that does |
//! | `machines` | machines that differ in one thing, where a policy does not reach |
//! | `subjects` | the locks with and without |
//! | [`ablation`] | the mutex's ingredients over a whole grid |
//! | `figures`, `report` | what a run is asked for, how rounds become figures, the report |
//! | [`contended`] | throughput, processor time and the longest wait, and each ingredient's share |
//! | [`text`] | bytes of code: of call sites in this command, and of objects built both ways |
//! | [`sizes`] | bytes of the locks beside the published ones |
//! | [`owners`] | what is tried with each lock that needs an owner |
//! | [`answers`] | questions and conclusions |

pub mod ablation;
pub mod answers;
mod compiled;
pub mod contended;
mod figures;
mod ingredients;
mod machines;
pub mod owners;
mod report;
pub mod sizes;
mod subjects;
pub mod text;

use crate::session::StepsProgress;
use crate::{Error, Session, uncontended};
use lockstead_render::machine::MachineFacts;
use std::time::Duration;

pub use figures::{ExplainOptions, RoundsFigure};
pub use ingredients::Ingredient;
pub use report::ExplainReport;
pub use subjects::{ExplainedLock, label};

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Broken`] and
/// [`Error::Stuck`] for locks that do not work, [`Error::Threads`],
/// [`Error::Interrupted`].
pub fn measure(
    options: &ExplainOptions,
    session: &mut Session<'_>,
) -> Result<ExplainReport, Error> {
    options.check()?;
    let machine = MachineFacts::here();
    // First, for it counts instructions in a forked child: the fewer threads have
    // been, the better.
    let limit = uncontended::MeasuredLock::new::<uncontended::LimitLock>(uncontended::LIMIT);
    let slice = Duration::from_millis(1);
    let uncontended =
        uncontended::compare(limit, subjects::pairs(), options.pairs, slice, session)?;
    let mut progress = StepsProgress::new(contended::steps(options));
    let cells = contended::measure(options, &mut progress, session)?;
    progress.end(session)?;
    let mut report = ExplainReport {
        machine,
        rounds: options.rounds,
        slice_ms: options.slice.as_secs_f64() * 1e3,
        uncontended,
        cells,
        text: text::measure(),
        sizes: sizes::all(),
        owners: owners::try_all(),
        answers: Vec::new(),
    };
    report.answers = answers::from(&report);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_ingredient_of_both_locks_is_measured() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        let options = ExplainOptions { rounds: 2, slice: Duration::from_millis(2), pairs: 2 };
        let report = measure(&options, &mut session).expect("measures");
        assert_eq!(report.cells.len(), 2);
        for cell in &report.cells {
            for ingredient in Ingredient::ALL {
                // Who is named is a matter of the pair that nobody disputes.
                let named = ingredient == Ingredient::Owner;
                assert_eq!(
                    cell.effect(ExplainedLock::Mutex, ingredient).is_none(),
                    named,
                    "{ingredient:?}"
                );
                let owners = [Ingredient::OwnerRunning, Ingredient::BackOff].contains(&ingredient);
                assert_eq!(
                    cell.effect(ExplainedLock::Semaphore, ingredient).is_none(),
                    named || owners
                );
            }
            for effect in &cell.effects {
                let share = effect.throughput;
                assert!(share.min <= share.median && share.median <= share.max, "{effect:?}");
            }
        }
        for pair in ["mutex without owner", "semaphore with owner"] {
            assert!(report.uncontended.results.iter().any(|row| row.lock == pair), "{pair}");
        }
        assert!(!report.answers.is_empty());
        assert!(report.answers.iter().all(|answer| !answer.conclusions.is_empty()));
    }

    #[test]
    fn impossible_options_are_refused() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        let options = ExplainOptions { rounds: 1, ..ExplainOptions::quick() };
        let error = measure(&options, &mut session).expect_err("one round has no spread");
        assert!(error.to_string().contains("2 to 1000"), "{error}");
    }
}
