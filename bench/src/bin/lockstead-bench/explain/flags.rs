//! The flags of `lockstead explain`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead explain
  lockstead explain --quick
  lockstead explain --html explain.html
  lockstead explain --json > explain.json")]
pub(crate) struct Explain {
    /// Measure for a moment only: what is worth less than a tenth does not show
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report as one HTML page with charts as well
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
