//! `lockstead plot`: a report of `lockstead bench` as a picture.

mod bars;
mod canvas;
mod contended;
mod frame;
mod frontier;
mod map;
mod report;
mod uncontended;
mod vfs;

use crate::failure::Failure;
use crate::files::{self, can_write};
use crate::output;
use clap::Args;
pub(crate) use frame::short;
pub(crate) use frontier::draw as draw_frontier;
use lockstead_bench::contended::grid::Grid;
pub(crate) use map::{TIE, draw as draw_map};
use report::PlotReport;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench vfs --json > vfs.json
  lockstead plot vfs.json -o vfs.svg
  lockstead bench uncontended --json | lockstead plot - -o - > pair.svg")]
pub(crate) struct Plot {
    /// A report written with --json, or - for standard input
    #[arg(value_name = "FILE.json")]
    pub(crate) file: PathBuf,
    /// The picture to write, or - for standard output
    #[arg(short, long, value_name = "FILE.svg")]
    pub(crate) output: PathBuf,
}

/// A report is some ten kilobytes; this bounds what a mistaken name can load.
const MAX_BYTES: u64 = 64 << 20;

/// Draws the picture of a report.
///
/// # Errors
/// [`Failure::Usage`] if the report cannot be read or is none, or if the
/// picture cannot be written there; [`Failure::Run`] if writing breaks off.
pub(crate) fn run(plot: &Plot) -> Result<(), Failure> {
    let refused = |why: String| Failure::option("FILE.json", plot.file.display(), why);
    let text = read(&plot.file).map_err(|error| refused(error.to_string()))?;
    let svg = match report::parse(&text).map_err(refused)? {
        PlotReport::Vfs(report) => vfs::draw(&report),
        PlotReport::Uncontended(report) => uncontended::draw(&report),
        PlotReport::Contended(report) => contended::draw(&report),
    }?;
    if plot.output.as_os_str() == "-" {
        return output::print(&svg);
    }
    write(&plot.output, &svg)?;
    output::note(format_args!("wrote {}", plot.output.display()));
    Ok(())
}

fn read(path: &Path) -> io::Result<String> {
    let mut source: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    let mut text = String::new();
    source.by_ref().take(MAX_BYTES).read_to_string(&mut text)?;
    if source.read(&mut [0])? != 0 {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(text)
}

/// Reads the cells of a contended report.
///
/// # Errors
/// What is wrong with the file, for the user.
pub(crate) fn read_grid(path: &Path) -> Result<Grid, String> {
    match report::parse(&read(path).map_err(|error| error.to_string())?)? {
        PlotReport::Contended(grid) => Ok(grid),
        PlotReport::Vfs(_) | PlotReport::Uncontended(_) => {
            Err("a report, but not of 'lockstead bench contended'".into())
        }
    }
}

/// Writes the picture whole or not at all; a device or a pipe is written to.
fn write(path: &Path, svg: &str) -> Result<(), Failure> {
    if !path.exists() || path.is_file() || path.is_dir() {
        can_write(path).map_err(|why| {
            let why = format!("{why}; name a file in a writable directory");
            Failure::option("--output <FILE.svg>", path.display(), why)
        })?;
    }
    files::write(path, svg)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
}
