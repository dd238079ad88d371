//! Uncontended locks in a C program, which times itself.

use crate::tools::{Result, Tools};
use crate::{Row, Target};
use std::process::{Command, Stdio};

const WORKLOADS: [(&str, &str, Option<Target>); 6] = [
    ("pair", "lock and unlock", Some(Target::AtMost(2.0))),
    ("nested", "two locks nested", Some(Target::AtMost(2.2))),
    ("many", "4096 locks in turn", Some(Target::AtMost(3.0))),
    ("outer", "4096 locks under one", None),
    ("read", "read lock and unlock", None),
    ("sem", "semaphore wait and post", None),
];

pub(crate) fn measure(tools: &Tools, rounds: usize) -> Result<Vec<Row>> {
    if Tools::installed("cc").is_none() {
        return Ok(Vec::new());
    }
    let program = tools.folder.path().join("pairs");
    let built = Command::new("cc")
        .args(["-O2", "-pthread", "-x", "c", "-o"])
        .arg(&program)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .and_then(|mut cc| {
            use std::io::Write;
            cc.stdin
                .take()
                .expect("piped")
                .write_all(include_bytes!("../../../programs/pairs.c"))?;
            cc.wait()
        })?;
    if !built.success() {
        return Err("cc could not build pairs.c".into());
    }
    let run = |under_run: bool, what: &str| -> Result<f64> {
        let output = tools.command(under_run, &program).args([what, "5000000"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| format!("pairs {what} printed {text:?}").into())
    };
    let mut rows = Vec::new();
    for (what, name, target) in WORKLOADS {
        eprintln!("run-overhead: {name}");
        let mut pairs = Vec::new();
        for _ in 0..rounds {
            pairs.push((run(false, what)?, run(true, what)?));
        }
        rows.push(Row::of(name, "CPU ns", &pairs, target));
    }
    Ok(rows)
}
