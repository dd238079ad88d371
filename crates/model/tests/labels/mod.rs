//! Orderings weakened by their label: each must be missed by some model.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file includes this one and uses some of it"
)]

use lockstead_model::{Config, Failure, Ordering, Scenario};
use std::path::Path;
use std::rc::Rc;

/// `config`, on a machine where the accesses that carry `label` in `file`, a
/// source file of the core, are relaxed.
///
/// # Panics
/// If no access carries the label.
pub fn relaxed(config: &Config, file: &'static str, label: &str) -> Config {
    let lines = labelled(file, label);
    assert!(!lines.is_empty(), "{file} has no label {label}");
    config.clone().orderings(Rc::new(move |site, _, order| {
        let here = site.file().ends_with(file) && lines.contains(&site.line());
        if here { Ordering::Relaxed } else { order }
    }))
}

/// The lines from each occurrence of the label to the next label, or to the
/// end of its function.
pub fn labelled(file: &str, label: &str) -> Vec<u32> {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let source = std::fs::read_to_string(core.join(file)).expect("the core's source");
    let mut within = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(source.lines()) {
        if let Some((_, after)) = line.split_once("// ord: ") {
            within = after.split_whitespace().next() == Some(label);
        } else if line == "    }" {
            within = false;
        }
        if within {
            lines.push(number);
        }
    }
    lines
}

/// That a correct scenario fails without the ordering, and how.
///
/// # Panics
/// If it fails with it, or does not fail without.
pub fn missed<S: 'static>(
    scenario: &Scenario<S>,
    config: &Config,
    file: &'static str,
    label: &str,
) -> Failure {
    scenario.check(config).expect("correct as shipped");
    match scenario.check(&relaxed(config, file, label)) {
        Ok(stats) => panic!("{label} is not missed: {stats}"),
        Err(failure) => *failure,
    }
}
