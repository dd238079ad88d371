//! `lockstead run` on real programs: what is found is said, whole and once, and
//! the programs behave as without it.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod behaviour;
mod between;
mod deadlock;
mod handmade;
mod hang;
mod json;
mod names;
mod no_deadlock;
mod on_deadlock;
mod once;
mod other_libc;
mod page;
mod rust;
mod silent;
mod syscalls;
mod watch;
