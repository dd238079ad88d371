//! The command, as a user meets it: each module starts it on programs and looks at what it says and
//! leaves.
//!
//! One program of tests, since linking each module alone takes longer than most of them run.

mod action;
mod attach;
mod browser;
mod check;
mod check_report;
mod common;
mod demo;
mod diff;
mod dump;
mod dump_evidence;
mod dump_own;
mod dump_run;
mod ending;
mod exact;
mod formats;
mod groups;
mod hangs;
mod holders;
mod installing;
mod linked;
mod measuring;
mod metrics;
mod oncpu;
mod own_run;
mod picture;
mod places;
mod pprof;
mod programs;
mod python;
mod real;
mod record;
mod record_page;
mod report;
mod run;
mod run_hostile;
mod run_many;
mod run_unheard;
mod rust_std;
mod semaphores;
mod serves;
mod shared_run;
mod shm;
mod top;
mod upgradable;
mod usage;
mod waits;

/// Has twice as many tests run at once as there are processors, where the user does not say how
/// many: two of three wait for a program that sleeps, or for the command to look at it.
extern "C" fn more_at_once() {
    const THREADS: &str = "RUST_TEST_THREADS";
    if std::env::var_os(THREADS).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // SAFETY: the loader calls this before `main`, when no other thread is there to read the
        // environment.
        unsafe { std::env::set_var(THREADS, (2 * processors).to_string()) };
    }
}

// SAFETY: the section holds addresses of functions that the loader calls before `main`.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = more_at_once;
