//! `lockstead export`: a recording as other programs show it.
//!
//! ```text
//! recording ─▶ wakers: who ended each wait ──▶ chrome: slices and arrows ─────────▶ Perfetto
//!           ├▶ blame: whose time it was ─▶ weights of stacks ─▶ folded, speedscope ─▶ flame graphs
//!           │                          └▶ pprof, with labels ────────────────────▶ go tool pprof
//!           └▶ page: both, drawn in one page ─────────────────────────────────────▶ a browser
//! ```

mod blame;
mod chrome;
mod flags;
mod labels;
mod page;
mod pprof;
mod speedscope;
mod wakers;

pub(crate) use flags::ExportFlags;

use crate::recording::{self, Recording};
use flags::ExportFormat;
use lockstead_render::failure::Failure;
use lockstead_render::files::is_same;
use lockstead_render::output;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Writes a recording in another format.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &ExportFlags) -> Result<(), Failure> {
    let is_binary = flags.format == ExportFormat::Pprof;
    if is_binary && flags.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "a profile for pprof is no text for a terminal: name a file for it with -o FILE, or \
             lead the output into another program"
                .into(),
        ));
    }
    if flags.output.as_deref().is_some_and(|output| is_same(output, &flags.file)) {
        return Err(Failure::Usage(format!(
            "{} is the recording itself, which would be lost: name another file with -o",
            flags.file.display()
        )));
    }
    let recording = recording::read(&flags.file)?;
    let missing = recording.totals.lost.saturating_add(recording.totals.cut);
    if missing != 0 {
        output::note(format_args!(
            "lockstead: the recording lacks {} events: {} were lost, {} had no room in the file",
            missing, recording.totals.lost, recording.totals.cut,
        ));
    }
    let write = |to: &mut dyn Write| match flags.format {
        ExportFormat::Chrome => chrome::write(&recording, to),
        ExportFormat::Folded => folded(&recording, flags, to),
        ExportFormat::Pprof => pprof::write(&recording, (flags.by, flags.idle), to),
        ExportFormat::Html => page::write(&recording, (flags.by, flags.idle), to),
        ExportFormat::Speedscope => speedscope::write(&recording, (flags.by, flags.idle), to),
    };
    match &flags.output {
        Some(file) => to_file(file, write)
            .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display()))),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out).and_then(|()| out.flush()).map_err(|error| match error.kind() {
                ErrorKind::BrokenPipe => Failure::Closed,
                _ => Failure::Run(format!("cannot write to standard output: {error}")),
            })
        }
    }
}

fn to_file(file: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    write(&mut out)?;
    out.flush()
}

/// Writes a line for each stack, outermost function first, with the nanoseconds.
fn folded(recording: &Recording, flags: &ExportFlags, to: &mut dyn Write) -> io::Result<()> {
    for process in &recording.processes {
        for (stack, weight) in blame::weights(process, flags.by, flags.idle) {
            let frames: Vec<String> = stack.iter().map(|frame| one_word(&frame.name)).collect();
            writeln!(to, "{} {weight}", frames.join(";"))?;
        }
    }
    Ok(())
}

/// Returns a name that does not end a frame or a line.
fn one_word(name: &str) -> String {
    name.replace(';', ":").replace(['\n', '\r'], " ")
}
