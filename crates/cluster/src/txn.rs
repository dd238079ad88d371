//! Transactions of etcd under a guard.

use crate::error::ClusterError;
use crate::etcd::wire::{Get, Op};
use crate::hold::Hold;
use crate::protocol::found;

/// A transaction that etcd carries out only if the lock is held at that revision.
///
/// The strongest thing that a lock over etcd can do: no clock is involved, and a write of an owner that
/// was stopped for an hour is refused. It guards what is in the same etcd, and nothing else.
///
/// Commands may be repeated after an answer was lost; they are puts and deletions, which may be.
#[must_use = "nothing is sent before `commit`"]
pub struct GuardedTxn<'a> {
    hold: &'a Hold,
    steps: Vec<Op>,
}

/// A key that a transaction has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// The key that was read.
    pub key: String,
    /// The value that it has.
    pub value: Vec<u8>,
    /// The revision at which it was last written.
    pub revision: i64,
}

impl<'a> GuardedTxn<'a> {
    pub(crate) fn new(hold: &'a Hold) -> Self {
        GuardedTxn { hold, steps: Vec::new() }
    }

    /// Writes a key.
    pub fn put(mut self, key: &str, value: &str) -> Self {
        self.steps.push(Op::put(key, value.to_owned(), 0));
        self
    }

    /// Removes a key.
    pub fn delete(mut self, key: &str) -> Self {
        self.steps.push(Op::delete(key));
        self
    }

    /// Reads a key, as the steps before have left it.
    pub fn get(mut self, key: &str) -> Self {
        self.steps.push(Op::get(key));
        self
    }

    /// Reads all keys that begin with `prefix`.
    pub fn get_prefix(mut self, prefix: &str) -> Self {
        self.steps.push(Op::Get(Get::all(prefix)));
        self
    }

    /// Carries it out, and returns what each `get` found.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`]: the lock is not held, and nothing was done. As
    /// a request: it may have been done or not.
    pub fn commit(self) -> Result<Vec<Vec<KeyValue>>, ClusterError> {
        let txn = self.hold.plan.guarded(self.steps);
        let answer = self.hold.session.txn(&txn, &mut false)?;
        if !answer.succeeded {
            return Err(self.hold.removed());
        }
        let pairs = |pairs: Vec<crate::etcd::wire::Pair>| {
            let pairs = pairs.into_iter();
            pairs.map(|p| KeyValue { key: p.key, value: p.value, revision: p.changed }).collect()
        };
        Ok(found(&answer).into_iter().map(pairs).collect())
    }
}
