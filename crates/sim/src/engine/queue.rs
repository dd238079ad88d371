//! The requests that wait for a cache line: in the order in which they came, and by the
//! last-level cache that they came from.
//!
//! # Invariants
//! - **REQUESTS-FIRST** The first of [`Requests::order`] is there; the others may be gaps, each of which
//!   a request has left that was taken before its turn.
//! - **REQUESTS-GAPS** So the number of gaps is how often the first one was passed over.

use std::collections::VecDeque;

/// The requests that wait for a line.
pub(super) struct Requests<T> {
    order: VecDeque<Option<(usize, T)>>,
    /// The number of the first one, counted from the first there ever was.
    first: u64,
    /// The number of requests that wait.
    len: usize,
    /// The caches from which there are any.
    caches: u128,
    /// The numbers of those of each cache.
    by_cache: Vec<VecDeque<u64>>,
}

impl<T> Requests<T> {
    pub(super) const fn new() -> Self {
        Requests { order: VecDeque::new(), first: 0, len: 0, caches: 0, by_cache: Vec::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns how often others were served before the one that came first.
    #[inline]
    pub(super) fn passed_over(&self) -> usize {
        self.order.len() - self.len
    }

    /// Adds a request, from a core of `cache`.
    pub(super) fn push(&mut self, cache: usize, request: T) {
        if self.by_cache.len() <= cache {
            self.by_cache.resize_with(cache + 1, VecDeque::new);
        }
        self.by_cache[cache].push_back(self.first + self.order.len() as u64);
        self.order.push_back(Some((cache, request)));
        self.caches |= 1 << cache;
        self.len += 1;
    }

    /// Takes the one that came first.
    pub(super) fn pop(&mut self) -> Option<T> {
        let (cache, request) = self.order.front_mut()?.take()?;
        self.forget(cache);
        Some(request)
    }

    /// Takes the one that came first from one of `caches`.
    pub(super) fn pop_from(&mut self, caches: u128) -> Option<T> {
        let (mut left, mut oldest) = (self.caches & caches, None);
        while left != 0 {
            let cache = left.trailing_zeros() as usize;
            left &= left - 1;
            let number = *self.by_cache[cache].front()?;
            if oldest.is_none_or(|(before, _)| number < before) {
                oldest = Some((number, cache));
            }
        }
        let (number, cache) = oldest?;
        let (_, request) = self.order[(number - self.first) as usize].take()?;
        self.forget(cache);
        Some(request)
    }

    /// Takes the first one of `cache` out, which has been taken.
    fn forget(&mut self, cache: usize) {
        self.len -= 1;
        let queue = &mut self.by_cache[cache];
        queue.pop_front();
        if queue.is_empty() {
            self.caches &= !(1 << cache);
        }
        while self.order.front().is_some_and(Option::is_none) {
            self.order.pop_front();
            self.first += 1;
        }
    }
}
