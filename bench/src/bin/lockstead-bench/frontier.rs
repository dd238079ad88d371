//! `lockstead bench frontier`: throughput against the longest wait.

use crate::failure::Failure;
use crate::files::can_write;
use crate::grid_flags::FrontierFlags as Flags;
use crate::interrupt::{self, Interrupt};
use crate::map::store;
use crate::output;
use crate::plot;
use crate::progress::measured;
use crate::table::{self, TextTable};
use lockstead_bench::LockName;
use lockstead_bench::contended::frontier::{Frontier, FrontierCell, OURS};
use lockstead_bench::contended::{self, grid::Grid};
use serde::Serialize;
use serde_json::Value;

/// The report that `--json` writes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FrontierReport<'a> {
    /// The machine that was measured; of a report that was given with `--from` what that says, or
    /// null.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<lockstead_render::machine::MachineFacts>")
    )]
    machine: &'a Value,
    /// The cells, and what they come to.
    #[serde(flatten)]
    frontier: &'a Frontier,
}

/// Measures or reads, draws, prints.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    if let Some(file) = &flags.svg {
        can_write(file).map_err(|why| Failure::option("--svg <FILE>", file.display(), why))?;
    }
    let grid = match &flags.from {
        Some(file) => plot::read_grid(file)
            .map_err(|why| Failure::option("--from <FILE>", file.display(), why))?,
        None => measure(flags)?,
    };
    let frontier = Frontier::of(&grid);
    if frontier.cells.is_empty() {
        return Err(nothing(flags, &grid));
    }
    if let Some(file) = &flags.svg {
        store(file, &plot::draw_frontier(&frontier, &grid.machine)?)?;
    }
    if flags.json {
        return output::print_json(&FrontierReport { machine: &grid.machine, frontier: &frontier });
    }
    output::print(&render(&frontier))
}

fn measure(flags: &Flags) -> Result<Grid, Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut options = flags.options();
    if flags.locks.locks.is_none() {
        let compared = |lock: &LockName| OURS.contains(&lock.name()) || lock.is_rival();
        options.locks.retain(compared);
    }
    let report = measured(&interrupt, |session| contended::measure(&options, session))?;
    output::warn_about(&report.machine);
    Ok(Grid::from(&report))
}

/// Returns why there is nothing to show.
fn nothing(flags: &Flags, grid: &Grid) -> Failure {
    let why = "a frontier is of lockstead or lockstead-fair and others, with the median of the \
               longest waits (wait_max_median_ns), which reports before it do not have";
    match &flags.from {
        Some(file) => Failure::option("--from <FILE>", file.display(), why),
        None => Failure::option("--locks <LIST>", grid.locks().join(","), why),
    }
}

fn render(frontier: &Frontier) -> String {
    let mut text = String::new();
    for cell in &frontier.cells {
        let place = (cell.section_ns, cell.think_ratio);
        let title = table::cell_title(cell.threads, ("thread", "threads"), place);
        text += &format!("{title}\n{}", points(cell));
        for answer in cell.answers.iter().filter(|answer| !answer.answered) {
            text += &format!(
                "{} is not answered: {} has {} of its throughput, {} times its longest wait, \
                 Jain {:+.2}\n",
                answer.peer,
                answer.by,
                plot::short(answer.throughput_ratio),
                plot::short(answer.longest_ratio),
                answer.jain_difference
            );
        }
        text += "\n";
    }
    let shares = frontier.shares_slice_ms.map(|ms| format!(" over {}", table::time(ms * 1e6)));
    text + &format!(
        "{} of {} peers in {} cells are answered by {}: 0.95 of the throughput, 1.1 times the\n\
         longest wait (the median over the rounds), Jain's index{} less 0.02. * is on the\n\
         frontier: no other lock has more throughput and a shorter longest wait. p99 by time: 99 % of\n\
         the time waited was in waits of at most this length.\n",
        frontier.answered,
        frontier.peers,
        frontier.cells.len(),
        frontier.ours.join(" or "),
        shares.unwrap_or_default()
    )
}

fn points(cell: &FrontierCell) -> String {
    let head = [
        "lock",
        "",
        "ops/s",
        "ops per\nCPU-s",
        "longest\nwait",
        "wait\np99",
        "wait\np99.9",
        "p99 by\ntime",
        "Jain",
    ];
    let mut table = TextTable::new(&head);
    let time = |ns: Option<f64>| ns.map_or("-".into(), table::time);
    for point in &cell.points {
        table.row([
            point.lock.clone(),
            if point.on_frontier { "*" } else { "" }.into(),
            table::rate(point.ops_per_s),
            table::rate(point.ops_per_cpu_s),
            table::time(point.longest_ns),
            time(point.wait_p99_ns),
            time(point.wait_p999_ns),
            time(point.wait_weighted_p99_ns),
            format!("{:.2}", point.jain),
        ]);
    }
    table.render()
}
