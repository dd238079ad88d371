//! The wait/wound mutex, each copy broken in one place, for `tests/ww_broken.rs`.

use super::Variant;

pub(crate) const WW: &[Variant] = &[
    Variant {
        name: "ww_holder_overlooks_the_first",
        file: "ww/wait.rs",
        line: "yield_to::<P>(context, first);",
        instead: "let _ = (context, first);",
    },
    Variant {
        name: "ww_first_leaves_the_fast_path_open",
        file: "ww/wait.rs",
        line: "        self.base.admit_contexts();
        Place::First",
        instead: "        Place::First",
    },
    Variant {
        name: "ww_wound_is_not_told",
        file: "ww/context.rs",
        line: "alarm::<P>(record);
            true",
        instead: "true",
    },
    Variant {
        name: "ww_deposed_is_not_told",
        file: "ww/wait.rs",
        line: "context::tell::<P>(seen);",
        instead: "",
    },
    Variant {
        name: "ww_first_leaves_sleepers_behind",
        file: "ww/wait.rs",
        line: "        if first.flagged() {
            let count",
        instead: "        if false {
            let count",
    },
    Variant {
        name: "ww_release_touches_the_lock_again",
        file: "ww/mod.rs",
        line: "        self.holder.store(Ticket::NONE.0, Ordering::Relaxed);
        // SAFETY: the caller holds the lock. Its release publishes the line above
        // (WW-HOLDER).
        unsafe { self.base.unlock() }",
        instead: "        unsafe { self.base.unlock() }
        self.holder.store(Ticket::NONE.0, Ordering::Relaxed);",
    },
    Variant {
        name: "ww_silence_is_taken_for_consent",
        file: "ww/wait.rs",
        line: "if holder != Ticket::NONE {",
        instead: "if holder == Ticket::NONE {
                return Verdict::Wait;
            } else {",
    },
    Variant {
        name: "ww_contexts_are_admitted_loosely",
        file: "mutex.rs",
        line: "if seen.reserved() || !seen.contexts() {",
        instead: "if true {",
    },
    Variant {
        name: "ww_release_lets_newcomers_in",
        file: "mutex.rs",
        line: "self.word.fetch_and_low(Word::LEFT_BY_RELEASE, Ordering::Release)",
        instead: "self.word.fetch_and_low(0, Ordering::Release)",
    },
    Variant {
        name: "ww_younger_waits_behind_an_older",
        file: "ww/wait.rs",
        line: "Place::Behind(_) if dies::<P>(context) => break Err(WwError::Deadlock),",
        instead: "",
    },
    Variant {
        name: "ww_woken_one_forgets_the_others",
        file: "ww/wait.rs",
        line: "*must_pass_on = outcome == Outcome::Woken;",
        instead: "",
    },
    Variant {
        name: "ww_woken_one_gives_up_silently",
        file: "ww/wait.rs",
        line: "        self.pass_on();",
        instead: "",
    },
];
