//! The times in an exit report beside those of an exact timer in the same run: of four
//! programs of our own, and of two real ones.
//!
//! Both read the same clock at nearly the same moments, so that what is asserted is the
//! promise of the report and nothing about the machine. A thread may lose its processor
//! between the two looks, and a program may happen not to wait; so one that disagrees is
//! run again.

pub(crate) mod support;

use crate::common::text;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use support::{compiled, report};

/// Waits as short as this in all say nothing.
const WORTH_MEASURING: u64 = 50_000;

/// A longest time below this may be that of an interrupt between the two looks.
const WORTH_COMPARING: u64 = 1_000_000;

/// What either clock may add: to a wait, and to a hold, by the instructions between.
const PER_WAIT: f64 = 2_000.0;
const PER_HOLD: f64 = 1_500.0;

/// A program is run so often at most.
const RUNS: usize = 5;

/// Number, total and longest, in nanoseconds.
type Times = [u64; 3];

/// Waits and holds by process and address. A mutex that came to lie where another one was
/// is left out.
fn exact(file: &Path) -> HashMap<(u64, u64), Option<[Times; 2]>> {
    let text = std::fs::read_to_string(file).expect("the timer has written");
    let mut found = HashMap::new();
    for line in text.lines() {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [pid, address, waits @ ..] = &words[..] else { panic!("{line}") };
        let times = [[waits[0], waits[1], waits[2]], [waits[3], waits[4], waits[5]]];
        let lives = found.entry((*pid, *address)).or_insert(Some(times));
        if *lives != Some(times) {
            *lives = None;
        }
    }
    found
}

fn times(report: &Value) -> Times {
    ["count", "total_ns", "max_ns"].map(|field| report[field].as_u64().expect("a number"))
}

/// Returns what of the locks of a report that were waited for is not as the timer has it, and how
/// many were compared.
fn disagreements(report: &Value, exact: &HashMap<(u64, u64), Option<[Times; 2]>>) -> (String, u32) {
    let (mut wrong, mut compared) = (String::new(), 0);
    for process in report["processes"].as_array().expect("processes") {
        for lock in process["locks"].as_array().expect("locks") {
            let address = (process["pid"].as_u64().expect("a number"), lock["address"].as_u64());
            let Some(Some(times_of)) = address.1.and_then(|at| exact.get(&(address.0, at))) else {
                continue;
            };
            let ([waits, holds], [wait, hold]) =
                (times_of, [&lock["wait"], &lock["hold"]].map(times));
            if lock["kind"] != "mutex" || waits[1] < WORTH_MEASURING {
                continue;
            }
            compared += 1;
            let mut near = |what: &str, found: u64, exact: u64, part: f64, slack: f64| {
                if (found as f64 - exact as f64).abs() > exact as f64 * part + slack {
                    let (name, hold) = (&lock["name"], &lock["hold"]);
                    let _ = writeln!(wrong, "{name}: {what} {found}, not {exact}; {hold}");
                }
            };
            let (waited, held) = (waits[0] as f64 * PER_WAIT, holds[0] as f64 * PER_HOLD);
            near("waiting", wait[1], waits[1], 0.02, waited);
            if waits[2] >= WORTH_COMPARING {
                near("longest wait", wait[2], waits[2], 0.05, PER_WAIT);
            }
            near("holding", hold[1], holds[1], 0.10, held);
            if holds[2] >= WORTH_COMPARING {
                near("longest hold", hold[2], holds[2], 0.05, PER_HOLD);
            }
            for (at, times) in [("waited_at", wait), ("held_at", hold)] {
                let sites = lock[at].as_array().expect("places");
                let sum: u64 = sites.iter().filter_map(|site| site["total_ns"].as_u64()).sum();
                assert_eq!(sum, times[1], "{at}: the places are the whole: {lock:#}");
            }
        }
    }
    (wrong, compared)
}

struct Bench {
    folder: tempfile::TempDir,
    timer: PathBuf,
}

impl Bench {
    fn new() -> Option<Bench> {
        let folder = tempfile::tempdir().expect("a folder");
        let source = include_str!("exact/timer.c");
        let timer = compiled(folder.path(), "timer", source, &["-shared", "-fPIC", "-ldl"])?;
        Some(Bench { folder, timer })
    }

    /// Runs the command until the times agree.
    fn agrees(&self, command: &[&str]) {
        let mut last = String::new();
        for run in 0..RUNS {
            let file = self.folder.path().join(format!("times-{run}"));
            let environment =
                [("LD_PRELOAD", self.timer.as_os_str()), ("EXACT_TIMES", file.as_os_str())];
            let (report, _) = report(self.folder.path(), command, &environment);
            let (wrong, compared) = disagreements(&report, &exact(&file));
            if wrong.is_empty() && compared != 0 {
                return;
            }
            last = if compared == 0 { "no lock was waited for".into() } else { wrong };
        }
        panic!("{command:?}:\n{last}");
    }

    fn own_program(&self, arguments: &[&str]) {
        let source = include_str!("exact/program.c");
        let Some(program) = compiled(self.folder.path(), "program", source, &[]) else { return };
        self.agrees(&[&[text(&program)], arguments].concat());
    }

    /// Compares a program of the machine, if it is there, that compresses some megabytes in blocks.
    fn compressor(&self, name: &str, arguments: &[&str]) {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&paths).any(|path| path.join(name).is_file()) {
            eprintln!("skipped: no {name} is installed");
            return;
        }
        let mut seed = 12_345_u32;
        let mut bytes = Vec::new();
        while bytes.len() < 24 << 20 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.extend_from_slice(format!("{:x}\n", seed >> 4).as_bytes());
        }
        let file = self.folder.path().join("material");
        std::fs::write(&file, bytes).expect("written");
        self.agrees(&[&[name], arguments, &["-k", "-f", "-q", text(&file)]].concat());
    }
}

#[test]
fn of_few_long_holds() {
    let Some(bench) = Bench::new() else { return };
    bench.own_program(&["few"]);
}

#[test]
fn of_a_convoy() {
    let Some(bench) = Bench::new() else { return };
    bench.own_program(&["convoy"]);
}

#[test]
fn of_long_holds_among_very_many_short_ones() {
    let Some(bench) = Bench::new() else { return };
    bench.own_program(&["mixed"]);
}

#[test]
fn of_a_queue() {
    let Some(bench) = Bench::new() else { return };
    bench.own_program(&["queue"]);
}

#[test]
fn while_the_command_gets_no_processor() {
    let Some(bench) = Bench::new() else { return };
    for what in ["few", "mixed"] {
        bench.own_program(&[what, "alone"]);
    }
}

#[test]
fn of_xz() {
    let Some(bench) = Bench::new() else { return };
    bench.compressor("xz", &["-T4", "-0", "--block-size=200000"]);
}

#[test]
fn of_zstd() {
    let Some(bench) = Bench::new() else { return };
    bench.compressor("zstd", &["-T4", "-3", "-B500000"]);
}
