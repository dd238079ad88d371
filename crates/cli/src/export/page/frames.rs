//! The frames of stacks, each once, and the stacks that have the time of waiting.

use super::super::blame::{self, WeighedStack};
use super::super::flags::BlameBy;
use crate::recording::{FrameNames, Recording};
use lockstead_render::words::clean;
use serde::Serialize;
use std::collections::HashMap;

/// The frames of a page: what each is called, and its file and line or nothing.
#[derive(Debug, Default)]
pub(super) struct PageFrames {
    places: HashMap<FrameNames, usize>,
    /// The frames in the order of their places.
    pub(super) frames: Vec<(String, String)>,
}

impl PageFrames {
    /// Returns the place of a frame.
    pub(super) fn place(&mut self, frame: &FrameNames) -> usize {
        if let Some(&place) = self.places.get(frame) {
            return place;
        }
        let site = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => String::new(),
        };
        self.frames.push((clean(&frame.name), clean(&site)));
        self.places.insert(frame.clone(), self.frames.len() - 1);
        self.frames.len() - 1
    }
}

/// Stacks of a flame graph with their nanoseconds, outermost frame first.
pub(super) type PageFlame = Vec<(Vec<usize>, u64)>;

/// The flame graphs of a page.
#[derive(Debug, Serialize)]
pub(super) struct PageFlames {
    /// The stacks that waited, with waits for locks only.
    pub(super) waiter: PageFlame,
    /// The same with all waits.
    pub(super) waiter_idle: PageFlame,
    /// The stacks that held the lock meanwhile, with waits for locks only.
    pub(super) holder: PageFlame,
    /// The same with all waits.
    pub(super) holder_idle: PageFlame,
}

impl PageFlames {
    /// Weighs the stacks of a recording in each way.
    pub(super) fn of(recording: &Recording, frames: &mut PageFrames) -> PageFlames {
        let mut flame = |by, idle| -> PageFlame {
            let stacks: Vec<(WeighedStack, u64)> = recording
                .processes
                .iter()
                .flat_map(|process| blame::weights(process, by, idle))
                .collect();
            let place = |(stack, ns): (WeighedStack, u64)| {
                (stack.iter().map(|frame| frames.place(frame)).collect(), ns)
            };
            stacks.into_iter().map(place).collect()
        };
        PageFlames {
            waiter: flame(BlameBy::Waiter, false),
            waiter_idle: flame(BlameBy::Waiter, true),
            holder: flame(BlameBy::Holder, false),
            holder_idle: flame(BlameBy::Holder, true),
        }
    }
}
