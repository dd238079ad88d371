//! What is read of other processes, and of ledgers: of whole ones and of damaged ones.

mod check;
mod damaged;
mod hostile;
mod ledger;
mod names;
mod report;
mod stacks;
mod support;
