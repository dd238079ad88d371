//! What the holder of a lock did while others waited for it, under the lock; and what to do about it.

use super::{FAINT, HOT, SHARE, TextPage};
use crate::report::words::{holder_place, worst_verdicts};
use lockstead_inspect::report::model::{LockReport, ProcessReport};
use lockstead_render::words::plural;

/// The most places shown.
const PLACES: usize = 3;
impl TextPage {
    /// Adds the verdicts on the worst locks.
    pub(super) fn verdicts(&mut self, process: &ProcessReport) {
        for text in worst_verdicts(process) {
            self.wrapped(&text);
        }
    }

    /// Adds a sentence, on as many lines as it needs.
    fn wrapped(&mut self, text: &str) {
        let width = self.width.unwrap_or(usize::MAX);
        let mut line = String::from("  ");
        for word in text.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > width && !line.trim().is_empty() {
                self.line(HOT, &line);
                line = String::from("    ");
            }
            if !line.ends_with(' ') {
                line.push(' ');
            }
            line += word;
        }
        self.line(HOT, &line);
    }

    /// Adds what the holder of a lock did while others waited.
    pub(super) fn holder(&mut self, lock: &LockReport) {
        let Some(holder) = &lock.holder else { return };
        if !holder.enough {
            let looks = plural(holder.looks, "look", "looks");
            let text = format!("      holder not looked at often enough ({looks})");
            return self.line(FAINT, &text);
        }
        let large = holder.places.iter().take_while(|place| place.share_percent >= SHARE).count();
        let shown = &holder.places[..large.min(PLACES)];
        let mut parts: Vec<(f64, String)> =
            shown.iter().map(|place| (place.share_percent, holder_place(place))).collect();
        parts.push((holder.split.free_percent, "free, its waiters not yet awake".into()));
        parts.push((holder.split.unknown_percent, "held by somebody who was not seen".into()));
        let is_shown = |part: &(f64, String)| part.0 >= SHARE;
        parts.retain(is_shown);
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let rest = 100.0 - parts.iter().map(|part| part.0).sum::<f64>();
        if rest >= SHARE {
            parts.push((rest, "other".into()));
        }
        for (at, (share, text)) in parts.iter().enumerate() {
            let label = if at == 0 { "holder" } else { "" };
            self.part(&format!("      {label:<6} "), *share, text);
        }
        let looks = plural(holder.looks, "look", "looks");
        let margin = holder.margin_percent.unwrap_or(100.0);
        self.line(FAINT, &format!("              {looks}: give or take {margin:.0} in 100"));
    }
}
