//! The wait/wound mutex. A program of its own, for the tests of signals there and of the other
//! locks each install handlers of their own; a module each, so that the tests link once.

mod calls;
mod contexts;
mod stress;
#[path = "../common/watchdog.rs"]
mod watchdog;
#[path = "../common/watched.rs"]
mod watched;
