//! The demonstration: the part that measures. Its programs are tested with the command.

use crate::common::{entries, succeed, text};

#[test]
fn the_demo_shows_the_announcement_the_pair_and_the_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = succeed(&["demo", "--seconds=0.2", "--dir", text(folder.path())]);
    for word in [
        "CPUs, running 16 tasks.",
        "avg loops/sec:",
        "semaphore-classic",
        "semaphore-tuned",
        "pthread",
        "8-way x86, semaphore",
        "two bare atomics",
        "kernel's semaphore, 2005",
        "20",
        "16",
    ] {
        assert!(outcome.stdout.contains(word), "no {word:?} in\n{}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("NaN") && !outcome.stdout.contains("inf"));
    assert_eq!(entries(folder.path()), [""; 0], "files are left");
}
