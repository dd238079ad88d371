//! The record of a thread, as the library hands it on from one to the next (PRE-10 in its `records.rs`), with
//! the threads of a model in place of the library's.

use crate::common::mutated;
use lockstead_model::{Config, FailureKind, Ordering, Scenario, U32};

/// The states of a record; zero is the one in which it begins.
const CLAIMED: u32 = 1;
const ENDED: u32 = 3;

/// A thread's record, and what says where to look for spare ones.
struct Record {
    state: U32,
    generation: U32,
    /// What each of its threads adds to.
    counted: U32,
    /// The word that is not zero while a thread works in the library.
    busy: U32,
    /// How many have had it.
    owners: U32,
    /// The one slot that may name the record.
    noted: U32,
    unnoted: U32,
    sought: U32,
}

/// How the threads keep to the protocol; a test of the tests breaks one rule.
#[derive(Clone, Copy)]
struct Rules {
    /// Whether there is a slot. Else each has to look at the record itself.
    has_slot: bool,
    /// Whether threads look at the record for another one's sake, whatever was counted.
    for_others: bool,
    /// The orderings with which a slot and the record are taken.
    takes: [Ordering; 2],
    /// Nothing in the record is the thread's once that is spare.
    spare_last: bool,
    /// A record that was never claimed is for whom the ledger gives it to.
    asks_for_generation: bool,
    /// Whether a look that finds none says so of what was counted when it began.
    counts_first: bool,
}

const KEPT: Rules = Rules {
    has_slot: true,
    for_others: false,
    takes: [Ordering::Acquire; 2],
    spare_last: true,
    asks_for_generation: true,
    counts_first: true,
};

impl Record {
    fn new() -> Record {
        let [state, generation, counted, busy, owners, noted, unnoted, sought] =
            [const { U32::ZERO }; 8];
        Record { state, generation, counted, busy, owners, noted, unnoted, sought }
    }

    /// Gets the record from the ledger, which nobody has had.
    fn fresh(&self) {
        self.state.store(CLAIMED, Ordering::Relaxed);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Does what a thread does with its record, and ends.
    fn works(&self, rules: Rules) {
        assert_eq!(self.busy.load(Ordering::Relaxed), 0, "the last one is done with it");
        self.busy.store(1, Ordering::Relaxed);
        let counted = self.counted.load(Ordering::Relaxed);
        self.counted.store(counted + 1, Ordering::Relaxed);
        self.owners.fetch_add(1, Ordering::Relaxed);
        if !rules.spare_last {
            self.becomes_spare(rules);
        }
        self.busy.store(0, Ordering::Relaxed);
        if rules.spare_last {
            self.becomes_spare(rules);
        }
    }

    fn becomes_spare(&self, rules: Rules) {
        self.state.store(ENDED, Ordering::Release);
        let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
        if !rules.has_slot || self.noted.compare_exchange(0, 1, release, relaxed).is_err() {
            self.unnoted.fetch_add(1, Ordering::Release);
        }
    }

    fn takes(&self, rules: Rules) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        let was_claimed =
            !rules.asks_for_generation || self.generation.load(Ordering::Acquire) != 0;
        let is_spare = state != CLAIMED && was_claimed;
        let (takes, relaxed) = (rules.takes[1], Ordering::Relaxed);
        is_spare && self.state.compare_exchange(state, CLAIMED, takes, relaxed).is_ok()
    }

    /// Looks for a spare record.
    fn looks(&self, rules: Rules) -> bool {
        let relaxed = Ordering::Relaxed;
        let noted = self.noted.load(relaxed) != 0
            && self.noted.compare_exchange(1, 0, rules.takes[0], relaxed).is_ok();
        if noted && self.takes(rules) {
            return true;
        }
        let counted = self.unnoted.load(Ordering::Acquire);
        if counted == self.sought.load(relaxed) && !rules.for_others {
            return false;
        }
        let found = self.takes(rules);
        if !found {
            let counted =
                if rules.counts_first { counted } else { self.unnoted.load(Ordering::Acquire) };
            self.sought.store(counted, relaxed);
        }
        found
    }
}

/// Makes the scenario in which a thread has a new record and ends, and two others look for a spare one.
fn handed_on(rules: Rules) -> Scenario<Record> {
    let looks = move |record: &Record| {
        if record.looks(rules) {
            record.generation.fetch_add(1, Ordering::Relaxed);
            record.works(rules);
        }
    };
    Scenario::new(Record::new)
        .thread(move |record| {
            record.fresh();
            record.works(rules);
        })
        .thread(looks)
        .thread(looks)
        .after(|record| {
            let [counted, owners] =
                [&record.counted, &record.owners].map(|n| n.load(Ordering::Relaxed));
            assert_eq!(counted, owners, "each has it for itself, with what the last one counted");
            let [noted, unnoted, sought] = [&record.noted, &record.unnoted, &record.sought]
                .map(|number| number.load(Ordering::Relaxed));
            assert!(noted != 0 || unnoted != sought, "it can be found");
        })
}

/// Makes the scenario in which the thread of a record, which has ended, is joined while another one gets the
/// record. The joiner reads the number of the claim first, or last; of both threads `owners` stands for the handle.
fn joined(number_first: bool) -> Scenario<Record> {
    Scenario::new(Record::new)
        .thread(move |record| {
            record.fresh();
            record.works(KEPT);
            let number = || record.generation.load(Ordering::Acquire);
            let first = number();
            let is_known = record.state.load(Ordering::Acquire) == ENDED
                && record.owners.load(Ordering::Relaxed) == 1;
            let number = if number_first { first } else { number() };
            assert!(!is_known || number == 1, "the second thread is not the one that is joined");
        })
        .thread(|record| {
            if record.looks(KEPT) {
                record.generation.fetch_add(1, Ordering::Release);
                record.works(KEPT);
            }
        })
}

fn calm() -> Config {
    Config::new().spurious(0).signals(0)
}

#[test]
fn model_a_record_goes_on_with_one_thread_at_a_time_3t() {
    for has_slot in [true, false] {
        let scene = handed_on(Rules { has_slot, ..KEPT });
        scene.verify("record, handed on", &calm()).must_be_complete();
    }
}

#[test]
fn model_a_record_that_was_never_claimed_is_not_taken_3t() {
    let scene = handed_on(Rules { has_slot: false, for_others: true, ..KEPT });
    scene.verify("record, looked at", &calm()).must_be_complete();
}

#[test]
fn model_who_joins_takes_the_number_of_the_thread_that_it_joins_2t() {
    joined(true).verify("record, joined", &calm()).must_be_complete();
}

#[test]
fn broken_records() {
    if mutated() {
        return;
    }
    let unnoted = Rules { has_slot: false, ..KEPT };
    for rules in [
        Rules { takes: [Ordering::Relaxed, Ordering::Acquire], ..KEPT },
        Rules { takes: [Ordering::Acquire, Ordering::Relaxed], ..unnoted },
        Rules { spare_last: false, ..KEPT },
        Rules { asks_for_generation: false, for_others: true, ..unnoted },
        Rules { counts_first: false, ..unnoted },
    ] {
        let broken = handed_on(rules).check(&calm()).expect_err("a rule is broken");
        assert!(matches!(broken.kind, FailureKind::Panic(_)), "{broken}");
    }
    let broken = joined(false).check(&calm()).expect_err("the mark falls upon the next thread");
    assert!(matches!(broken.kind, FailureKind::Panic(_)), "{broken}");
}
