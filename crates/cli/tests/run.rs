//! `lockstead run` on real programs: what is found is said, whole and once, and
//! the programs behave as without it.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

#[path = "run/behaviour.rs"]
mod behaviour;
#[path = "run/between.rs"]
mod between;
mod common;
#[path = "run/deadlock.rs"]
mod deadlock;
#[path = "run/handmade.rs"]
mod handmade;
#[path = "run/json.rs"]
mod json;
#[path = "run/names.rs"]
mod names;
#[path = "run/no_deadlock.rs"]
mod no_deadlock;
#[path = "run/on_deadlock.rs"]
mod on_deadlock;
#[path = "run/once.rs"]
mod once;
#[path = "run/other_libc.rs"]
mod other_libc;
#[path = "run/page.rs"]
mod page;
mod programs;
#[path = "run/silent.rs"]
mod silent;
#[path = "run/watch.rs"]
mod watch;
