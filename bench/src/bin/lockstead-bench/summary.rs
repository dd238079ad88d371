//! What a grid comes to, as text: the aims, which are met, and the cells that miss one.

use crate::table::{self, TextTable};
use lockstead_bench::contended::summary::{CellFigure, GridAim, GridSummary, Overall, Unit};

/// Returns the table of the aims and the list of the cells.
pub(crate) fn render(summary: &GridSummary) -> String {
    let mut aims = TextTable::new(&["aim", "worst", "reached"]);
    for target in &summary.targets {
        let value = target.value.map_or("-".into(), |value| figure(target.unit, value));
        aims.row([target.wanted.clone(), value, reached(target)]);
    }
    let mut text = format!(
        "{} beside {}\n{}{}\n{}",
        summary.lock,
        summary.peers.join(", "),
        overall("throughput", &summary.throughput),
        overall("work per CPU-second", &summary.work_per_cpu_s),
        aims.render()
    );
    for target in summary.targets.iter().filter(|target| !target.missed.is_empty()) {
        text += &format!("\nMissed: {}\n", target.wanted);
        for spot in &target.missed {
            text += &format!("  {}: {}\n", place(spot), against(target.unit, spot));
        }
    }
    text
}

fn overall(what: &str, overall: &Overall) -> String {
    let (Some(peer), Some(single)) = (&overall.best_single_peer, overall.mean_to_best_single_peer)
    else {
        return format!("  {what}: no cell could be compared\n");
    };
    let mut line =
        format!("  {what}: geometric mean {} of {peer}'s, the best single peer", x(single));
    if let Some(best) = overall.mean_to_best_of_cell {
        line += &format!("; {} of the best of each cell", x(best));
    }
    if let Some(worst) = &overall.worst {
        line += &format!("; at worst {} at {}", against(Unit::Ratio, worst), place(worst));
    }
    line + "\n"
}

fn x(ratio: f64) -> String {
    table::ratio(ratio, 1.0)
}

fn reached(target: &GridAim) -> String {
    match (target.reached, target.missed.len()) {
        (None, _) => "not measured".into(),
        (Some(true), _) => "yes".into(),
        (Some(false), 0) => "no".into(),
        (Some(false), 1) => "not in 1 cell".into(),
        (Some(false), cells) => format!("not in {cells} cells"),
    }
}

/// Returns a cell by name.
fn place(spot: &CellFigure) -> String {
    let cell = (spot.section_ns, spot.think_ratio);
    table::cell_title(spot.threads, ("thread", "threads"), cell)
}

fn against(unit: Unit, spot: &CellFigure) -> String {
    let value = figure(unit, spot.value);
    spot.peer.as_ref().map_or(value.clone(), |peer| format!("{value} of {peer}'s"))
}

fn figure(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ratio => x(value),
        Unit::Index => format!("{value:.2}"),
        Unit::Ns => table::time(value),
    }
}
