//! The command `lockstead`: watch the locks of programs, and of this machine. Subcommands are in
//! `args`, each has its file with its flags; those that measure are another program's
//! (`measuring`).

mod args;
mod attach;
mod check;
mod clock;
mod cycle_text;
mod diff;
mod dump;
#[cfg(test)]
mod examples;
mod export;
mod features;
#[cfg(carried_unwinder)]
mod find_object;
mod finding_text;
mod installing;
mod measuring;
mod oncpu;
mod preload_image;
mod recorded;
mod recording;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod shm;
mod top;
mod why;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use lockstead_render::{output, shell};
use std::process::ExitCode;

fn main() -> ExitCode {
    measuring::complete();
    shell::complete(Cli::command);
    if let Some(failure) = measuring::help() {
        return output::end(Err(failure));
    }
    let cli = Cli::parse();
    cli.color.apply();
    output::end(match cli.command {
        Command::Demo(rest) => measuring::start(&["demo"], &rest),
        Command::Bench(rest) => measuring::start(&["bench"], &rest),
        Command::Cluster(rest) => measuring::start_cluster(&rest),
        Command::Attach(flags) => run::attach(&flags),
        Command::Completions(flags) => installing::completions(&flags),
        Command::Diff(flags) => diff::run(&flags),
        Command::Dump(flags) => dump::run(&flags),
        Command::Explain(rest) => measuring::start(&["explain"], &rest),
        Command::Export(flags) => export::run(&flags),
        Command::Man(flags) => installing::man(&flags),
        Command::Features(flags) => features::run(&flags),
        Command::Run(flags) => run::run(&flags),
        Command::Check(flags) => check::run(&flags),
        Command::Why(flags) => why::run(&flags),
        Command::Top(flags) => top::run(&flags),
        Command::Shm(flags) => shm::run(&flags),
        Command::Sim(rest) => measuring::start(&["sim"], &rest),
        Command::Whatif(rest) => measuring::start(&["whatif"], &rest),
        Command::Oncpu(what) => oncpu::run(&what),
        Command::Plot(rest) => measuring::start(&["plot"], &rest),
    })
}
