//! Segments seen from outside, without the types of the program whose they are: what
//! `lockstead shm` shows.
//!
//! A [`SegmentView`] reads the file and takes no part in it: it maps nothing, so that a file
//! that somebody cuts meanwhile is an error, and leaves no trace. What it shows of a
//! segment in use was true at some moment each, not all at the same one. A [`Mender`]
//! takes part, and puts in order what is stuck.
//!
//! ```
//! use lockstead::shared::inspect::{LockState, SegmentView};
//! use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
//!
//! # let path = std::env::temp_dir().join(format!("view-{}", std::process::id()));
//! let segment = Segment::<[SharedMutex<u64>; 3]>::create(&path, &SegmentOptions::new())?;
//! let held = segment.root()[1].lock()?;
//!
//! let view = SegmentView::open(&path)?;
//! let people = view.people()?;
//! assert_eq!(people.all().len(), 1);
//! let mut owned = Vec::new();
//! view.locks(&people, &mut |lock| {
//!     if lock.state == LockState::Owned {
//!         owned.push(lock.path.to_owned());
//!     }
//!     true
//! })?;
//! assert_eq!(owned, ["[1]"]);
//! # drop(held);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod mender;
mod people;
mod view;

pub use super::header::SegmentHeader;
pub use super::layout::{FoundLock, LayoutNode, RootLayout};
pub use lockstead_core::robust::Identity;
pub use mender::{Mended, Mender};
pub use people::{Claimed, ParticipantView, People};
pub use view::{LockState, LockView, SegmentView};
