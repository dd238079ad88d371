//! The markers of faults in the source of locks and ledger (`crates/core/src/fault.rs`): a test
//! of the model checker chooses each. (A test that chooses one without a marker fails by
//! itself.)

use crate::reading::{names, parsed};
use std::collections::BTreeSet;
use xtask::{files, root, text};

/// The names of all markers.
fn markers() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["crates/core/src", "crates/ledger/src"] {
        for path in files(folder, &["rs"]) {
            let names = names(&parsed(&path));
            let marked = names.windows(2).filter(|pair| pair[0].text == "fault");
            // What follows the name of the macro or of its module elsewhere is no marker.
            found.extend(
                marked
                    .filter(|pair| pair[1].text.contains('_') && pair[1].text != "macro_rules")
                    .map(|pair| pair[1].text.clone()),
            );
        }
    }
    found
}

#[test]
fn a_test_chooses_each_fault() {
    let markers = markers();
    let mut chosen = BTreeSet::new();
    for path in files("crates/model/tests", &["rs"]) {
        chosen.extend(names(&parsed(&path)).into_iter().map(|name| name.text));
        for rest in text(&path).split("broken(\"").skip(1) {
            chosen.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    let unused: Vec<_> = markers.difference(&chosen).collect();
    assert!(unused.is_empty(), "no test of crates/model chooses {unused:?}");
    let stated = format!("{} faults", markers.len());
    let document = text(&root().join("docs/verification.md"));
    assert!(document.contains(&stated), "docs/verification.md does not say `{stated}`");
}
