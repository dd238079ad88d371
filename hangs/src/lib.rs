//! Programs that hang and know why, and what `lockstead` says of them.
//!
//! ```text
//!  programs/  ──build──▶ a program ──▶ LOCK, OWN, WAIT … END ──▶ truth ──┐
//!                          │ hangs                                       ▼
//!                          └──▶ lockstead dump --json ─────────────▶ judgement ──▶ table
//! ```
//!
//! A program says on its standard output which locks it has, who will own and who will wait for
//! each, and then does what it said. This crate builds the programs in several ways, waits until
//! all threads of one sleep, asks `lockstead`, and compares. An owner who is none is an error
//! wherever it is said; an owner who is not named is counted.

pub mod asking;
pub mod builds;
pub mod judgement;
pub mod process;
pub mod table;
pub mod truth;
