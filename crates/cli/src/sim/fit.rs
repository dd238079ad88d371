//! `lockstead sim fit`.

use super::flags::Fit;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use lockstead_sim::Stopped;
use lockstead_sim::replay::{Found, RANGES, Search, search};
use std::fmt::Write;

/// Searches, and prints the fits as the file that the simulator reads.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Fit) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let wanted =
        Search { draws: flags.draws, seed: flags.seed, keep: flags.keep, seeds: flags.seeds };
    let found =
        search(&wanted, interrupt.flag(), &mut step).map_err(|Stopped| Failure::Interrupted)?;
    drop(progress);
    output::print(&text(&wanted, &found))
}

fn text(wanted: &Search, found: &[Found]) -> String {
    let mut text = format!(
        "# Numbers that no document gives: the best of {} draws (seed {}), judged by the\n\
         # calibrated rows over {} seeds, the best first. Drawn from:\n",
        wanted.draws, wanted.seed, wanted.seeds
    );
    for (name, low, high) in RANGES {
        let _ = writeln!(text, "#   {name}: {low} to {high}");
    }
    for Found { fit, score, rows } in found {
        let _ = write!(text, "\n# Mean logarithm of simulated over published: {score:.3}\n");
        for row in rows {
            let (low, high) = row.range;
            let _ = writeln!(
                text,
                "#   {} ({}): {:.1}, simulated {:.1}, {low:.1} to {high:.1}",
                row.row, row.unit, row.published, row.simulated
            );
        }
        let _ = write!(text, "{fit}");
    }
    text
}
