//! The flags of `lockstead oncpu`.

use crate::measuring::Measuring;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum OncpuCommand {
    /// Start the on-CPU table
    ///
    /// Loads an eBPF program that writes down at every switch which thread runs on which processor,
    /// and makes the table readable for everybody at /run/lockstead/oncpu. It stays until `stop` or
    /// the next start of the machine. Programs that take their first lock from now on use it.
    #[command(after_help = "\
Examples:
  sudo lockstead oncpu start
  sudo lockstead oncpu start && lockstead features | grep oncpu_table")]
    Start,
    /// Stop the table; programs that use it go on without
    #[command(after_help = "\
Examples:
  sudo lockstead oncpu stop")]
    Stop,
    /// Say whether the table is kept
    Status(StatusFlags),
    /// Measure how well the other sources know whether an owner runs, and what all of them cost
    ///
    /// The table is the truth. Starts it for so long if nobody keeps it, and measures then what it
    /// adds to a switch. Some seconds.
    Check(Measuring),
}

#[derive(Debug, Args)]
#[command(after_help = STATUS_EXIT)]
pub(crate) struct StatusFlags {
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

const STATUS_EXIT: &str = "\
Examples:
  lockstead oncpu status
  lockstead oncpu status --json

Exit status:
  0    it is kept
  1    it cannot be read
  2    wrong usage
  3    there is none, or nobody keeps it";

pub(crate) const HELP: &str = "\
Examples:
  sudo lockstead oncpu start
  lockstead oncpu status --json
  sudo lockstead oncpu check                  what the sources know and cost
  lockstead features | grep oncpu_table       whether locks use it
  sudo lockstead oncpu stop

Needs root (CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN) to start and stop, a kernel that describes its
types (/sys/kernel/btf/vmlinux), and nothing to be used. Without it locks ask for an owner's
processor-time clock. The table shows everybody which thread, by its number, runs at any moment:
as /proc does, but more exactly.

Exit status:
  0    done; a second start or stop has nothing to do, and is done
  1    it could not be started or stopped: the message says why. Nothing is left behind
  2    wrong usage
  3    status: there is none, or nobody keeps it";
