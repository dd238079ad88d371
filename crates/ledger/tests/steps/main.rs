//! What the ledger's protocols do word by word, in memory that the test watches ([`common`]).

mod common;

mod bits;
mod held;
mod published;
mod slept;
mod table;
