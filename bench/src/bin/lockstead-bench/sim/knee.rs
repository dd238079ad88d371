//! Where a lock stops to scale.

use super::prediction::WhatifPoint;
use lockstead_sim::RunFigures;
use serde::Serialize;

/// Where a lock stops to scale.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WhatifKnee {
    /// The lock, as in `points`.
    pub(super) lock: &'static str,
    /// The number of cores beyond which more of them add less than a quarter of what they could, by
    /// the medians; null if there is none.
    cores: Option<usize>,
    /// The same number with the seed for which it is lowest; null if it is none for any.
    lowest: Option<usize>,
    /// The same number with the seed for which it is highest; null if it is none for any seed.
    highest: Option<usize>,
    /// The lock of the program that stops it; null if none is waited for.
    by: Option<String>,
}

/// A step that adds less than this share of what it could has stopped to scale.
const SCALES: f64 = 0.25;

/// Returns the place of the first number of cores, of those given in rising order with the jobs a
/// second of each, beyond which more of them no longer scale.
fn knee(curve: &[(usize, f64)]) -> Option<usize> {
    curve.windows(2).position(|pair| {
        let more = pair[1].0 as f64 / pair[0].0 as f64 - 1.0;
        let gain = pair[1].1 / pair[0].1.max(1.0) - 1.0;
        gain < SCALES * more
    })
}

/// Finds where a lock stops to scale: by its medians, and with each seed. `runs`: for each number
/// of cores all seeds in turn.
pub(super) fn knee_of(points: &[WhatifPoint], runs: &[RunFigures], seeds: usize) -> WhatifKnee {
    // What cannot be predicted begins somewhere and goes on to the last.
    let (lock, all) = (points[0].lock, points);
    let known = all.iter().take_while(|point| point.figures.is_some()).count();
    let points = &all[..known];
    let medians: Vec<(usize, f64)> = points
        .iter()
        .filter_map(|point| Some((point.cores, point.figures.as_ref()?.jobs_per_second)))
        .collect();
    let found = knee(&medians);
    let each: Vec<usize> = (0..seeds)
        .filter_map(|seed| {
            let jobs = runs.iter().skip(seed).step_by(seeds).map(|figures| figures.jobs);
            knee(&points.iter().map(|point| point.cores).zip(jobs).collect::<Vec<_>>())
        })
        .map(|at| points[at].cores)
        .collect();
    WhatifKnee {
        lock,
        cores: found.map(|at| points[at].cores),
        lowest: each.iter().min().copied(),
        // Of a seed that scales to all there is no number, and none is higher.
        highest: if each.len() == seeds { each.iter().max().copied() } else { None },
        by: found.and_then(|at| points[at + 1].figures.as_ref()?.worst.clone()),
    }
}

/// Says where a lock stops to scale; `unknown`: from how many cores on nothing can be predicted.
pub(super) fn verdict(knee: &WhatifKnee, unknown: Option<usize>) -> String {
    let all = unknown.map_or("all cores".to_owned(), |cores| format!("below {cores} cores"));
    let words = |cores: Option<usize>| cores.map_or(all.clone(), |cores| format!("{cores} cores"));
    let range = if (knee.lowest, knee.highest) == (knee.cores, knee.cores) {
        String::new()
    } else {
        let low = knee.lowest.map_or(all.clone(), |cores| cores.to_string());
        format!("; {low} to {} by seed", words(knee.highest))
    };
    let by = knee.by.as_ref().map_or(String::new(), |name| format!(", by {name}"));
    match knee.cores {
        None if unknown.is_some() => format!("not predictable{range}"),
        None => format!("scales to all cores{range}"),
        Some(cores) => format!("stops to scale at {cores} cores{by}{range}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_more_cores_add_less_than_a_quarter_of_what_they_could() {
        assert_eq!(knee(&[(1, 100.0), (2, 200.0), (4, 390.0), (8, 400.0)]), Some(2));
        assert_eq!(knee(&[(1, 100.0), (2, 130.0), (4, 170.0)]), None);
        assert_eq!(knee(&[(1, 100.0), (2, 90.0), (4, 170.0)]), Some(0));
        assert_eq!(knee(&[(4, 100.0)]), None);
    }

    #[test]
    fn a_verdict_names_the_range_where_seeds_differ() {
        let knee = |cores, lowest, highest, by: Option<&str>| WhatifKnee {
            lock: "present",
            cores,
            lowest,
            highest,
            by: by.map(str::to_owned),
        };
        let said = |knee| verdict(&knee, None);
        assert_eq!(said(knee(None, None, None, None)), "scales to all cores");
        assert_eq!(
            said(knee(Some(8), Some(8), Some(8), Some("a"))),
            "stops to scale at 8 cores, by a"
        );
        assert_eq!(
            said(knee(Some(8), Some(4), None, None)),
            "stops to scale at 8 cores; 4 to all cores by seed"
        );
        assert_eq!(
            said(knee(None, Some(4), None, None)),
            "scales to all cores; 4 to all cores by seed"
        );
        assert_eq!(verdict(&knee(None, None, None, None), Some(4)), "not predictable");
        let known = knee(Some(2), Some(2), Some(2), None);
        assert_eq!(verdict(&known, Some(4)), "stops to scale at 2 cores");
    }
}
