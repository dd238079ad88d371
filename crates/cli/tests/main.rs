//! The command, as a user meets it: each module starts it on programs and looks at what it says and
//! leaves.
//!
//! One program of tests, since linking each module alone takes longer than most of them run.

mod check;
mod check_report;
mod common;
mod demo;
mod dump;
mod dump_evidence;
mod dump_own;
mod dump_run;
mod ending;
mod exact;
mod hangs;
mod linked;
mod measuring;
mod oncpu;
mod own_run;
mod places;
mod programs;
mod python;
mod real;
mod report;
mod run;
mod run_hostile;
mod run_many;
mod run_unheard;
mod rust_std;
mod semaphores;
mod serves;
mod shm;
mod top;
mod usage;
mod waits;
