//! The universal scalability law, beside a simulation.
//!
//! # Source of the idea
//! N. J. Gunther, "A Simple Capacity Model of Massively Parallel Transaction Systems" (1993): `X(N) =
//! L N / (1 + s (N - 1) + k N (N - 1))`, with the throughput L of one, the share s that is serial, and
//! what each pair costs, k.

use super::picture::Curve;
use super::prediction::WhatifPoint;
use serde::Serialize;

/// The law that fits the predicted throughput of one lock best.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ScalingLaw {
    /// The lock, as in `points`.
    lock: &'static str,
    /// Jobs a second of one core.
    one: f64,
    /// The share that is serial: contention.
    contention: f64,
    /// What each pair of cores costs: coherence.
    coherence: f64,
    /// The number of cores with the highest throughput; null if more always help.
    peak: Option<f64>,
    /// The largest distance of a point from the law, in per cent of the point; null if it has as many numbers
    /// as there are points, and so goes through all of them whatever they are.
    error_percent: Option<f64>,
}

impl ScalingLaw {
    fn at(&self, cores: f64) -> f64 {
        let pairs = cores * (cores - 1.0);
        self.one * cores / (1.0 + self.contention * (cores - 1.0) + self.coherence * pairs)
    }

    /// Returns it as a line of a picture.
    pub(super) fn curve(&self, cores: &[usize]) -> Curve {
        let points = cores.iter().map(|&cores| (cores as f64, self.at(cores as f64)));
        Curve { name: format!("law of {}", self.lock), points: points.collect() }
    }

    /// Says it in a sentence.
    pub(super) fn words(&self) -> String {
        let peak =
            self.peak.map_or("no peak".to_owned(), |peak| format!("peak at {peak:.0} cores"));
        let off = match self.error_percent {
            Some(off) => format!("{off:.0} % off at most"),
            None => {
                "no error can be given: three numbers for three points, ask for more --cores".into()
            }
        };
        format!(
            "{}, universal scalability law: {:.1} % serial, {:.4} % for each pair, {peak}; {off}",
            self.lock,
            self.contention * 100.0,
            self.coherence * 100.0,
        )
    }
}

/// Fits the law to the predicted points of one lock, by least squares of the relative distance of
/// `N / X`, which is linear in what is sought. `None` with fewer than three.
pub(super) fn fit(points: &[WhatifPoint]) -> Option<ScalingLaw> {
    let found = points.iter().filter_map(|p| Some((p.cores as f64, p.figures.as_ref()?)));
    let found = found.map(|(cores, figures)| (cores, figures.jobs_per_second));
    of(points.first()?.lock, &found.filter(|&(_, jobs)| jobs > 0.0).collect::<Vec<_>>())
}

fn of(lock: &'static str, points: &[(f64, f64)]) -> Option<ScalingLaw> {
    if points.len() < 3 {
        return None;
    }
    // What is less than nothing is left out, and the rest fitted again.
    let sets: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let solved = sets.iter().find_map(|set| {
        let solution = least_squares(points, set)?;
        let fine = solution[0] > 0.0 && solution[1] >= 0.0 && solution[2] >= 0.0;
        fine.then_some(solution)
    })?;
    let [whole, serial, pairs] = solved;
    let mut law = ScalingLaw {
        lock,
        one: 1.0 / whole,
        contention: serial / whole,
        coherence: pairs / whole,
        peak: None,
        error_percent: None,
    };
    let peak = ((1.0 - law.contention) / law.coherence).sqrt();
    law.peak = (law.coherence > 0.0 && law.contention < 1.0).then_some(peak.max(1.0));
    let off = points.iter().map(|&(cores, jobs)| (law.at(cores) / jobs - 1.0).abs() * 100.0);
    // What is less than nothing has been left out of the numbers, so that there may be fewer.
    let numbers = solved.iter().filter(|&&number| number > 0.0).count();
    law.error_percent = (points.len() > numbers).then(|| off.fold(0.0, f64::max));
    Some(law)
}

/// Solves for the coefficients of 1, N - 1 and N (N - 1) that are in `set`.
fn least_squares(points: &[(f64, f64)], set: &[usize]) -> Option<[f64; 3]> {
    let size = set.len();
    let mut sums = vec![vec![0.0; size + 1]; size];
    for &(cores, jobs) in points {
        let wanted = cores / jobs;
        let row = [1.0, cores - 1.0, cores * (cores - 1.0)].map(|term| term / wanted);
        for (i, &one) in set.iter().enumerate() {
            for (j, &other) in set.iter().enumerate() {
                sums[i][j] += row[one] * row[other];
            }
            sums[i][size] += row[one];
        }
    }
    for at in 0..size {
        let best = (at..size).max_by(|&a, &b| sums[a][at].abs().total_cmp(&sums[b][at].abs()))?;
        sums.swap(at, best);
        if sums[at][at].abs() < 1e-12 {
            return None;
        }
        let pivot = sums[at].clone();
        for (_, row) in sums.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = row[at] / pivot[at];
            row.iter_mut().zip(&pivot).for_each(|(value, other)| *value -= factor * other);
        }
    }
    let mut solution = [0.0; 3];
    for (i, &term) in set.iter().enumerate() {
        solution[term] = sums[i][size] / sums[i][i];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_that_made_the_points_is_found() {
        let law = |n: f64| 1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0));
        let points: Vec<(f64, f64)> = [1.0, 2.0, 8.0, 32.0, 64.0].map(|n| (n, law(n))).into();
        let found = of("present", &points).expect("five points");
        assert!((found.one - 1000.0).abs() < 0.1, "{found:?}");
        assert!((found.contention - 0.05).abs() < 1e-5, "{found:?}");
        assert!((found.coherence - 0.001).abs() < 1e-6, "{found:?}");
        assert!((found.peak.expect("a peak") - 950f64.sqrt()).abs() < 0.1, "{found:?}");
        assert!(
            found.error_percent.is_some_and(|off| off < 0.01)
                && found.words().contains("peak at 31"),
            "{found:?}"
        );
    }

    #[test]
    fn three_numbers_say_nothing_of_three_points() {
        let points = [(1.0, 10.0), (2.0, 15.0), (4.0, 17.0)];
        let found = of("present", &points).expect("three points");
        assert!(found.coherence > 0.0 && found.error_percent.is_none(), "{found:?}");
        assert!(found.words().contains("no error can be given"), "{found:?}");
    }

    #[test]
    fn nothing_is_less_than_nothing() {
        let linear = [(1.0, 10.0), (2.0, 21.0), (4.0, 43.0)];
        let found = of("present", &linear).expect("three points");
        assert!(found.contention == 0.0 && found.coherence == 0.0, "{found:?}");
        assert_eq!(found.peak, None);
        assert!(of("present", &linear[..2]).is_none());
    }
}
