//! Ends before the end: readers that have gone, and disks that are full.

use crate::common::{finish, lockstead};
use std::process::Stdio;

#[test]
fn a_reader_that_has_gone_is_no_error() {
    for args in [&["features"][..], &["--help"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let child = lockstead(args).stdout(Stdio::from(writer)).spawn().expect("starts");
        let outcome = finish(child);
        assert_eq!(outcome.status, 0, "{args:?}: {outcome:?}");
        assert!(!outcome.stderr.contains("panic"), "{outcome:?}");
        assert!(!outcome.stderr.contains("error"), "{outcome:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let child = lockstead(&["features"]).stdout(full).spawn().expect("the command starts");
    let outcome = finish(child);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("standard output"), "{outcome:?}");
}
