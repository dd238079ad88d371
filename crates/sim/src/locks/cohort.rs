//! A mutex whose spinners queue, in the order of their coming or by memory node.
//!
//! # Role
//! It shows what the order of a queue of spinners is worth by itself: nobody sleeps, one spinner
//! at a time looks at the lock, newcomers may take it past the queue. In the plain one the queue
//! is that of Mellor-Crummey and Scott. In the other one each memory node has such a queue,
//! and the first of each stands in a queue of the nodes; a spinner that leaves hands its node's
//! place to the next of its own node, a limited number of times in a row.
//!
//! # Source
//! Cohort locks: Dice, Marathe, Shavit, "Lock cohorting" (2012).

use super::plain::PlainLock;
use crate::engine::calls::{at, me, pause};
use crate::engine::task::Activity;
use crate::engine::words::QueueNode;
use crate::engine::words::{U32, U64};
use crate::engine::world::{SimWorld, with};

/// The number of hand-overs within a node before another one has its turn.
const IN_A_ROW: u32 = 64;

/// The word of a spinner's node whose turn it is, without the place of its memory node.
const ALONE: u32 = 1;
/// The same with the place of its memory node.
const WITH_PLACE: u32 = 2;

/// A mutex that only spins, in a queue.
pub(crate) struct SpinMutex {
    word: &'static U32,
    queues: &'static [NodeQueue],
    /// The tail of the queue of memory nodes, from 1.
    tail: &'static U64,
}

/// The queue of one memory node, on lines of its own.
#[repr(align(64))]
pub(crate) struct NodeQueue {
    /// The last one's task, from 1.
    tail: U64,
    place: QueueNode,
    /// The number of hand-overs in a row, which the task that has the place writes.
    passed: U32,
}

impl SpinMutex {
    /// Makes the mutex. With `by_node` its queue goes by memory node.
    pub(crate) fn place(w: &mut SimWorld, by_node: bool) -> &'static Self {
        let nodes = if by_node { w.machine.layout.nodes } else { 1 };
        let queues: Vec<NodeQueue> = (0..nodes)
            .map(|_| NodeQueue { tail: U64::ZERO, place: QueueNode::new(), passed: U32::ZERO })
            .collect();
        let mutex = SpinMutex {
            word: w.arena.place(U32::ZERO),
            queues: w.arena.place_all(queues),
            tail: w.arena.place(U64::ZERO),
        };
        w.arena.place(mutex)
    }

    fn take(&self) -> bool {
        self.word.read() == 0 && self.word.replace(0, 1).is_ok()
    }
}

impl PlainLock for SpinMutex {
    fn lock(&self) {
        if self.word.replace(0, 1).is_ok() {
            return;
        }
        at(Activity::SpinQueue, || {
            let here = self.node_of_caller();
            self.join(here);
            while !self.take() {
                pause();
            }
            self.leave(here);
        });
    }

    fn unlock(&self) {
        self.word.write(0);
    }
}

impl SpinMutex {
    fn node_of_caller(&self) -> usize {
        if self.queues.len() == 1 {
            return 0;
        }
        with(|w| {
            let core = w.machine.core_of(w.tasks[w.current].cpu);
            w.machine.cache_of(core) / w.machine.layout.caches
        })
    }

    /// Returns when the caller is the first of all.
    fn join(&self, here: usize) {
        let queue = &self.queues[here];
        let mine = me() as u64 + 1;
        let node = spinner(mine);
        node.locked.write(0);
        node.next.write(0);
        let before = queue.tail.update(|_| mine);
        if before != 0 {
            spinner(before).next.write(mine);
            loop {
                match node.locked.read() {
                    WITH_PLACE => return,
                    ALONE => break,
                    _ => pause(),
                }
            }
        }
        if self.queues.len() == 1 {
            return;
        }
        let place = &queue.place;
        let number = here as u64 + 1;
        place.locked.write(0);
        place.next.write(0);
        let before = self.tail.update(|_| number);
        if before != 0 {
            self.queues[before as usize - 1].place.next.write(number);
            while place.locked.read() == 0 {
                pause();
            }
        }
    }

    /// Lets the first one leave, so that the next one is the first.
    fn leave(&self, here: usize) {
        let queue = &self.queues[here];
        let mine = me() as u64 + 1;
        let many = self.queues.len() > 1;
        let passed = if many { queue.passed.read() } else { 0 };
        let mut next = spinner(mine).next.read();
        if next != 0 && passed < IN_A_ROW {
            if many {
                queue.passed.write(passed + 1);
            }
            spinner(next).locked.write(WITH_PLACE);
            return;
        }
        if many {
            queue.passed.write(0);
            self.give_up_place(here);
        }
        if next == 0 {
            if queue.tail.replace(mine, 0).is_ok() {
                return;
            }
            next = linked(&spinner(mine).next);
        }
        spinner(next).locked.write(if many { ALONE } else { WITH_PLACE });
    }

    fn give_up_place(&self, here: usize) {
        let place = &self.queues[here].place;
        let mut next = place.next.read();
        if next == 0 {
            if self.tail.replace(here as u64 + 1, 0).is_ok() {
                return;
            }
            next = linked(&place.next);
        }
        self.queues[next as usize - 1].place.locked.write(1);
    }
}

/// Returns what stands there as soon as something does.
fn linked(next: &U64) -> u64 {
    loop {
        match next.read() {
            0 => pause(),
            next => return next,
        }
    }
}

fn spinner(number: u64) -> &'static QueueNode {
    with(|w| w.nodes[number as usize - 1])
}
