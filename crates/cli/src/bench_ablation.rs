//! `lockstead bench ablation`: what each ingredient of the mutex is worth.

use crate::bench_contended::surroundings;
use crate::bench_flags::Ablation as Flags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::table::{self, Table};
use crate::values::List;
use lockstead_bench::Session;
use lockstead_bench::explain::Ingredient;
use lockstead_bench::explain::ablation::{self, Extreme, Report, Share, Worth};

/// Measures and prints.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = flags.conduct.options((&flags.threads, &flags.section, &flags.think), None);
    let all = List(Ingredient::MUTEX.to_vec());
    let ingredients = &flags.ingredients.as_ref().unwrap_or(&all).0;
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let mut session = Session::new(interrupt.flag(), &mut step);
    let report = ablation::measure(&options, ingredients, &mut session)?;
    drop(progress);
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &Report) -> String {
    let cells = report.cells.len();
    let mut text = format!(
        "The whole mutex over the one without the ingredient, round by round, {} cell{}{}\n",
        cells,
        if cells == 1 { "" } else { "s" },
        surroundings(report.foreign_processes, report.quota.as_ref(), report.sleep())
    );
    let disturbed: usize = report.cells.iter().map(|cell| cell.rounds_disturbed).sum();
    if disturbed > 0 {
        text += &format!("{disturbed} rounds that count were disturbed by other work\n");
    }
    for (title, share) in MEASURES {
        let mut table = Table::new(&[title, "mean", "lowest", "at", "highest", "at"]);
        for worth in &report.ingredients {
            let share = share(worth);
            table.row([
                worth.ingredient.name().to_owned(),
                table::ratio(share.mean, 1.0),
                table::ratio(share.lowest.value, 1.0),
                place(&share.lowest),
                table::ratio(share.highest.value, 1.0),
                place(&share.highest),
            ]);
        }
        text += &format!("\n{}", table.render());
    }
    text += "\n";
    for worth in &report.ingredients {
        text += &format!("  {:14} {}\n", worth.ingredient.name(), worth.description);
    }
    text + "\n\
        Above 1 the ingredient gives something; of the longest wait above 1 it makes it longer.\n"
}

/// A measure: its title, and where it stands.
type Measure = (&'static str, fn(&Worth) -> &Share);

const MEASURES: [Measure; 3] = [
    ("throughput", |worth| &worth.throughput),
    ("work per CPU-second", |worth| &worth.efficiency),
    ("longest wait", |worth| &worth.longest_wait),
];

/// A cell in few words: threads, section, think time.
fn place(cell: &Extreme) -> String {
    let pinned = if cell.pinned { " pinned" } else { "" };
    let (section, think) = (table::section(cell.section_ns), table::think(cell.think_ratio));
    format!("{}{pinned}, {section}, {think}", cell.threads)
}
