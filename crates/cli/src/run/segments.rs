//! Who holds the locks of lockstead's that lie in segments.
//!
//! # Role
//! The ledger has who waits for such a lock, and its acquisitions are told to nobody. But the segment
//! has it all: the word of a lock names a participant, and who reads says so in a claim. The file is
//! opened anew from the descriptor that the program has, and only read.

use super::across::SharedPlace;
use super::processes::Observed;
use lockstead::shared::LockKind;
use lockstead::shared::inspect::{LockState, ParticipantView, People, SegmentView};
use lockstead_inspect::waits::modes::HoldMode;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// A thread that holds a lock of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHolder {
    /// The number that the process has for itself.
    pub(super) process: u32,
    /// The number that the thread has for itself.
    pub(super) thread: u32,
    /// The inode of the PID namespace in which it has these numbers; 0: unknown, as without `/proc`.
    pub(super) namespace: u64,
    /// How it holds the lock.
    pub(super) mode: HoldMode,
}

impl SegmentHolder {
    fn new(person: &ParticipantView, mode: HoldMode) -> Self {
        let ParticipantView { process, thread, namespace, .. } = *person;
        SegmentHolder { process, thread, namespace, mode }
    }

    /// Tells whether it is this thread of this process. Where the namespace is unknown nobody is:
    /// another namespace may have the same numbers.
    pub(super) fn is(&self, process: &Observed, thread: u32) -> bool {
        let space = || fs::metadata(format!("/proc/{}/ns/pid", process.pid));
        self.thread == thread
            && self.process == process.pid
            && space().is_ok_and(|space| space.ino() == self.namespace)
    }
}

/// The segments of a run, with those who take part, as they were when they were first asked for.
#[derive(Default)]
pub(super) struct Segments {
    open: HashMap<(u32, u32, u64), Option<(SegmentView, People)>>,
}

impl Segments {
    /// Returns who holds the lock at this place, which the process has mapped. Of a semaphore nobody:
    /// units may come from anybody.
    pub(super) fn holders(&mut self, process: &Observed, place: SharedPlace) -> Vec<SegmentHolder> {
        let key = (place.device.0, place.device.1, place.inode);
        let segment = self.open.entry(key).or_insert_with(|| {
            let view = SegmentView::from_file(descriptor(process, place)?).ok()?;
            let people = view.people().ok()?;
            Some((view, people))
        });
        let Some((view, people)) = segment else { return Vec::new() };
        let holders = view.lock_at(people, place.offset, |lock| {
            if !matches!(lock.kind, LockKind::Mutex | LockKind::RwLock) {
                return Vec::new();
            }
            let owner = lock.owner.filter(|_| lock.state == LockState::Owned);
            let owner = owner.and_then(|owner| people.living(owner));
            let owner = owner.map(|person| SegmentHolder::new(person, HoldMode::Alone));
            let readers = lock.claims.iter().filter_map(|claim| people.in_slot(claim.slot));
            let readers = readers.filter(|person| person.alive && !person.unnoticed);
            owner
                .into_iter()
                .chain(readers.map(|p| SegmentHolder::new(p, HoldMode::Shared)))
                .collect()
        });
        holders.ok().flatten().unwrap_or_default()
    }
}

/// Opens the file in which the place is, as the process has it open.
fn descriptor(process: &Observed, place: SharedPlace) -> Option<File> {
    let folder = fs::read_dir(format!("/proc/{}/fd", process.pid)).ok()?;
    let mut paths = folder.filter_map(|entry| Some(entry.ok()?.path()));
    let path = paths.find(|path| {
        fs::metadata(path).is_ok_and(|file| {
            let device = (libc::major(file.dev()), libc::minor(file.dev()));
            file.ino() == place.inode && device == place.device
        })
    })?;
    File::open(path).ok()
}
