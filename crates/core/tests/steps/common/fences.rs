//! Fences that one thread has all others execute, on a machine with one thread.

use super::Alone;
use lockstead_core::Slot;
use lockstead_core::biased::Fences;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

thread_local! {
    static IMPOSSIBLE: Cell<bool> = const { Cell::new(false) };
    static ANSWERS: RefCell<VecDeque<Box<dyn FnOnce() -> bool>>> =
        const { RefCell::new(VecDeque::new()) };
    static FENCED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Says whether this machine has such fences, for all that is known. It has, unless a test says so.
pub(crate) fn set_fences(possible: bool) {
    IMPOSSIBLE.set(!possible);
}

/// Says what happens during the next fence that has no action yet, and whether it is executed. With
/// no action left it is.
pub(crate) fn script_fence(action: impl FnOnce() -> bool + 'static) {
    ANSWERS.with_borrow_mut(|answers| answers.push_back(Box::new(action)));
}

/// Returns whose steps the fences since the last time were to order.
pub(crate) fn fenced() -> Vec<u32> {
    assert_eq!(ANSWERS.with_borrow(VecDeque::len), 0, "fences that did not come");
    FENCED.take()
}

impl Fences for Alone {
    fn can_fence() -> bool {
        !IMPOSSIBLE.get()
    }

    fn fence_others(owner: Slot) -> bool {
        FENCED.with_borrow_mut(|fenced| fenced.push(owner.get()));
        let answer = ANSWERS.with_borrow_mut(VecDeque::pop_front);
        answer.is_none_or(|answer| answer())
    }
}
