//! The flags of `lockstead top`.

use clap::{Args, ValueEnum};
use std::time::Duration;

/// A column to sort by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// Name of the lock
    Lock,
    /// Time that threads waited
    #[default]
    Waiting,
    /// How often the lock was acquired
    Acquisitions,
    /// Acquisitions that found the lock taken
    Contended,
    /// Threads that wait now
    Waiters,
    /// How long the lock has been held
    Held,
}

impl Column {
    /// All of them, from left to right.
    pub(super) const ALL: [Column; 6] = [
        Column::Lock,
        Column::Waiting,
        Column::Acquisitions,
        Column::Contended,
        Column::Waiters,
        Column::Held,
    ];

    /// Returns the one `by` columns to the right, around the end.
    pub(super) fn step(self, by: isize) -> Column {
        let at = Self::ALL.iter().position(|&column| column == self).unwrap_or(0) as isize;
        Self::ALL[(at + by).rem_euclid(Self::ALL.len() as isize) as usize]
    }
}

/// The flags of `lockstead top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead run -- ./server &
  lockstead top $!                          the program that this `run` started
  lockstead top $(pidof server) --sort held
  lockstead top --batch -n 5 -d 2 $(pidof server) > locks.txt
  lockstead top --filter cache $(pidof server)

Keys: up and down choose a lock, Enter shows its places, stacks and threads, / filters,
s and S other column, 1 to 6 column, p pause, f freeze the order, h help, q quit.

Needs a process that `lockstead run` watches. For any other process, `lockstead dump PID`
shows who waits and who holds.")]
pub(crate) struct Top {
    /// The process, or the `lockstead run` that started it
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: u32,
    /// Seconds between two looks
    #[arg(short, long, default_value = "1", value_name = "SECONDS")]
    #[arg(value_parser = lockstead_render::values::seconds)]
    pub(crate) delay: Duration,
    /// End after N looks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Print plain text, one look after the other; so it is where there is no terminal
    #[arg(short, long)]
    pub(crate) batch: bool,
    /// The column to sort by
    #[arg(long, value_name = "COLUMN", default_value = "waiting")]
    pub(crate) sort: Column,
    /// Show only locks with this in their names, in capitals or not
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) filter: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_round() {
        let round = Column::ALL.iter().fold(Column::Held, |column, _| column.step(1));
        assert_eq!(round, Column::Held);
        assert_eq!(Column::Lock.step(-1), Column::Held);
        assert_eq!(Column::Held.step(1), Column::Lock);
    }
}
