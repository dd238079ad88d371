//! The report as one HTML page: nothing is fetched, everything is in it. The page is
//! also well-formed XML.

use super::chart::{self, ChartBar};
use super::text::{name, title};
use crate::table;
use askama::Template;
use lockstead_bench::explain::contended::{ExplainCell, IngredientEffect};
use lockstead_bench::explain::{ExplainReport, ExplainedLock, Ingredient, RoundsFigure};

#[derive(Template)]
#[template(path = "explain.html")]
struct ExplainPage<'a> {
    version: &'static str,
    machine: String,
    rounds: usize,
    slice_ms: f64,
    answers: &'a [lockstead_bench::explain::answers::ExplainAnswer],
    ingredients: Vec<(&'static str, &'static str)>,
    sizes: String,
    code: String,
    pair: String,
    cells: Vec<CellView>,
}

struct CellView {
    title: String,
    throughput: String,
    efficiency: String,
    /// The shares of throughput and of efficiency.
    shares: [String; 2],
}

/// Renders the whole page.
///
/// # Errors
/// If the template fails, which it has no reason to.
pub(super) fn render(report: &ExplainReport) -> Result<String, askama::Error> {
    let machine = &report.machine;
    let mut parts: Vec<String> = machine.cpu.iter().cloned().collect();
    parts.push(format!("{} processors", machine.processors));
    parts.extend(machine.kernel.iter().map(|release| format!("Linux {release}")));
    parts.push(machine.date.clone());
    ExplainPage {
        version: env!("CARGO_PKG_VERSION"),
        machine: parts.join(", "),
        rounds: report.rounds,
        slice_ms: report.slice_ms,
        answers: &report.answers,
        ingredients: Ingredient::ALL.iter().map(|i| (i.name(), i.description())).collect(),
        sizes: sizes(report),
        code: code(report),
        pair: pair(report),
        cells: report.cells.iter().map(cell).collect(),
    }
    .render()
}

/// Returns a figure without a spread.
fn exact(value: f64) -> RoundsFigure {
    between(value, value, value)
}

/// Returns a median and the rounds around it.
fn between(median: f64, min: f64, max: f64) -> RoundsFigure {
    RoundsFigure { median, min, max, low: min, high: max }
}

fn sizes(report: &ExplainReport) -> String {
    let bars: Vec<ChartBar> = report
        .sizes
        .iter()
        .map(|size| ChartBar {
            name: size.lock.clone(),
            figure: exact(size.bytes as f64),
            written: format!("{} bytes", size.bytes),
            class: if size.measured { "hold" } else { "idle" },
        })
        .collect();
    chart::bars("bytes of the locks", &bars, false)
}

fn code(report: &ExplainReport) -> String {
    let here =
        report.text.sites.iter().map(|site| (site.lock.name().to_owned(), site.bytes_per_pair));
    let objects = report.text.objects.iter().filter(|object| object.bytes_per_pair > 0.0);
    let objects = objects.map(|object| (format!("{}, C", object.way), object.bytes_per_pair));
    let bars: Vec<ChartBar> = here
        .chain(objects)
        .map(|(name, bytes)| ChartBar {
            name,
            figure: exact(bytes),
            written: format!("{bytes:.0} bytes"),
            class: "hold",
        })
        .collect();
    chart::bars("bytes of code of a pair", &bars, false)
}

fn pair(report: &ExplainReport) -> String {
    let pair = &report.uncontended;
    let limit = between(pair.limit_ns, pair.limit_ns_min, pair.limit_ns_max);
    let limit = ("two bare atomics".to_owned(), limit, "idle");
    let rows = pair.results.iter().map(|row| {
        let figure = between(row.ns, row.ns_min, row.ns_max);
        (row.lock.clone(), figure, "hold")
    });
    let bars: Vec<ChartBar> = std::iter::once(limit)
        .chain(rows)
        .map(|(name, figure, class)| ChartBar {
            name,
            figure,
            written: table::time(figure.median),
            class,
        })
        .collect();
    chart::bars("time of a pair that nobody disputes", &bars, false)
}

fn cell(cell: &ExplainCell) -> CellView {
    let rows = |figure: fn(&lockstead_bench::explain::contended::ExplainRow) -> RoundsFigure,
                what: &str| {
        let bars: Vec<ChartBar> = cell
            .results
            .iter()
            .map(|row| ChartBar {
                name: name(row),
                figure: figure(row),
                written: table::rate(figure(row).median),
                class: if row.without.is_none() { "hold" } else { "idle" },
            })
            .collect();
        chart::bars(what, &bars, false)
    };
    let shares = |of: fn(&IngredientEffect) -> RoundsFigure, what: &str| {
        let bars: Vec<ChartBar> = cell
            .effects
            .iter()
            .map(|effect| {
                let share = of(effect);
                let lock = if effect.lock == ExplainedLock::Mutex { "mutex" } else { "semaphore" };
                ChartBar {
                    name: format!("{lock}: {}", effect.ingredient.name()),
                    figure: share,
                    written: table::ratio(share.median, 1.0),
                    class: if share.is_clear() { "hold" } else { "idle" },
                }
            })
            .collect();
        chart::bars(what, &bars, true)
    };
    CellView {
        title: title(cell),
        throughput: rows(|row| row.ops_per_s, "sections a second"),
        efficiency: rows(|row| row.ops_per_cpu_s, "sections a second of processor time"),
        shares: [
            shares(|effect| effect.throughput, "share of the throughput"),
            shares(|effect| effect.efficiency, "share of the work per second of processor time"),
        ],
    }
}
