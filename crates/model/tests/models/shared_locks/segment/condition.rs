//! Models of the condition variable.

use super::*;
use lockstead_core::robust::{RawSharedCondvar, RawSharedMutex, WatchedWord};
use lockstead_model::Scenario;

/// What a participant does, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Waits until there is a token, and takes it.
    Await,
    /// The same, but may give up.
    Limited,
    /// The same, unless somebody cancels that.
    Cancellable,
    /// Cancels that of others.
    Cancel,
    /// Only takes the mutex.
    Visit,
    /// Waits until there is a token, leaves it, and notifies another one that waits.
    Pass,
    /// Puts a token there, and notifies one that waits.
    Put,
    /// Puts two tokens there, and notifies all.
    PutTwo,
    /// Waits once, until it is notified or cancelled.
    Listen,
    /// Notifies one, waits until one of those that waited then is back, and cancels the others.
    Ring,
    /// Leaves its slot. It holds nothing.
    Leave,
    /// Takes the first free slot; it may be killed from then on.
    Come,
}

/// Tokens under a mutex.
#[repr(C)]
pub(crate) struct Tokens {
    common: Common,
    mutex: RawSharedMutex<Model>,
    condition: RawSharedCondvar<Model>,
    tokens: U32,
    /// A bit for each thread that listens.
    listening: U32,
    /// Those that listened when somebody rang; none, once one of them is back.
    due: U32,
    /// What cancels a wait.
    cancel: U32,
}

impl Tokens {
    fn new(lives: usize) -> Self {
        let tokens = Tokens {
            common: Common::new(),
            mutex: RawSharedMutex::new(),
            condition: RawSharedCondvar::new(),
            tokens: U32::ZERO,
            listening: U32::ZERO,
            due: U32::ZERO,
            cancel: U32::ZERO,
        };
        tokens.common.populate(lives);
        tokens
    }

    fn consistent(&self, party: &Party<'_, Model>, got: Result<Got, RobustError>) {
        if got.expect("recoverable") == Got::OwnerDied {
            assert!(self.mutex.mark_consistent(party), "it has the mutex");
        }
    }

    fn run<'a>(&'a self, mut party: Party<'a, Model>, ops: &[Op]) {
        let order = Ordering::Relaxed;
        for (at, &op) in ops.iter().enumerate() {
            let party = match op {
                Op::Come => {
                    forget((at as u64 + 1) << 8);
                    party = self.common.comes();
                    continue;
                }
                _ => &party,
            };
            let place = u64::from(party.me.bits()) << 32 | (at as u64 + 1) << 8;
            forget(place);
            if op == Op::Leave {
                self.common.leaves(party);
                continue;
            }
            if op == Op::Cancel {
                cancel(&self.cancel);
                continue;
            }
            let got = self.mutex.lock(party, &WaitBounds::FOREVER);
            self.consistent(party, got);
            match op {
                Op::Visit => assert!(self.mutex.unlock(party), "it has the mutex"),
                Op::Await | Op::Limited | Op::Cancellable | Op::Pass => {
                    let how = match op {
                        Op::Limited => limited(),
                        Op::Cancellable => cancelled_by(&self.cancel),
                        _ => WaitBounds::FOREVER,
                    };
                    let mut named = None;
                    let mut over = false;
                    while self.tokens.load(order) == 0 && !over {
                        // What was named before is the same in every turn.
                        forget(place + 1 + u64::from(named.is_some()));
                        let waited =
                            self.condition.wait(party, &self.mutex, &how).expect("it has it");
                        self.consistent(party, waited.mutex);
                        over = waited.ended.is_some();
                        named.get_or_insert(waited.named);
                        forget(place + 4 + u64::from(over));
                    }
                    let tokens = self.tokens.load(order);
                    if op == Op::Pass {
                        self.condition.notify_one();
                    } else if tokens > 0 {
                        self.tokens.store(tokens - 1, order);
                    }
                    assert!(self.mutex.unlock(party), "it has the mutex");
                    if let Some(named) = named {
                        Model::at_death_wake(named);
                    }
                }
                Op::Listen => {
                    let me = 1 << thread();
                    self.listening.fetch_or(me, order);
                    let how = cancelled_by(&self.cancel);
                    let waited = self.condition.wait(party, &self.mutex, &how).expect("it has it");
                    self.consistent(party, waited.mutex);
                    self.listening.fetch_and(!me, order);
                    if self.due.load(order) & me != 0 {
                        self.due.store(0, order);
                        Model::wake_shared(&self.due, 1);
                    }
                    assert!(self.mutex.unlock(party), "it has the mutex");
                    Model::at_death_wake(waited.named);
                }
                Op::Ring => {
                    self.due.store(self.listening.load(order), order);
                    self.condition.notify_one();
                    assert!(self.mutex.unlock(party), "it has the mutex");
                    loop {
                        forget(place + 8);
                        let due = self.due.load(order);
                        if due == 0 {
                            break;
                        }
                        let watched = [WatchedWord::Word(&self.due, due)];
                        let _ = Model::wait_any(&watched, &WaitBounds::FOREVER);
                    }
                    cancel(&self.cancel);
                }
                Op::Cancel | Op::Leave | Op::Come => {}
                Op::Put | Op::PutTwo => {
                    let put = if op == Op::Put { 1 } else { 2 };
                    self.tokens.store(self.tokens.load(order) + put, order);
                    if op == Op::Put {
                        self.condition.notify_one();
                    } else {
                        self.condition.notify_all();
                    }
                    assert!(self.mutex.unlock(party), "it has the mutex");
                }
            }
        }
        forget(0);
    }
}

/// Makes the scenario of participants that each do one of these; equal ones must stand together.
/// Those of the first `mortal` may be killed.
pub(crate) fn tokens(mortal: usize, programs: &'static [&'static [Op]]) -> Scenario<Tokens> {
    let lives = programs.len();
    let mut scenario = Scenario::new(move || Tokens::new(lives));
    for (at, &ops) in programs.iter().enumerate() {
        scenario = scenario.thread(move |s: &Tokens| {
            let party = s.common.sits(at < mortal);
            s.run(party, ops);
        });
    }
    scenario
}

/// Takes one token, unless it is cancelled.
pub(crate) const YIELDS: &[Op] = &[Op::Cancellable];
/// A program that cancels others.
pub(crate) const CANCELS: &[Op] = &[Op::Cancel];
/// Only takes the mutex.
pub(crate) const VISITS: &[Op] = &[Op::Visit];
/// A program that takes one token.
pub(crate) const TAKES: &[Op] = &[Op::Await];
/// Takes one token, unless it takes too long.
pub(crate) const MAY_TAKE: &[Op] = &[Op::Limited];
/// Waits for one, and passes it on.
pub(crate) const PASSES: &[Op] = &[Op::Pass];
/// A program that puts one token.
pub(crate) const PUTS: &[Op] = &[Op::Put];
/// Puts one, then another.
pub(crate) const PUTS_TWICE: &[Op] = &[Op::Put, Op::Put];
/// A program that puts two tokens.
pub(crate) const PUTS_TWO: &[Op] = &[Op::PutTwo];
/// Takes one, leaves, comes again, and takes another.
pub(crate) const LEAVES_BETWEEN: &[Op] = &[Op::Await, Op::Leave, Op::Come, Op::Await];
/// Leaves, and comes to take one.
pub(crate) const COMES: &[Op] = &[Op::Leave, Op::Come, Op::Await];
/// Leaves, and comes to pass one on.
pub(crate) const COMES_TO_PASS: &[Op] = &[Op::Leave, Op::Come, Op::Pass];
/// Puts three, one after the other.
pub(crate) const PUTS_THRICE: &[Op] = &[Op::Put, Op::Put, Op::Put];
/// Waits once for a notification.
pub(crate) const LISTENS: &[Op] = &[Op::Listen];
/// Notifies one of those that wait.
pub(crate) const RINGS: &[Op] = &[Op::Ring];
