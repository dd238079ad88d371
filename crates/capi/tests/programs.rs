//! Programs in C and C++ that use the library, built by the system's compilers.

mod common;

use common::{compiler, compilers, passes, program};

/// One program, by each compiler that takes C.
fn in_c(source: &str) {
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        passes(&program(&format!("c/{source}.c"), compiler.command, "gnu11", &[]));
    }
}

#[test]
fn the_mutex() {
    in_c("mutex");
}

#[test]
fn the_semaphore() {
    in_c("semaphore");
}

#[test]
fn the_condition_variable() {
    in_c("cond");
}

#[test]
fn the_reader_writer_lock() {
    in_c("rwlock");
}

#[test]
fn once() {
    in_c("once");
}

#[test]
fn threads_that_end_use_locks_to_the_last() {
    in_c("threads");
}

/// What cannot be waited for ends the process, and says why.
#[test]
fn hopeless_waits_abort_with_a_message() {
    let built = program("c/hopeless.c", compiler(false), "gnu11", &[]);
    for (case, words) in [
        ("recursive", &["lks_mutex_lock: recursive locking", "mutex `accounts`"][..]),
        ("lost", &["lks_mutex_lock: lost owner", "fork"]),
        ("writer", &["lks_rwlock_read: recursive locking", "reader-writer lock at 0x"]),
        ("count", &["lks_atomic_dec_and_mutex_lock: the count is zero"]),
    ] {
        let output = common::run(&built, &[case]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{case}: ended well");
        for word in words {
            assert!(said.contains(word), "{case}: {said}");
        }
    }
}
