//! The library under programs in C, which are compiled here: what it notes in its ledger, and that
//! the programs behave as without it.

#[macro_use]
mod support;

mod answers;
mod bursts;
mod counts;
mod families;
mod foreign;
mod futexes;
mod handler_forks;
mod keys;
mod limits;
mod lives;
mod many;
mod order;
mod rules;
mod signals;
mod stacks;
mod symbols;
mod unloads;
