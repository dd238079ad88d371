//! The shared locks of the core, each copy broken in one place, for
//! `tests/shared_locks/broken.rs` and `tests/shared_locks/unmarked.rs`.

use super::Variant;

pub(crate) const SHARED: &[Variant] = &[
    Variant {
        name: "shared_taker_passes_nothing_on",
        file: "robust/wait.rs",
        line: "if self.woken || outcome.is_err() {",
        instead: "if outcome.is_err() {",
    },
    Variant {
        name: "shared_deferred_wake_leaves_no_mark",
        file: "robust/wait.rs",
        line: "let waiters = if defers { WAITERS } else { 0 };",
        instead: "let waiters = 0;",
    },
    Variant {
        name: "shared_taker_defers_nothing",
        file: "robust/wait.rs",
        line: "let defers = self.woken && P::defer_wake(self.party.domain.doorbell);",
        instead: "let defers = self.woken;",
    },
    Variant {
        name: "shared_leaver_passes_nothing_on",
        file: "robust/wait.rs",
        line: "if self.woken || outcome.is_err() {",
        instead: "if self.woken && outcome.is_ok() {",
    },
    Variant {
        name: "shared_waiter_names_nothing",
        file: "robust/wait.rs",
        line: "let named = self.party.domain.name_doorbell();",
        instead: "let named = P::at_death_wake(None);",
    },
    Variant {
        name: "shared_waiter_stops_naming_before_it_passes_on",
        file: "robust/wait.rs",
        line: "        self.leave(outcome);
        P::at_death_wake(named);",
        instead: "        P::at_death_wake(named);
        self.leave(outcome);",
    },
    Variant {
        name: "shared_woken_by_a_death_rings_nobody",
        file: "robust/domain.rs",
        line: "if index > 1 || index == 1 && self.bell() == bell {",
        instead: "if false {",
    },
    Variant {
        name: "shared_woken_by_the_doorbell_rings_nobody",
        file: "robust/domain.rs",
        line: "if index > 1 || index == 1 && self.bell() == bell {",
        instead: "if index > 1 {",
    },
    Variant {
        name: "shared_waiter_compares_no_generation",
        file: "robust/wait.rs",
        line: "Watch::High(&theirs.record.life, theirs.life.high()),",
        instead: "Watch::Low(&theirs.record.life, theirs.life.life()),",
    },
    Variant {
        name: "shared_owner_is_known_by_its_slot",
        file: "robust/domain.rs",
        line: "if life.generation() != who.generation() {",
        instead: "if false {",
    },
    // As it was until version 2 of the segment: a clean leave keeps its generation, and is
    // taken for a death.
    Variant {
        name: "shared_clean_leave_passes_for_a_death",
        file: "robust/domain.rs",
        line: "            Fate::Left(record, life)\n",
        instead: "            Fate::Died\n",
    },
    Variant {
        name: "shared_free_slot_keeps_its_name",
        file: "robust/wait.rs",
        line: "record.retire(life);",
        instead: "",
    },
    Variant {
        name: "shared_death_keeps_the_generation",
        file: "robust/life.rs",
        line: "if self.is_free() { 0 } else { 1 }",
        instead: "0",
    },
    Variant {
        name: "shared_handoff_waiter_that_left_passes_for_dead",
        file: "robust/wait.rs",
        line: "matches!(self.fate(other, self.reserved_for, reserved_for), Fate::Died)",
        instead: "!matches!(self.party.domain.fate(other), Fate::Lives(..))",
    },
    Variant {
        name: "shared_waiter_compares_the_word_first",
        file: "robust/wait.rs",
        line: "            channel,
            Watch::Word(self.party.domain.doorbell, bell),
            Watch::Low(&theirs.record.life, theirs.life.life()),
            Watch::High(&theirs.record.life, theirs.life.high()),
            Watch::Seen(self.word, word),",
        instead: "            channel,
            Watch::Word(self.party.domain.doorbell, bell),
            Watch::Low(&theirs.record.life, theirs.life.life()),
            Watch::High(&theirs.record.life, theirs.life.high()),",
    },
    Variant {
        name: "shared_release_overlooks_waiters",
        file: "robust/mutex.rs",
        line: "} else if word & (WAITERS | RESERVED) != 0 {",
        instead: "} else if false {",
    },
    Variant {
        name: "shared_late_release_wakes_nobody",
        file: "robust/mutex.rs",
        line: "            self.given_late();",
        instead: "",
    },
    Variant {
        name: "shared_late_release_overlooks_the_handoff",
        file: "robust/mutex.rs",
        line: "if P::wake_shared(&raw const self.word, 1) == 0 {",
        instead: "if true {",
    },
    Variant {
        name: "shared_successor_tells_nobody",
        file: "robust/wait.rs",
        line: "return self.own(word, kept | INCONSISTENT, goal);",
        instead: "return self.own(word, kept, goal);",
    },
    Variant {
        name: "shared_handoff_waiter_reads_and_passes_nothing_on",
        file: "robust/wait.rs",
        line:
            "            // Others may sleep although nobody owns the lock, since it was reserved.
            self.woken = true;",
        instead: "",
    },
    Variant {
        name: "shared_handoff_waiter_stays_when_it_leaves",
        file: "robust/wait.rs",
        line: "        if self.is_reserved {
            self.unreserve();
            self.end_reservation();
        }
        // A waiter that gives up",
        instead: "        // A waiter that gives up",
    },
    Variant {
        name: "shared_release_overlooks_the_handoff",
        file: "robust/mutex.rs",
        line: "if reserved && P::wake_shared(&raw const self.word, 1) != 0 {",
        instead: "if reserved {",
    },
    Variant {
        name: "shared_writer_overlooks_readers",
        file: "robust/rwlock.rs",
        line: "            reader = self.reader(party);
        };",
        instead: "            reader = None;
        };",
    },
    Variant {
        name: "shared_reader_claims_too_late",
        file: "robust/wait.rs",
        line: "        claim.make(what);
        // ord: SHR-6 (seq_cst): after the claim; an owner looks for claims after it
        // has put itself here.
        let word = self.word.load(Ordering::SeqCst);",
        instead: "        let word = self.word.load(Ordering::SeqCst);
        claim.make(what);",
    },
    Variant {
        name: "shared_reader_wakes_no_writer",
        file: "robust/slot.rs",
        line: "if self.what.swap(0, Ordering::Release) & AWAITED != 0 {",
        instead: "if self.what.swap(0, Ordering::Release) == 0 {",
    },
    Variant {
        name: "shared_writer_touches_at_once",
        file: "robust/rwlock.rs",
        line: "let mine = party.me.bits() | UNTOUCHED;",
        instead: "let mine = party.me.bits();",
    },
    Variant {
        name: "shared_writer_watches_no_reader",
        file: "robust/rwlock.rs",
        line: "            Watch::Low(&self.record.life, self.life.life()),
            Watch::High(&self.record.life, self.life.high()),
        ];",
        instead: "        ];",
    },
    Variant {
        name: "shared_count_is_not_repeated",
        file: "robust/semaphore.rs",
        line: "        if free >= units {
            // A holder",
        instead: "        if false {
            // A holder",
    },
    Variant {
        name: "shared_taker_is_watched_by_nobody",
        file: "robust/semaphore.rs",
        line: "                // Those that sleep have not seen this holder.
                if get(&self.asleep) != 0 && get(&self.on_their_way) == 0 {",
        instead: "                if false {",
    },
    Variant {
        name: "shared_loser_overlooks_the_handoff",
        file: "robust/mutex.rs",
        line: "if lost && word & RESERVED != 0 {",
        instead: "if false {",
    },
    Variant {
        name: "shared_units_wake_one_for_each",
        file: "robust/semaphore.rs",
        line: "if get(&self.asleep) > 1 { u32::MAX } else { units }",
        instead: "units",
    },
    Variant {
        name: "shared_condition_notifies_nobody",
        file: "robust/condvar.rs",
        line: "P::add_and_wake(&self.count, Addend::One, 1);",
        instead: "P::add_and_wake(&self.count, Addend::One, 0);",
    },
    Variant {
        name: "shared_condition_names_nothing_once_woken",
        file: "robust/condvar.rs",
        line: "P::turn(start, ended.map_or(0, |ended| 1 + ended as u64));",
        instead: "P::at_death_wake(None);
        P::turn(start, ended.map_or(0, |ended| 1 + ended as u64));",
    },
    Variant {
        name: "shared_condition_rings_nobody",
        file: "robust/condvar.rs",
        line: "party.domain.after_wake(index, bell);",
        instead: "",
    },
    Variant {
        name: "shared_cancelled_waiter_passes_nothing_on",
        file: "robust/wait.rs",
        line: "if self.woken || outcome.is_err() {",
        instead: "if outcome != Err(SharedError::Cancelled) && (self.woken || outcome.is_err()) {",
    },
    Variant {
        name: "shared_cancelled_at_the_mutex_wakes_nobody",
        file: "robust/semaphore.rs",
        line: "if error != SharedError::Copied {
                    // What",
        instead: "if error != SharedError::Copied && error != SharedError::Cancelled {
                    // What",
    },
    Variant {
        name: "shared_leaver_overlooks_a_doubt",
        file: "robust/slot.rs",
        line: "if self.current().trusted() != tenant {",
        instead: "if self.current() != tenant.doubted() {",
    },
    Variant {
        name: "shared_newcomer_overlooks_a_doubt",
        file: "robust/domain.rs",
        line: "if record.replace(prepared, taken) {",
        instead: "if record.change(prepared, taken) {",
    },
    Variant {
        name: "shared_handoff_ends_before_it_is_unmarked",
        file: "robust/wait.rs",
        line: "            self.unreserve();
            self.end_reservation();
        }
        // A waiter that gives up",
        instead: "            self.end_reservation();
            self.unreserve();
        }
        // A waiter that gives up",
    },
    Variant {
        name: "shared_reader_overlooks_a_death",
        file: "robust/wait.rs",
        line: "if word & (OWNER | INCONSISTENT) != 0 || reserved {",
        instead: "if word & OWNER != 0 || reserved {",
    },
    Variant {
        name: "shared_draining_writer_names_nothing",
        file: "robust/rwlock.rs",
        line: "let named = party.domain.name_doorbell();
        let mut reader",
        instead: "let named = P::at_death_wake(None);
        let mut reader",
    },
    Variant {
        name: "shared_draining_writer_rings_nobody",
        file: "robust/rwlock.rs",
        line: "                party.domain.after_wake(index, bell);
                None",
        instead: "                let _ = (index, bell);
                None",
    },
    Variant {
        name: "shared_newcomer_keeps_units",
        file: "robust/domain.rs",
        line: "            claim.give_back();
            claim.units.store(0, Ordering::Relaxed);",
        instead: "            claim.give_back();",
    },
    Variant {
        name: "shared_newcomer_rings_nobody",
        file: "robust/domain.rs",
        line: "        if stood {
            self.wake_everybody();
        }
        for claim in claims {",
        instead: "        for claim in claims {",
    },
    // As it was at first in version 2: what a dead one has claimed is the newcomer's until that
    // has erased it.
    Variant {
        name: "shared_newcomer_has_what_a_dead_one_claimed",
        file: "robust/domain.rs",
        line: "                self.erase_claims(slot);
                if record.replace",
        instead: "                if record.replace",
    },
    // Not broken: the release of processors that subtract no faster.
    Variant {
        name: "shared_release_exchanges",
        file: "robust/mutex.rs",
        line: "if !P::subtracts() {",
        instead: "if true {",
    },
    // For a machine that does not mark all of the dead; this one is as shipped.
    Variant {
        name: "unmarked_as_shipped",
        file: "robust/party.rs",
        line: "let Some(trust) = P::TRUST else {",
        instead: "let Some(trust) = P::TRUST else {",
    },
    Variant {
        name: "unmarked_whoever_sits_there_is_declared_dead",
        file: "robust/domain.rs",
        line: "record.change(life, life.dead())",
        instead: "record.change(record.current(), record.current().dead())",
    },
    Variant {
        name: "unmarked_nobody_is_asked_about",
        file: "robust/party.rs",
        line: "let ended = P::has_ended(self.domain.segment, slot, life);",
        instead: "let ended = false;",
    },
    Variant {
        name: "unmarked_sleepers_trust_for_ever",
        file: "robust/party.rs",
        line: "let slice = Wait { deadline: Some(deadline.unwrap_or(until)), ..*how };",
        instead: "let slice = Wait { deadline, ..*how };",
    },
    Variant {
        name: "shared_condition_names_nothing",
        file: "robust/condvar.rs",
        line: "let named = party.domain.name_doorbell();",
        instead: "let named = P::at_death_wake(None);",
    },
    Variant {
        name: "shared_condition_counts_after_the_release",
        file: "robust/condvar.rs",
        line: "        let watches = [
            Watch::Word(&self.count, count),",
        instead: "        let count = self.count.load(Ordering::Relaxed);
        let watches = [
            Watch::Word(&self.count, count),",
    },
    Variant {
        name: "shared_condition_compares_the_count_first",
        file: "robust/condvar.rs",
        line: "            Watch::Seen(&self.count, count),\n",
        instead: "",
    },
];
