//! The published tables, simulated: each figure beside what the simulator says.
//!
//! # Role
//! `tables` says which simulations a figure is read off, `fits` has the numbers that were
//! calibrated, this file runs it all, and [`score`] is all that a calibration gets to see.

mod boxes;
mod fits;
mod published;
mod search;
mod sensitivity;
mod server;
mod tables;

pub use boxes::{BOX_RANGES, FoundBox, search_boxes};
pub use fits::{BoxFit, Fit, ServerFit, shipped, shipped_boxes, shipped_servers};
pub use search::{CONTENDED, FitSearch, FoundFit, RANGES, search};
pub use sensitivity::{DIALS, FACTORS, NumberEffect, Turns, WATCHED, sensitivity};
pub use server::{FoundServer, SERVER_RANGES, search_servers};
pub use tables::CALIBRATED;

use crate::engine::world::RunSettings;
use crate::machine::Machine;
use crate::many::{Stopped, many};
use crate::work::{RunFigures, Workload, run};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use tables::{BOX_2010, BOX_2013, TableFigure, TablePoint, TableSamples, Value, entries};

/// The settings of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Whether to be quick: few numbers of users, the best fit (all of those of 2005).
    pub quick: bool,
    /// The number of seeds of each simulation.
    pub seeds: u64,
    /// The only table that is replayed, if there is one.
    pub table: Option<String>,
}

/// A published figure, and what the simulator makes of it.
#[derive(Clone, Debug)]
pub struct ReplayRow {
    /// The name of the table.
    pub table: &'static str,
    /// The row, and the column if there are several.
    pub row: String,
    /// The figure that was published.
    pub published: f64,
    /// The median over seeds and fits.
    pub simulated: f64,
    /// The least and the most of them.
    pub range: (f64, f64),
    /// Whether its row served to calibrate.
    pub calibrated: bool,
    /// The unit of both figures.
    pub unit: &'static str,
}

/// Returns the names of the tables.
#[must_use]
pub fn table_names() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        entries(&TableSamples::QUICK).iter().map(|entry| entry.table).collect();
    names.dedup();
    names
}

/// Simulates the published tables.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
pub fn replay(
    options: &ReplayOptions,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
) -> Result<Vec<ReplayRow>, Stopped> {
    let samples = if options.quick { TableSamples::QUICK } else { TableSamples::FULL };
    let entries: Vec<TableFigure> = entries(&samples)
        .into_iter()
        .filter(|entry| options.table.as_ref().is_none_or(|table| table == entry.table))
        .collect();
    let shipped = Shipped::load();
    let Shipped { fits, boxes, servers } = &shipped;
    let best = shipped.best();
    let seeds = options.seeds;
    let numbers: Vec<_> = if options.quick {
        // The boxes of 2005 take no time.
        boxes.iter().map(|boxes| Numbers { boxes, ..best }).collect()
    } else {
        let all = fits.iter().zip(boxes.iter().cycle()).zip(servers.iter().cycle());
        let all = all.map(|((fit, boxes), server)| Numbers { fit, boxes, server, ..best });
        all.collect()
    };
    let points = all_points(&entries);
    let same: Vec<usize> = points.iter().map(|point| first_like(point, &points)).collect();
    let mut jobs: Vec<(usize, Numbers<'_>, u64)> = Vec::new();
    let mut known = HashMap::new();
    let mut places = Vec::new();
    for &numbers in &numbers {
        for (seed, point) in (1..=seeds).flat_map(|seed| (0..points.len()).map(move |p| (seed, p)))
        {
            let point = same[point];
            let place =
                *known.entry((point, points[point].fit_of(numbers), seed)).or_insert(jobs.len());
            if place == jobs.len() {
                jobs.push((point, numbers, seed));
            }
            places.push(place);
        }
    }
    let figures = many(jobs.len(), stop, step, "simulations", |index| {
        let (point, numbers, seed) = jobs[index];
        points[point].simulate(numbers, seed)
    })?;
    let figures: Vec<RunFigures> = places.into_iter().map(|place| figures[place].clone()).collect();
    Ok(rows_of(&entries, &points, &figures))
}

/// The least share in per cent: smaller ones count as this, however small they are.
const SMALL: f64 = 2.0;

/// Returns how far rows are from the published ones: the mean logarithm of the ratio. It looks
/// at the calibrated rows alone. Of those in per cent it looks at the shares of the slow path, with
/// less weight; changes follow from other rows.
#[must_use]
pub fn score(rows: &[ReplayRow]) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for row in rows.iter().filter(|row| row.calibrated) {
        let weight = match (row.unit, row.table) {
            ("percent", "slowpath_share_2013") => 0.5,
            ("percent", _) => 0.0,
            _ => 1.0,
        };
        if weight > 0.0 {
            let least = if row.unit == "percent" { SMALL } else { 0.0 };
            let ratio = row.simulated.max(least) / row.published.max(least);
            sum += weight * ratio.ln().abs();
            weights += weight;
        }
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// Returns the rows of `entries`, simulated with one set of numbers.
fn simulated(entries: &[TableFigure], numbers: Numbers<'_>, seeds: u64) -> Vec<ReplayRow> {
    let points = all_points(entries);
    let figures: Vec<RunFigures> = (1..=seeds)
        .flat_map(|seed| points.iter().map(move |point| point.simulate(numbers, seed)))
        .collect();
    rows_of(entries, &points, &figures)
}

/// Returns the rows of `entries`, from the figures of all points for each fit and seed in turn.
fn rows_of(
    entries: &[TableFigure],
    points: &[TablePoint],
    figures: &[RunFigures],
) -> Vec<ReplayRow> {
    entries
        .iter()
        .map(|entry| {
            let mut values: Vec<f64> = figures
                .chunks(points.len())
                .map(|figures| entry.value.of(&FigureLookup { points, figures }))
                .collect();
            values.sort_by(f64::total_cmp);
            entry.row(&values)
        })
        .collect()
}

fn all_points(entries: &[TableFigure]) -> Vec<TablePoint> {
    let mut points: Vec<TablePoint> = Vec::new();
    for entry in entries {
        for point in entry.value.points() {
            if !points.contains(point) {
                points.push(point.clone());
            }
        }
    }
    points
}

/// Returns the first of the points whose simulation is that of `point`: the documents say of some
/// workloads nothing that would tell them from others.
fn first_like(point: &TablePoint, points: &[TablePoint]) -> usize {
    let alike = |other: &TablePoint| {
        *other == TablePoint { workload: other.workload, ..point.clone() }
            && content(other.workload) == content(point.workload)
    };
    points.iter().position(alike).expect("it is like itself")
}

/// Returns what a built-in workload does, without its name.
fn content(name: &str) -> String {
    let workload = Workload::bundled(name).expect("it is built in");
    format!("{:?}", Workload { name: String::new(), about: String::new(), ..workload })
}

/// The figures of each point.
struct FigureLookup<'a> {
    points: &'a [TablePoint],
    figures: &'a [RunFigures],
}

impl FigureLookup<'_> {
    fn get(&self, point: &TablePoint) -> &RunFigures {
        let at = self.points.iter().position(|p| p == point).expect("each point is simulated");
        &self.figures[at]
    }

    /// Returns the mean number of jobs a second.
    fn mean(&self, points: &[TablePoint]) -> f64 {
        points.iter().map(|point| self.get(point).jobs).sum::<f64>() / points.len() as f64
    }
}

impl Value {
    fn points(&self) -> Vec<&TablePoint> {
        match self {
            Value::PerMinute(points) => points.iter().collect(),
            Value::Change(before, after) => before.iter().chain(after).collect(),
            Value::PerSecond(point) | Value::Share(point, _) | Value::Busy(point) => vec![point],
            Value::Faster(one, other) | Value::Thriftier(one, other) => vec![one, other],
        }
    }

    fn of(&self, lookup: &FigureLookup<'_>) -> f64 {
        match self {
            Value::PerMinute(points) => lookup.mean(points) * 60.0,
            Value::PerSecond(point) => lookup.get(point).jobs,
            Value::Change(before, after) => {
                (lookup.mean(after) / lookup.mean(before) - 1.0) * 100.0
            }
            Value::Share(point, place) => lookup.get(point).share(*place) * 100.0,
            Value::Busy(point) => lookup.get(point).busy * 100.0,
            Value::Faster(one, other) => lookup.get(one).jobs / lookup.get(other).jobs,
            Value::Thriftier(one, other) => {
                let thrift = |point| lookup.get(point).jobs / lookup.get(point).busy;
                thrift(one) / thrift(other)
            }
        }
    }
}

impl TableFigure {
    /// Makes the row of this entry from the values of its points, in order.
    fn row(&self, values: &[f64]) -> ReplayRow {
        let row = if self.column.is_empty() {
            self.row.clone()
        } else {
            format!("{}, {}", self.row, self.column)
        };
        ReplayRow {
            table: self.table,
            row,
            published: self.published,
            simulated: values[values.len() / 2],
            range: (values[0], values[values.len() - 1]),
            calibrated: self.calibrated(),
            unit: self.unit,
        }
    }
}

/// A set of numbers for each of the documents' machines and workloads.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    fit: &'a Fit,
    /// The fit by which those of fserver were judged.
    best: &'a Fit,
    boxes: &'a BoxFit,
    server: &'a ServerFit,
}

/// The fits that are shipped.
struct Shipped {
    fits: Vec<Fit>,
    boxes: Vec<BoxFit>,
    servers: Vec<ServerFit>,
}

impl Shipped {
    fn load() -> Self {
        Shipped { fits: shipped(), boxes: shipped_boxes(), servers: shipped_servers() }
    }

    /// Returns the best fit of each kind.
    fn best(&self) -> Numbers<'_> {
        let fit = &self.fits[0];
        Numbers { fit, best: fit, boxes: &self.boxes[0], server: &self.servers[0] }
    }
}

impl TablePoint {
    /// Returns the name of the fit that its numbers come from.
    fn fit_of<'a>(&self, numbers: Numbers<'a>) -> &'a str {
        if fits::is_server(self.workload) {
            &numbers.server.name
        } else if self.machine != BOX_2013 {
            &numbers.boxes.name
        } else {
            &numbers.fit.name
        }
    }

    fn simulate(&self, numbers: Numbers<'_>, seed: u64) -> RunFigures {
        let name = self.machine;
        let (machine, workload): (Machine, Workload) = if fits::is_server(self.workload) {
            (numbers.best.machine(name), numbers.server.workload(self.workload))
        } else if name == BOX_2013 {
            (numbers.fit.machine(name), numbers.fit.workload(self.workload))
        } else if name == BOX_2010 {
            (numbers.best.machine(name), numbers.boxes.workload_of_2010(self.workload))
        } else {
            (numbers.boxes.machine(name), numbers.boxes.workload(self.workload))
        };
        let part = machine
            .with_nodes(self.nodes)
            .and_then(|machine| machine.with_threads(self.threads))
            .expect("a part that there is");
        run(&part, self.lock, &workload, self.users, RunSettings { seed, ..RunSettings::default() })
    }
}
