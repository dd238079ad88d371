//! Reports of `lockstead run --json`, read again.

use lockstead_inspect::report::model::SCHEMA;
use lockstead_render::failure::Failure;
use lockstead_render::words::clean;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The name of the format, which all reports begin with.
#[derive(Deserialize)]
struct Named {
    schema: String,
}

/// Reads what `T` wants of a report that `command` has written; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or is no such report.
pub(crate) fn read<T: DeserializeOwned>(file: &Path, command: &str) -> Result<T, Failure> {
    let name = file.display();
    let text = if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    let text = text.map_err(|error| Failure::Run(format!("cannot read {name}: {error}")))?;
    let is_none =
        |error| Failure::Run(format!("{name} is no report of `{command} --json FILE`: {error}"));
    let Named { schema } = serde_json::from_str(&text).map_err(is_none)?;
    if schema != SCHEMA {
        let schema = clean(&schema);
        return Err(Failure::Run(format!(
            "{name} is a report of {schema}, not of `{command} --json FILE`"
        )));
    }
    serde_json::from_str(&text).map_err(is_none)
}
