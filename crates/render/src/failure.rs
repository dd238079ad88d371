//! How a command ends when it does not end well, and with which status.

use std::fmt;

/// The reason why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// What was asked for cannot be done: status 2. The text names the option
    /// and what is allowed.
    Usage(String),
    /// Something went wrong on the way: status 1.
    Run(String),
    /// The report is complete, and there is a deadlock in it: status 3, nothing
    /// to add.
    Deadlock,
    /// What was asked for is not there, and that was said: status 3, nothing to add.
    Absent,
    /// A signal asked for the end: status 130.
    Interrupted,
    /// A program was not started: the status says why, as a shell's would.
    Refused {
        /// The exit status of the command.
        status: u8,
        /// The reason, and what to do instead.
        text: String,
    },
    /// A program was run and ended with this status, which becomes the
    /// command's, in silence.
    Program(u8),
    /// The reader of standard output has gone. It has all it wanted: status 0,
    /// in silence.
    Closed,
}

impl Failure {
    /// Returns a usage error in clap's words.
    pub fn option(option: &str, value: impl fmt::Display, why: impl fmt::Display) -> Self {
        Failure::Usage(format!("invalid value '{value}' for '{option}': {why}"))
    }

    /// Returns the exit status, as `lockstead --help` lists them.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Failure::Closed => 0,
            Failure::Run(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Deadlock | Failure::Absent => 3,
            Failure::Interrupted => 130,
            Failure::Refused { status, .. } | Failure::Program(status) => *status,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Run(text) | Failure::Refused { text, .. } => {
                f.write_str(text)
            }
            Failure::Program(status) => write!(f, "the program ended with status {status}"),
            Failure::Interrupted => {
                f.write_str("interrupted; the measurement is not complete and is not reported")
            }
            Failure::Absent => f.write_str("it is not there"),
            Failure::Deadlock => f.write_str("there is a deadlock"),
            Failure::Closed => f.write_str("standard output was closed"),
        }
    }
}

impl std::error::Error for Failure {}
