//! A simulation from its beginning to its horizon.

use super::strand::TaskStrand;
use super::task::NOBODY;
use super::time::Ps;
use super::words::Bucket;
use super::world::{SimWorld, with, with_world};

/// The number of buckets of waiters that have memory: of those that there are, few are in use.
const BUCKETS: usize = 1024;

impl SimWorld {
    /// Runs to the horizon, or until nothing can happen any more.
    pub(crate) fn run(self: &mut Box<SimWorld>, horizon: Ps) {
        self.horizon = horizon;
        self.buckets = (0..BUCKETS).map(|_| self.arena.place(Bucket::new())).collect();
        self.prepare_lines();
        let bodies = std::mem::take(&mut self.bodies);
        let world: *mut SimWorld = &raw mut **self;
        let oracle = self.oracle;
        with_world(world, || {
            let mut strands: Vec<TaskStrand> = bodies
                .into_iter()
                .map(|body| {
                    if oracle { TaskStrand::thread(body, world) } else { TaskStrand::routine(body) }
                })
                .collect();
            with(|w| {
                w.begin_to_balance();
                for task in 0..w.tasks.len() {
                    w.enqueue(task, w.tasks[task].cpu);
                }
            });
            while let Some(task) = with(SimWorld::step) {
                let ended = strands[task].resume();
                with(|w| {
                    if ended {
                        w.end(task);
                    }
                    w.current = NOBODY;
                });
            }
        });
    }
}
