//! Spinning, which a thread does between a failed fast path and sleep.
//!
//! # Role
//! ```text
//!                        ┌─ may join ──▶ queue:  waits its turn, then spins on the word
//!   fast path failed ──▶ │
//!                        └─ may not ───▶ beside: spins on the word with the others
//!                                          │
//!          took the lock ◀─────────────────┴──────▶ left: sleeps (`sleep`)
//! ```
//! The policy decides who may join and who spins beside the queue. `barging` counts how often
//! others took the lock meanwhile, and ends the spinning when that is too often.
//!
//! # Invariants
//! QUEUE-WRITER to QUEUE-HANDLER of `queue.rs`.

mod barging;
mod beside;
mod queue;
mod spinner;

pub(crate) use barging::Barging;
pub(crate) use queue::{alive, spin};
pub(crate) use spinner::Spun;
