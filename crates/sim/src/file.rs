//! Files in TOML, and errors that name the line and what was expected there.

use serde::de::DeserializeOwned;
use std::fmt;

/// An error that says what is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The thing that was found, or expected.
    pub what: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for FileError {}

/// A file that is being read.
pub(crate) struct FileReader<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl FileReader<'_> {
    /// Returns an error at the line of `key`, unless `holds`.
    pub(crate) fn expect(&self, key: &str, holds: bool, what: &str) -> Result<(), FileError> {
        if holds {
            return Ok(());
        }
        Err(self.error(1, key, what))
    }

    /// Expects the same of `key` in one of several tables of a kind, from 0.
    pub(crate) fn expect_in(
        &self,
        (table, number): (&str, usize),
        key: &str,
        holds: bool,
        what: &str,
    ) -> Result<(), FileError> {
        if holds {
            return Ok(());
        }
        let head = format!("[[{table}]]");
        let heads = self.text.lines().enumerate().filter(|(_, line)| line.trim() == head);
        let from = heads.map(|(index, _)| index + 1).nth(number).unwrap_or(1);
        Err(self.error(from, key, what))
    }

    /// Makes an error at the first line from `from` on that gives `key` a value, else at `from`.
    fn error(&self, from: usize, key: &str, what: &str) -> FileError {
        let names = |line: &str| line.split_once('=').is_some_and(|(left, _)| left.trim() == key);
        let found = self.text.lines().skip(from - 1).position(names);
        FileError {
            file: self.file.to_owned(),
            line: from + found.unwrap_or(0),
            what: format!("`{key}` is not possible; expected: {what}"),
        }
    }
}

/// Reads a file's content.
pub(crate) fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, FileError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..at].bytes().filter(|&b| b == b'\n').count() + 1;
        let mut found = error.message().replace('\n', "; ");
        if !found.contains("expected") {
            found += "; expected: the fields of the files that are built in";
        }
        FileError { file: file.to_owned(), line, what: found }
    })
}
