//! `lockstead sim fit`.

use super::flags::FitFlags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use lockstead_sim::Stopped;
use lockstead_sim::replay::{
    BOX_RANGES, CONTENDED, FitSearch, FoundBox, FoundFit, FoundServer, RANGES, ReplayRow,
    SERVER_RANGES, search, search_boxes, search_servers,
};
use std::fmt::{Display, Write};

/// Searches, and prints the fits as the file that the simulator reads.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &FitFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let wanted =
        FitSearch { draws: flags.draws, seed: flags.seed, keep: flags.keep, seeds: flags.seeds };
    let text = if flags.boxes {
        let found = search_boxes(&wanted, interrupt.flag(), &mut step)
            .map_err(|Stopped| Failure::Interrupted)?;
        let entry = |found: &FoundBox| entry(found.score, &found.rows, &found.fit);
        let found: String = found.iter().map(entry).collect();
        format!("{}{}", head(&wanted, &BOX_RANGES), or_none(found, "to the mutex rows"))
    } else if flags.fserver {
        let found = search_servers(&wanted, interrupt.flag(), &mut step)
            .map_err(|Stopped| Failure::Interrupted)?;
        let entry = |found: &FoundServer| entry(found.score, &found.rows, &found.fit);
        let found: String = found.iter().map(entry).collect();
        format!("{}{}", head(&wanted, &SERVER_RANGES), or_none(found, "to the rows of patch 1"))
    } else {
        let found =
            search(&wanted, interrupt.flag(), &mut step).map_err(|Stopped| Failure::Interrupted)?;
        let entry = |found: &FoundFit| entry(found.score, &found.rows, &found.fit);
        let (least, most) = CONTENDED;
        let solved = format!("#   contended, beyond: solved for, from {least} to {most}\n");
        let found: String = found.iter().map(entry).collect();
        format!("{}{solved}{}", head(&wanted, &RANGES), or_none(found, "with the patch"))
    };
    drop(progress);
    output::print(&text)
}

/// Returns what was searched for, and where.
fn head(wanted: &FitSearch, ranges: &[(&str, f64, f64)]) -> String {
    let mut text = format!(
        "# Numbers that no document gives: the best of {} draws (seed {}), judged by the\n\
         # calibrated rows over {} seeds, the best first. Drawn from:\n",
        wanted.draws, wanted.seed, wanted.seeds
    );
    for (name, low, high) in ranges {
        let _ = writeln!(text, "#   {name}: {low} to {high}");
    }
    text
}

fn or_none(found: String, how: &str) -> String {
    if found.is_empty() {
        format!("\n# None of the draws came near {how}: try more (--draws).\n")
    } else {
        found
    }
}

/// Returns a fit, with what it explains.
fn entry(score: f64, rows: &[ReplayRow], fit: &impl Display) -> String {
    let mut text = format!("\n# Logarithm of simulated over published: {score:.3}\n");
    for row in rows {
        let (low, high) = row.range;
        let _ = writeln!(
            text,
            "#   {} ({}): {:.1}, simulated {:.1}, {low:.1} to {high:.1}",
            row.row, row.unit, row.published, row.simulated
        );
    }
    let _ = write!(text, "{fit}");
    text
}
