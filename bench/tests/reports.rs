//! The JSON that others read: exactly these fields, and errors that name the
//! option.

use lockstead_bench::{Error, LockName, Session, contended, uncontended, vfs};
use serde_json::Value;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn with_session<T>(run: impl FnOnce(&mut Session<'_>) -> T) -> T {
    let stop = AtomicBool::new(false);
    let mut quiet = |_: u64, _: u64, _: &str| {};
    run(&mut Session::new(&stop, &mut quiet))
}

fn fields(value: &Value, wanted: &[&str]) {
    for name in wanted {
        assert!(value.get(name).is_some(), "no field {name} in {value}");
    }
}

const TWO: [LockName; 2] = [LockName::Lockstead, LockName::Std];

fn contended_options() -> contended::ContendedOptions {
    contended::ContendedOptions {
        locks: TWO.to_vec(),
        threads: vec![2],
        sections: vec![Duration::ZERO, Duration::from_nanos(50)],
        thinks: vec![0.0, 1.0],
        rounds: 2,
        slice: Duration::from_millis(4),
        ..contended::ContendedOptions::default()
    }
}

fn vfs_options() -> vfs::VfsOptions {
    let time = Duration::from_millis(100);
    vfs::VfsOptions { locks: TWO.to_vec(), tasks: 2, time, dir: None }
}

#[test]
fn uncontended_reports_have_the_stable_fields() {
    let slice = Duration::from_micros(100);
    let options =
        uncontended::UncontendedOptions { locks: TWO.to_vec(), rounds: 1, slice, alone: false };
    let report = with_session(|session| uncontended::measure(&options, session)).expect("measures");
    let report = serde_json::to_value(report).expect("serialises");
    fields(&report, &["machine", "one_thread", "limit_ns", "results"]);
    let rows = report["results"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for row in rows {
        fields(row, &["lock", "ns", "ratio_to_limit", "instructions", "bytes"]);
    }
    assert_eq!(rows[0]["lock"], "lockstead");
    assert_eq!(rows[0]["bytes"], 8);
}

#[test]
fn contended_reports_have_the_stable_fields_and_every_cell() {
    let report = with_session(|session| contended::measure(&contended_options(), session))
        .expect("measures");
    let report = serde_json::to_value(report).expect("serialises");
    fields(&report, &["machine", "cells"]);
    let cells = report["cells"].as_array().expect("cells");
    let places: Vec<_> = cells
        .iter()
        .map(|cell| {
            (cell["threads"].as_u64(), cell["section_ns"].as_u64(), cell["think_ratio"].as_f64())
        })
        .collect();
    let place = |section, think| (Some(2), Some(section), Some(think));
    assert_eq!(places, [place(0, 0.0), place(0, 1.0), place(50, 0.0), place(50, 1.0)]);
    for cell in cells {
        assert_eq!(cell["results"].as_array().map(Vec::len), Some(2));
        for row in cell["results"].as_array().expect("rows") {
            fields(row, &["lock", "ops_per_s", "ops_per_cpu_s", "wait_p50_ns", "wait_p99_ns"]);
            fields(row, &["wait_p999_ns", "wait_max_ns", "jain"]);
        }
    }
}

#[test]
fn the_best_peer_is_not_one_of_ours() {
    let report = with_session(|session| contended::measure(&contended_options(), session))
        .expect("measures");
    for cell in &report.cells {
        assert_eq!(cell.best_peer().map(|row| row.lock), Some(LockName::Std));
        assert!(cell.row(LockName::Lockstead).is_some());
        assert!(cell.row(LockName::Usync).is_none());
    }
}

#[test]
fn vfs_reports_have_the_stable_fields() {
    let report = with_session(|session| vfs::measure(&vfs_options(), session)).expect("measures");
    let report = serde_json::to_value(report).expect("serialises");
    fields(&report, &["machine", "tasks", "seconds", "results"]);
    for row in report["results"].as_array().expect("rows") {
        fields(row, &["lock", "loops_per_s", "cpu_percent", "loops_per_cpu_s"]);
    }
}

#[test]
fn impossible_options_are_refused_by_name() {
    let refused = |options: contended::ContendedOptions| {
        with_session(|session| contended::measure(&options, session))
            .expect_err("impossible")
            .to_string()
    };
    let good = contended_options;
    assert!(
        refused(contended::ContendedOptions { threads: vec![0], ..good() })
            .contains("--threads: `0`")
    );
    assert!(
        refused(contended::ContendedOptions { threads: vec![], ..good() }).contains("--threads")
    );
    assert!(refused(contended::ContendedOptions { locks: vec![], ..good() }).contains("--locks"));
    assert!(
        refused(contended::ContendedOptions { thinks: vec![f64::NAN], ..good() })
            .contains("--think")
    );
    let long = vec![Duration::from_secs(1)];
    assert!(
        refused(contended::ContendedOptions { sections: long, ..good() }).contains("--section")
    );

    let refused = |options: vfs::VfsOptions| {
        with_session(|session| vfs::measure(&options, session)).expect_err("impossible").to_string()
    };
    let none = refused(vfs::VfsOptions { tasks: 0, ..vfs_options() });
    assert!(none.contains("--tasks: `0`") && none.contains("1 to 1024"), "{none}");
    let short = vfs::VfsOptions { time: Duration::ZERO, ..vfs_options() };
    assert!(refused(short).contains("--seconds"));
}

#[test]
fn sections_and_think_times_are_read_as_written() {
    for (text, ns) in
        [("0", 0), ("50ns", 50), ("1us", 1_000), (" 20us ", 20_000), ("2ms", 2_000_000)]
    {
        assert_eq!(contended::parse_section(text).expect(text), Duration::from_nanos(ns));
    }
    for (text, ratio) in [("0", 0.0), ("1x", 1.0), ("10x", 10.0), ("0.5x", 0.5), ("2", 2.0)] {
        assert_eq!(contended::parse_think(text).expect(text), ratio);
    }
    for text in ["", "fast", "-1us", "50", "1h", "1x"] {
        let error = contended::parse_section(text).expect_err(text).to_string();
        assert!(error.contains("--section") && error.contains("50ns"), "{error}");
    }
    for text in ["", "x", "often", "-1x", "inf", "NaN", "1e9x"] {
        let error = contended::parse_think(text).expect_err(text).to_string();
        assert!(error.contains("--think") && error.contains("10x"), "{error}");
    }
}

#[test]
fn every_name_is_read_back_and_others_are_refused_with_the_list() {
    let names: Vec<String> = LockName::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "lockstead",
            "lockstead-fair",
            "semaphore-classic",
            "semaphore-tuned",
            "ww",
            "rt",
            "biased",
            "std",
            "parking_lot",
            "usync",
            "pthread",
            "pthread-adaptive",
            "pthread-pi",
            "sem_t",
            "abseil",
            "nsync",
            "tbb"
        ]
    );
    for (name, &lock) in names.iter().zip(LockName::ALL) {
        assert_eq!(name.parse(), Ok(lock));
    }
    let error = "spinlock".parse::<LockName>().expect_err("no such lock").to_string();
    assert!(error.contains("`spinlock`") && error.contains("pthread-adaptive"), "{error}");
}

#[test]
fn a_lock_that_is_not_built_in_says_what_to_install() {
    let absent = lockstead_bench::locks::unavailable();
    let present = lockstead_bench::locks::available();
    assert_eq!(absent.len() + present.len(), LockName::ALL.len());
    for (lock, why) in absent {
        assert!(!present.contains(&lock));
        assert!(why.contains("install") && why.contains("-dev"), "{why}");
        // Each has the shim that is its own, whatever else was loaded before.
        assert!(!why.contains("shim has no"), "{why}");
        let options = contended::ContendedOptions { locks: vec![lock], ..contended_options() };
        let error = with_session(|session| contended::measure(&options, session));
        assert!(matches!(error, Err(Error::Unavailable { .. })));
    }
}
