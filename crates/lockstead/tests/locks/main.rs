//! Behaviour of the locks. One program, a module each, so that the tests link
//! once.

mod cancel;
mod condvar;
mod dec_and_lock;
mod drop_in;
mod fair;
mod forms;
mod kernel_pattern;
mod lock_api;
mod messages;
mod once;
mod poison;
mod progress;
mod rwlock;
mod semaphore;
mod signals;
mod support;
mod sync_shape;
mod traits;
