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
struct Options {
    /// The command under test [default: `lockstead` beside this program]
    #[arg(long, value_name = "FILE")]
    lockstead: Option<PathBuf>,
    /// Repetitions of each measurement, 1 to 99
    #[arg(long, default_value = "7", value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// The parts that are measured
    #[arg(long, value_delimiter = ',', default_value = "micro,memcached,compress,peers")]
    only: Vec<Part>,
    /// Measure `lockstead run --check`
    #[arg(long)]
    check: bool,
    /// Write JSON instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Part {
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
pub(crate) struct Row {
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
    pub(crate) target: Option<Target>,
}

/// What a quotient should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// A quotient of at most this.
    AtMost(f64),
    /// A quotient of at least this.
    AtLeast(f64),
    /// A value of at most this much, in the unit, not a quotient.
    Below(f64),
}

impl Row {
    /// Returns the row of some rounds' pairs of (native, under run).
    pub(crate) fn of(
        name: &str,
        unit: &'static str,
        pairs: &[(f64, f64)],
        t: Option<Target>,
    ) -> Row {
        let column = |f: fn(&(f64, f64)) -> f64| pairs.iter().map(f).collect::<Vec<_>>();
        let ratios = column(|(native, run)| run / native);
        Row {
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
            Some(Target::AtMost(limit)) => {
                format!("<= {limit:.2} {}", if self.ratio <= limit { "reached" } else { "missed" })
            }
            Some(Target::Below(limit)) => {
                format!(
                    "<= {limit} {} {}",
                    self.unit,
                    if self.under_run <= limit { "reached" } else { "missed" }
                )
            }
            Some(Target::AtLeast(limit)) => {
                format!(">= {limit:.2} {}", if self.ratio >= limit { "reached" } else { "missed" })
            }
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run-overhead: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    let tools = Tools::find(options.lockstead.as_deref(), options.check)?;
    let mut rows = Vec::new();
    let rounds = options.rounds as usize;
    for part in &options.only {
        rows.extend(match part {
            Part::Micro => micro::measure(&tools, rounds)?,
            Part::Memcached => memcached::measure(&tools, rounds)?,
            Part::Compress => compress::measure(&tools, rounds)?,
            Part::Peers => peers::measure(&tools, rounds)?,
        });
    }
    let machine = lockstead_render::machine::Machine::here();
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
