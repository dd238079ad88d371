//! Locks in memory that processes share, within one process. (Deaths are in
//! `shared_deaths.rs`.)

mod conditions;
mod files;
mod hostile;
mod inspect;
mod mutex;
mod raw;
mod refused;
mod rwlock;
mod scrub;
mod semaphore;
mod support;
