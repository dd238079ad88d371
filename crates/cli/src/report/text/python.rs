//! Where threads of Python waited, under the lock that they waited for.

use super::{FAINT, SHARE, TextPage};
use crate::report::words::python_place;
use lockstead_inspect::report::model::{LockReport, ProcessReport};
use lockstead_render::words::{clean, plural};

/// The most places shown: a row may stand for locks of several kinds.
const PLACES: usize = 6;

impl TextPage {
    /// Adds the places in Python where threads waited for a lock, and what part has none.
    pub(super) fn python(&mut self, lock: &LockReport) {
        let Some(python) = &lock.python else { return };
        let shares = python.places.iter().map(|place| place.share_percent);
        let large = shares.take_while(|&share| share >= SHARE).count();
        let shown = large.clamp(1, PLACES).min(python.places.len());
        for (at, place) in python.places[..shown].iter().enumerate() {
            let label = if at == 0 { "python" } else { "" };
            let text = python_place(place, &lock.name);
            self.part(&format!("      {label:<6} "), place.share_percent, &text);
        }
        let rest = python.places[shown..].iter().map(|place| place.share_percent).sum::<f64>();
        if rest >= SHARE {
            self.part("             ", rest, "other places in Python");
        }
        if python.unseen_percent >= SHARE {
            self.part("             ", python.unseen_percent, "not looked at, or not in Python");
        }
    }

    /// Says how the frames of Python were found.
    pub(super) fn python_looks(&mut self, process: &ProcessReport) {
        let Some(python) = &process.python else { return };
        let text = match &python.unreadable {
            Some(why) => format!("  no frames of Python: {}", clean(why)),
            None => format!(
                "  frames of Python by {} at what waited; waits between two looks have none",
                plural(python.looks, "look", "looks")
            ),
        };
        self.line(FAINT, &text);
    }
}
