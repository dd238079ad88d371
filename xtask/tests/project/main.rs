//! What the project checks of itself: crate boundaries, system calls, layers, ordering labels, invariants,
//! sentences, documents, what each lock has, what mutates the locks, what is packed and published, and
//! the package for Python where one is built. Code is read as Rust (`reading.rs`), so that no import,
//! alias or macro walks around a rule.

mod boundaries;
mod dist;
mod documents;
mod family;
mod faults;
mod invariants;
mod kernel;
mod layers;
mod mutants;
mod orderings;
mod processors;
mod publishing;
mod python;
mod reading;
mod sentences;
