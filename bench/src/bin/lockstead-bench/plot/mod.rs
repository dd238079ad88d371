//! `lockstead plot`: a report of `lockstead bench` as a picture.

mod bars;
mod canvas;
mod contended;
mod map;
mod report;
mod uncontended;
mod vfs;

use crate::failure::Failure;
use crate::files::{self, can_write};
use crate::output;
use canvas::{Align, Canvas, FAINT, INK, Pen};
use clap::Args;
use lockstead_bench::contended::grid::Grid;
pub(crate) use map::{TIE, draw as draw_map};
use report::PlotReport;
use serde_json::Value;
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

const MARGIN: i32 = 28;

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

/// Title and explanation at the top of every picture.
fn heading(canvas: &Canvas<'_>, title: &str, explanation: &str) -> Result<(), Failure> {
    canvas.text(title, (MARGIN, 30), Align::Left, Pen::new(18, INK).bold())?;
    canvas.text(explanation, (MARGIN, 54), Align::Left, Pen::new(13, FAINT))
}

/// The machine at the foot of every picture.
fn footer(canvas: &Canvas<'_>, machine: &Value, height: i32) -> Result<(), Failure> {
    canvas.text(&describe(machine), (MARGIN, height - 22), Align::Left, Pen::new(12, FAINT))
}

/// What a report says of its machine, in a line.
fn describe(machine: &Value) -> String {
    let text = |key: &str| {
        let text = machine.get(key)?.as_str()?;
        (!text.is_empty() && !text.chars().any(char::is_control))
            .then(|| text.chars().take(80).collect::<String>())
    };
    let processors = machine
        .get("processors")
        .and_then(Value::as_u64)
        .map(|n| format!("{n} processor{}", if n == 1 { "" } else { "s" }));
    let virtualised = (machine.get("virtualised") == Some(&Value::Bool(true)))
        .then(|| "virtual machine".to_owned());
    let unoptimised = (machine.get("optimised") == Some(&Value::Bool(false)))
        .then(|| "BUILT WITHOUT OPTIMISATION".to_owned());
    let kernel = text("kernel").map(|release| format!("Linux {release}"));
    let parts =
        [text("cpu"), processors, virtualised, kernel, text("libc"), text("date"), unoptimised];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "machine not recorded".into() } else { parts.join(" · ") }
}

/// A ratio in at most four characters.
pub(crate) fn short(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "–".into(),
        r if r > 0.0 && r < 0.005 => "<.01".into(),
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r if r < 9999.5 => format!("{r:.0}"),
        _ => ">9999".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::describe;
    use serde_json::json;

    #[test]
    fn a_machine_is_described_as_far_as_it_is_known() {
        let machine = json!({"cpu": "Z80", "processors": 1, "kernel": null, "virtualised": true});
        assert_eq!(describe(&machine), "Z80 · 1 processor · virtual machine");
        assert_eq!(describe(&json!(null)), "machine not recorded");
        assert_eq!(describe(&json!({"cpu": "a\u{0}b"})), "machine not recorded");
    }
}
