//! Where the mutex is ahead and where it is not: threads by section length, the ratio to
//! the best peer of each cell.

use super::grid::{Grid, GridFigures, GridPlace};
use super::summary::SUBJECT;
use serde::Serialize;

/// The figure that is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MapMeasure {
    /// The number of sections per second.
    Throughput,
    /// Sections per second of processor time.
    WorkPerCpuS,
    /// The longest wait, as the ratio of the peer's to lockstead's, so that more is better here,
    /// too.
    LongestWait,
}

impl MapMeasure {
    /// All, in the order of the picture.
    pub const ALL: [MapMeasure; 3] =
        [MapMeasure::Throughput, MapMeasure::WorkPerCpuS, MapMeasure::LongestWait];

    /// Returns what it is, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            MapMeasure::Throughput => "Throughput",
            MapMeasure::WorkPerCpuS => "Work per CPU-second",
            MapMeasure::LongestWait => "Longest wait (how many times shorter)",
        }
    }

    /// Returns a figure of which more is better.
    fn of(self, figures: &GridFigures) -> Option<f64> {
        match self {
            MapMeasure::Throughput => Some(figures.ops_per_s),
            MapMeasure::WorkPerCpuS => Some(figures.ops_per_cpu_s),
            MapMeasure::LongestWait => figures.wait_max_ns.map(|ns| 1e9 / ns.max(1.0)),
        }
    }
}

/// All panels of a grid.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridMap {
    /// The lock that is compared, `lockstead`.
    pub lock: &'static str,
    /// The locks that it is compared with.
    pub peers: Vec<String>,
    /// One object for each think time and measure.
    pub panels: Vec<Panel>,
}

/// One measure at one think time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Panel {
    /// The figure that is compared.
    pub measure: MapMeasure,
    /// The think time, as a multiple of the section.
    pub think_ratio: f64,
    /// The numbers of threads of the rows, ascending.
    pub threads: Vec<usize>,
    /// The sections of the columns, ascending.
    pub sections_ns: Vec<u64>,
    /// What is known, row by row.
    pub cells: Vec<MapCell>,
}

/// One place of a panel.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MapCell {
    /// The number of threads.
    pub threads: usize,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The ratio to the best peer, above 1 if the lock is better; for the longest wait: if its own
    /// is shorter.
    pub ratio: f64,
    /// The name of that peer.
    pub peer: String,
}

impl GridMap {
    /// Draws up the map of these cells, for `thinks` or, if that is empty, for all think times.
    /// Without [`SUBJECT`] and a peer it has no panels.
    #[must_use]
    pub fn of(grid: &Grid, thinks: &[f64]) -> Self {
        let grid = &grid.plain();
        let there = ascending(grid.cells.iter().map(|cell| cell.think_ratio), f64::total_cmp);
        let chosen = there.into_iter().filter(|think| thinks.is_empty() || thinks.contains(think));
        let panels = chosen
            .flat_map(|think| MapMeasure::ALL.map(|measure| Panel::of(grid, measure, think)))
            .filter(|panel| !panel.cells.is_empty());
        Self {
            lock: SUBJECT,
            peers: grid.rivals().into_iter().map(str::to_owned).collect(),
            panels: panels.collect(),
        }
    }
}

impl Panel {
    fn of(grid: &Grid, measure: MapMeasure, think_ratio: f64) -> Self {
        let mut cells: Vec<MapCell> = Vec::new();
        for place in grid.cells.iter().filter(|place| place.think_ratio == think_ratio) {
            let again = |cell: &MapCell| {
                (cell.threads, cell.section_ns) == (place.threads, place.section_ns)
            };
            if !cells.iter().any(again) {
                cells.extend(MapCell::of(place, measure));
            }
        }
        cells.sort_by_key(|cell| (cell.threads, cell.section_ns));
        Self {
            measure,
            think_ratio,
            threads: ascending(cells.iter().map(|cell| cell.threads), Ord::cmp),
            sections_ns: ascending(cells.iter().map(|cell| cell.section_ns), Ord::cmp),
            cells,
        }
    }

    /// Returns the cell of so many threads and that section.
    #[must_use]
    pub fn cell(&self, threads: usize, section_ns: u64) -> Option<&MapCell> {
        self.cells.iter().find(|cell| (cell.threads, cell.section_ns) == (threads, section_ns))
    }
}

impl MapCell {
    fn of(place: &GridPlace, measure: MapMeasure) -> Option<Self> {
        let (peer, best) = place.best(|figures| measure.of(figures))?;
        let ratio = measure.of(place.of(SUBJECT)?)? / best;
        ratio.is_finite().then(|| Self {
            threads: place.threads,
            section_ns: place.section_ns,
            ratio,
            peer: peer.to_owned(),
        })
    }
}

fn ascending<T: PartialEq>(
    values: impl Iterator<Item = T>,
    order: impl FnMut(&T, &T) -> std::cmp::Ordering,
) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_by(order);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grid() -> Grid {
        let row = |lock: &str, rate: f64, wait: f64| json!({"lock": lock, "ops_per_s": rate, "ops_per_cpu_s": rate, "wait_max_ns": wait});
        let cell = |threads: u32, section: u64, think: f64, ours: f64| {
            json!({"threads": threads, "section_ns": section, "think_ratio": think, "results": [
                row("lockstead", ours, 100.0), row("std", 2.0, 50.0), row("sem_t", 99.0, 1.0),
                row("a-lock-of-tomorrow", 4.0, 400.0)]})
        };
        let cells = [
            cell(16, 50, 1.0, 8.0),
            cell(2, 50, 1.0, 2.0),
            cell(2, 0, 1.0, 4.0),
            cell(2, 0, 0.0, 1.0),
            cell(2, 0, 0.0, 7.0),
        ];
        serde_json::from_value(json!({ "cells": cells })).expect("a grid")
    }

    #[test]
    fn rows_and_columns_ascend_and_ratios_are_to_the_best_peer() {
        let map = GridMap::of(&grid(), &[1.0]);
        assert_eq!(map.peers, ["std", "a-lock-of-tomorrow"]);
        assert_eq!(map.panels.len(), 3);
        let panel = &map.panels[0];
        assert_eq!((&panel.threads[..], &panel.sections_ns[..]), (&[2, 16][..], &[0, 50][..]));
        let found = |threads, section| panel.cell(threads, section).map(|cell| cell.ratio);
        assert_eq!(found(2, 0), Some(1.0));
        assert_eq!(found(2, 50), Some(0.5));
        assert_eq!(found(16, 50), Some(2.0));
        assert_eq!(found(16, 0), None);
        assert_eq!(panel.cells[0].peer, "a-lock-of-tomorrow");
    }

    #[test]
    fn a_shorter_wait_is_better() {
        let map = GridMap::of(&grid(), &[1.0]);
        let waits = &map.panels[2];
        assert_eq!(waits.measure, MapMeasure::LongestWait);
        assert_eq!((waits.cells[0].ratio, waits.cells[0].peer.as_str()), (0.5, "std"));
    }

    #[test]
    fn think_times_can_be_chosen_and_the_first_of_a_cell_counts() {
        let thinks = |chosen: &[f64]| -> Vec<f64> {
            GridMap::of(&grid(), chosen).panels.iter().map(|panel| panel.think_ratio).collect()
        };
        assert_eq!(thinks(&[]), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(thinks(&[0.0]), [0.0; 3]);
        assert!(thinks(&[10.0]).is_empty());
        assert_eq!(GridMap::of(&grid(), &[0.0]).panels[0].cells[0].ratio, 0.25);
    }

    #[test]
    fn without_waits_there_is_no_panel_of_them() {
        let mut grid = grid();
        for figures in grid.cells.iter_mut().flat_map(|cell| &mut cell.results) {
            figures.wait_max_ns = None;
        }
        assert_eq!(GridMap::of(&grid, &[1.0]).panels.len(), 2);
    }
}
