//! The semaphore of 2005, on i386.
//!
//! # Role
//! A count, the number of sleepers whose wishes are in it (0 or 1), and a wait queue with a
//! lock. A task that is woken looks again; one that gets it wakes the next one too, which looks in
//! vain. A wake-up reaches the first of the queue that really sleeps.

use super::list::ListLock;
use crate::engine::calls::{at, get_sleepy, me, schedule, stay_awake, wake};
use crate::engine::task::Activity;
use crate::engine::words::{U32, U64};
use crate::engine::world::{SimWorld, with};

/// The semaphore, as a mutex: one unit.
#[repr(C)]
pub(crate) struct Semaphore2005 {
    count: U32,
    sleepers: U32,
    wait_lock: ListLock,
    list: U64,
    queue: usize,
}

impl Semaphore2005 {
    pub(crate) fn place(w: &mut SimWorld) -> &'static Self {
        w.lists.push(std::collections::VecDeque::new());
        let semaphore = w.arena.place(Semaphore2005 {
            count: U32::ZERO,
            sleepers: U32::ZERO,
            wait_lock: ListLock::byte(),
            list: U64::ZERO,
            queue: w.lists.len() - 1,
        });
        semaphore.count.set(1);
        semaphore
    }

    pub(crate) fn down(&self) {
        if self.count.update(|count| count.wrapping_sub(1)).cast_signed() <= 0 {
            self.wait();
        }
    }

    fn wait(&self) {
        get_sleepy();
        self.wait_lock.lock();
        with(|w| {
            let me = w.current as u32;
            w.lists[self.queue].push_back(me);
        });
        self.list.write(me() as u64);
        self.sleepers.write(self.sleepers.read() + 1);
        loop {
            let sleepers = self.sleepers.read();
            let added = sleepers.wrapping_sub(1);
            let before = self.count.update(|count| count.wrapping_add(added));
            if before.wrapping_add(added).cast_signed() >= 0 {
                self.sleepers.write(0);
                break;
            }
            self.sleepers.write(1);
            self.wait_lock.unlock();
            at(Activity::Kernel, schedule);
            self.wait_lock.lock();
            get_sleepy();
        }
        with(|w| {
            let me = w.current as u32;
            w.lists[self.queue].retain(|&task| task != me);
        });
        self.list.write(me() as u64);
        self.wake_first();
        self.wait_lock.unlock();
        stay_awake();
    }

    /// Wakes the first that sleeps.
    fn wake_first(&self) {
        for place in 0.. {
            let Some(task) = with(|w| w.lists[self.queue].get(place).copied()) else { return };
            if wake(task as usize) {
                return;
            }
        }
    }

    pub(crate) fn up(&self) {
        if self.count.update(|count| count.wrapping_add(1)).cast_signed() >= 0 {
            return;
        }
        self.wait_lock.lock();
        self.wake_first();
        self.wait_lock.unlock();
    }
}
