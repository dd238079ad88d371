//! Locks between processes: their pair, their throughput, and what is left of
//! them when processes are killed.
//!
//! # Role
//! What `lockstead bench shared`, `storm` and `dead` and a part of the
//! demonstration run. The other measurements keep their threads in one process;
//! here the parties are processes, started from this same program (see
//! [`serve`]), and what they share lies in anonymous files.
//!
//! | module | what |
//! |---|---|
//! | [`pair`] | a lock + unlock pair that nobody disputes, in shared memory |
//! | [`contended`] | processes × section × think time: throughput, CPU |
//! | [`storm`] | processes that are killed all the time, around an invariant |
//! | [`steps`] | a process is killed at each instruction of an operation |
//! | [`dead`] | a process that is killed and held very many locks |
//! | [`containers`] | what a waiter's death does where all are process 1 |
//! | [`rivals`] | what else people lock with between processes |
//! | `process`, `job`, `memory`, `home` | the machinery |

pub mod containers;
pub mod contended;
pub mod dead;
mod home;
mod job;
mod memory;
pub mod pair;
mod process;
pub mod rivals;
pub mod steps;
pub mod storm;

pub use home::SharedLock;
pub use job::serve;
pub use process::{Namespaces, WorkerPlace};
