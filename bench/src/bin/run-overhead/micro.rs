//! Uncontended locks in a C program, which times itself.

use crate::tools::{Result, Tools};
use crate::{OverheadRow, QuotientTarget};
use std::path::PathBuf;
use std::process::Command;

/// What the program does, in its word and in ours, what is wanted under `run`, and
/// what under `run --check`.
type MicroWorkload = (&'static str, &'static str, Option<QuotientTarget>, Option<QuotientTarget>);

const WORKLOADS: [MicroWorkload; 7] = [
    (
        "pair",
        "lock and unlock",
        Some(QuotientTarget::AtMost(2.0)),
        Some(QuotientTarget::AtMost(2.2)),
    ),
    (
        "nested",
        "two locks nested",
        Some(QuotientTarget::AtMost(2.2)),
        Some(QuotientTarget::AtMost(2.2)),
    ),
    ("many", "4096 locks in turn", Some(QuotientTarget::AtMost(3.0)), None),
    ("outer", "4096 locks under one", None, Some(QuotientTarget::AtMost(4.0))),
    ("read", "read lock and unlock", None, None),
    ("sem", "semaphore wait and post", None, None),
    (
        "edges",
        "two locks in a new order by a new chain of calls",
        None,
        Some(QuotientTarget::Below(5000.0)),
    ),
];

pub(crate) fn measure(tools: &Tools, rounds: usize) -> Result<Vec<OverheadRow>> {
    if Tools::installed("cc").is_none() {
        return Ok(Vec::new());
    }
    let program = build(tools, "pairs", &[])?;
    let run = |under_run: bool, what: &str| -> Result<f64> {
        let iterations = if what == "edges" { 200_000 } else { 5_000_000 };
        time(tools.command(under_run, &program), what, iterations)
    };
    let mut rows = Vec::new();
    for (what, name, observed, checked) in WORKLOADS {
        eprintln!("run-overhead: {name}");
        let mut pairs = Vec::new();
        for _ in 0..rounds {
            pairs.push((run(false, what)?, run(true, what)?));
        }
        let target = if tools.check { checked } else { observed };
        rows.push(OverheadRow::of(name, "CPU ns", &pairs, target));
    }
    Ok(rows)
}

/// Compiles the C program to a file of this name.
pub(crate) fn build(tools: &Tools, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let source = tools.folder.path().join("pairs.c");
    std::fs::write(&source, include_bytes!("../../../programs/pairs.c"))?;
    let program = tools.folder.path().join(name);
    let output = Command::new("cc")
        .args(["-O2", "-pthread", "-o"])
        .args([&program, &source])
        .args(flags)
        .output()?;
    if output.status.success() {
        Ok(program)
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("cc could not build pairs.c: {}", text.lines().next().unwrap_or("")).into())
    }
}

/// Returns the CPU nanoseconds of one iteration, as the program says.
pub(crate) fn time(mut program: Command, what: &str, iterations: u32) -> Result<f64> {
    let output = program.args([what, &iterations.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("pairs {what} printed {text:?}").into())
}
