//! Programs in C and C++ that use the library, built by the system's compilers.

use crate::common::{
    archive, compiler, compilers, ends_well, package, passes, program, scratch, strict,
    with_library,
};

/// Builds and runs one program by each compiler that takes C.
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
fn the_fair_mutex() {
    in_c("fair");
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
fn the_wait_wound_mutex() {
    in_c("ww");
}

/// Whoever asks for a lock of a thread that ended with its context is told, asleep or not.
#[test]
fn a_wait_wound_mutex_of_a_thread_that_has_ended() {
    in_c("ww_ended");
}

#[test]
fn code_written_for_the_kernel() {
    in_c("kernel");
    let (compiler, standard) = (compiler(false), "gnu99");
    passes(&program("c/kernel.c", compiler, standard, &[]));
}

/// The program is of two files, and has one token for each thread even so.
#[test]
fn a_kill_token_counts_in_each_file() {
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        let source = package().join("tests/c/token.c");
        let program = scratch().join(format!("token-{}", compiler.command));
        let objects = ["-DHERE", "-DELSEWHERE"].map(|which| {
            let object = scratch().join(format!("token-{}{which}.o", compiler.command));
            let mut compile = strict(compiler.command, "gnu11");
            ends_well(compile.args([which, "-c", "-o"]).arg(&object).arg(&source));
            object
        });
        let mut link = std::process::Command::new(compiler.command);
        ends_well(with_library(link.arg("-o").arg(&program).args(objects), archive()));
        passes(&program);
    }
}

/// The C library's own part of this is warned of by the linker: names of users and hosts, and
/// libraries that are loaded later, which no lock asks for.
#[test]
fn a_program_that_has_the_c_library_inside() {
    let mut probe = strict(compiler(false), "gnu11");
    probe.arg("-static").arg("-o").arg(scratch().join("static-probe"));
    probe.arg(package().join("tests/c/empty.c"));
    if !probe.output().is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: the C library's archive is not installed");
    }
    for name in ["mutex", "cond", "shared", "threads"] {
        let program = scratch().join(format!("{name}-static"));
        let mut cc = strict(compiler(false), "gnu11");
        cc.args(["-static", "-pthread", "-o"]).arg(&program);
        cc.arg(package().join(format!("tests/c/{name}.c"))).arg(archive());
        ends_well(cc.args(["-lpthread", "-ldl", "-lm"]));
        passes(&program);
    }
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
        ("recursive", &["lks_mutex_lock: recursion", "mutex `accounts`"][..]),
        ("fair", &["lks_fair_mutex_lock: recursion", "mutex `orders`"]),
        ("lost", &["lks_mutex_lock: lost owner", "fork"]),
        ("writer", &["lks_rwlock_read: recursion", "reader-writer lock at 0x"]),
        ("slow", &["lks_ww_mutex_lock_slow: the context holds 1 lock"]),
        ("ended", &["lks_ww_mutex_lock_slow: lost owner", "held by a thread that has ended"]),
        ("count", &["lks_atomic_dec_and_mutex_lock: the count is zero"]),
    ] {
        let output = crate::common::run(&built, &[case]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{case}: ended well");
        for word in words {
            assert!(said.contains(word), "{case}: {said}");
        }
    }
}

#[test]
fn a_process_of_cpp_does_not_end_without_a_message() {
    let built = program("cpp/hopeless.cc", compiler(true), "c++11", &[]);
    for (case, words) in [
        ("contexts", "ww_context: this thread has four contexts already"),
        ("once", "call_once: recursion"),
        ("ended", "ww_mutex::lock: lost owner"),
    ] {
        let output = crate::common::run(&built, &[case]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{case}: {said}");
    }
    let output = crate::common::run(&built, &["guard"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_types_of_cpp_work_with_the_standard_librarys() {
    for compiler in compilers().iter().filter(|compiler| compiler.cpp) {
        for standard in ["c++11", "c++14", "c++17", "c++20"] {
            passes(&program("cpp/standard.cc", compiler.command, standard, &[]));
        }
    }
}

#[test]
fn what_must_be_looked_at_cannot_be_discarded() {
    for compiler in compilers().iter().filter(|compiler| compiler.cpp) {
        let compiles = |define: &str| {
            let mut command = strict(compiler.command, "c++20");
            command.args(["-c", "-o", "/dev/null", define]);
            command.arg(package().join("tests/cpp/discarded.cc"));
            let output = command.output().expect("it ran before");
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (fine, said) = compiles("-DNOTHING");
        assert!(fine, "{said}");
        for define in ["-DGUARD", "-DRESULT", "-DC_RESULT"] {
            let (fine, said) = compiles(define);
            assert!(!fine && said.contains("unused"), "{} {define}: {said}", compiler.command);
        }
    }
}
