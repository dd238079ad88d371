//! The program `lockstead-cluster`, which `lockstead cluster …` starts: locks over etcd for scripts, and
//! what an administrator wants to know of them. Each subcommand has its file with its flags.

mod common;
mod demo;
mod dump;
mod local;
mod lock;
mod signals;
mod storm;
mod supervise;
mod top;

use clap::{CommandFactory, Parser, Subcommand};
use lockstead_render::output;
use lockstead_render::shell::{self, ColorFlag};
use std::path::PathBuf;
use std::process::ExitCode;

/// Locks over etcd: for scripts, and who holds and waits for them on which host
#[derive(Debug, Parser)]
#[command(
    name = "lockstead-cluster",
    bin_name = "lockstead cluster",
    version,
    max_term_width = 100
)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Exit status:
  0    done
  1    something failed on the way
  2    wrong usage
  3    dump: there is a deadlock; release: nobody has that lock

`lock` has its own: see `lockstead cluster lock --help`.")]
struct Cli {
    #[command(flatten)]
    color: ColorFlag,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a command while a lock is held
    Lock(lock::LockFlags),
    /// Show who holds and who waits for which lock, on all hosts, and deadlocks
    Dump(dump::DumpFlags),
    /// List the locks that somebody has or waits for
    Ls(dump::LsFlags),
    /// Show the locks by how many wait, once a second
    Top(top::TopFlags),
    /// Take a lock away from whoever holds it, or free one that is not recoverable
    Release(dump::ReleaseFlags),
    /// Show it all with a member of etcd that is started for that
    Demo(demo::DemoFlags),
    /// Break things while clients use locks, and look whether anything went wrong
    Storm(storm::StormFlags),
    /// Measure requests and times of locks
    Bench(storm::BenchFlags),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Man {
        /// The folder for the pages
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    shell::complete(Cli::command);
    let cli = Cli::parse();
    cli.color.apply();
    output::end(match cli.command {
        Command::Lock(flags) => lock::run(&flags),
        Command::Dump(flags) => dump::run(&flags),
        Command::Ls(flags) => dump::list(&flags),
        Command::Top(flags) => top::run(&flags),
        Command::Release(flags) => dump::release(&flags),
        Command::Demo(flags) => demo::run(&flags),
        Command::Storm(flags) => storm::run(&flags),
        Command::Bench(flags) => storm::bench(&flags),
        Command::Man { folder } => {
            let command = Cli::command().name("lockstead-cluster").bin_name("lockstead-cluster");
            shell::manual(command, &folder, &|_| true)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
