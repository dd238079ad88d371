//! Who waits for whom, and which of those waits can never end.
//!
//! | module | what it knows |
//! |---|---|
//! | [`graph`] | the cycles among threads that wait, as pure data |
//! | [`grip`] | who holds a lock at one moment |
//! | [`modes`] | how locks are held and wanted, and what stands in the way of what |
//! | [`observe`] | the threads of a ledger that stay in one wait |
//! | [`detect`] | which cycles among them are news |
//! | [`surroundings`] | what the detection asks beside the waits |
//! | [`verify`] | whether such a cycle is true outside the ledger |
//! | [`standstill`] | what can still end it when all threads wait |
//! | [`blocked`] | which waits are worth a word because they last |

pub mod blocked;
pub mod detect;
pub mod graph;
pub mod grip;
pub mod modes;
pub mod observe;
pub mod standstill;
pub mod surroundings;
pub mod verify;
pub mod words;
