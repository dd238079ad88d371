//! The wait/wound mutex: workers that move money between accounts, which they take in any order.

use crate::frame::{Hasty, Scene, Worker, storms};
use lockstead_core::ww::{Class, Context, ContextPatience, RawWwMutex, Scheme, WwError};
use lockstead_core::{LockError, Plain};
use lockstead_linux::{Cell, Linux};
use std::panic::Location;

const ACCOUNTS: usize = 5;
const EACH: i64 = 1000;

struct Account {
    lock: RawWwMutex<Linux, Hasty>,
    money: Cell<i64>,
}

struct Ww {
    class: Class<Linux>,
    accounts: [Account; ACCOUNTS],
}

impl Ww {
    fn new(scheme: Scheme) -> Self {
        let account = |_| Account { lock: RawWwMutex::new(), money: Cell::new(EACH) };
        Ww { class: Class::new(scheme), accounts: std::array::from_fn(account) }
    }

    /// Adds to an account that the caller holds.
    fn add(&self, account: usize, amount: i64) {
        // SAFETY: the caller holds the account, which keeps all others out.
        self.accounts[account].money.with_mut(|money| unsafe {
            money.write_volatile(money.read_volatile() + amount);
        });
    }

    fn release(&self, context: &Context<Linux>, held: &mut Vec<usize>) {
        for account in held.drain(..) {
            // SAFETY: this thread holds the account in this context, and releases it once.
            unsafe { self.accounts[account].lock.unlock(Some(context)) };
        }
    }

    /// Takes the wanted accounts, and backs off as often as it is told to, or as it likes.
    fn take(
        &self,
        worker: &mut Worker<'_>,
        context: &Context<Linux>,
        wanted: &[usize],
    ) -> Vec<usize> {
        let (here, mut held, mut refused) = (Location::caller(), Vec::new(), None);
        'again: loop {
            let first = refused.take();
            for &account in first.iter().chain(wanted) {
                if held.contains(&account) {
                    continue;
                }
                let lock = &self.accounts[account].lock;
                while !(worker.dice.one_in(16) && lock.try_lock(Some(context), here)) {
                    let bounds = worker.bounds();
                    let (deadline, interruptible) = (bounds.deadline, bounds.interruptible);
                    let patience = ContextPatience { deadline, interruptible };
                    let bare = held.is_empty() && first == Some(account);
                    let got = if bare {
                        lock.lock_slow(context, &patience, here)
                    } else {
                        lock.lock_how(context, &patience, here)
                    };
                    match got {
                        Ok(()) => break,
                        Err(WwError::Deadlock) => {
                            assert!(!bare, "a context that holds nothing backs off");
                            self.release(context, &mut held);
                            refused = Some(account);
                            continue 'again;
                        }
                        Err(WwError::Lock(
                            error @ (LockError::TimedOut | LockError::Interrupted),
                        )) => {
                            worker.gave_up(error);
                            if worker.dice.one_in(2) {
                                self.release(context, &mut held);
                                continue 'again;
                            }
                        }
                        Err(error) => panic!("nobody did that: {error:?}"),
                    }
                }
                held.push(account);
            }
            return held;
        }
    }
}

impl Scene for Ww {
    fn turn(&self, worker: &mut Worker<'_>) {
        let mut wanted: Vec<usize> = (0..ACCOUNTS).collect();
        worker.dice.shuffle(&mut wanted);
        if worker.dice.one_in(8) {
            // Without a context.
            let (here, lock) = (Location::caller(), &self.accounts[wanted[0]].lock);
            if !(worker.dice.one_in(4) && lock.try_lock(None, here)) {
                worker.insist(|how| lock.lock_alone(how, here));
            }
            self.add(wanted[0], 1);
            worker.linger();
            self.add(wanted[0], -1);
            // SAFETY: this thread holds the lock without a context, and releases it once.
            unsafe { lock.unlock(None) };
            return;
        }
        wanted.truncate(2 + worker.dice.below(ACCOUNTS as u64 - 1) as usize);
        let context = Context::begin(&self.class).expect("one context a thread");
        let mut held = self.take(worker, &context, &wanted);
        assert_eq!((context.acquired() as usize, held.len()), (wanted.len(), wanted.len()));
        let amount = worker.dice.below(50) as i64;
        self.add(held[0], -amount);
        worker.linger();
        self.add(held[1], amount);
        worker.dice.shuffle(&mut held);
        self.release(&context, &mut held);
        context.finish();
    }

    fn still(&self, _turns: u64) {
        assert!(self.accounts.iter().all(|account| !account.lock.is_locked()));
        // SAFETY: nobody makes a turn, so that nobody writes.
        let money = |account: &Account| account.money.with(|money| unsafe { money.read() });
        assert_eq!(self.accounts.iter().map(money).sum::<i64>(), EACH * ACCOUNTS as i64);
    }

    fn describe(&self) -> String {
        let locks: Vec<_> = self.accounts.iter().map(|account| &account.lock).collect();
        format!("{locks:?}")
    }
}

mod wait_die {
    use super::*;
    storms!("wait/wound mutex, wait-die", Ww::new(Scheme::WaitDie), 30_000, 20_000_000);
}

mod wound_wait {
    use super::*;
    storms!("wait/wound mutex, wound-wait", Ww::new(Scheme::WoundWait), 4_000, 4_000_000);
}
