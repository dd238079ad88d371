//! Other circumstances: what is offered, and no restartable sequences.

mod common;

use common::{Watchdog, count_with};
use lockstead_linux::features::{Facility, Features, probe};
use lockstead_linux::owner::{Oracle, set_oracle};
use std::process::Command;

fn facility<'a>(features: &'a Features, name: &str) -> &'a Facility {
    features
        .facilities
        .iter()
        .find(|facility| facility.name == name)
        .unwrap_or_else(|| panic!("no facility {name}"))
}

#[test]
fn what_is_offered_is_told() {
    let features = probe();
    assert!(features.kernel.starts_with(|c: char| c.is_ascii_digit()), "{}", features.kernel);
    assert!(facility(&features, "futex").offered);
    let processors = &features.processors;
    assert!(processors.effective >= 1);
    assert!(processors.effective <= processors.affinity);
    assert!(processors.affinity <= processors.online.max(1));
    for facility in &features.facilities {
        assert!(!facility.detail.is_empty(), "{} says nothing", facility.name);
        assert!(!facility.fallback.is_empty(), "{} has no fall-back", facility.name);
        assert!(facility.offered || !facility.in_use, "{} used but not there", facility.name);
    }
    let mut names: Vec<_> = features.facilities.iter().map(|facility| facility.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), features.facilities.len(), "a name twice");
}

/// What `GLIBC_TUNABLES` switches off, seen from inside.
const RSEQ_OFF: &str = "LOCKSTEAD_TEST_RSEQ_OFF";

#[test]
fn works_without_restartable_sequences() {
    const NAME: &str = "works_without_restartable_sequences";
    let _watchdog = Watchdog::new(60);
    if std::env::var_os(RSEQ_OFF).is_some() {
        let features = probe();
        let rseq = facility(&features, "rseq");
        assert!(!rseq.offered && !rseq.in_use, "{}", rseq.detail);
        for oracle in [Oracle::Clock, Oracle::Processor, Oracle::Both] {
            set_oracle(oracle);
            count_with(8, 10_000);
        }
        return;
    }
    if !facility(&probe(), "rseq").offered {
        println!("skipped: there are none here, so all other tests run without them");
        return;
    }
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", NAME])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .env(RSEQ_OFF, "1")
        .output()
        .expect("this program runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}
