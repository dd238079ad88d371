//! Which frame of a stack is the place where a lock was taken.
//!
//! # Role
//! A program that takes its locks through a function of its own has one call of
//! `pthread_mutex_lock` for all of them, and the place that a reader wants is further
//! up. [`is_lock_wrapper`] knows the names of functions that many programs use so. Of a
//! program's own the ledger has evidence: beside the stacks by which a lock was
//! acquired it has stacks by which it was released.
//!
//! # Rule
//! The place is the innermost function that was running still when the lock was given
//! back: the frame at which both stacks part. Whatever was called from there to take the
//! lock has returned with it, as a wrapper does. A function that always did so is one also
//! on stacks of which no release is known. Frames that are wrappers by their names are
//! passed over after that.
//!
//! Where the two stacks part at their ends already, as with a lock that is given back by
//! another thread, or where one of them is not complete, there is no evidence.

use super::names::Names;
use crate::stack::Frame;
use crate::symbols::is_lock_wrapper;
use lockstead_ledger::Ledger;
use lockstead_ledger::shares::Shares;
use std::collections::HashMap;

/// A function: the file of its code, and its name.
type Function = (Option<String>, String);

/// What is known of a program's own wrappers.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The place among the visible frames, by the id of the stack.
    seen: HashMap<u32, usize>,
    /// Functions that took locks: whether each has always returned with them.
    returned: HashMap<Function, bool>,
}

/// A place, as numbers of frames among those that are visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FramePlace {
    /// The place in the code.
    pub(super) at: usize,
    /// The function of the program's own that was called there, and took the lock.
    pub(super) through: Option<usize>,
}

impl Places {
    /// Learns from the holds of a lock that have ended.
    pub(super) fn learn(&mut self, ledger: &Ledger<'_>, names: &mut dyn Names, held_at: &Shares) {
        let mut stack = |id: u32| {
            let stored = ledger.stack(id)?;
            let returns: Vec<u64> = stored.returns().collect();
            let stack = names.stack(&returns, stored.end);
            stack.end.is_complete().then_some(stack)
        };
        for share in ledger.shares(held_at) {
            let (id, released, ..) = share.read();
            let (Some(acquired), Some(released)) = (stack(id), stack(released)) else { continue };
            let acquired: Vec<&Frame> = acquired.visible().collect();
            let released: Vec<&Frame> = released.visible().collect();
            let Some(at) = still_running(&acquired, &released) else { continue };
            self.seen.insert(id, at);
            for (depth, frame) in acquired.iter().enumerate().take(at + 1) {
                if let Some(function) = function(frame) {
                    *self.returned.entry(function).or_insert(true) &= depth < at;
                }
            }
        }
    }

    /// Returns the place of an acquisition, or of a wait for one; `None` without frames.
    pub(super) fn of(&self, id: u32, visible: &[&Frame]) -> Option<FramePlace> {
        let seen = self.seen.get(&id).copied().filter(|&at| at < visible.len());
        let is_wrapper = |at: usize, frame: &Frame| match seen {
            Some(seen) => at < seen || is_lock_wrapper(frame),
            None => is_lock_wrapper(frame) || self.returned_with_it(frame),
        };
        let found = visible.iter().enumerate().position(|(at, frame)| !is_wrapper(at, frame));
        let at = match found {
            Some(at) => at,
            None if visible.is_empty() => return None,
            None => 0,
        };
        let through = visible[..at].iter().rposition(|frame| !is_lock_wrapper(frame));
        Some(FramePlace { at, through })
    }

    fn returned_with_it(&self, frame: &Frame) -> bool {
        function(frame).is_some_and(|function| self.returned.get(&function) == Some(&true))
    }
}

fn function(frame: &Frame) -> Option<Function> {
    Some((frame.module.clone(), frame.function.clone()?))
}

/// Returns the innermost frame that both stacks of one thread have, whatever it called: among those
/// of `acquired`, innermost first.
fn still_running(acquired: &[&Frame], released: &[&Frame]) -> Option<usize> {
    let mut found = None;
    let pairs = acquired.iter().enumerate().rev().zip(released.iter().rev());
    // Whether the frames before are the same call, so that these are the same activation.
    let mut is_same_call = true;
    for ((at, mine), theirs) in pairs {
        // Frames that the compiler made one have one address.
        let is_inside = mine.inlined && theirs.inlined;
        if !(is_same_call
            || is_inside
                && found.is_some_and(|outer: usize| {
                    is_same_line(
                        acquired[outer],
                        released[released.len() - (acquired.len() - outer)],
                    )
                }))
            || function(mine) != function(theirs)
        {
            break;
        }
        found = Some(at);
        is_same_call = mine.address == theirs.address;
    }
    found
}

fn is_same_line(mine: &Frame, theirs: &Frame) -> bool {
    mine.line.is_some() && (&mine.file, mine.line) == (&theirs.file, theirs.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, address: u64) -> Frame {
        Frame {
            address,
            function: Some(function.into()),
            file: Some("x.c".into()),
            line: Some(address as u32),
            ..Frame::default()
        }
    }

    fn inlined(function: &str, line: u32, address: u64) -> Frame {
        Frame { inlined: true, line: Some(line), ..frame(function, address) }
    }

    fn found(acquired: &[Frame], released: &[Frame]) -> Option<usize> {
        let [acquired, released] =
            [acquired, released].map(|frames| frames.iter().collect::<Vec<_>>());
        still_running(&acquired, &released)
    }

    #[test]
    fn the_place_is_the_innermost_function_that_still_runs_at_the_release() {
        let main = || frame("main", 1);
        let through = [frame("my_lock", 50), frame("put", 10), main()];
        // Whether it gives back by itself or by another function.
        assert_eq!(found(&through, &[frame("put", 11), main()]), Some(1));
        assert_eq!(found(&through, &[frame("my_unlock", 60), frame("put", 11), main()]), Some(1));
        let direct = [frame("put", 10), main()];
        assert_eq!(found(&direct, &[frame("put", 11), main()]), Some(0));
        // Two functions of one that calls both.
        assert_eq!(found(&direct, &[frame("done", 9), frame("main", 2)]), Some(1));
        assert_eq!(found(&direct, &[frame("other_thread", 3)]), None);
    }

    #[test]
    fn functions_that_were_made_one_are_told_by_their_lines() {
        let main = || frame("main", 1);
        let acquired =
            [inlined("my_lock", 7, 30), Frame { line: Some(5), ..frame("put", 30) }, main()];
        let released =
            [inlined("my_unlock", 8, 40), Frame { line: Some(6), ..frame("put", 40) }, main()];
        assert_eq!(found(&acquired, &released), Some(1));
        // All of it in one call of a function inside.
        let get = |line, address| {
            [
                inlined("get", line, address),
                Frame { line: Some(5), ..frame("put", address) },
                main(),
            ]
        };
        assert_eq!(found(&get(70, 30), &get(71, 40)), Some(0));
    }

    #[test]
    fn a_function_that_always_returned_with_the_lock_is_no_place() {
        let mut places = Places::default();
        places.returned.insert((None, "my_lock".into()), true);
        places.returned.insert((None, "maybe".into()), false);
        places.seen.insert(7, 2);
        let frames = [frame("my_lock", 50), frame("maybe", 10), frame("main", 1)];
        let frames: Vec<&Frame> = frames.iter().collect();
        assert_eq!(places.of(3, &frames), Some(FramePlace { at: 1, through: Some(0) }));
        assert_eq!(places.of(7, &frames), Some(FramePlace { at: 2, through: Some(1) }));
        assert_eq!(places.of(3, &frames[..1]), Some(FramePlace { at: 0, through: None }));
        assert_eq!(places.of(3, &[]), None);
    }
}
