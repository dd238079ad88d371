//! Who waits for whom within the processes of this host, as `lockstead dump` has it.

use lockstead_cluster::survey::{Edge, Survey, ThreadName};
use lockstead_render::failure::Failure;
use lockstead_render::output;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the command `lockstead`: beside this program, else by PATH.
fn command() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("lockstead"));
    beside.filter(|file| file.is_file()).unwrap_or_else(|| "lockstead".into())
}

/// Returns the edges within the processes of this host that stand in a queue of the cluster.
pub(crate) fn edges(survey: &Survey) -> Result<Vec<Edge>, Failure> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let places = survey.locks.iter().flat_map(|lock| &lock.places);
    let here = places.map(|place| &place.thread).filter(|thread| thread.host == host);
    let processes: BTreeSet<u32> = here.map(|thread| thread.pid).collect();
    let mut found = Vec::new();
    for pid in processes {
        let output = Command::new(command())
            .args(["dump", &pid.to_string(), "--json"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| {
                Failure::Run(format!("--local needs the command lockstead in PATH: {error}"))
            })?;
        match serde_json::from_slice(&output.stdout) {
            Ok(dump) => found.extend(of_dump(host, pid, &dump)),
            Err(_) => output::note(format_args!(
                "process {pid} was not looked into: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }
    Ok(found)
}

/// Returns the edges of a report of `lockstead dump --json`.
fn of_dump(host: &str, pid: u32, dump: &Value) -> Vec<Edge> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let name = |tid| ThreadName { host: host.to_owned(), pid, tid };
    let mut found = Vec::new();
    for lock in dump["locks"].as_array().into_iter().flatten() {
        let holders = lock["holders"].as_array().into_iter().flatten();
        let holders: Vec<u32> = holders.filter_map(|holder| number(&holder["thread"])).collect();
        for waiter in lock["waiting"].as_array().into_iter().flatten().filter_map(number) {
            for holder in &holders {
                found.push(Edge {
                    waiter: name(waiter),
                    holder: name(*holder),
                    lock: lock["name"].as_str().unwrap_or("without a name").to_owned(),
                    local: true,
                    command: false,
                    place: String::new(),
                });
            }
        }
    }
    found
}

/// Reads the local edges of a report that another host has written.
pub(crate) fn read(file: &Path) -> Result<Vec<Edge>, Failure> {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::Usage(format!(
            "--with {}: {why}; give what `dump --local --json` wrote",
            file.display()
        ))
    };
    let text = std::fs::read_to_string(file).map_err(|error| cannot(&error))?;
    let mut report: Value = serde_json::from_str(&text).map_err(|error| cannot(&error))?;
    let edges: Vec<Edge> =
        serde_json::from_value(report["edges"].take()).map_err(|error| cannot(&error))?;
    Ok(edges.into_iter().filter(|edge| edge.local).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_a_report_become_edges() {
        let dump = serde_json::json!({"locks": [
            {"name": "0x10", "waiting": [5, 6], "held": "by", "holders": [{"thread": 7}]},
            {"name": "0x20", "waiting": [7], "held": "unknown"}
        ]});
        let found = of_dump("h", 4, &dump);
        let pairs: Vec<_> = found.iter().map(|edge| (edge.waiter.tid, edge.holder.tid)).collect();
        assert_eq!(pairs, [(5, 7), (6, 7)]);
    }
}
