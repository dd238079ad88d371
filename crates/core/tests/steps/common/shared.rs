//! What the machine with one thread does for locks between processes, and what it is asked for: a list
//! of calls in their order. Nothing of it is a wake-up but where a test says so.

use super::{Alone, NOW, U32, look, machine};
use lockstead_core::robust::{
    Addend, Life, RobustError, RobustMachine, RobustWait, WatchedWord, Woken,
};
use lockstead_core::{Atomic32, Nanos, Ordering, WaitBounds};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;

/// A word that a sleeper compares: where it is, as what, and with which value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Watch {
    Word(usize, u32),
    Low(usize, u32),
    High(usize, u32),
    Seen(usize, u32),
}

/// What a lock has asked of the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// It is to sleep, until a time at most.
    Sleep(Vec<Watch>, Option<Nanos>),
    /// It is to wake so many at a word.
    Wake(usize, u32),
    /// It is to add to a word and to wake so many there.
    AddAndWake(usize, Addend, u32),
    /// It is to wake somebody at a word should the caller end.
    Name(Option<usize>),
    /// It is to treat a word as named.
    Defer(usize),
    Rest(u64),
    /// It is to tell whether this one has ended.
    Ask(u32, Life),
    Missed,
    /// It is to tell an observer that a wait begins.
    Begin(RobustWait),
    End(RobustWait, Option<RobustError>),
    /// It is to note what matters of what was read since this place.
    Turn(u64, u64),
}

/// What the machine answers.
#[derive(Clone, Copy)]
pub(crate) struct Answers {
    pub(crate) trust: Option<u64>,
    pub(crate) subtracts: bool,
    pub(crate) defers: bool,
    /// The slots of those that have ended, a bit each.
    pub(crate) ended: u32,
    /// The slots that the calling thread has, a bit each.
    pub(crate) callers: u32,
    /// Whether [`Call::Turn`] is noted.
    pub(crate) checked: bool,
}

impl Answers {
    pub(crate) const FRESH: Self = Answers {
        trust: None,
        subtracts: false,
        defers: false,
        ended: 0,
        callers: 0,
        checked: false,
    };
}

thread_local! {
    static ANSWERS: Cell<Answers> = const { Cell::new(Answers::FRESH) };
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
    static WOKEN: RefCell<VecDeque<u32>> = const { RefCell::new(VecDeque::new()) };
    static NAMED: Cell<Option<NonNull<U32>>> = const { Cell::new(None) };
    static SCRIPT: RefCell<VecDeque<Box<dyn FnOnce() -> Woken>>> =
        const { RefCell::new(VecDeque::new()) };
    static PLACES: Cell<u64> = const { Cell::new(0) };
}

/// The longest rest of a waiter on this machine.
pub(crate) const REST: u64 = 50;

/// Changes what the machine answers.
pub(crate) fn answer(change: impl FnOnce(&mut Answers)) {
    let mut answers = ANSWERS.get();
    change(&mut answers);
    ANSWERS.set(answers);
}

/// Says what happens during the next sleep or rest that has no action yet, and how that ends.
pub(crate) fn script_sleep(action: impl FnOnce() -> Woken + 'static) {
    SCRIPT.with_borrow_mut(|script| script.push_back(Box::new(action)));
}

/// Returns the number of such actions that nothing has run yet.
pub(crate) fn unslept() -> usize {
    SCRIPT.with_borrow(VecDeque::len)
}

fn next() -> Woken {
    let action = SCRIPT.with_borrow_mut(VecDeque::pop_front);
    let woken = action.expect("sleeps, and nothing will ever wake it")();
    if woken == Woken::Copied {
        // What is named is a thread's own, and a copy is a new thread.
        NAMED.set(None);
    }
    woken
}

/// Says how many each of the next wake-ups finds; those after it find nobody.
pub(crate) fn wakes_find(counts: &[u32]) {
    WOKEN.with_borrow_mut(|woken| woken.extend(counts));
}

/// Returns the calls since the last time.
pub(crate) fn calls() -> Vec<Call> {
    CALLS.take()
}

/// Returns the same without the names of words, which come in pairs.
pub(crate) fn acts() -> Vec<Call> {
    calls().into_iter().filter(|call| !matches!(call, Call::Name(_))).collect()
}

/// Returns the same without what an observer is told, and without the question whether a wake-up may
/// be left for later.
pub(crate) fn deeds() -> Vec<Call> {
    let told = |call: &Call| matches!(call, Call::Begin(_) | Call::End(..) | Call::Defer(_));
    acts().into_iter().filter(|call| !told(call)).collect()
}

/// Returns what an observer was told since the last time.
pub(crate) fn heard() -> Vec<Call> {
    calls().into_iter().filter(|it| matches!(it, Call::Begin(_) | Call::End(..))).collect()
}

/// Returns whom the machine was asked about since the last time.
pub(crate) fn asked() -> Vec<Call> {
    calls().into_iter().filter(|it| matches!(it, Call::Ask(..))).collect()
}

fn call(it: Call) {
    CALLS.with_borrow_mut(|calls| calls.push(it));
}

/// Returns the address of a word, by which calls name it.
pub(crate) fn at<W>(word: &W) -> usize {
    std::ptr::from_ref(word).addr()
}

/// Returns whether the machine would wake somebody if the caller ended, and where.
pub(crate) fn named() -> Option<usize> {
    NAMED.get().map(|word| word.addr().get())
}

impl RobustMachine for Alone {
    type Segment = ();
    const MOST_WATCHES: usize = 6;
    const REST: Option<u64> = Some(REST);
    const SPINS: u32 = 3;

    fn wait_any(watches: &[WatchedWord<'_, Self>], how: &WaitBounds<'_, Self>) -> Woken {
        look();
        let value = |word: &U32| word.silently();
        let mut same = true;
        let list = watches.iter().map(|watch| {
            let (it, holds) = match *watch {
                WatchedWord::Word(word, wanted) => {
                    (Watch::Word(at(word), wanted), value(word) == wanted)
                }
                WatchedWord::Seen(word, wanted) => {
                    (Watch::Seen(at(word), wanted), value(word) == wanted)
                }
                WatchedWord::Low(word, wanted) => {
                    (Watch::Low(at(word), wanted), word.low() == wanted)
                }
                WatchedWord::High(word, wanted) => {
                    (Watch::High(at(word), wanted), (word.silently() >> 32) as u32 == wanted)
                }
            };
            same &= holds;
            it
        });
        call(Call::Sleep(list.collect(), how.deadline));
        if !same {
            return Woken::Changed;
        }
        if how.cancelled() {
            return Woken::Cancelled;
        }
        let woken = next();
        if woken == Woken::TimedOut {
            let deadline = how.deadline.expect("a sleep without a deadline cannot time out");
            NOW.set(NOW.get().max(deadline.0));
        }
        woken
    }
    fn wake_shared(word: *const U32, count: u32) -> u32 {
        call(Call::Wake(word.addr(), count));
        WOKEN.with_borrow_mut(VecDeque::pop_front).unwrap_or(0)
    }
    fn add_and_wake(word: &U32, add: Addend, count: u32) {
        call(Call::AddAndWake(at(word), add, count));
        let number = if add == Addend::One { 1 } else { 1 << 30 };
        word.fetch_add(number, Ordering::SeqCst);
    }
    fn at_death_wake(word: Option<NonNull<U32>>) -> Option<NonNull<U32>> {
        call(Call::Name(word.map(|word| word.addr().get())));
        NAMED.replace(word)
    }
    fn defer_wake(word: &U32) -> bool {
        call(Call::Defer(at(word)));
        ANSWERS.get().defers
    }
    fn rest(nanos: u64) -> Woken {
        call(Call::Rest(nanos));
        NOW.set(NOW.get() + nanos);
        next()
    }
    fn trust() -> Option<u64> {
        ANSWERS.get().trust
    }
    fn subtracts() -> bool {
        ANSWERS.get().subtracts
    }
    fn has_ended(_segment: &(), slot: u32, life: Life) -> bool {
        call(Call::Ask(slot, life));
        ANSWERS.get().ended >> slot & 1 == 1
    }
    fn is_caller(_segment: &(), slot: u32, _life: Life) -> bool {
        ANSWERS.get().callers >> slot & 1 == 1
    }
    fn shared_wait_begins(wait: &RobustWait) -> bool {
        call(Call::Begin(*wait));
        machine().observed
    }
    fn shared_wait_ends(wait: &RobustWait, error: Option<RobustError>) {
        call(Call::End(*wait, error));
    }
    fn missed() {
        call(Call::Missed);
    }
    fn here() -> u64 {
        PLACES.set(PLACES.get() + 1);
        PLACES.get()
    }
    fn turn(here: u64, kept: u64) {
        if ANSWERS.get().checked {
            call(Call::Turn(here, kept));
        }
    }
}
