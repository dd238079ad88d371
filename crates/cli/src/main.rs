//! The command `lockstead`: measure locks, replay the announcement of 2005,
//! draw the results. Flags are in `args`, each subcommand has its file.

mod args;
mod bench_ablation;
mod bench_contended;
mod bench_flags;
mod bench_map;
mod bench_rt;
mod bench_scaling;
mod bench_summary;
mod bench_uncontended;
mod bench_vfs;
mod check;
mod clock;
mod compare;
mod demo;
mod dump;
#[cfg(test)]
mod examples;
mod explain;
mod failure;
mod features;
mod files;
mod finding_text;
mod interrupt;
mod oncpu;
mod output;
mod plot;
mod preload_image;
mod progress;
mod report;
mod run;
mod shared;
mod shm;
mod sim;
mod table;
mod top;
mod values;
mod why;
mod words;

use args::{Bench, Cli, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(status) = lockstead_bench::shared::serve() {
        return status;
    }
    let outcome = match Cli::parse().command {
        Command::Demo(flags) => demo::run(&flags),
        Command::Bench(Bench::Vfs(flags)) => bench_vfs::run(&flags),
        Command::Bench(Bench::Uncontended(flags)) => bench_uncontended::run(&flags),
        Command::Bench(Bench::Contended(flags)) => bench_contended::run(&flags),
        Command::Bench(Bench::Map(flags)) => bench_map::run(&flags),
        Command::Bench(Bench::Ablation(flags)) => bench_ablation::run(&flags),
        Command::Bench(Bench::Rt(flags)) => bench_rt::run(&flags),
        Command::Bench(Bench::Shared(flags)) => shared::bench::run(&flags),
        Command::Bench(Bench::Storm(flags)) => shared::storm::run(&flags),
        Command::Bench(Bench::Steps(flags)) => shared::steps::run(&flags),
        Command::Bench(Bench::Rivals(flags)) => shared::rivals::run(&flags),
        Command::Bench(Bench::Dead(flags)) => shared::dead::run(&flags),
        Command::Dump(flags) => dump::run(&flags),
        Command::Explain(flags) => explain::run(&flags),
        Command::Features(flags) => features::run(&flags),
        Command::Run(flags) => run::run(&flags),
        Command::Check(flags) => check::run(&flags),
        Command::Why(flags) => why::run(&flags),
        Command::Top(flags) => top::run(&flags),
        Command::Shm(flags) => shm::run(&flags),
        Command::Sim(sim) => sim::run(&sim),
        Command::Oncpu(what) => oncpu::run(&what),
        Command::Plot(flags) => plot::run(&flags),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            match &failure {
                Failure::Closed | Failure::Deadlock | Failure::Absent | Failure::Program(_) => {}
                Failure::Usage(_) => {
                    output::error(&failure);
                    output::note("\nFor more information, try '--help'.");
                }
                Failure::Run(_) | Failure::Refused { .. } | Failure::Interrupted => {
                    output::error(&failure);
                }
            }
            ExitCode::from(failure.status())
        }
    }
}
