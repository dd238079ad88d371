//! `lockstead sim`: locks on machines that one does not have.

mod advice;
mod anchor;
pub(crate) mod check;
mod classes;
mod draws;
mod files;
mod fit;
mod flags;
pub(crate) mod gate;
mod knee;
mod life;
mod measure;
mod page;
mod picture;
mod prediction;
mod profile;
mod recorded;
pub(crate) mod replay;
mod represent;
mod scene;
pub(crate) mod sensitivity;
mod simulate;
pub(crate) mod single;
pub(crate) mod sweep;
pub(crate) mod trace;
mod usl;
pub(crate) mod whatif;

pub(crate) use flags::{SimCommand, Whatif};

use crate::failure::Failure;
use crate::output;
use lockstead_sim::{LOCKS, MACHINES, Machine, WORKLOADS, Workload};
use std::fmt::Write;

/// Does what the subcommand says.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(sim: &SimCommand) -> Result<(), Failure> {
    match sim {
        SimCommand::Replay(flags) => replay::run(flags),
        SimCommand::Fit(flags) => fit::run(flags),
        SimCommand::Sensitivity(flags) => sensitivity::run(flags),
        SimCommand::Run(flags) => single::run(flags),
        SimCommand::Sweep(flags) => sweep::run(flags),
        SimCommand::Whatif(flags) => whatif::run(flags),
        SimCommand::Trace(flags) => trace::run(flags),
        SimCommand::Check(flags) => check::run(flags),
        SimCommand::Measure(flags) => measure::run(flags),
        SimCommand::List(_) => output::print(&list()),
    }
}

fn list() -> String {
    let mut text = String::new();
    let mut block = |title: &str, lines: Vec<(String, String)>| {
        let _ = writeln!(text, "{title}");
        for (name, about) in lines {
            let _ = writeln!(text, "  {name:20} {about}");
        }
    };
    let machine =
        |name: &str| Machine::bundled(name).map_or(String::new(), |machine| machine.about);
    let workload =
        |name: &str| Workload::bundled(name).map_or(String::new(), |workload| workload.about);
    block("Machines", MACHINES.iter().map(|&(name, _)| (name.into(), machine(name))).collect());
    let locks = LOCKS.iter().map(|&(_, name, about)| (name.into(), about.into()));
    block("Locks", locks.collect());
    block("Workloads", WORKLOADS.iter().map(|&(name, _)| (name.into(), workload(name))).collect());
    text
}
