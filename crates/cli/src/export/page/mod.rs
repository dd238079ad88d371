//! A recording as one page: a timeline, flame graphs of waiting, and a table. Nothing is fetched,
//! everything is in it.
//!
//! ```text
//! recording ─▶ timeline: rows, lanes, things ─▶ columns: typed arrays in base64 ─▶ the script draws
//!           ├▶ frames: stacks and their weights ─▶ facts, as JSON ───────────────▶ the script draws
//!           └▶ tables, said: in HTML, for those without scripts and for paper
//! ```
//!
//! The script is the files of `templates/recording`, one after the other, in one function. The page is
//! also well-formed XML, so that a test can read it.

mod columns;
mod frames;
mod said;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;

use super::flags::BlameBy;
use crate::recording::Recording;
use askama::Template;
use columns::PageColumn;
use frames::{PageFlames, PageFrames};
use lockstead_render::machine::utc;
use lockstead_render::table::time;
use lockstead_render::words::clean;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use tables::WaitTable;
use timeline::{Lane, PageProcess, PageRow, PageThing, Timeline};

/// The script of the page.
const SCRIPT: &str = concat!(
    include_str!("../../../templates/recording/data.js"),
    include_str!("../../../templates/recording/lanes.js"),
    include_str!("../../../templates/recording/described.js"),
    include_str!("../../../templates/recording/drawing.js"),
    include_str!("../../../templates/recording/timeline.js"),
    include_str!("../../../templates/recording/flames.js"),
    include_str!("../../../templates/recording/page.js"),
);

#[derive(Template)]
#[template(path = "recording.html")]
struct RecordingPage {
    title: String,
    command: String,
    version: String,
    date: String,
    wall: String,
    recorded: String,
    lacking: Vec<String>,
    has_events: bool,
    has_flames: bool,
    locks: WaitTable,
    idle: WaitTable,
    several: bool,
    columns: Vec<PageColumn>,
    facts: String,
    script: &'static str,
}

/// What the script needs beside the columns.
#[derive(Serialize)]
struct PageFacts<'t> {
    ended: u64,
    processes: &'t [PageProcess],
    rows: &'t [PageRow],
    things: &'t [PageThing],
    stacks: &'t [Vec<usize>],
    frames: &'t [(String, String)],
    /// The ways of waiting that there were.
    ways: &'t [&'static str],
    doings: &'t [(&'static str, String)],
    flames: PageFlames,
    /// What is shown first.
    by: &'static str,
    idle: bool,
}

/// Writes the page of a recording.
pub(super) fn write(
    recording: &Recording,
    (by, idle): (BlameBy, bool),
    to: &mut dyn Write,
) -> io::Result<()> {
    let mut frames = PageFrames::default();
    let timeline = Timeline::of(recording, &mut frames);
    let flames = PageFlames::of(recording, &mut frames);
    let command: Vec<String> = recording.run.command.iter().map(|word| clean(word)).collect();
    let program = recording.run.command.first().map_or("a recording", String::as_str);
    let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let page = RecordingPage {
        title: clean(&program),
        command: command.join(" "),
        version: clean(&recording.run.lockstead),
        date: utc(recording.run.date / 1_000_000_000),
        wall: time(timeline.ended as f64),
        recorded: said::recorded(&timeline),
        lacking: said::lacking(recording),
        has_events: !timeline.events.is_empty(),
        has_flames: !flames.waiter_idle.is_empty(),
        locks: WaitTable::of(&timeline, Lane::Wait),
        idle: WaitTable::of(&timeline, Lane::Idle),
        several: timeline.processes.len() > 1,
        columns: timeline.columns(),
        facts: harmless(&serde_json::to_string(&PageFacts {
            ended: timeline.ended,
            processes: &timeline.processes,
            rows: &timeline.rows,
            things: &timeline.things,
            stacks: &timeline.stacks,
            frames: &frames.frames,
            ways: &timeline.ways,
            doings: &timeline.doings,
            flames,
            by: if by == BlameBy::Waiter { "waiter" } else { "holder" },
            idle,
        })?),
        script: SCRIPT,
    };
    page.write_into(to)
}

/// Returns JSON that ends no element, whatever is in its strings.
fn harmless(json: &str) -> String {
    json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
}
