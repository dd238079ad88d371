//! The counter mutex: of 2006, and with the spinning of 2009 to 2013.
//!
//! # Role
//! 1 is free, 0 held, less: held, and a task may sleep. It is written from what the documents
//! say of it. The fields lie as they did on 64 bits: count, the lock of the wait list and
//! its head, owner and queue of spinners share a line.
//!
//! # The steps of its history
//! - 2006: a task that fails sleeps ([`HistorySteps::spins`] off).
//! - 2009: spins while any owner runs, however often it changes ([`HistorySteps::stays`]).
//! - 2010 to 2013, "without patch": spins while the owner runs; each try is an exchange.
//! - patch 2: reads before each exchange ([`HistorySteps::reads_first`]).
//! - patch 3: spinners stand in a queue ([`HistorySteps::queues`]).

use super::list::ListLock;
use crate::engine::calls::{
    at, get_sleepy, me, need_resched, pause, runs, schedule, stay_awake, wake,
};
use crate::engine::task::Activity;
use crate::engine::words::{QueueLock, U32, U64};
use crate::engine::world::{SimWorld, with};

/// The steps of its history that a mutex has taken.
#[derive(Clone, Copy)]
pub(crate) struct HistorySteps {
    pub(crate) spins: bool,
    pub(crate) stays: bool,
    pub(crate) reads_first: bool,
    pub(crate) queues: bool,
}

/// The kernel's mutex of 2006 and what became of it.
#[repr(C)]
pub(crate) struct CounterMutex {
    count: U32,
    wait_lock: ListLock,
    /// The head of the list of sleepers: two pointers.
    list: [U64; 2],
    owner: U64,
    queue: QueueLock,
    /// The sleepers themselves, and its history: no part of the real one.
    sleepers: usize,
    steps: HistorySteps,
}

fn signed(value: u32) -> i32 {
    value.cast_signed()
}

impl CounterMutex {
    pub(crate) fn place(w: &mut SimWorld, steps: HistorySteps) -> &'static Self {
        w.lists.push(std::collections::VecDeque::new());
        let mutex = w.arena.place(CounterMutex {
            count: U32::ZERO,
            wait_lock: if steps.spins { ListLock::ticket() } else { ListLock::byte() },
            list: [const { U64::ZERO }; 2],
            owner: U64::ZERO,
            queue: QueueLock::new(),
            sleepers: w.lists.len() - 1,
            steps,
        });
        mutex.count.set(1);
        mutex
    }

    pub(crate) fn lock(&self) {
        if signed(self.count.update(|count| count.wrapping_sub(1))) != 1 {
            at(Activity::SlowPath, || {
                if !(self.steps.spins && self.spin()) {
                    self.sleep();
                }
            });
            return;
        }
        self.own();
    }

    fn own(&self) {
        if self.steps.spins {
            self.owner.write(me() as u64 + 1);
        }
    }

    /// Spins for the mutex. Returns true if the task has it, false if it is time to sleep.
    fn spin(&self) -> bool {
        if self.steps.queues {
            let owner = self.owner.read();
            if owner != 0 && !runs(owner as usize - 1) {
                return false;
            }
        }
        loop {
            if self.steps.queues {
                self.queue.lock();
            }
            let owner = self.owner.read();
            let spoilt = owner != 0 && !self.spin_on(owner);
            let taken = !spoilt
                && (!self.steps.reads_first || signed(self.count.read()) == 1)
                && self.count.replace(1, 0).is_ok();
            if taken {
                self.own();
            }
            if self.steps.queues {
                self.queue.unlock();
            }
            if taken {
                return true;
            }
            if spoilt || owner == 0 && need_resched() {
                return false;
            }
            pause();
        }
    }

    /// Spins while `owner` has it and runs. Returns false if another task has it then, and the mutex
    /// is of a time at which that is a reason to sleep.
    fn spin_on(&self, owner: u64) -> bool {
        at(Activity::SpinOnOwner, || {
            while self.owner.read() == owner && runs(owner as usize - 1) && !need_resched() {
                pause();
            }
            let now = self.owner.read();
            now == 0 || self.steps.stays && now != owner
        })
    }

    /// Marks the mutex so that a task sleeps. Returns whether it was free.
    fn free_or_marked(&self) -> bool {
        (!self.steps.reads_first || signed(self.count.read()) >= 0)
            && signed(self.count.update(|_| u32::MAX)) == 1
    }

    fn sleep(&self) {
        self.wait_lock.lock();
        self.list[1].write(me() as u64 + 1);
        with(|w| {
            let me = w.current as u32;
            w.lists[self.sleepers].push_back(me);
        });
        let mut free = self.steps.spins && self.free_or_marked();
        while !free && !self.free_or_marked() {
            get_sleepy();
            self.wait_lock.unlock();
            at(Activity::Kernel, schedule);
            self.wait_lock.lock();
            free = false;
        }
        stay_awake();
        self.list[0].write(me() as u64 + 1);
        let nobody = with(|w| {
            let me = w.current as u32;
            let list = &mut w.lists[self.sleepers];
            if let Some(at) = list.iter().position(|&task| task == me) {
                list.remove(at);
            }
            list.is_empty()
        });
        self.own();
        if nobody {
            self.count.write(0);
        }
        self.wait_lock.unlock();
    }

    pub(crate) fn unlock(&self) {
        if self.steps.spins {
            self.owner.write(0);
        }
        if signed(self.count.update(|count| count.wrapping_add(1))) >= 0 {
            return;
        }
        self.wake();
    }

    fn wake(&self) {
        self.wait_lock.lock();
        self.count.write(1);
        if let Some(first) = with(|w| w.lists[self.sleepers].front().copied()) {
            wake(first as usize);
        }
        self.wait_lock.unlock();
    }
}
