//! `--on-hang` and `--hang-after`: what to do when nothing of a run moves any more.
//!
//! # Role
//! A job of a build service that hangs is killed, and nobody learns why. Here the picture is
//! printed before that: every thread of every process, what it waits for, and who could end it.
//! [`watch`] finds the standstill, [`picture`] describes it, [`command`] runs what the user gave,
//! [`ending`] ends the processes.
//!
//! # What stands still
//! A run stands still if all its threads are where they were, and none has run but to wait on.
//! - A thread in a wait *without* a deadline has not been on a processor at all.
//! - A thread in a wait *with* one may wake for it and wait again at the same place for the same
//!   thing, as long as that takes no more than a hundredth of a processor: runtimes have clocks
//!   of their own. Measured: 0.4 % for a Python thread that asks for the GIL every 5 ms, 0.1 % for
//!   the virtual machine of Java, nothing for Go and Node.
//! - No process and no thread has begun or ended, and none is stopped by job control or a
//!   debugger.
//!
//! A server that waits for the network stands still as well: whoever gives the option has asked
//! for just that.

pub(super) mod command;
pub(super) mod ending;
mod family;
pub(super) mod hanging;
pub(super) mod picture;
pub(super) mod watch;

use std::time::Duration;

/// How long nothing has to move, if only `--on-hang` is given.
pub(super) const AFTER: Duration = Duration::from_secs(60);

/// The status of a run whose program was ended while nothing moved.
pub(super) const HUNG: u8 = 4;

/// What `--on-hang` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnHang {
    /// Print the picture and wait on.
    #[default]
    Report,
    /// Print all that `lockstead dump --all` prints of each process, and wait on.
    Dump,
    /// Print the picture and end all processes.
    Abort,
    /// Print the picture and run this with the shell.
    Command(String),
}

/// Returns what the value of the option means.
pub(super) fn action(text: &str) -> Result<OnHang, String> {
    Ok(match text {
        "report" => OnHang::Report,
        "dump" => OnHang::Dump,
        "abort" => OnHang::Abort,
        _ if text.trim().is_empty() => {
            return Err("allowed: report, dump, abort, or a command for the shell".into());
        }
        _ => OnHang::Command(text.to_owned()),
    })
}

/// When the run counts as hung, and what to do then.
#[derive(Clone, Debug)]
pub(super) struct HangOptions {
    /// How long nothing has to move.
    pub(super) after: Duration,
    /// What to do then.
    pub(super) action: OnHang,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_word_of_ours_is_a_command() {
        for (text, meant) in
            [("report", OnHang::Report), ("dump", OnHang::Dump), ("abort", OnHang::Abort)]
        {
            assert_eq!(action(text), Ok(meant));
        }
        assert_eq!(action("./report x"), Ok(OnHang::Command("./report x".into())));
        assert!(action(" ").expect_err("empty").contains("allowed"));
    }
}
