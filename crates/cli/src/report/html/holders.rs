//! What the holders of a lock did while others waited for it, on the page.

use super::frames;
use crate::report::words::holder_place;
use lockstead_inspect::report::holders::{HolderReport, HolderSplit};
use lockstead_render::table::time;
use lockstead_render::words::{clean, percent, plural};

/// The parts of waiting, as columns.
const PARTS: [&str; 6] = [
    "holder ran",
    "ready, no processor",
    "asleep",
    "waited itself",
    "free, waiter not awake",
    "not seen",
];

pub(super) struct HolderView {
    pub(super) note: String,
    pub(super) parts: [&'static str; 6],
    pub(super) rows: Vec<SplitRow>,
    pub(super) places: Vec<PlaceView>,
}

pub(super) struct SplitRow {
    pub(super) site: String,
    pub(super) shares: [String; 6],
}

pub(super) struct PlaceView {
    pub(super) share: String,
    pub(super) what: String,
    pub(super) total: String,
    pub(super) stack: Vec<String>,
}

pub(super) fn view(holder: &HolderReport) -> HolderView {
    let looks = plural(holder.looks, "look", "looks");
    let margin = holder.margin_percent.unwrap_or(100.0);
    let note = match holder.enough {
        true => {
            format!("{looks} met {:.1} waiting: give or take {margin:.0} in 100", holder.waiters)
        }
        false => format!("Not looked at often enough to say: {looks}."),
    };
    if !holder.enough {
        return HolderView { note, parts: PARTS, rows: Vec::new(), places: Vec::new() };
    }
    let all = SplitRow { site: "any place".into(), shares: shares(&holder.split) };
    let several = holder.waited_at.iter().filter(|_| holder.waited_at.len() > 1);
    let of_site = several.map(|site| SplitRow {
        site: format!(
            "{} ({} looks, give or take {:.0})",
            clean(&site.site),
            site.looks,
            site.margin_percent
        ),
        shares: shares(&site.split),
    });
    HolderView {
        note,
        parts: PARTS,
        rows: std::iter::once(all).chain(of_site).collect(),
        places: holder
            .places
            .iter()
            .map(|place| PlaceView {
                share: percent(place.share_percent),
                what: holder_place(place),
                total: time(place.seen_ns as f64),
                stack: place.stack.as_ref().map(frames).unwrap_or_default(),
            })
            .collect(),
    }
}

fn shares(split: &HolderSplit) -> [String; 6] {
    [
        split.running_percent,
        split.ready_percent,
        split.asleep_percent,
        split.waiting_percent,
        split.free_percent,
        split.unknown_percent,
    ]
    .map(percent)
}
