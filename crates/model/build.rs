//! Writes copies of the core with one line broken, for the tests called `broken`: each
//! as one file of nested modules.

#[path = "build/biased.rs"]
mod biased;
#[path = "build/shared.rs"]
mod shared;
#[path = "build/ww.rs"]
mod ww;

use std::fs;
use std::path::{Path, PathBuf};

/// The core, or what the ledger has of atomics, broken in one place.
struct Variant {
    /// Of the module that holds it. Those of the ledger begin with `ledger_`.
    name: &'static str,
    file: &'static str,
    /// Occurs once in `file`.
    line: &'static str,
    instead: &'static str,
}

const VARIANTS: &[Variant] = &[
    // The last of a chain of wake-ups: two permits, given in a row, reach one.
    Variant {
        name: "classic_leaver_wakes_nobody",
        file: "semaphore/classic.rs",
        line: "if left.queued() > 0 {",
        instead: "if false {",
    },
    Variant {
        name: "classic_up_looks_again",
        file: "semaphore/classic.rs",
        line: "if before.queued() > 0 {",
        instead: "if self.peek().queued() > 0 {",
    },
    Variant {
        name: "tuned_taker_wakes_nobody",
        file: "sleep/mod.rs",
        line: "if K::free(taken) && taken.waiters() {",
        instead: "if false {",
    },
    Variant {
        name: "tuned_up_looks_again",
        file: "semaphore/tuned.rs",
        line: "sleep::released::<P>(seen, at);",
        instead: "let _ = self.peek();
        sleep::released::<P>(seen, at);",
    },
    Variant {
        name: "condvar_joins_after_the_release",
        file: "condvar.rs",
        line: "let noted = self.join();",
        instead: "unsafe { mutex.unlock() }; let noted = self.join(); mutex.lock(site)?;",
    },
    Variant {
        name: "condvar_sequence_stands_still",
        file: "condvar.rs",
        line: "self.sequence().wrapping_add(1) as u64)",
        instead: "self.sequence() as u64)",
    },
    Variant {
        name: "condvar_forgets_the_mutex",
        file: "condvar.rs",
        line: "mutex.lock(site)?;\n        ended",
        instead: "if ended.is_ok() { mutex.lock(site)?; } ended",
    },
    Variant {
        name: "rwlock_reader_overlooks_next",
        file: "rwlock/state.rs",
        line: "if self.0 == SHARED | 1 {",
        instead: "if self.readers() == 1 {",
    },
    Variant {
        name: "rwlock_reads_the_bell_late",
        file: "rwlock/mod.rs",
        line: "waiter.sleep(insist, |nap| P::wait32(bell, rung, nap));",
        instead: "let rung = bell.load(Ordering::Acquire);
            waiter.sleep(insist, |nap| P::wait32(bell, rung, nap));",
    },
    Variant {
        name: "rwlock_withdraws_unsettled",
        file: "rwlock/mod.rs",
        line: "if self.settle(seen, alone).is_ok() {",
        instead: "if self.publish(seen, alone).is_ok() {",
    },
    Variant {
        name: "rwlock_admits_readers_to_writers",
        file: "rwlock/state.rs",
        line: "Mode::Read => self.free() || self.has(SHARED)",
        instead: "Mode::Read => true || self.has(SHARED)",
    },
    Variant {
        name: "rwlock_release_looks_again",
        file: "rwlock/mod.rs",
        line: "// From here on the lock may be gone.",
        instead: "let calls = if self.peek().free() { calls } else { calls };",
    },
    Variant {
        name: "once_ends_in_two_steps",
        file: "once.rs",
        line: "if self.word.swap(result, Ordering::Release) & WAITERS != 0 {",
        instead: "let seen = self.word.load(Ordering::Relaxed);
        self.word.store(result, Ordering::Release);
        if seen & WAITERS != 0 {",
    },
    Variant {
        name: "once_wakes_one",
        file: "once.rs",
        line: "P::wake(address, u32::MAX);",
        instead: "P::wake(address, 1);",
    },
    Variant {
        name: "once_runner_looks_again",
        file: "once.rs",
        line: "if self.word.swap(result, Ordering::Release) & WAITERS != 0 {",
        instead: "let waiters = self.word.swap(result, Ordering::Release) & WAITERS != 0;
        if waiters && self.word.load(Ordering::Relaxed) == result {",
    },
    // The slow path and the spin queue, for `tests/broken_mutex.rs`.
    Variant {
        name: "mutex_looks_after_its_release",
        file: "mutex.rs",
        line: "sleep::released::<P>(Word(erased.into()), at);",
        instead: "sleep::released::<P>(Word(erased.into()), at); let _ = self.peek();",
    },
    Variant {
        name: "release_wakes_nobody",
        file: "sleep/mod.rs",
        line: "if erased.waiters() {",
        instead: "if false {",
    },
    Variant {
        name: "release_rings_for_nobody",
        file: "sleep/mod.rs",
        line: "if erased.handoff_asleep() {",
        instead: "if false {",
    },
    Variant {
        name: "waiter_gives_up_in_debt",
        file: "sleep/mod.rs",
        line: "if waiter.must_pass_on {
                return pass_on",
        instead: "if false {
                return pass_on",
    },
    Variant {
        name: "waiter_believes_an_old_word",
        file: "sleep/mod.rs",
        line: "            waiter.must_pass_on = false;
        }
        if waiter.loose {",
        instead: "        }
        waiter.must_pass_on = false;
        if waiter.loose {",
    },
    Variant {
        name: "waiter_takes_in_debt",
        file: "sleep/mod.rs",
        line: "exchange::<P, K>(word, seen, waiter.passing_on::<Y>(K::take(seen, me)))",
        instead: "exchange::<P, K>(word, seen, K::take(seen, me))",
    },
    Variant {
        name: "waiter_sleeps_unannounced",
        file: "sleep/mod.rs",
        line: "            seen.announced(spin::alive::<P, Y>(seen))
        };",
        instead: "            seen
        };",
    },
    Variant {
        name: "heir_leaves_without_withdrawing",
        file: "sleep/handoff.rs",
        line: "waiter.passing_on::<Y>(seen.handoff_withdrawn())",
        instead: "waiter.passing_on::<Y>(seen)",
    },
    Variant {
        name: "heir_leaves_sleepers_behind",
        file: "word.rs",
        line: "if word.tail().is_some() { word } else { word.uncover() }",
        instead: "word",
    },
    Variant {
        name: "heir_takes_and_forgets_sleepers",
        file: "word.rs",
        line: "Word(self.0 & !HANDOFF).unless_still_reserved().uncover()",
        instead: "Word(self.0 & !HANDOFF).unless_still_reserved()",
    },
    Variant {
        name: "last_spinner_forgets_sleepers",
        file: "word.rs",
        line: "if word.handoff() { word } else { word.uncover() }",
        instead: "word",
    },
    Variant {
        name: "napper_forgets_its_debt",
        file: "sleep/mod.rs",
        line: "waiter.passing_on::<Y>(seen).with_unreleased()",
        instead: "seen.with_unreleased()",
    },
    Variant {
        name: "nap_has_no_end",
        file: "sleep/backoff.rs",
        line: "&Wait { deadline: Some(until), ..*how }",
        instead: "&Wait { deadline: None, ..*how }",
    },
    Variant {
        name: "release_leaves_the_mark",
        file: "word.rs",
        line: "(RESERVED | SLOW_UNLOCKS) as u32",
        instead: "(RESERVED | SLOW_UNLOCKS | UNRELEASED) as u32",
    },
    Variant {
        name: "sleeper_trusts_silently",
        file: "word.rs",
        line: "Word(self.0 | COVERED | PREPARING)
        } else {",
        instead: "Word(self.0 | COVERED)
        } else {",
    },
    Variant {
        name: "announcement_is_left_loose",
        file: "sleep/mod.rs",
        line: "if waiter.loose {",
        instead: "if false {",
    },
    Variant {
        name: "fallen_announcement_is_no_debt",
        file: "sleep/mod.rs",
        line: "waiter.must_pass_on = !now.waiters() && !now.covered();",
        instead: "waiter.must_pass_on = false;",
    },
    Variant {
        name: "last_spinner_leaves_w_loose",
        file: "sleep/mod.rs",
        line: "Spun::LeftLoose => sleep::<P, K, Y>(word, me, how, true, barging)?,",
        instead: "Spun::LeftLoose => sleep::<P, K, Y>(word, me, how, false, barging)?,",
    },
    Variant {
        name: "payer_leaves_w_loose",
        file: "sleep/pass_on.rs",
        line: "if !K::RELEASE_LOSES || !loose {",
        instead: "if true {",
    },
    Variant {
        name: "heir_withdraws_loosely",
        file: "sleep/handoff.rs",
        line: "if K::RELEASE_LOSES && left.waiters() && !(stands && seen.unlocks_slowly()) {",
        instead: "if false {",
    },
    Variant {
        name: "heir_trusts_its_own_heat",
        file: "sleep/handoff.rs",
        line: "!(stands && seen.unlocks_slowly())",
        instead: "!seen.unlocks_slowly()",
    },
    Variant {
        name: "payer_trusts_its_own_heat",
        file: "sleep/mod.rs",
        line: "return pass_on::<P, K, Y>(word, me, error, waiter.loose);",
        instead: "return pass_on::<P, K, Y>(word, me, error, false);",
    },
    Variant {
        name: "heir_sleeps_on_a_loose_ring",
        file: "sleep/handoff.rs",
        line: "if !stands {",
        instead: "if false {",
    },
    Variant {
        name: "joiner_overlooks_a_closed_node",
        file: "spin/queue.rs",
        line: "if before.next.swap(me.get(), Ordering::AcqRel) != CLOSED {",
        instead: "if before.next.swap(me.get(), Ordering::AcqRel) != CLOSED - 1 {",
    },
    Variant {
        name: "leaver_overlooks_that_it_is_head",
        file: "spin/queue.rs",
        line: ".compare_exchange(WAITING, LEFT, Ordering::Relaxed, Ordering::Acquire)
                .is_ok()",
        instead: ".swap(LEFT, Ordering::Acquire) != CLOSED",
    },
    Variant {
        name: "walk_overlooks_who_joins",
        file: "spin/queue.rs",
        line: "Ok(_) => return Spun::Left,
                Err(linked) => next = linked,",
        instead: "Ok(_) => { node.unlink(); return Spun::Left }
                Err(linked) => next = linked,",
    },
    Variant {
        name: "walk_ends_at_a_leaver",
        file: "spin/queue.rs",
        line: "if turned.is_ok() && verdict == HEAD {",
        instead: "if turned.is_ok() || verdict == HEAD {",
    },
    Variant {
        name: "taker_beside_the_queue_forgets_it",
        file: "spin/beside.rs",
        line: "if let Ok(taken) = exchange::<P, K>(word, seen, K::take(seen, own.me)) {
                return Spun::Took(taken);",
        instead: "let alone = crate::word::Word(seen.low().into());
            if let Ok(taken) = exchange::<P, K>(word, seen, K::take(alone, own.me)) {
                return Spun::Took(taken);",
    },
    Variant {
        name: "handler_uses_the_node_of_its_thread",
        file: "spin/spinner.rs",
        line: "if node.busy.load(Ordering::Relaxed) != 0 {",
        instead: "if false {",
    },
    // The ledger, for `tests/broken_ledger.rs`.
    Variant {
        name: "ledger_stores_the_address_first",
        file: "publish.rs",
        line: "#[inline(always)]
    fn fill(&self, holding: &Holding) {",
        instead: "fn fill(&self, holding: &Holding) {
        self.address.store(holding.address, Release);",
    },
    Variant {
        name: "ledger_raises_the_top_last",
        file: "publish.rs",
        line: "self.top.store(top as u64 + 1, Release);
        entry.fill(holding);",
        instead: "entry.fill(holding);
        self.top.store(top as u64 + 1, Release);",
    },
    Variant {
        name: "ledger_counts_no_episodes",
        file: "publish.rs",
        line: "self.episode.store(episode + 1, Relaxed);",
        instead: "self.episode.store(episode - 1, Relaxed);",
    },
    Variant {
        name: "ledger_forgets_to_end",
        file: "publish.rs",
        line: "if episode & 1 != 0 {
            // Relaxed",
        instead: "if false {
            // Relaxed",
    },
    Variant {
        name: "ledger_takes_every_wait_for_still",
        file: "publish.rs",
        line: "self.episode.load(Relaxed) == episode.0",
        instead: "let _ = episode; true",
    },
    Variant {
        name: "ledger_clears_whatever_is_there",
        file: "publish.rs",
        line: "if self.entries[index].take(address) {",
        instead: "self.entries[index].clear(); if true {",
    },
    Variant {
        name: "ledger_moves_what_was_revoked",
        file: "publish.rs",
        line: "if !self.entries[above].take(moved.address) {",
        instead: "self.entries[above].clear(); if false {",
    },
    Variant {
        name: "ledger_looks_into_the_newest_level_only",
        file: "table.rs",
        line: "(0..=self.newest()).rev().find_map(|level| {",
        instead: "(self.newest()..=self.newest()).rev().find_map(|level| {",
    },
    Variant {
        name: "ledger_overwrites_a_slot",
        file: "table.rs",
        line: "if slot.compare_exchange(0, value, AcqRel, Acquire).is_ok() {",
        instead: "slot.store(value, core::sync::atomic::Ordering::Release); if true {",
    },
    Variant {
        name: "ledger_believes_its_hashes",
        file: "table.rs",
        line: "if (value ^ hash) >> 32 == 0 && is(value as u32) {",
        instead: "if (value ^ hash) >> 32 == 0 {",
    },
];

/// The modules of the ledger that are generic over the platform, and what they need.
const LEDGER: &str = "pub mod cells;\npub mod growth;\npub mod publish;\npub mod table;\n";

fn main() {
    let env = |name| PathBuf::from(std::env::var_os(name).expect("set by Cargo"));
    let core = env("CARGO_MANIFEST_DIR").join("../core/src");
    let ledger = env("CARGO_MANIFEST_DIR").join("../ledger/src");
    let out = env("OUT_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed={}", core.display());
    println!("cargo::rerun-if-changed={}", ledger.display());
    for variant in VARIANTS.iter().chain(biased::BIASED).chain(shared::SHARED).chain(ww::WW) {
        let (root, top) = if variant.name.starts_with("ledger_") {
            (&ledger, LEDGER.to_owned())
        } else {
            (&core, read(&core.join("lib.rs")))
        };
        let text = modules(root, Path::new("lib.rs"), top, variant)
            .replace("crate::", &format!("crate::{}{}::", place(variant), variant.name));
        let path = out.join(variant.name).with_extension("rs");
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

/// In which module of its test it stands.
fn place(variant: &Variant) -> &'static str {
    match variant.name.split('_').next() {
        Some("shared") => "broken::",
        Some("unmarked") => "unmarked::",
        _ => "",
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// `text`, which is that of `file`, a path in `root`, with its modules in place
/// of their declarations, and without its tests and attributes.
fn modules(root: &Path, file: &Path, mut text: String, variant: &Variant) -> String {
    if file == Path::new(variant.file) {
        let times = text.matches(variant.line).count();
        assert_eq!(times, 1, "{}: `{}` occurs {times} times", file.display(), variant.line);
        text = text.replace(variant.line, variant.instead);
    }
    // What declares `a/b.rs` or `a/b/mod.rs` has its own modules in `a/b`.
    let inside = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib") => PathBuf::new(),
        Some("mod") => file.parent().map(Path::to_owned).unwrap_or_default(),
        _ => file.with_extension(""),
    };
    let mut nested = String::new();
    for line in text.lines() {
        let declared = line.strip_suffix(';').and_then(|l| {
            let name = l.trim_start().strip_prefix("pub ").unwrap_or(l.trim_start());
            name.strip_prefix("mod ")
        });
        if line == "#[cfg(test)]" {
            // Tests stand at the end, in place or in a file.
            break;
        } else if let Some(name) = declared {
            let flat = inside.join(name).with_extension("rs");
            let deep = inside.join(name).join("mod.rs");
            let file = if root.join(&flat).exists() { flat } else { deep };
            nested += line.trim_end_matches(';');
            nested += " {\n";
            nested += &modules(root, &file, read(&root.join(&file)), variant);
            nested += "}\n";
        } else if !(inside.as_os_str().is_empty()
            && (line.starts_with("//!") || line.starts_with("#![")))
        {
            nested += line;
            nested += "\n";
        }
    }
    nested
}
