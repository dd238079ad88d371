//! `lockstead bench ablation`: what each ingredient of the mutex is worth.

use crate::contended::surroundings;
use crate::failure::Failure;
use crate::grid_flags::Ablation as Flags;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use crate::values::ValueList;
use lockstead_bench::Session;
use lockstead_bench::explain::Ingredient;
use lockstead_bench::explain::ablation::{
    self, AblationReport, AblationShare, Extreme, Fairness, Worth,
};

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = flags.conduct.options((&flags.threads, &flags.section, &flags.think), None);
    let all = ValueList(Ingredient::MUTEX.to_vec());
    let ingredients = &flags.ingredients.as_ref().unwrap_or(&all).0;
    let measure = |session: &mut Session<'_>| ablation::measure(&options, ingredients, session);
    let report = measured(&interrupt, measure)?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &AblationReport) -> String {
    let cells = report.cells.len();
    let mut text = format!(
        "The whole mutex over the one without the ingredient, round by round, {} cell{}{}\n",
        cells,
        if cells == 1 { "" } else { "s" },
        surroundings(report.foreign_processes, report.quota.as_ref(), report.sleep())
    );
    let disturbed: usize = report.cells.iter().map(|cell| cell.disturbance.rounds_disturbed).sum();
    if disturbed > 0 {
        text += &format!("{disturbed} rounds that count were disturbed by other work\n");
    }
    for (title, share) in MEASURES {
        let mut table = TextTable::new(&[title, "mean", "lowest", "at", "highest", "at"]);
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
    for (title, figure, number) in FAIRNESS {
        let mut table = TextTable::new(&[title, "mean", "lowest", "at", "highest", "at"]);
        let mut row = |name: &str, share: &AblationShare| {
            table.row([
                name.to_owned(),
                number(share.mean),
                number(share.lowest.value),
                place(&share.lowest),
                number(share.highest.value),
                place(&share.highest),
            ]);
        };
        row("the whole mutex", figure(&report.whole));
        for worth in &report.ingredients {
            let with = if worth.ingredient.is_choice() { "with" } else { "without" };
            row(&format!("{with} {}", worth.ingredient.name()), figure(&worth.without));
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
type Measure = (&'static str, fn(&Worth) -> &AblationShare);

const MEASURES: [Measure; 3] = [
    ("throughput", |worth| &worth.throughput),
    ("work per CPU-second", |worth| &worth.efficiency),
    ("longest wait, ratio", |worth| &worth.longest_wait),
];

/// A figure of a lock that is no ratio: its title, where it stands, and how it is written.
type CellColumn = (&'static str, fn(&Fairness) -> &AblationShare, fn(f64) -> String);

const FAIRNESS: [CellColumn; 2] = [
    ("Jain's index", |fairness| &fairness.jain, |index| format!("{index:.2}")),
    ("longest wait", |fairness| &fairness.wait_max_ns, table::time),
];

/// Returns a cell in few words: threads, section, think time.
fn place(cell: &Extreme) -> String {
    let pinned = if cell.pinned { " pinned" } else { "" };
    let (section, think) = (table::section(cell.section_ns), table::think(cell.think_ratio));
    format!("{}{pinned}, {section}, {think}", cell.threads)
}
