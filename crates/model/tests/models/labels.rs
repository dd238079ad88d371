//! Orderings weakened by their label: each must be missed by some model.

use lockstead_model::{Config, FailureKind, Ordering};
use std::path::Path;
use std::rc::Rc;

/// What is taken away from an ordering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Acquire,
    Release,
    All,
}

impl Part {
    fn without(self, order: Ordering) -> Ordering {
        match (self, order) {
            (Part::Acquire, Ordering::AcqRel) => Ordering::Release,
            (Part::Release, Ordering::AcqRel) => Ordering::Acquire,
            (Part::Acquire, Ordering::Release) | (Part::Release, Ordering::Acquire) => order,
            _ => Ordering::Relaxed,
        }
    }
}

/// An ordering to be weakened: the file below the core's source or the ledger's, the label, and what is
/// taken away.
pub(crate) type Weakened = (&'static str, &'static str, Part);

/// Tells whether a failure is a data race.
pub(crate) fn races(kind: &FailureKind) -> bool {
    *kind == FailureKind::Race
}

/// Tells whether a failure is an assertion that does not hold.
pub(crate) fn panics(kind: &FailureKind) -> bool {
    matches!(kind, FailureKind::Panic(_))
}

/// Tells whether a failure is that all sleep.
pub(crate) fn sleeps(kind: &FailureKind) -> bool {
    *kind == FailureKind::Deadlock
}

/// Returns `config`, on a machine where the accesses that carry one of `labels` in
/// `file`, a source file of the core or of the ledger, lack `part`.
///
/// # Panics
/// If no access carries a label.
pub(crate) fn weaker(config: &Config, file: &'static str, labels: &[&str], part: Part) -> Config {
    let mut lines = Vec::new();
    for label in labels {
        let some = labelled(file, label);
        assert!(!some.is_empty(), "{file} has no label {label}");
        lines.extend(some);
    }
    config.clone().orderings(Rc::new(move |site, _, order| {
        let here = site.file().ends_with(file) && lines.contains(&site.line());
        if here { part.without(order) } else { order }
    }))
}

/// Returns the lines from each occurrence of the label to the next label, or to the
/// end of its function.
fn labelled(file: &str, label: &str) -> Vec<u32> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_ledger = here.join("../ledger/src").join(file);
    let path = if of_ledger.exists() { of_ledger } else { here.join("../core/src").join(file) };
    let source = std::fs::read_to_string(path).expect("the source");
    let mut within = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(source.lines()) {
        // Both in comments and in the documentation of a function.
        let label_here = line
            .trim_start()
            .strip_prefix("//")
            .and_then(|comment| comment.trim_start_matches('/').trim_start().strip_prefix("ord: "));
        if let Some(after) = label_here {
            let name = after.split_whitespace().next().unwrap_or_default();
            within = name.trim_end_matches(':') == label;
        } else if line == "    }" {
            within = false;
        }
        if within {
            lines.push(number);
        }
    }
    lines
}
