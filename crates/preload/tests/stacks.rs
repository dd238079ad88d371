//! The library runs on the stacks of the program, which has measured them for
//! itself: it takes little of them, also when it walks a stack for the first time.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, run_natively};
use std::collections::BTreeMap;

/// Bytes that a call of an interposed function may take beyond the real one. More registers are kept on aarch64.
const MOST: usize = if cfg!(target_arch = "aarch64") { 4608 } else { 4096 };

fn used(output: &str) -> BTreeMap<&str, usize> {
    let lines = output.lines().map(|line| line.split_once(' ').expect("a name and a number"));
    lines.map(|(name, bytes)| (name, bytes.parse().expect("a number"))).collect()
}

fn calls_take_little_of_the_stack(library: Library) {
    let Some(program) = compile("stacks") else { return };
    let (native, status) = run_natively(&program, &[]);
    assert!(status.success(), "{status}");
    let (observed, status) = Observed::start(library, &program, &[]).end();
    assert!(status.success(), "{status}");
    let (native, observed) = (used(&native), used(&observed));
    assert_eq!(native.len(), 6);
    for (name, bytes) in native {
        let with_library = observed[name];
        println!("{name}: {bytes} bytes, {with_library} with the library");
        assert!(with_library <= bytes + MOST, "{name}: {bytes}, then {with_library}");
    }
}

/// Bytes that a call on the fast path takes at most, with those of the real function that it calls. What goes
/// through Rust takes more.
const FAST: usize = 144;

fn calls_that_are_known_take_the_fast_path(library: Library) {
    let Some(program) = compile("fast") else { return };
    let fast = FAST.to_string();
    let (observed, status) = Observed::start(library, &program, &[&fast]).end();
    assert!(status.success(), "{status}");
    println!("{observed}");
    let mut used = used(&observed);
    let lines = lockstead_ledger::thread::CACHE_LINES;
    assert!(used.remove("many").is_some_and(|many| many > lines), "{observed}");
    assert_eq!(used.len(), 14);
    assert!(used.values().all(|bytes| *bytes <= FAST), "{observed}");
}

with_both! { calls_take_little_of_the_stack, calls_that_are_known_take_the_fast_path }
