//! Slots in which somebody still seems to live when nobody is left.

use super::field::StormField;
use super::limits::STALL;
use crate::Error;
use crate::shared::process::until;
use lockstead::shared::Segment;
use lockstead::shared::inspect::{Mender, SegmentView};
use std::os::fd::{AsFd, AsRawFd};

/// The slots of a segment, seen by the parent, which has one of them while it storms.
pub(super) struct StormSlots {
    view: SegmentView,
    mender: Mender,
    /// The parent's, if it has one.
    own: Option<u32>,
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::Segment { what: "cannot look at the slots of the segment", why: why.to_string() }
}

impl StormSlots {
    /// Begins with a segment in which nobody is.
    pub(super) fn new(segment: &Segment<StormField>) -> Result<Self, Error> {
        let file = segment.as_fd().try_clone_to_owned().map_err(refused)?;
        let path = format!("/proc/self/fd/{}", segment.as_fd().as_raw_fd());
        let view = SegmentView::from_file(file.into()).map_err(refused)?;
        let mender = Mender::open(path).map_err(refused)?;
        Ok(StormSlots { view, mender, own: None })
    }

    /// Has the calling thread take a slot of a segment that nobody else is in.
    pub(super) fn take_slot(&mut self, segment: &Segment<StormField>) -> Result<(), Error> {
        self.own = None;
        segment.participate().map_err(refused)?;
        match self.taken()?[..] {
            [own] => self.own = Some(own),
            ref taken => return Err(refused(format!("{} are taken, and not one", taken.len()))),
        }
        Ok(())
    }

    /// Lists the slots in which somebody else seems to live.
    fn taken(&self) -> Result<Vec<u32>, Error> {
        let people = self.view.people().map_err(refused)?;
        let living = people.all().iter().filter(|one| one.alive && Some(one.slot) != self.own);
        Ok(living.map(|one| one.slot).collect())
    }

    /// Asks the second source about everybody, once.
    pub(super) fn ask(&self) {
        let _ = self.mender.declare_dead();
    }

    /// Returns how many slots are lost, now that nobody is left: those that the second source does
    /// not give back, which every thread asks that finds none. Of a few deaths the kernel
    /// never tells, be it those of threads that have taken a slot and have not yet said so to
    /// the kernel.
    pub(super) fn lost(&self) -> Result<u64, Error> {
        let mut taken = self.taken()?;
        if !taken.is_empty() {
            // What keeps its record lock goes a little later than the process.
            until(STALL, || {
                self.ask();
                self.taken().is_ok_and(|taken| taken.is_empty())
            });
            taken = self.taken()?;
        }
        Ok(taken.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::field;
    use super::*;
    use lockstead::shared::SegmentOptions;

    #[test]
    fn a_slot_of_somebody_who_lives_is_lost_when_nobody_should() {
        let segment = field::segment(&SegmentOptions::new().participants(4)).expect("a segment");
        let mut slots = StormSlots::new(&segment).expect("slots");
        slots.take_slot(&segment).expect("room");
        assert_eq!(slots.lost().expect("readable"), 0);
        let there = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                segment.participate().expect("room");
                there.wait();
                there.wait();
            });
            there.wait();
            // The second source knows that it lives.
            assert_eq!(slots.lost().expect("readable"), 1);
            there.wait();
            other.join().expect("it ends");
        });
        assert_eq!(slots.lost().expect("readable"), 0);
    }
}
