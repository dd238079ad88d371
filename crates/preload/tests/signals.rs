//! Signals at any time, in whatever they interrupt: handlers that use locks, that
//! jump away; forks and cancelled threads between. Afterwards the ledger knows of
//! nothing that is held or waited for, and of as many acquisitions as there were.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::thread::state;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

const RUNS: u64 = 2;
/// Calls that one tick of the clock makes to interposed functions.
const CALLS_OF_HANDLER: u64 = 6;
const MILLISECONDS: &str = "1000";

fn run(library: Library, program: &std::path::Path, seed: u64) {
    println!("seed {seed}");
    let mut observed = Observed::start(library, program, &[&seed.to_string(), MILLISECONDS]);
    observed.reach("over");
    let ledger = observed.ledger();
    view::assert_quiet(&ledger);
    let number = |name: &str| observed.address(name);
    for name in ["ticks", "kicks", "jumps", "forks", "cancelled", "uses"] {
        println!("  {} {name}", number(name));
        assert_ne!(number(name), 0, "{name}: the program did not do what it is for");
    }
    // What a handler does in the middle of the library's work is not recorded,
    // but counted.
    let live = view::threads(&ledger);
    let skipped: u64 = live.iter().map(|thread| thread.record.skipped.load(Relaxed)).sum();
    let skipped = skipped + ledger.header().retired.skipped.load(Relaxed);
    println!("  {skipped} calls skipped");
    // But no others, whatever was left by a jump.
    let calls = number("ticks") * CALLS_OF_HANDLER + number("jumps");
    assert!(skipped <= calls, "{skipped} of {calls} at most");
    for name in ["of_handlers", "read_by_handlers", "spin_of_handlers"] {
        let acquisitions = view::facts(&ledger, number(name)).acquisitions;
        let ticks = number("ticks");
        assert!(acquisitions <= ticks, "{name}: {acquisitions} of {ticks}");
        assert!(acquisitions + skipped >= ticks, "{name}: {acquisitions} of {ticks}");
    }
    assert_eq!(view::facts(&ledger, number("of_forks")).acquisitions, number("forks"));
    // No thread was silenced: all that ended have said so.
    let ended = live.iter().filter(|thread| thread.record.state.load(Relaxed) == state::ENDED);
    assert_eq!(ended.count(), live.len() - 1);
    observed.go_on();
    assert!(observed.end().1.success());
}

fn nothing_is_held_or_awaited_after_a_storm_of_signals(library: Library) {
    let Some(program) = compile("signals") else { return };
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let seed = u64::from(since.subsec_nanos());
    (seed..seed + RUNS).for_each(|seed| run(library, &program, seed));
}

/// Checks that the ledger grows on after a handler has jumped away as soon as more of it was mapped.
fn the_ledger_grows_on_after_a_handler_has_jumped_away(library: Library) {
    let Some(program) = compile("grows") else { return };
    let mut observed = Observed::start_with(library, &program, &[], false);
    observed.reach("over");
    if observed.address("traced") == 0 {
        println!("skipped: a process may not trace its parent here");
        return;
    }
    assert!(observed.address("signals") > 3, "the ledger hardly grew");
    // Each but those from whose first use the handler has jumped away.
    let ledger = observed.ledger();
    let (used, losses) = (ledger.used(LedgerPart::Locks), &ledger.header().losses);
    assert!(used > 19_900, "of 20,000 locks {used} are known, {losses:?}");
    observed.go_on();
    assert!(observed.end().1.success());
}

/// Checks that a signal may come at each instruction of an acquisition, and of a release, that the fast path
/// knows: all is counted that its handler and what it has interrupted acquire, and nothing is held.
fn each_instruction_may_be_interrupted(library: Library) {
    let Some(program) = compile("steps") else { return };
    // What a handler uses as well is not left to the fast path by the library that checks.
    let with: &[&str] = if library == Library::Checking { &["other"] } else { &[] };
    let mut observed = Observed::start_with(library, &program, with, false);
    observed.reach("over");
    if observed.address("traced") == 0 {
        println!("skipped: a process may not trace its parent here");
        return;
    }
    let number = |name: &str| observed.address(name);
    for name in ["uses", "signals", "acquires", "releases"] {
        println!("  {} {name}", number(name));
    }
    // So many, or as many as the call has. On a machine with much else to do calls are too rare for the
    // fast path, and the signals come in what does its work then.
    let all = number("acquires").min(number("releases"));
    assert!(all >= 20, "{all}");
    let ledger = observed.ledger();
    view::assert_quiet(&ledger);
    let skipped: u64 = view::threads(&ledger).iter().map(|t| t.record.skipped.load(Relaxed)).sum();
    let locks = if with.is_empty() { &["lock"][..] } else { &["lock", "other"] };
    let facts = locks.iter().map(|lock| view::facts(&ledger, number(lock)));
    let known: u64 = facts.map(|facts| facts.acquisitions).sum();
    println!("  {known} acquisitions, {skipped} calls skipped");
    // A handler that comes in the library's own work skips both of its calls.
    assert_eq!(known * 2 + skipped, number("uses") * 2);
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! {
    each_instruction_may_be_interrupted,
    nothing_is_held_or_awaited_after_a_storm_of_signals,
    the_ledger_grows_on_after_a_handler_has_jumped_away
}
