//! The segment that the workers of a storm share, and its slots.

use super::field::{self, StormField};
use super::mix::Mix;
use super::slots::StormSlots;
use crate::Error;
use lockstead::shared::{Segment, SegmentOptions};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Slots beyond those that all threads and the parent need. Few, so that a slot that somebody
/// has left is taken again soon; a thread that ends keeps its slot for a moment longer than
/// the one that comes in its place has to wait.
const SPARE: usize = 2;

/// A segment, seen by the parent.
pub(super) struct StormGround {
    pub(super) segment: Segment<StormField>,
    pub(super) slots: StormSlots,
    /// The folder in which its file is, where that has a name.
    folder: Option<TempDir>,
}

/// The name of the file, where it has one.
const NAME: &str = "segment";

impl StormGround {
    /// Makes one with all locks free.
    pub(super) fn new(mix: &Mix) -> Result<Self, Error> {
        let participants = mix.processes * mix.threads + 1 + SPARE;
        let options = SegmentOptions::new()
            .participants(u32::try_from(participants).unwrap_or(u32::MAX))
            .mode(if mix.users { 0o666 } else { 0o600 })
            .exclusive(mix.exclusive);
        let folder = if mix.needs_a_name() { Some(folder()?) } else { None };
        let segment = match &folder {
            Some(folder) => field::named(&folder.path().join(NAME), &options)?,
            None => field::segment(&options)?,
        };
        let slots = StormSlots::new(&segment)?;
        Ok(StormGround { segment, slots, folder })
    }

    /// Returns the path by which workers open it; `None`: by the descriptor that they inherit.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join(NAME))
    }

    /// Has the calling thread take a slot of a segment that nobody else is in.
    pub(super) fn take_slot(&mut self) -> Result<(), Error> {
        self.slots.take_slot(&self.segment)
    }
}

/// Returns a folder in which other users find what they know the name of, in memory if possible.
fn folder() -> Result<TempDir, Error> {
    let memory = Path::new("/dev/shm");
    let made = |place: &Path| {
        let open = Permissions::from_mode(0o711);
        tempfile::Builder::new().prefix("lockstead-storm-").permissions(open).tempdir_in(place)
    };
    made(memory).or_else(|_| made(&std::env::temp_dir())).map_err(|why| Error::Segment {
        what: "cannot make a folder for the segment",
        why: why.to_string(),
    })
}
