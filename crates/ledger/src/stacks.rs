//! Stacks of return addresses, each stored once.
//!
//! A stack is a run of words: its hash, then `depth | end << 32`, then the
//! return addresses, innermost first. Its id is the number of its first word.
//! Id 0 is no stack.

use crate::ledger::{Ledger, LedgerPart};
use crate::table::{Inserted, spread};
use core::sync::atomic::Ordering::Relaxed;

/// The return addresses of the deepest stack that is stored.
pub const DEEPEST: usize = 128;

/// A stack in the ledger.
#[derive(Clone, Copy, Debug)]
pub struct StoredStack<'a> {
    words: &'a [core::sync::atomic::AtomicU64],
    /// Why the stack ends where it ends: a number of the unwinder's.
    pub end: u32,
}

impl<'a> StoredStack<'a> {
    pub(crate) fn words(&self) -> &'a [core::sync::atomic::AtomicU64] {
        self.words
    }

    /// Returns the return addresses, innermost first.
    pub fn returns(&self) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
        self.words.iter().map(|word| word.load(Relaxed))
    }

    /// Returns the return address of the call itself; 0 of an empty stack.
    #[must_use]
    pub fn site(&self) -> u64 {
        self.returns().next().unwrap_or(0)
    }
}

fn hash_of(returns: &[u64], end: u32) -> u64 {
    returns.iter().fold(u64::from(end) + 1, |hash, &address| spread(hash ^ address))
}

impl<'a> Ledger<'a> {
    /// Returns the stack with this id, if there is one.
    #[must_use]
    pub fn stack(&self, id: u32) -> Option<StoredStack<'a>> {
        let words = self.stack_words();
        let shape = words.get(id as usize + 1)?.load(Relaxed);
        let (depth, end) = (shape as u32 as usize, (shape >> 32) as u32);
        if id == 0 || depth > DEEPEST {
            return None;
        }
        let first = id as usize + 2;
        Some(StoredStack { words: words.get(first..first + depth)?, end })
    }

    /// Returns the id of a stack, which is stored if it is new. Returns 0, and counts the
    /// loss, when there is no room. What lies beyond [`DEEPEST`] is cut off: the caller has
    /// said so by `end`.
    pub fn intern_stack(&self, returns: &[u64], end: u32) -> u32 {
        let returns = &returns[..returns.len().min(DEEPEST)];
        let hash = hash_of(returns, end);
        let table = self.stack_table();
        let same = |id: u32| {
            self.stack(id).is_some_and(|stack| {
                stack.end == end && stack.returns().eq(returns.iter().copied())
            })
        };
        if let Some(found) = table.find(hash, same) {
            return found;
        }
        let need = returns.len() + 2;
        let Some(first) = self.claim(LedgerPart::StackWords, need as u64) else {
            self.header().losses.stacks.fetch_add(1, Relaxed);
            return 0;
        };
        let words = &self.stack_words()[first..first + need];
        words[0].store(hash, Relaxed);
        words[1].store(returns.len() as u64 | u64::from(end) << 32, Relaxed);
        for (word, &address) in words[2..].iter().zip(returns) {
            word.store(address, Relaxed);
        }
        match table.insert(hash, first as u32, same) {
            Inserted::New => first as u32,
            // Another thread was first: the words are wasted, a few bytes for
            // each such race.
            Inserted::Found(other) => other,
            Inserted::Full => {
                self.header().losses.stacks.fetch_add(1, Relaxed);
                first as u32
            }
        }
    }
}
