//! Which violations of rules the library notes, by the programs that the command's
//! tests use: each case of theirs is a run here, and its ledger is read.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, compile_file, run_natively};
use lockstead_ledger::Ledger;
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::violation::{Rule, SeenViolation};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Returns everything noted so far.
fn violations(ledger: &Ledger<'_>) -> Vec<SeenViolation> {
    assert_eq!(ledger.header().losses.violations.load(Relaxed), 0);
    // Without a second stack they are uses in the worlds of signals, for the graph.
    let is_use =
        |violation: &SeenViolation| violation.rule == Rule::InHandler && violation.other_stack == 0;
    let all = (0..ledger.used(LedgerPart::Violations))
        .filter_map(|index| ledger.violation(index)?.read());
    all.filter(|violation| !is_use(violation)).collect()
}

fn rules(ledger: &Ledger<'_>) -> Vec<Rule> {
    violations(ledger).into_iter().map(|violation| violation.rule).collect()
}

/// Returns a program of ours, or of the command's tests.
fn program(name: &str) -> Option<PathBuf> {
    if name == "rules_more" {
        return compile(name);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/programs/check");
    compile_file(&path.join(name).with_extension("c"), name)
}

/// Runs the cases of a program of the command's tests: each is to leave these
/// violations, in any order.
fn run(name: &str, cases: &[(&str, &[Rule])]) {
    run_asking(name, cases, false);
}

fn run_asking(name: &str, cases: &[(&str, &[Rule])], sleepy: bool) {
    let Some(program) = program(name) else { return };
    let mut wrong = Vec::new();
    for (case, expected) in cases {
        let mut observed =
            Observed::start_asking(Library::Checking, &program, &[case], true, sleepy);
        let (_, status) = observed.end();
        let mut found = rules(&observed.ledger());
        found.sort();
        if found != *expected || status.code() != Some(7) {
            wrong.push(format!("{case}: {found:?}, not {expected:?} ({status})"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a case, and asserts what its forked child leaves.
fn run_forking(name: &str, case: &str, expected: &[Rule]) {
    let Some(program) = program(name) else { return };
    let mut observed = Observed::start(Library::Checking, &program, &[case]);
    let child = observed.child();
    let (_, status) = observed.end();
    assert_eq!(rules(&observed.ledger()), [], "{case}");
    assert_eq!(rules(&child.view()), expected, "{case}");
    assert_eq!(status.code(), Some(7), "{case}");
}

/// Runs a case that hangs, after it has left these violations.
fn run_hanging(name: &str, case: &str, expected: Rule) {
    let Some(program) = program(name) else { return };
    let observed = Observed::start(Library::Checking, &program, &[case]);
    observed.until(case, || {
        rules(&observed.ledger()).first().copied().filter(|&rule| rule == expected)
    });
    let left = violations(&observed.ledger());
    assert_eq!(left.len(), 1, "{left:?}");
    assert_ne!((left[0].lock, left[0].stack, left[0].other_stack), (0, 0, 0));
}

const SILENT: &[Rule] = &[];

#[test]
fn owners() {
    run(
        "rules",
        &[
            ("unlock-by-another", &[Rule::UnlockByAnother]),
            ("unlock-of-a-rwlock-by-another", &[Rule::UnlockByAnother]),
            ("unlock-of-a-spin-lock-by-another", &[Rule::UnlockByAnother]),
            ("unlock-by-another-as-announced", SILENT),
            ("unlock-twice", &[Rule::UnlockOfUnlocked]),
            ("unlock-of-a-free-rwlock", &[Rule::UnlockOfUnlocked]),
            ("unlock-never-locked", &[Rule::UnlockOfUnlocked]),
            ("recursion-with-a-deadline", &[Rule::Recursion]),
            ("recursion-by-trylock", SILENT),
            ("checked-by-itself", SILENT),
        ],
    );
}

#[test]
fn recursion_is_noted_before_the_hang() {
    run_hanging("rules", "recursion-of-a-spin-lock", Rule::Recursion);
    run_hanging("rules", "recursion-of-a-c11-mutex", Rule::Recursion);
}

#[test]
fn ends() {
    run(
        "rules",
        &[
            ("thread-ends-with-a-lock", &[Rule::ThreadExit]),
            ("thread-exits-with-a-lock", &[Rule::ThreadExit]),
            ("thread-is-cancelled-with-a-lock", &[Rule::ThreadExit]),
            ("thread-ends-with-a-lock-on-its-stack", &[Rule::ThreadExit]),
            ("thread-ends-and-its-destructor-unlocks", SILENT),
            ("thread-is-cancelled-and-cleans-up", SILENT),
            ("thread-ends-with-a-robust-lock", SILENT),
            ("process-exits-with-a-lock-that-is-waited-for", &[Rule::ProcessExit]),
            ("process-exits-with-a-shared-lock", &[Rule::ProcessExit]),
            ("process-exits-with-a-lock", &[Rule::ProcessExit]),
            ("process-returns-with-a-lock", &[Rule::ProcessExit]),
            ("process-exits-and-its-handler-unlocks", SILENT),
        ],
    );
}

#[test]
fn lives() {
    run(
        "memory",
        &[
            ("not-initialised", &[Rule::Uninitialised]),
            ("initialised-statically", SILENT),
            ("wiped-before-initialisation", SILENT),
            ("copied-while-held", &[Rule::Copied]),
            ("copied-of-a-kind", &[Rule::Copied]),
            ("copied-before-its-first-use", SILENT),
            ("used-after-destruction", &[Rule::Destroyed]),
            ("rwlock-used-after-destruction", &[Rule::Destroyed]),
            ("used-after-destruction-and-initialisation", SILENT),
            ("wiped-while-held", &[Rule::Overwritten]),
            ("wiped-and-given-back", &[Rule::Overwritten]),
            ("initialised-while-held", &[Rule::InitialisedHeld]),
            ("rwlock-initialised-while-held", &[Rule::InitialisedHeld]),
            ("initialised-twice", SILENT),
            ("destroyed-while-held", &[Rule::DestroyedHeld]),
        ],
    );
}

#[test]
fn what_was_done_to_free_locks() {
    let (freed, over) = (&[Rule::InFreedMemory][..], &[Rule::OverwrittenFree][..]);
    run(
        "ruined",
        &[
            ("used-in-freed-memory", freed),
            ("read-in-freed-memory", freed),
            ("used-in-freed-memory-of-the-allocators", freed),
            ("semaphore-used-in-freed-memory", freed),
            ("freed-by-another-thread-and-used-as-before", freed),
            ("freed-and-allocated-again", SILENT),
            ("reallocated-where-it-is", SILENT),
            ("wiped-after-initialisation", over),
            ("wiped-in-a-loop", over),
            ("overrun", over),
            ("overwritten-by-another-word", over),
            ("overwritten-in-the-middle", over),
            ("overwritten-by-another-kind", over),
            ("overwritten-at-its-end", over),
            ("assigned-though-it-was-static", SILENT),
            ("destroyed-and-assigned", SILENT),
        ],
    );
}

#[test]
fn around() {
    run(
        "around",
        &[
            ("join-while-it-waits", &[Rule::JoinHolding]),
            ("join-while-holding", &[Rule::JoinHolding]),
            ("join-while-holding-another", SILENT),
            ("wait-with-an-unlocked-mutex", &[Rule::ConditionUnlocked]),
            ("wait-with-a-mutex-held-twice", &[Rule::ConditionRecursive]),
            ("wait-with-a-recursive-mutex-held-once", SILENT),
            ("wait-with-two-mutexes", &[Rule::ConditionMutexes]),
            ("wait-with-one-mutex-after-the-other", SILENT),
            ("wait-while-holding", &[Rule::ConditionHolding]),
            ("wait-while-holding-what-nobody-needs", SILENT),
        ],
    );
}

#[test]
fn forks() {
    run_forking("around", "fork-while-another-holds", &[Rule::HeldAtFork]);
    run_forking("around", "fork-and-no-use", SILENT);
    run_forking("around", "fork-and-a-new-beginning", SILENT);
    run_forking("around", "fork-with-a-lock-of-its-own", SILENT);
    run_forking("around", "fork-with-handlers", SILENT);
    run_forking("around", "daemon", SILENT);
    run_forking("rules_more", "child-at-once", SILENT);
    run_forking("rules_more", "child-begins-anew", SILENT);
    run_forking("rules_more", "semaphore-inherited", SILENT);
}

#[test]
fn readers() {
    run(
        "readers",
        &[
            ("recursive-read-behind-writers", &[Rule::RecursiveRead]),
            ("recursive-read", SILENT),
            ("two-readers-behind-writers", SILENT),
            ("writer-that-writes", &[Rule::Recursion]),
        ],
    );
    run_hanging("readers", "reader-that-writes", Rule::Recursion);
}

#[test]
fn semaphores() {
    run(
        "semaphores",
        &[
            ("semaphores-as-mutexes", SILENT),
            ("semaphore-and-mutex", SILENT),
            ("semaphores-as-mutexes-in-order", SILENT),
            ("semaphores-as-signals", SILENT),
            ("semaphores-that-count", SILENT),
        ],
    );
}

#[test]
fn handlers() {
    let used = &[Rule::InHandler][..];
    run(
        "signals",
        &[
            ("in-a-handler-and-outside", used),
            ("outside-first", used),
            ("with-the-signal-blocked", SILENT),
            ("in-the-handler-only", SILENT),
            ("with-no-handler", SILENT),
            ("handlers-that-keep-each-other-out", SILENT),
            ("handlers-that-interrupt-each-other", used),
            ("handler-that-tries", SILENT),
            ("handler-that-posts", SILENT),
            ("handler-with-a-lock-of-its-own", SILENT),
            ("order-within-one-world", SILENT),
            ("waited-for-by-a-thread", SILENT),
        ],
    );
}

#[test]
fn calls_that_block() {
    let sleepy = &[Rule::Sleepy][..];
    run_asking(
        "sleepy",
        &[
            ("sleep", sleepy),
            ("poll", sleepy),
            ("fsync", sleepy),
            ("connect", sleepy),
            ("usleep", sleepy),
            ("sleep-without-locks", SILENT),
            ("condition-with-its-mutex", SILENT),
            ("poll-without-waiting", SILENT),
        ],
        true,
    );
    run("sleepy", &[("sleep-unasked", SILENT)]);
}

#[test]
fn kinds_of_locks() {
    let by_another = &[Rule::UnlockByAnother][..];
    run(
        "rules_more",
        &[
            ("recursive-by-another", by_another),
            ("checking-by-another", by_another),
            ("robust-by-another", by_another),
            ("inheriting-by-another", by_another),
            ("checking-unlocked", &[Rule::UnlockOfUnlocked]),
            ("recursive-deep", &[Rule::UnlockOfUnlocked]),
            ("checking-twice", &[Rule::Recursion]),
            ("robust-recovered", SILENT),
            ("rwlock-wiped", &[Rule::Overwritten]),
            ("child-unlocks", &[Rule::ReleasedElsewhere]),
            ("child-unlocks-and-again", &[Rule::ReleasedElsewhere]),
            ("child-unlocks-and-keeps", &[Rule::ReleasedElsewhere]),
        ],
    );
}

#[test]
fn beginnings_and_ends() {
    run(
        "rules_more",
        &[
            ("semaphore-unmade", &[Rule::Uninitialised]),
            ("barrier-unmade", &[Rule::Uninitialised]),
            ("semaphore-used", SILENT),
            ("semaphore-destroyed", &[Rule::Destroyed]),
            ("semaphore-copied", &[Rule::Copied]),
            ("semaphore-inherited", SILENT),
            ("spin-destroyed", &[Rule::Destroyed]),
            ("condition-destroyed", &[Rule::Destroyed]),
            ("condition-anew", SILENT),
            ("woken-and-another-mutex", SILENT),
            ("destroyed-when-woken", SILENT),
            ("rwlock-garbage", &[Rule::Uninitialised]),
            ("quick", &[Rule::ProcessExit]),
            ("at-once", &[Rule::ProcessExit]),
            ("child-at-once", SILENT),
            ("child-begins-anew", SILENT),
        ],
    );
}

#[test]
fn ways_out_of_handlers() {
    run(
        "rules_more",
        &[("left-by-jump", SILENT), ("lets-itself-in", &[Rule::InHandler]), ("at-a-fault", SILENT)],
    );
}

#[test]
fn programs_see_their_own_handlers() {
    let Some(program) = compile("handlers") else { return };
    let (native, status) = run_natively(&program, &[]);
    assert_eq!(status.code(), Some(7), "{native}");
    assert!(native.lines().count() > 60, "{native}");
    let (observed, status) = Observed::start(Library::Checking, &program, &[]).end();
    assert_eq!(observed, native);
    assert_eq!(status.code(), Some(7));
}

#[test]
fn correct_programs() {
    run(
        "clean",
        &[
            ("clocks-and-deadlines", SILENT),
            ("clocks-and-deadlines-that-pass", SILENT),
            ("cancelled-waits", SILENT),
            ("recovered-from-a-dead-process", SILENT),
            ("shared-between-processes", SILENT),
            ("producers-and-consumers", SILENT),
            ("barriers-and-once", SILENT),
            ("the-last-one-frees-it", SILENT),
            ("priority-inheriting", SILENT),
            ("destructors-that-lock", SILENT),
            ("detached-threads-at-the-end", SILENT),
        ],
    );
}
