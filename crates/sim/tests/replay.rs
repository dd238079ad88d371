//! What a calibration may look at.

use lockstead_sim::replay::{CALIBRATED, ReplayOptions, ReplayRow, replay, score, table_names};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

/// Returns the rows of a quick replay of the smallest table that has both kinds.
fn rows() -> Vec<ReplayRow> {
    let options = ReplayOptions { quick: true, seeds: 1, table: Some("vfs_2005".into()) };
    replay(&options, &AtomicBool::new(false), &mut |_, _, _| {}).expect("nobody stops it")
}

#[test]
fn at_most_three_rows_of_a_table_calibrate() {
    let mut of: HashMap<&str, usize> = HashMap::new();
    for (table, _) in CALIBRATED {
        assert!(table_names().contains(&table), "{table}");
        *of.entry(table).or_default() += 1;
    }
    assert!(of.values().all(|&rows| rows <= 3), "{of:?}");
}

#[test]
fn a_calibration_does_not_see_the_predicted_rows() {
    let rows = rows();
    assert!(rows.iter().any(|row| row.calibrated) && rows.iter().any(|row| !row.calibrated));
    let before = score(&rows);
    for index in 0..rows.len() {
        let mut changed = rows.clone();
        changed[index].published *= 3.0;
        let same = score(&changed) == before;
        let seen = rows[index].calibrated && rows[index].unit != "percent";
        assert_eq!(same, !seen, "{}", rows[index].row);
    }
}

#[test]
fn every_published_table_of_a_workload_is_replayed() {
    let tables =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/data/published");
    // Sizes of structures and times of system calls: nothing that a workload shows.
    let others = ["robust_2006", "size_2005"];
    for entry in std::fs::read_dir(&tables).expect("the tables") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        if path.extension().is_some_and(|kind| kind == "csv") && !others.contains(&name) {
            assert!(table_names().contains(&name), "{name} is not replayed");
        }
    }
}

#[test]
fn a_replay_gives_the_same_rows_again() {
    assert_eq!(format!("{:?}", rows()), format!("{:?}", rows()));
}

#[test]
fn a_replay_can_be_stopped() {
    let options = ReplayOptions { quick: true, seeds: 1, table: Some("vfs_2005".into()) };
    assert!(replay(&options, &AtomicBool::new(true), &mut |_, _, _| {}).is_err());
}
