//! Single threads that wait: where they are in Python, and what for.
//!
//! # Role
//! A wait is over when a report is written, so its frames are read while it lasts, by looks that
//! are taken often and have to be cheap. Only the threads that are asked for are read, and nothing
//! of who holds what.
//!
//! # Whose frames they are
//! A thread that is in one blocking call runs no Python, so its frames stay as they are. Whoever
//! asks makes sure that the thread was in one and the same wait before and after the look; what is
//! read in between belongs to that wait. Nothing is said of a thread whose frames changed while they
//! were read, nor of one of which two states are listed, as of a thread that has been in several
//! interpreters: which of them it is in now is not read.

use super::frames::{Chain, KnownCode, RawFrame};
use super::locks::{self, WaitPlace};
use super::model::{PythonLook, PythonStack, PythonWait};
use super::objects::Objects;
use super::read::PageReader;
use super::{Gil, Interpreter};
use crate::memory::ReadableMemory;
use std::collections::HashMap;

/// The most frames that are kept of a wait.
const KEPT: usize = 64;

/// A thread that waits, by what its ledger says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonWaiter {
    /// The answer of `pthread_self` in the thread.
    pub ident: u64,
    /// The address of what it waits for.
    pub address: u64,
    /// The thread's stack pointer, if that is a semaphore, of which the interpreter makes its locks.
    pub stack: Option<u64>,
}

/// What a look found of a thread that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWaiter {
    /// The innermost frames of the thread.
    pub stack: PythonStack,
    /// What it waits for, if the interpreter tells.
    pub wait: Option<PythonWait>,
}

impl Interpreter {
    /// Looks at these threads, one after the other, as long as `goes_on` says so, and returns what it
    /// found of each: nothing of a thread that is in no code of Python.
    #[must_use]
    pub fn waiters(
        &self,
        memory: &dyn ReadableMemory,
        waiters: &[PythonWaiter],
        goes_on: &dyn Fn() -> bool,
    ) -> Vec<Option<SeenWaiter>> {
        let reader = PageReader::new(memory);
        let objects = Objects::new(&reader, self.layout);
        let listed = self.listed(&objects);
        let gils = listed.gils.into_iter().map(|address| Gil { address, holder: None });
        let gils = PythonLook { gils: gils.collect(), ..PythonLook::default() };
        let mut states: HashMap<u64, Option<u64>> = HashMap::new();
        for (address, ident) in listed.states {
            states.entry(ident).and_modify(|state| *state = None).or_insert(Some(address));
        }
        // The numbers of threads are nobody's business here.
        let is_known = |ident: u64| states.contains_key(&ident).then_some(0);
        let mut known = KnownCode::new();
        let found = waiters.iter().take_while(|_| goes_on()).map(|waiter| {
            let state = states.get(&waiter.ident).copied().flatten()?;
            let chain = Chain::read(&objects, state, &mut known);
            if !chain.steady || chain.frames.is_empty() {
                return None;
            }
            let address = waiter.address;
            let awaited = |stack| {
                let place = WaitPlace { address, stack };
                locks::awaited(&objects, &chain.frames, place, &is_known)
            };
            let wait = match gils.gil(address) {
                Some(gil) => Some(PythonWait::Gil(gil.address)),
                None => waiter.stack.and_then(awaited),
            };
            let frames = chain.frames.iter().take(KEPT).map(RawFrame::shown).collect();
            let cut = chain.cut || chain.frames.len() > KEPT;
            let seen = SeenWaiter { stack: PythonStack { frames, cut }, wait };
            chain.is_still_there(&objects, state).then_some(seen)
        });
        found.collect()
    }
}
