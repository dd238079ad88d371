//! What the library that checks wrote down, as findings.
//!
//! # Role
//! [`Checker`] reads the edges and violations of one ledger as they come, feeds the
//! order graph, and says what is news as [`facts`]: numbers only, good for as
//! long as the ledger is mapped. [`describe`] gives these their names and makes
//! the [`model`] of them, from which text, JSON and SARIF are made elsewhere.
//! [`suppress`] says which findings somebody does not want to see, [`order`] is
//! the whole order of a process as a report keeps it, and [`why`] the way from
//! one lock to another in it.
//!
//! # Trust
//! Nothing that is read is trusted: indices are checked where they are used, the
//! work and the memory are bounded by what the ledger's file bears out.

mod checker;
pub mod closing;
pub mod describe;
pub mod facts;
mod level_word;
mod lives;
pub mod model;
pub mod order;
pub mod suppress;
pub mod why;

pub use checker::{CheckCounts, Checker};
pub use lives::{Lives, LockLife};
