//! The options of `lockstead run` that are about a recording.

use clap::Args;
use std::path::PathBuf;

/// What is to be recorded, and where.
#[derive(Debug, Args)]
pub(crate) struct RecordFlags {
    /// Record what happens to locks as events with times, in this file: waits, holds of locks that are
    /// waited for, who wakes whom, threads. `lockstead export` makes pictures of it
    #[arg(long = "record", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The most that the events may take in that file (64K, 500M, 2G); what comes later is counted
    #[arg(
        long = "record-limit",
        value_name = "SIZE",
        default_value = "1G",
        requires = "file",
        value_parser = size
    )]
    pub(crate) limit: u64,
}

/// The sizes that can be asked for.
const SIZES: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 40;

/// Returns a size with its unit, by powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => 0,
    };
    let bytes = number.parse::<u64>().ok().filter(|_| shift != 0);
    let bytes = bytes.and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| SIZES.contains(bytes)).ok_or_else(|| {
        format!("`{text}` is not possible; allowed: a size from 64K to 1T with K, M, G or T")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit() {
        for (text, bytes) in [("64K", 1 << 16), ("500M", 500 << 20), ("2G", 2 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "64", "63K", "2T", "1.5G", "-1G", "1g", "99999999999999G"] {
            assert!(size(text).expect_err(text).contains("allowed"), "{text}");
        }
    }
}
