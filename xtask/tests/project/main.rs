//! What the project checks of itself: crate boundaries, ordering labels, documents. Code is
//! read as Rust (`reading.rs`), so that no import, alias or macro walks around a rule.

mod boundaries;
mod documents;
mod orderings;
mod reading;
