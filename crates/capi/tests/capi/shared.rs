//! Locks whose holders may have died, in C, C++ and Rust: real-time mutexes, and those of
//! segments, one of which C and Rust share.

use crate::common::{compiler, compilers, ends_well, passes, program};
use lockstead::shared::inspect::{LockState, SegmentView};
use lockstead::shared::{
    LockKind, Locked, Segment, Shareable, SharedCondvar, SharedMutex, SharedRwLock, SharedSemaphore,
};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// `struct bank` of `tests/c/bank.h`.
#[derive(Shareable)]
#[repr(C)]
struct Bank {
    stage: u32,
    spare: u32,
    accounts: [SharedMutex<i64>; 1000],
    rates: SharedRwLock<[u64; 2]>,
    clerks: SharedSemaphore,
    changed: SharedCondvar,
    notes: [u8; 64],
}

/// Returns a name for a segment, which nothing has yet.
fn fresh(name: &str) -> PathBuf {
    let folder = if fs::exists("/dev/shm").unwrap_or(false) { "/dev/shm" } else { "/tmp" };
    let path = PathBuf::from(format!("{folder}/lockstead-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn in_c(source: &str) {
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        passes(&program(&format!("c/{source}.c"), compiler.command, "gnu11", &[]));
    }
}

#[test]
fn the_real_time_mutexes() {
    in_c("rt");
}

#[test]
fn shared_locks_among_threads() {
    in_c("shared");
}

#[test]
fn shared_locks_of_the_dead() {
    in_c("shared_deaths");
}

#[test]
fn segments_are_made_opened_and_described() {
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        let path = fresh(compiler.command);
        let built = program("c/shm.c", compiler.command, "gnu11", &[]);
        let mut command = Command::new("timeout");
        ends_well(command.args(["-k", "5", "90"]).arg(built).arg(&path));
        let _ = fs::remove_file(path);
    }
}

#[test]
fn the_same_in_cpp() {
    for compiler in compilers().iter().filter(|compiler| compiler.cpp) {
        for standard in ["c++11", "c++20"] {
            passes(&program("cpp/shared.cc", compiler.command, standard, &[]));
        }
    }
}

/// A program in C and this one in Rust share a segment; what names its locks to tools is
/// what C has described.
#[test]
fn one_segment_of_c_and_rust() {
    let path = fresh("both");
    let built = program("c/both.c", compiler(false), "gnu11", &[]);
    let run = |what: &str| {
        let mut command = Command::new("timeout");
        ends_well(command.args(["-k", "5", "90"]).arg(&built).arg(what).arg(&path));
    };
    // C makes it, and dies with a lock.
    run("make");
    let view = SegmentView::open(&path).expect("a segment");
    let people = view.people().expect("slots");
    let mut seen = Vec::new();
    let mut count = 0;
    let all = view.locks(&people, &mut |lock| {
        count += 1;
        if lock.state != LockState::Free || lock.kind == LockKind::Semaphore {
            seen.push((lock.path.to_owned(), lock.state, lock.units));
        }
        true
    });
    all.expect("the locks");
    assert_eq!(count, 1003);
    let five = ("accounts[5]".to_owned(), LockState::OwnerDead, None);
    assert_eq!(seen, [five, ("clerks".to_owned(), LockState::Free, Some((3, 3)))]);

    // Rust opens it as its own type, and is told.
    let bank = Segment::<Bank>::open(&path).expect("the same layout");
    assert_eq!(*bank.root().accounts[7].lock().unwrap().acquired().unwrap(), 77);
    match bank.root().accounts[5].lock().expect("a lock") {
        Locked::OwnerDied(mut balance) => {
            assert_eq!(*balance, -5);
            *balance = 55;
            drop(balance.mark_consistent());
        }
        other => panic!("{other:?}"),
    }
    let _units = bank.root().clerks.acquire(2).expect("units").permit();
    // And C sees what Rust has done and has.
    run("look");
    fs::remove_file(&path).expect("it is there");
}
