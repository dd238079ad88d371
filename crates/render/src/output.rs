//! Standard output carries the result and nothing else; standard error carries
//! the rest. Colour is dropped by `anstream` where it is not wanted: no
//! terminal, `NO_COLOR`, or `--color`.

use crate::failure::Failure;
use crate::machine::MachineFacts;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Writes to standard output.
///
/// # Errors
/// [`Failure::Closed`] if nobody reads it any more, else what the system says.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error: io::Error| {
        if error.kind() == ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::Run(format!("cannot write to standard output: {error}"))
        }
    })
}

/// Writes a report as JSON to standard output.
///
/// # Errors
/// As [`print()`].
pub fn print_json(report: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(report)
        .map_err(|error| Failure::Run(format!("cannot write the report as JSON: {error}")))?;
    print(&(json + "\n"))
}

/// Tells the user something. A closed standard error is no reason to stop.
pub fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints what was found in a program that runs, in one piece: its own output
/// goes on meanwhile. The first line stands out on a terminal.
pub fn finding(text: &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let plain = anstream::AutoStream::choice(&io::stderr()) == anstream::ColorChoice::Never;
    let styled = if plain { text.to_owned() } else { format!("{ERROR}{first}{ERROR:#}\n{rest}") };
    // Not through anstream, which writes piece by piece.
    let _ = io::stderr().lock().write_all(styled.as_bytes());
}

/// Says why the command stops.
pub fn error(text: impl Display) {
    note(format_args!("{ERROR}error:{ERROR:#} {text}"));
}

/// Says what is to be doubted, or done otherwise.
pub fn warning(text: impl Display) {
    note(format_args!("{WARNING}warning:{WARNING:#} {text}"));
}

/// Says why the figures of a run are not to be trusted.
pub fn warn_about(machine: &MachineFacts) {
    if !machine.optimised {
        warning("built without optimisation, the figures mean nothing; build with --release");
    }
}

/// Ends a command: says why if it failed, and gives its exit status.
pub fn end(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    match &failure {
        Failure::Closed | Failure::Deadlock | Failure::Absent | Failure::Program(_) => {}
        Failure::Usage(_) => {
            error(&failure);
            note("\nFor more information, try '--help'.");
        }
        Failure::Run(_) | Failure::Refused { .. } | Failure::Interrupted => error(&failure),
    }
    ExitCode::from(failure.status())
}
