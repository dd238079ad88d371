//! What `lockstead run`, or `lockstead run --check`, costs the program:
//! micro-benchmarks, memcached under load, pigz and xz, each against the program by
//! itself, interleaved; and for scale what other observers cost.
//!
//! Runs what is installed, and says what is not. Every figure is a median of
//! interleaved repetitions; CPU time throughout, throughput where there is one.

mod compress;
mod memcached;
mod micro;
mod peers;
mod tools;

use clap::Parser;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use tools::{Result, Tools};

/// Measure what `lockstead run` costs the program that it observes
#[derive(Debug, Parser)]
#[command(
    name = "run-overhead",
    after_help = "Exit status: 0 measured, 1 something failed, 2 wrong usage.\n\
                  Results go to standard output, all else to standard error."
)]
struct OverheadOptions {
    /// The command under test [default: `lockstead` beside this program]
    #[arg(long, value_name = "FILE")]
    lockstead: Option<PathBuf>,
    /// Repetitions of each measurement, 1 to 99
    #[arg(long, default_value = "7", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// The parts that are measured
    #[arg(long, value_delimiter = ',', default_value = "micro,memcached,compress,peers")]
    only: Vec<OverheadPart>,
    /// Measure `lockstead run --check`
    #[arg(long)]
    check: bool,
    /// Write JSON instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum OverheadPart {
    /// Uncontended locks in a C program of our own
    Micro,
    /// Debian's memcached, four threads, eight connections over loopback
    Memcached,
    /// pigz and xz with two threads
    Compress,
    /// Other observers of locks in the same C program, for scale
    Peers,
}

/// A quantity without and with `lockstead run`.
#[derive(Debug, Serialize)]
pub(crate) struct OverheadRow {
    /// What was measured, as reports write it.
    pub(crate) name: String,
    /// The unit of the quantity.
    pub(crate) unit: &'static str,
    /// The median without `lockstead run`.
    pub(crate) native: f64,
    /// Median under `lockstead run`, or the observer that the name says.
    pub(crate) under_run: f64,
    /// Median of the rounds' quotients, under run by native.
    pub(crate) ratio: f64,
    /// Lowest and highest quotient of a round.
    pub(crate) spread: (f64, f64),
    /// The aim: at most (or at least) this quotient.
    pub(crate) target: Option<QuotientTarget>,
}

/// What a quotient should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuotientTarget {
    /// A quotient of at most this.
    AtMost(f64),
    /// A quotient of at least this.
    AtLeast(f64),
    /// A value of at most this much, in the unit, not a quotient.
    Below(f64),
}

impl OverheadRow {
    /// Returns the row of some rounds' pairs of (native, under run).
    pub(crate) fn of(
        name: &str,
        unit: &'static str,
        pairs: &[(f64, f64)],
        t: Option<QuotientTarget>,
    ) -> OverheadRow {
        let column = |f: fn(&(f64, f64)) -> f64| pairs.iter().map(f).collect::<Vec<_>>();
        let ratios = column(|(native, run)| run / native);
        OverheadRow {
            name: name.into(),
            unit,
            native: lockstead_bench::stats::median(&column(|p| p.0)),
            under_run: lockstead_bench::stats::median(&column(|p| p.1)),
            ratio: lockstead_bench::stats::median(&ratios),
            spread: ratios
                .iter()
                .fold((f64::INFINITY, 0.0), |(low, high), &r| (low.min(r), f64::max(high, r))),
            target: t,
        }
    }

    fn verdict(&self) -> String {
        match self.target {
            None => String::new(),
            Some(QuotientTarget::AtMost(limit)) => {
                format!("<= {limit:.2} {}", if self.ratio <= limit { "reached" } else { "missed" })
            }
            Some(QuotientTarget::Below(limit)) => {
                format!(
                    "<= {limit} {} {}",
                    self.unit,
                    if self.under_run <= limit { "reached" } else { "missed" }
                )
            }
            Some(QuotientTarget::AtLeast(limit)) => {
                format!(">= {limit:.2} {}", if self.ratio >= limit { "reached" } else { "missed" })
            }
        }
    }
}

fn main() -> ExitCode {
    let options = OverheadOptions::parse();
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run-overhead: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &OverheadOptions) -> Result<()> {
    let tools = Tools::find(options.lockstead.as_deref(), options.check)?;
    let mut rows = Vec::new();
    let rounds = options.rounds as usize;
    for part in &options.only {
        rows.extend(match part {
            OverheadPart::Micro => micro::measure(&tools, rounds)?,
            OverheadPart::Memcached => memcached::measure(&tools, rounds)?,
            OverheadPart::Compress => compress::measure(&tools, rounds)?,
            OverheadPart::Peers => peers::measure(&tools, rounds)?,
        });
    }
    let machine = lockstead_render::machine::MachineFacts::here();
    if options.json {
        let report = serde_json::json!({
            "machine": machine, "check": options.check, "rounds": rounds, "rows": rows,
        });
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    println!("{:40} {:>10} {:>10} {:>7}  {:15} target", "", "native", "observed", "ratio", "range");
    for row in &rows {
        println!(
            "{:40} {:>10.3} {:>10.3} {:>7.2}  {:6.2} .. {:5.2} {}",
            format!("{} [{}]", row.name, row.unit),
            row.native,
            row.under_run,
            row.ratio,
            row.spread.0,
            row.spread.1,
            row.verdict()
        );
    }
    Ok(())
}
