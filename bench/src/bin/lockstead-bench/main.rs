//! `lockstead-bench`: what `lockstead` starts for the subcommands that measure, simulate and
//! draw. It is a program of its own, so that the command that watches programs does not carry
//! benchmarks and their peers. Flags are beside each subcommand.

mod ablation;
mod args;
mod compare;
mod contended;
mod demo;
#[cfg(test)]
#[path = "../../../../crates/cli/src/examples.rs"]
mod examples;
mod explain;
mod frontier;
mod grid_flags;
mod map;
mod oncpu;
mod plot;
mod progress;
#[cfg(test)]
mod reference;
mod rt;
mod scaling;
mod shared;
mod sim;
mod summary;
mod table;
mod uncontended;
mod values;
mod vfs;
mod ww;

use args::{BenchCommand, Cli, Command, OncpuMeasured};
use clap::{CommandFactory, Parser};
use lockstead_bench::locks;
use lockstead_render::{failure, files, html, interrupt, output, shell};
use serde_json::json;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(status) = lockstead_bench::shared::serve() {
        return status;
    }
    shell::complete(Cli::command);
    let cli = Cli::parse();
    cli.color.apply();
    output::end(match cli.command {
        Command::Demo(flags) => demo::run(&flags),
        Command::Bench(BenchCommand::Vfs(flags)) => vfs::run(&flags),
        Command::Bench(BenchCommand::Uncontended(flags)) => uncontended::run(&flags),
        Command::Bench(BenchCommand::Contended(flags)) => contended::run(&flags),
        Command::Bench(BenchCommand::Map(flags)) => map::run(&flags),
        Command::Bench(BenchCommand::Frontier(flags)) => frontier::run(&flags),
        Command::Bench(BenchCommand::Ablation(flags)) => ablation::run(&flags),
        Command::Bench(BenchCommand::Rt(flags)) => rt::run(&flags),
        Command::Bench(BenchCommand::Ww(flags)) => ww::run(&flags),
        Command::Bench(BenchCommand::Shared(flags)) => shared::bench::run(&flags),
        Command::Bench(BenchCommand::Storm(flags)) => shared::storm::run(&flags),
        Command::Bench(BenchCommand::Steps(flags)) => shared::steps::run(&flags),
        Command::Bench(BenchCommand::Rivals(flags)) => shared::rivals::run(&flags),
        Command::Bench(BenchCommand::Dead(flags)) => shared::dead::run(&flags),
        Command::Explain(flags) => explain::run(&flags),
        Command::Sim(sim) => sim::run(&sim),
        Command::Whatif(flags) => sim::whatif::run(&flags),
        Command::Plot(flags) => plot::run(&flags),
        Command::Oncpu(OncpuMeasured::Check(flags)) => oncpu::run(&flags),
        Command::Man { folder } => shell::manual(Cli::command(), &folder, &|command| {
            command.get_display_name() != Some("lockstead")
        }),
        Command::Locks => output::print_json(&json!({
            "locks": locks::available(),
            "locks_absent": locks::unavailable()
                .into_iter()
                .map(|(lock, why)| json!({ "lock": lock, "why": why }))
                .collect::<Vec<_>>(),
        })),
    })
}
