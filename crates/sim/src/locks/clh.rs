//! A queue whose waiters look at the one before them.
//!
//! # Role
//! Each has a node that says whether it still holds or waits. Who comes puts its node at the end and
//! looks at the one that was there; who releases clears its own and takes the one before it for the
//! next time. So a hand-over is one store, and the releaser needs not know who comes next.
//!
//! # Source
//! Craig (1993), and Magnusson, Landin, Hagersten (1994).

use super::plain::PlainLock;
use crate::engine::calls::{at, me, pause};
use crate::engine::task::Activity;
use crate::engine::words::{QueueNode, U32, U64};
use crate::engine::world::{SimWorld, with};

/// A mutex that is such a queue.
#[repr(C, align(64))]
pub(super) struct ClhMutex {
    /// The last one's node: a task's, or the spare one.
    tail: U64,
    /// What its holder alone reads and writes: its node and the one before it.
    held: [U64; 2],
    /// The node that no task has brought along, by its number.
    spare: usize,
}

/// The bit that tells the nodes that locks bring along from those of tasks.
const SPARE: u64 = 1 << 32;

/// Returns the word of a node, which is 1 while its task holds or waits.
fn node(number: u64) -> &'static U32 {
    with(|w| {
        let nodes: &[&'static QueueNode] =
            if number & SPARE != 0 { &w.spare_nodes } else { &w.nodes };
        &nodes[(number & !SPARE) as usize].locked
    })
}

impl ClhMutex {
    pub(super) fn place(w: &mut SimWorld) -> &'static Self {
        let node = w.arena.place(QueueNode::new());
        w.spare_nodes.push(node);
        let spare = w.spare_nodes.len() - 1;
        let mutex = ClhMutex { tail: U64::ZERO, held: [const { U64::ZERO }; 2], spare };
        mutex.tail.set(SPARE | spare as u64);
        w.arena.place(mutex)
    }
}

impl PlainLock for ClhMutex {
    fn lock(&self) {
        // The real one has the number in memory of the thread, where a read costs nothing.
        let kept = with(|w| w.nodes[w.current].next.get());
        let mine = if kept == 0 { me() as u64 } else { kept - 1 };
        node(mine).write(1);
        let before = self.tail.update(|_| mine);
        at(Activity::SpinQueue, || {
            while node(before).read() != 0 {
                pause();
            }
        });
        self.held[0].write(mine);
        self.held[1].write(before);
    }

    fn unlock(&self) {
        let (mine, before) = (self.held[0].read(), self.held[1].read());
        with(|w| w.nodes[w.current].next.set(before + 1));
        node(mine).write(0);
    }
}
