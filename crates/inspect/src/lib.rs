//! What the command knows about another process: names of its code and data,
//! stacks of its threads.
//!
//! # Role
//! Everything here runs in the command. The process that is looked at is
//! neither stopped nor traced, but for a moment by [`still`], and nothing is
//! ever written to it: what is read
//! may change under the reader, so every value is checked before it is used
//! and every failure is an answer ("cannot be read", "no debug information"),
//! never the end of a report.
//!
//! | module | what it knows |
//! |---|---|
//! | [`arch`] | what depends on the processor |
//! | [`maps`] | which file lies behind which address |
//! | [`memory`] | the bytes at an address |
//! | [`modules`] | that file, opened, if it is still the one that was mapped |
//! | [`unwind`] | the return addresses on a thread's stack |
//! | [`symbols`] | names of code and of variables, files and lines |
//! | [`stack`] | frames and stacks as data, and their one rendering as text |
//! | [`still`] | where a thread is that runs |
//! | [`proc`] | the process and its threads as the kernel shows them |
//! | [`futexes`] | which lock a futex word belongs to, by the functions on the stack |
//! | [`python`] | threads, frames and locks of CPython |
//! | [`glibc`] | the locks of the C library, by their shape in memory |
//! | [`owners`] | the holders of locks that do not say who they are |
//! | [`slots`] | the owners of lockstead's own mutexes |
//! | [`ledger`] | getting hold of the ledger of a process under `lockstead run` |
//! | [`check`] | what the library that checks wrote down: order of locks, rules |
//! | [`report`] | what a run came to, and what happens in it now |
//! | [`runtimes`] | language runtimes, and which tool of theirs shows more |
//! | [`snapshot`] | a process at one moment: threads, locks, cycles |
//! | [`waits`] | who waits for whom, and the cycles |

pub mod arch;
pub mod check;
pub mod futexes;
pub mod glibc;
pub mod ledger;
pub mod maps;
pub mod memory;
pub mod module;
pub mod modules;
pub mod owners;
pub mod proc;
pub mod python;
pub mod report;
pub mod runtimes;
pub mod slots;
pub mod snapshot;
pub mod stack;
pub mod still;
pub mod symbols;
pub mod unwind;
pub mod waits;
