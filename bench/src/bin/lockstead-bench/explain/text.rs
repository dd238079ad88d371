//! The tables, and the questions with what the figures say.

use crate::table::{self, TextTable};
use anstyle::Style;
use lockstead_bench::contended::Disturbance;
use lockstead_bench::explain::contended::{ExplainCell, ExplainRow, IngredientEffect};
use lockstead_bench::explain::{ExplainReport, ExplainedLock, Ingredient, RoundsFigure, label};

const HEAD: Style = Style::new().bold();

/// Columns of the running text.
const WIDTH: usize = 92;

/// Returns everything, in the order of the questions.
pub(super) fn render(report: &ExplainReport) -> String {
    let mut text = String::new();
    let mut part = |title: &str, body: String| {
        text += &format!("{HEAD}{title}{HEAD:#}\n{body}\n");
    };
    part("Bytes of the locks", sizes(report));
    part("Bytes of code, lock + unlock", code(report));
    let pair = crate::uncontended::render(&report.uncontended, ExplainedLock::Mutex.name());
    part("The pair that nobody disputes", pair);
    for cell in &report.cells {
        part(&title(cell), grid(cell));
    }
    part("What an owner is needed for", owners(report));
    text += "\
A share is the whole lock over the one without the ingredient in the same round: the median of
the rounds, and where it lies with a confidence of 95%. A dash: on either side of 1.
One share in twenty seems to be on one side by chance.\n\n";
    for ingredient in Ingredient::ALL {
        text += &format!("  {:14} {}\n", ingredient.name(), ingredient.description());
    }
    for answer in &report.answers {
        text += &format!("\n{HEAD}{}{HEAD:#}\n", answer.question);
        for conclusion in &answer.conclusions {
            text += &wrap(conclusion);
        }
    }
    text
}

/// Returns what a cell is headed with.
pub(super) fn title(cell: &ExplainCell) -> String {
    let shape = (cell.section_ns, cell.think_ratio);
    let by = Disturbance { foreign_cpu_percent: cell.foreign_cpu_percent, ..Default::default() };
    let title = table::cell_title(cell.threads, ("thread", "threads"), shape);
    format!("{title}{} ({})", table::disturbance(&by), cell.cell)
}

fn sizes(report: &ExplainReport) -> String {
    let mut table = TextTable::new(&["lock", "bytes", "from"]);
    for size in &report.sizes {
        let from = size.source.unwrap_or("measured");
        table.row([size.lock.clone(), size.bytes.to_string(), from.into()]);
    }
    table.render()
}

fn code(report: &ExplainReport) -> String {
    let mut table = TextTable::new(&["call site", "bytes a pair", ".text of 200"]);
    for site in &report.text.sites {
        let name = format!("{}, in this command", site.lock.name());
        table.row([name, format!("{:.0}", site.bytes_per_pair), "-".into()]);
    }
    for object in &report.text.objects {
        let name = format!("{}, C", object.way);
        let per_pair = format!("{:.0}", object.bytes_per_pair);
        table.row([name, per_pair, object.text_bytes.to_string()]);
    }
    let mut text = table.render();
    if let Some(why) = &report.text.objects_absent {
        text += &format!("\n  No objects were built from C: {why}.\n");
    }
    text
}

fn grid(cell: &ExplainCell) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "ops/s",
        "lowest to\nhighest",
        "ops per\nCPU-s",
        "longest\nwait",
        "share of\nthroughput",
        "",
        "share of ops\nper CPU-s",
        "",
    ]);
    for row in &cell.results {
        let effect = row.without.and_then(|ingredient| cell.effect(row.lock, ingredient));
        let [throughput, efficiency] = shares(effect);
        let RoundsFigure { median, min, max, .. } = row.ops_per_s;
        table.row([
            name(row),
            table::rate(median),
            format!("{} to {}", table::rate(min), table::rate(max)),
            table::rate(row.ops_per_cpu_s.median),
            table::time(row.wait_max_ns.median),
            throughput.0,
            throughput.1,
            efficiency.0,
            efficiency.1,
        ]);
    }
    table.render()
}

/// Returns the whole lock's name, and below it what is left out.
pub(super) fn name(row: &ExplainRow) -> String {
    match row.without {
        None => label(row.lock, None),
        Some(ingredient) => format!("  without {}", ingredient.name()),
    }
}

/// Returns the share of throughput and of efficiency, each with its spread.
fn shares(effect: Option<&IngredientEffect>) -> [(String, String); 2] {
    let Some(effect) = effect else { return Default::default() };
    [&effect.throughput, &effect.efficiency].map(|figure| {
        let share =
            if figure.is_clear() { format!("{:.2}x", figure.median) } else { "-".to_owned() };
        (share, format!("{:.2} to {:.2}", figure.low, figure.high))
    })
}

fn owners(report: &ExplainReport) -> String {
    let mut text = String::new();
    for trial in &report.owners {
        text += &format!(
            "  {}\n    mutex: {}\n    semaphore: {}\n",
            trial.trial, trial.mutex, trial.semaphore
        );
    }
    text
}

/// Returns a sentence as an entry of a list.
fn wrap(sentence: &str) -> String {
    let mut text = String::new();
    let mut line = String::from("  *");
    for word in sentence.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &line;
            text += "\n";
            line = "   ".into();
        }
        line += " ";
        line += word;
    }
    text + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_wrapped_whole() {
        let sentence = "one two three ".repeat(30);
        let text = wrap(&sentence);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.starts_with("  * one")
                && text.lines().nth(1).expect("wrapped").starts_with("    ")
        );
        let words: Vec<&str> = text.split_whitespace().skip(1).collect();
        assert_eq!(words, sentence.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_share_that_the_rounds_dispute_is_a_dash() {
        let figure = |min, max| RoundsFigure {
            median: f64::midpoint(min, max),
            min,
            max,
            low: min,
            high: max,
        };
        let effect = IngredientEffect {
            lock: ExplainedLock::Mutex,
            ingredient: Ingredient::Queue,
            throughput: figure(0.9, 1.3),
            efficiency: figure(1.1, 1.3),
            longest_wait: figure(1.0, 1.0),
        };
        let [throughput, efficiency] = shares(Some(&effect));
        assert_eq!(throughput, ("-".into(), "0.90 to 1.30".into()));
        assert_eq!(efficiency, ("1.20x".into(), "1.10 to 1.30".into()));
    }
}
