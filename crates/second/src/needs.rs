//! What a search turns out to need while it runs.

use std::cell::Cell;

/// What a panic says that asks for the search to begin anew, with more of something.
pub(crate) const AGAIN: &str = "the search begins anew";

/// What a search turns out to need while it runs; it begins anew then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Needs {
    /// Places on each shelf.
    pub(crate) shelf: usize,
    /// Threads have others execute fences, which each access must then know of.
    pub(crate) fences: bool,
    /// A thread has a handler, or sleeps on several words, which needs choices.
    pub(crate) choices: bool,
    /// How many dice each thread has to choose when it ends, each for the time between two yields.
    pub(crate) ends: usize,
}

impl Needs {
    pub(crate) const FEW: Self = Needs { shelf: 16, fences: false, choices: false, ends: 0 };
}

thread_local! {
    static NEEDS: Cell<Needs> = const { Cell::new(Needs::FEW) };
}

pub(crate) fn needs() -> Needs {
    NEEDS.get()
}

pub(crate) fn set_needs(needs: Needs) {
    NEEDS.set(needs);
}

/// Ends the execution, and has the search begin anew with other needs.
pub(crate) fn begin_anew(change: impl FnOnce(&mut Needs)) -> ! {
    let mut needs = NEEDS.get();
    change(&mut needs);
    NEEDS.set(needs);
    panic!("{AGAIN}");
}
