//! `lockstead run` on real programs: what is found is said, whole and once, and
//! the programs behave as without it.

#[path = "run/behaviour.rs"]
mod behaviour;
mod common;
#[path = "run/findings.rs"]
mod findings_tests;
#[path = "run/support.rs"]
mod support;
