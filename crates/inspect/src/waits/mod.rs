//! Who waits for whom: the waits-for graph as pure data.
//!
//! | module | what it knows |
//! |---|---|
//! | [`graph`] | the cycles among threads that wait |

pub mod graph;
