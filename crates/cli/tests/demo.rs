//! The demonstration, and the features.

mod common;

use common::{entries, succeed, text};
use serde_json::Value;

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

#[test]
fn features_say_what_is_in_use_and_what_falls_back() {
    let table = succeed(&["features"]).stdout;
    assert!(table.contains("futex"), "{table}");
    let json: Value = serde_json::from_str(&succeed(&["features", "--json"]).stdout).expect("JSON");
    assert!(json["machine"].is_object());
    let features = json["features"].as_array().expect("features");
    assert!(features.len() >= 3, "{features:?}");
    for feature in features {
        let name = feature["name"].as_str().expect("a name");
        assert!(feature["available"].is_boolean(), "{feature}");
        assert!(feature["in_use"].is_boolean(), "{feature}");
        assert!(!(feature["in_use"] == true && feature["available"] == false), "{feature}");
        assert!(feature["detail"].is_string(), "{feature}");
        assert!(feature["fallback"].is_string(), "{feature}");
        assert!(table.contains(name), "{name} is not in the table:\n{table}");
    }
}
