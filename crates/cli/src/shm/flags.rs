//! The flags of `lockstead shm`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead shm /dev/shm/orders
  lockstead shm /dev/shm/orders --json | jq '.participants[] | select(.state == \"dead\")'
  lockstead shm /dev/shm/orders --recover           waiters for the dead go on
  lockstead shm /proc/1234/fd/5                     a segment without a name

Exit status:
  0    shown
  1    it cannot be opened, or is no segment: the message says why
  2    wrong usage
  3    shown, and there is a deadlock")]
pub(crate) struct Shm {
    /// The file of the segment
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Declare those participants dead that certainly do not exist any more, where the kernel has
    /// not; everybody who waits looks again. Nothing of a living one is touched
    #[arg(long)]
    pub(crate) recover: bool,
    /// Free the locks that are not recoverable too. That what they protect is in order is yours to
    /// know
    #[arg(long, requires = "recover")]
    pub(crate) reset: bool,
    /// List all locks, free ones as well, however many there are
    #[arg(long)]
    pub(crate) all: bool,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
