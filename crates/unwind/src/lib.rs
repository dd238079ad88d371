//! Reads what the unwind tables of ELF files say of how a frame is left.
//!
//! ```text
//!  address ──table──▶ Piece of .eh_frame ──row──▶ FoundRow: the rules at the address
//!                                                   │ recover, with expression
//!  CalleeFrame: registers and memory of the callee ─┴──▶ registers of the caller
//! ```
//!
//! # Role
//! The library inside a program walks its own stack, the command walks those of another
//! process: this is what both know of the tables. Whoever walks brings the bytes of the
//! modules ([`ModuleImage`]), registers and memory ([`CalleeFrame`]), and the set of registers that
//! it follows ([`Followed`]). Nothing here allocates, waits or makes a system call.
//!
//! # Progress
//! Every program of a table and every expression ends: by its length, or, where it jumps,
//! after a bounded number of steps. Bytes of any kind give an answer or a [`Stop`].

#![no_std]
#![forbid(unsafe_code)]

pub mod arch;
mod expression;
mod row;
mod stop;
mod table;

pub use arch::{FP, RA, SP};
pub use gimli::Register;
pub use row::{
    CalleeFrame, Cfa, ExpressionPlace, Followed, FoundRow, ModuleBytes, RecoveredRegister, Row,
    Saved, at, of_entry,
};
pub use stop::Stop;
pub use table::{ModuleImage, Piece, piece};
