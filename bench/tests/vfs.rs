//! The creat + unlink + close workload leaves nothing behind.

use lockstead_bench::{Error, LockName, Session, vfs};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn options(dir: &Path) -> vfs::VfsOptions {
    vfs::VfsOptions {
        locks: lockstead_bench::locks::available(),
        tasks: 4,
        time: Duration::from_millis(100),
        dir: Some(dir.to_owned()),
    }
}

fn empty(dir: &Path) -> bool {
    fs::read_dir(dir).expect("readable").next().is_none()
}

#[test]
fn every_available_lock_guards_real_files_and_leaves_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let stop = AtomicBool::new(false);
    let mut quiet = |_: u64, _: u64, _: &str| {};
    let mut session = Session::new(&stop, &mut quiet);
    let report = vfs::measure(&options(dir.path()), &mut session).expect("measures");
    assert_eq!(report.results.len(), lockstead_bench::locks::available().len());
    for row in &report.results {
        assert!(row.loops_per_s_min <= row.loops_per_s, "{row:?}");
        assert!(row.loops_per_s <= row.loops_per_s_max, "{row:?}");
        assert!(row.cpu_percent >= 0.0, "{row:?}");
    }
    assert!(empty(dir.path()));
}

#[test]
fn stopped_midway_it_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let stop = Arc::new(AtomicBool::new(false));
    let (setter, watched) = (stop.clone(), dir.path().to_owned());
    let mut stop_soon = move |_: u64, _: u64, _: &str| {
        assert!(!empty(&watched), "the files lie somewhere else");
        let setter = setter.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            setter.store(true, Ordering::Relaxed);
        });
    };
    let mut session = Session::new(&stop, &mut stop_soon);
    let hour = vfs::VfsOptions { time: Duration::from_secs(3600), ..options(dir.path()) };
    let outcome = vfs::measure(&hour, &mut session);
    assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
    assert!(empty(dir.path()));
}

#[test]
fn directories_that_cannot_be_used_are_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    fs::write(&file, "").expect("writable");
    for bad in [dir.path().join("absent"), file, "/proc/self".into()] {
        let stop = AtomicBool::new(false);
        let mut measured = |_: u64, _: u64, _: &str| panic!("measures in {bad:?}");
        let mut session = Session::new(&stop, &mut measured);
        let error = vfs::measure(&options(&bad), &mut session).expect_err("unusable");
        assert!(matches!(error, Error::Directory { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("--dir") && text.contains(&*bad.to_string_lossy()), "{text}");
        assert!(text.contains("give a writable directory"), "{text}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 1);
}

#[test]
fn in_memory_no_file_is_made() {
    let stop = AtomicBool::new(false);
    let mut quiet = |_: u64, _: u64, _: &str| {};
    let mut session = Session::new(&stop, &mut quiet);
    let options = vfs::VfsOptions { dir: None, ..options(Path::new("/")) };
    let report = vfs::measure(&options, &mut session).expect("measures");
    assert!(report.memory && report.dir.is_none());
    assert!(report.row(LockName::Lockstead).is_some());
}
