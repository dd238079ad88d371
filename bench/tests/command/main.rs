//! `lockstead-bench` as its users see it, through the built program.

mod beside;
#[path = "../../../crates/cli/tests/common/mod.rs"]
mod common;
mod demo;
mod ending;
mod explain;
mod frontier;
mod map;
mod oncpu;
mod plot;
mod reports;
mod rt;
mod shared;
mod sim;
mod sim_check;
mod sim_files;
mod usage;
mod whatif;
mod ww;
