//! Threads that run for a while.
