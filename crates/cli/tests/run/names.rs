//! What locks, functions and places are called in a report.

use super::deadlock::member;
use crate::programs::{library, library_in, line, only, program, under};
use std::collections::HashSet;

#[test]
fn locks_are_called_by_symbol_member_and_birthplace() {
    let Some(named) = program("named.c") else { return };
    let running = under(&["--no-report"], &[&named]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let held: HashSet<_> =
        only(&ended.stderr, "DEADLOCK").into_iter().map(|m| (m.name, m.holds)).collect();
    let cache = format!("mutex from cache_new() at {}, #2", line("named.c", "cache-init"));
    let wanted = [
        ("static", "journal (mutex)"),
        ("member", "registry.guard (mutex)"),
        ("heap", &cache),
        ("standard", "standard (C11 mutex)"),
    ];
    assert_eq!(held, wanted.map(|(name, lock)| (name.into(), lock.into())).into(), "{ended:?}");
}

/// Another library lay at its place meanwhile.
#[test]
fn in_a_library_that_has_come_back() {
    let (Some(returns), Some(alpha)) = (program("returns.c"), library_in("returns.c")) else {
        return;
    };
    let Some(gamma) = library("returns_gamma.c") else { return };
    let ended = under(&[], &[&returns, &alpha, &gamma]).end();
    let places: HashSet<&str> = ended.stdout.lines().collect();
    if places.len() != 1 {
        return println!("skipped: the libraries lay at different places: {places:?}");
    }
    assert!(ended.stderr.contains("alpha_two in returns-library"), "{ended:?}");
    assert!(ended.stderr.contains("alpha_worker() at returns.c"), "{ended:?}");
    assert!(!ended.stderr.contains("gamma_two"), "{ended:?}");
}

#[test]
fn in_a_library_that_was_loaded_late() {
    let (Some(loads), Some(plugin)) = (program("loads.c"), library("plugin.c")) else { return };
    let running =
        under(&["--no-report"], &[loads.as_os_str(), plugin.as_os_str(), "stall".as_ref()]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let functions = ["plugs=plugs"];
    let mut wanted = [
        (
            "plugs",
            "for socket_lock in plugin (mutex)",
            "plug-waits",
            "plug in plugin (mutex)",
            "plug-holds",
        ),
        (
            "sockets",
            "for plug in plugin (mutex)",
            "socket-waits",
            "socket_lock in plugin (mutex)",
            "socket-holds",
        ),
    ]
    .map(|e| member("plugin.c", &functions, e));
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut found = only(&ended.stderr, "DEADLOCK");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found, wanted, "{}", ended.stderr);
}

#[test]
fn in_cpp_by_qualified_names() {
    let Some(crossed) = program("crossed.cpp") else { return };
    let running = under(&["--no-report"], &[&crossed]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let found = only(&ended.stderr, "DEADLOCK");
    let held: HashSet<_> = found.iter().map(|m| &*m.holds).collect();
    assert_eq!(held, ["bank::savings (mutex)", "bank::checking (mutex)"].into(), "{found:?}");
    for member in &found {
        let has = |sites: &[String], mark: &str| {
            let end = line("crossed.cpp", mark);
            sites.iter().any(|s| s.starts_with("bank::Transfer::run(") && s.ends_with(&end))
        };
        assert!(has(&member.waits_at, "cpp-waits") && has(&member.holds_at, "cpp-holds"));
    }
}
