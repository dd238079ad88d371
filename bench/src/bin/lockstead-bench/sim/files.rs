//! The files that a simulation is written to, beside its output.

use super::picture::{Curve, curves};
use crate::failure::Failure;
use crate::files::{can_write, write};
use crate::html::escape;
use clap::Args;
use std::path::{Path, PathBuf};

/// A picture, and a page with the picture and what is printed.
#[derive(Debug, Args)]
pub(crate) struct PictureFiles {
    /// Write a picture as well
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write one HTML page with picture and figures as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl PictureFiles {
    /// Tells whether all of them can be written.
    ///
    /// # Errors
    /// Which cannot, and why.
    pub(super) fn check(&self) -> Result<(), Failure> {
        for (flag, file) in [("--svg <FILE>", &self.svg), ("--html <FILE>", &self.html)] {
            if let Some(file) = file {
                can_write(file).map_err(|why| Failure::option(flag, file.display(), why))?;
            }
        }
        Ok(())
    }

    /// Writes those that were asked for.
    ///
    /// # Errors
    /// Which could not be written.
    pub(super) fn write(
        &self,
        title: &str,
        picture: impl Fn() -> String,
        text: &str,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.svg {
            save(file, &picture())?;
        }
        if let Some(file) = &self.html {
            save(file, &page(title, &picture(), text))?;
        }
        Ok(())
    }

    /// Writes the same with curves of jobs a second by cores, one for each lock.
    ///
    /// # Errors
    /// As [`PictureFiles::write`].
    pub(super) fn write_curves(
        &self,
        (workload, machine): (&str, &str),
        lines: &[Curve],
        text: &str,
    ) -> Result<(), Failure> {
        let title = format!("{workload} on {machine}: jobs a second by cores");
        self.write(&title, || curves(&title, lines), text)
    }
}

/// Writes a file.
///
/// # Errors
/// That it cannot be written.
pub(super) fn save(file: &Path, content: &str) -> Result<(), Failure> {
    write(file, content)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}", file.display())))
}

const STYLE: &str = "body{font:15px sans-serif;max-width:1000px;margin:2em auto;color:#20242a;\
background:#fff}pre{overflow-x:auto}svg{background:#fff}\
@media(prefers-color-scheme:dark){body{background:#16191d;color:#dde2e8}}";

/// Makes a page that has everything in it and fetches nothing.
fn page(title: &str, picture: &str, text: &str) -> String {
    let title = escape(title);
    // As on a terminal, but for the styles.
    let text = anstream::adapter::strip_str(text).to_string();
    let lines: Vec<String> = text.lines().map(escape).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1>{picture}<pre>{}</pre></body></html>\n",
        lines.join("\n")
    )
}
