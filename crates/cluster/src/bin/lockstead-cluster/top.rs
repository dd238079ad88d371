//! `lockstead cluster top`: the locks by how many wait, once a second.

use crate::common::EtcdFlags;
use crate::dump::{look, table};
use clap::Args;
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::{BRIEF, Interrupt};
use lockstead_render::output;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockstead cluster top
  lockstead cluster top --seconds 0.5 --times 10 > log")]
pub(crate) struct TopFlags {
    #[command(flatten)]
    etcd: EtcdFlags,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = lockstead_render::values::seconds)]
    seconds: Duration,
    /// End after so many looks
    #[arg(long, value_name = "NUMBER")]
    times: Option<u64>,
}

pub(crate) fn run(flags: &TopFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(BRIEF)?;
    let clear = std::io::stdout().is_terminal();
    let mut left = flags.times.unwrap_or(u64::MAX);
    while left > 0 && !interrupt.flag().load(Ordering::Relaxed) {
        let mut survey = look(&flags.etcd)?;
        let waiting = |lock: &lockstead_cluster::survey::LockState| {
            lock.places.iter().filter(|place| !place.holds).count()
        };
        survey.locks.sort_by_key(|lock| std::cmp::Reverse(waiting(lock)));
        let cycles = match survey.cycles.len() {
            0 => String::new(),
            number => format!("DEADLOCKS: {number}; see `lockstead cluster dump`\n"),
        };
        let head = if clear { "\x1b[H\x1b[2J" } else { "" };
        let number = survey.locks.len();
        output::print(&format!(
            "{head}{number} locks at revision {}\n{cycles}{}",
            survey.revision,
            table(&survey)
        ))?;
        left -= 1;
        if left > 0 {
            thread::sleep(flags.seconds);
        }
    }
    Ok(())
}
