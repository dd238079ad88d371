//! `lockstead completions` and `lockstead man`: what whoever installs the command gives to shells and
//! to `man`.

use crate::args::Cli;
use crate::measuring;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use lockstead_render::failure::Failure;
use lockstead_render::{output, shell};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Where shells look for it:
  bash  ~/.local/share/bash-completion/completions/lockstead
  fish  ~/.config/fish/completions/lockstead.fish
  zsh   _lockstead in a folder of $fpath

Examples:
  lockstead completions bash > ~/.local/share/bash-completion/completions/lockstead
  lockstead completions zsh")]
pub(crate) struct CompletionsFlags {
    /// The shell that asks
    shell: Shell,
}

/// Prints the script for a shell.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn completions(flags: &CompletionsFlags) -> Result<(), Failure> {
    output::print(&shell::registration(&flags.shell.to_string())?)
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead man ~/.local/share/man/man1
  lockstead man /tmp/pages && man /tmp/pages/lockstead-run.1")]
pub(crate) struct ManFlags {
    /// The folder, made if it is not there; pages that are there already are written anew
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the manual pages.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn man(flags: &ManFlags) -> Result<(), Failure> {
    let folder = &flags.folder;
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::Run(format!("cannot make {}: {error}", folder.display())))?;
    let with_theirs = measuring::man(folder)?;
    // After the others: what both write a page for is described here.
    shell::manual(Cli::command(), folder, &|command| !command.is_disable_help_flag_set())?;
    output::note(format_args!("lockstead: the manual pages are in {}", folder.display()));
    if !with_theirs {
        output::note(
            "lockstead: the subcommands that measure, simulate and draw have theirs where \
             lockstead-bench is installed, which it is not here",
        );
    }
    Ok(())
}
