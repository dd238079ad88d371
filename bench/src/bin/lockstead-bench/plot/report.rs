//! What `plot` reads: the JSON reports of `lockstead bench`, told apart by
//! their content, every number checked before anything is drawn.

use lockstead_bench::contended::grid::Grid;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;

/// More than this many figures are no report of `lockstead bench`.
const MAX_FIGURES: usize = 20_000;
/// Longer names are none of a lock.
const MAX_NAME: usize = 40;

/// A report of one of the three benchmarks.
#[derive(Debug)]
pub(super) enum PlotReport {
    Vfs(PlottedVfs),
    Uncontended(PlottedUncontended),
    Contended(Grid),
}

/// A report of `bench vfs --json`.
#[derive(Debug, Deserialize)]
pub(super) struct PlottedVfs {
    #[serde(default)]
    pub(super) machine: Value,
    pub(super) tasks: u32,
    pub(super) seconds: f64,
    pub(super) results: Vec<VfsResult>,
}

#[derive(Debug, Deserialize)]
pub(super) struct VfsResult {
    pub(super) lock: String,
    pub(super) loops_per_s: f64,
    pub(super) cpu_percent: f64,
    pub(super) loops_per_cpu_s: f64,
}

/// A report of `bench uncontended --json`.
#[derive(Debug, Deserialize)]
pub(super) struct PlottedUncontended {
    #[serde(default)]
    pub(super) machine: Value,
    pub(super) limit_ns: f64,
    pub(super) results: Vec<UncontendedResult>,
}

#[derive(Debug, Deserialize)]
pub(super) struct UncontendedResult {
    pub(super) lock: String,
    pub(super) ns: f64,
    pub(super) ratio_to_limit: f64,
    pub(super) instructions: Option<f64>,
    pub(super) bytes: Option<f64>,
}

/// Reads a report of any benchmark.
///
/// # Errors
/// What is wrong with the text, for the user.
pub(super) fn parse(text: &str) -> Result<PlotReport, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON, or cut off: {error}"))?;
    let kind = |key| value.get(key).is_some();
    let report = if kind("cells") {
        read(value, "contended").map(PlotReport::Contended)
    } else if kind("limit_ns") {
        read(value, "uncontended").map(PlotReport::Uncontended)
    } else if kind("tasks") && kind("results") {
        read(value, "vfs").map(PlotReport::Vfs)
    } else {
        Err("JSON, but no report of 'lockstead bench': it has neither \"cells\" (contended), \
             \"limit_ns\" (uncontended) nor \"tasks\" and \"results\" (vfs)"
            .into())
    }?;
    check(&report)?;
    Ok(report)
}

fn read<T: for<'a> Deserialize<'a>>(value: Value, kind: &str) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| {
        format!("looks like a report of 'lockstead bench {kind}', but is damaged: {error}")
    })
}

fn check(report: &PlotReport) -> Result<(), String> {
    let (groups, figures): (Vec<Vec<&str>>, Vec<(&str, f64)>) = match report {
        PlotReport::Vfs(vfs) => (
            vec![vfs.results.iter().map(|r| r.lock.as_str()).collect()],
            std::iter::once(("seconds", vfs.seconds))
                .chain(vfs.results.iter().flat_map(|r| {
                    [
                        ("loops_per_s", r.loops_per_s),
                        ("cpu_percent", r.cpu_percent),
                        ("loops_per_cpu_s", r.loops_per_cpu_s),
                    ]
                }))
                .collect(),
        ),
        PlotReport::Uncontended(pair) => (
            vec![pair.results.iter().map(|r| r.lock.as_str()).collect()],
            std::iter::once(("limit_ns", pair.limit_ns))
                .chain(
                    pair.results
                        .iter()
                        .flat_map(|r| [("ns", r.ns), ("ratio_to_limit", r.ratio_to_limit)]),
                )
                .collect(),
        ),
        PlotReport::Contended(grid) => (
            grid.cells
                .iter()
                .map(|cell| cell.results.iter().map(|r| r.lock.as_str()).collect())
                .collect(),
            grid.cells
                .iter()
                .flat_map(|cell| {
                    std::iter::once(("think_ratio", cell.think_ratio)).chain(
                        cell.results.iter().flat_map(|r| {
                            let waits = [
                                ("wait_p99_ns", r.wait_p99_ns),
                                ("wait_p999_ns", r.wait_p999_ns),
                                ("wait_max_median_ns", r.wait_max_median_ns),
                                ("wait_weighted_p99_ns", r.wait_weighted_p99_ns),
                                ("wait_max_ns", r.wait_max_ns),
                                ("jain", r.jain),
                            ];
                            [("ops_per_s", r.ops_per_s), ("ops_per_cpu_s", r.ops_per_cpu_s)]
                                .into_iter()
                                .chain(waits.into_iter().filter_map(|(name, f)| Some((name, f?))))
                        }),
                    )
                })
                .collect(),
        ),
    };
    if groups.iter().all(Vec::is_empty) {
        return Err("the report holds no results".into());
    }
    if figures.len() > MAX_FIGURES {
        return Err(format!("the report holds more than {MAX_FIGURES} figures"));
    }
    if let Some((name, figure)) = figures.iter().find(|(_, f)| !(0.0..1e15).contains(f)) {
        return Err(format!("the report is damaged: {name} is {figure}"));
    }
    for group in &groups {
        let mut seen = HashSet::new();
        for name in group {
            if name.is_empty()
                || name.chars().count() > MAX_NAME
                || name.chars().any(char::is_control)
            {
                return Err(format!("the report is damaged: {name:?} is no name of a lock"));
            }
            if !seen.insert(name) {
                return Err(format!("the report is damaged: {name} has two results in one place"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_known_by_its_content() {
        let vfs = r#"{"machine":{},"tasks":16,"seconds":1,"results":[
            {"lock":"std","loops_per_s":1,"cpu_percent":2,"loops_per_cpu_s":3}]}"#;
        assert!(matches!(parse(vfs), Ok(PlotReport::Vfs(_))));
        let pair = r#"{"machine":{},"limit_ns":9.3,"results":[
            {"lock":"std","ns":9,"ratio_to_limit":1,"instructions":null,"bytes":8}]}"#;
        assert!(matches!(parse(pair), Ok(PlotReport::Uncontended(_))));
        let grid = r#"{"machine":{},"cells":[{"threads":2,"section_ns":0,"think_ratio":0,
            "results":[{"lock":"std","ops_per_s":1,"ops_per_cpu_s":1}]}]}"#;
        assert!(matches!(parse(grid), Ok(PlotReport::Contended(_))));
    }

    #[test]
    fn damage_is_named() {
        for (text, word) in [
            ("", "not JSON"),
            ("{\"tasks\":", "cut off"),
            ("[]", "no report"),
            ("{}", "no report"),
            (r#"{"cells":[]}"#, "no results"),
            (r#"{"cells":7}"#, "damaged"),
            (r#"{"limit_ns":-1,"results":[{"lock":"a","ns":1,"ratio_to_limit":1}]}"#, "limit_ns"),
            (r#"{"limit_ns":1,"results":[{"lock":"a"}]}"#, "ns"),
            (r#"{"limit_ns":1,"results":[{"lock":"a\u0000","ns":1,"ratio_to_limit":1}]}"#, "name"),
            (
                r#"{"limit_ns":1,"results":[{"lock":"a","ns":1,"ratio_to_limit":1},
                    {"lock":"a","ns":1,"ratio_to_limit":1}]}"#,
                "two results",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
