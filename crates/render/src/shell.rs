//! What a command and a terminal agree on: colour, completions of the command's words, and manual pages.
//!
//! A shell asks the command itself what may come next, so that the answer is that of the version
//! which is installed. The script that [`registration`] writes has the shell start the command with
//! the variable [`ASKED`] set.

use crate::failure::Failure;
use clap::{Args, ColorChoice, Command};
use clap_complete::env::{CompleteEnv, Shells};
use std::env;
use std::ffi::OsString;
use std::path::Path;

/// The flag by which whoever calls a command chooses whether it writes in colour.
#[derive(Args, Clone, Copy, Debug)]
pub struct ColorFlag {
    /// When to use colour; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, global = true, display_order = 900)]
    #[arg(default_value_t = ColorChoice::Auto, hide_default_value = true)]
    color: ColorChoice,
}

impl ColorFlag {
    /// Makes the choice that of all output of this process.
    pub fn apply(self) {
        let choice = match self.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }

    /// Returns the flag that has another process make the choice of this one; `None` where there is
    /// nothing to tell.
    #[must_use]
    pub fn applied() -> Option<&'static str> {
        match anstream::ColorChoice::global() {
            anstream::ColorChoice::Auto => None,
            anstream::ColorChoice::Never => Some("--color=never"),
            anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => {
                Some("--color=always")
            }
        }
    }
}

/// The variable by which a shell asks for completions; its value is the shell.
pub const ASKED: &str = "LOCKSTEAD_COMPLETE";

/// The name under which both programs are called.
const NAME: &str = "lockstead";

/// Returns the words of the command line that a shell wants to have completed, the one of the command
/// first; `None` if this process was not started for that.
#[must_use]
pub fn asked() -> Option<Vec<OsString>> {
    // Those two values turn it off.
    env::var_os(ASKED).filter(|shell| !shell.is_empty() && shell != "0")?;
    Some(env::args_os().skip_while(|word| word != "--").skip(1).collect())
}

/// Answers a shell that asks for completions, and ends the process; returns if none does.
pub fn complete(command: fn() -> Command) {
    CompleteEnv::with_factory(command).var(ASKED).complete();
}

/// Returns the script by which a shell, `bash` say, completes the words of the command.
///
/// # Errors
/// There is no such shell.
pub fn registration(shell: &str) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let unknown = || Failure::Usage(format!("no completions for the shell {shell}"));
    let completer = shells.completer(shell).ok_or_else(unknown)?;
    let mut script = Vec::new();
    completer
        .write_registration(ASKED, NAME, NAME, NAME, &mut script)
        .map_err(|error| Failure::Run(format!("cannot write the script: {error}")))?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Writes a manual page for the command and for each subcommand of which `wanted` says so. The files
/// are called as the commands, `lockstead-bench-vfs.1`.
///
/// # Errors
/// A file cannot be written; the message names it.
pub fn manual(
    command: Command,
    folder: &Path,
    wanted: &dyn Fn(&Command) -> bool,
) -> Result<(), Failure> {
    let mut command = without_help(command);
    command.build();
    let source = format!("{NAME} {}", command.get_version().unwrap_or_default());
    let mut left = vec![command];
    while let Some(command) = left.pop() {
        left.extend(command.get_subcommands().filter(|below| !below.is_hide_set()).cloned());
        if wanted(&command) {
            let page = clap_mangen::Man::new(command).source(source.as_str()).manual(NAME);
            let file = folder.join(page.get_filename());
            let mut text = Vec::new();
            page.render(&mut text).and_then(|()| std::fs::write(&file, text)).map_err(|error| {
                Failure::Run(format!("cannot write {}: {error}", file.display()))
            })?;
        }
    }
    Ok(())
}

/// Takes away the subcommands `help`, which would be pages that say nothing.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command::new(NAME)
            .version("1.2")
            .subcommand(Command::new("bench").subcommand(Command::new("vfs").about("Files")))
            .subcommand(Command::new("locks").hide(true))
            .subcommand(Command::new("run"))
    }

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        manual(command(), folder.path(), &|of| of.get_name() != "run").expect("written");
        let mut pages: Vec<_> = std::fs::read_dir(folder.path())
            .expect("the folder")
            .map(|entry| entry.expect("a page").file_name().into_string().expect("text"))
            .collect();
        pages.sort();
        assert_eq!(pages, ["lockstead-bench-vfs.1", "lockstead-bench.1", "lockstead.1"]);
        let page = std::fs::read_to_string(folder.path().join("lockstead-bench-vfs.1"));
        let page = page.expect("the page");
        assert!(page.contains("lockstead\\-bench\\-vfs \\- Files"), "{page}");
        assert!(page.contains("lockstead 1.2"), "{page}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let failure = manual(command(), Path::new("/nowhere/at/all"), &|_| true);
        let text = failure.expect_err("no folder").to_string();
        assert!(text.starts_with("cannot write /nowhere/at/all/lockstead.1: "), "{text}");
    }
}
