//! What each lock does step by step, on a machine with one thread that the test drives
//! ([`common`]).
//!
//! One program of tests, since linking each module alone takes longer than all of them run.

mod common;

mod backing_off;
mod biased;
mod condvar;
mod contexts;
mod giving_way;
mod handing_over;
mod in_line;
mod line;
mod mutex;
mod once;
mod participants;
mod queueing;
mod rwlock;
mod semaphores;
mod shared_conditions;
mod shared_copies;
mod shared_heirs;
mod shared_mutexes;
mod shared_readers;
mod shared_semaphores;
mod shared_sleepers;
mod shared_steps;
mod shared_waits;
mod shared_words;
mod shared_writers;
mod sharing;
mod sharing_watched;
mod spinning;
mod units;
mod waiting;
mod word;
mod ww;
