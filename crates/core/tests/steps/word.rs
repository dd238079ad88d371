//! The state word against a model with one field per field: every value of
//! every field beside every value of the others, and every state that the
//! protocol of `sleep/` and `spin/queue.rs` reaches.

use lockstead_core::word::{Counting, Exclusive, Subject, Word};
use lockstead_core::{MAX_SLOTS, Slot};
use std::collections::BTreeSet;

const ME: u32 = 0x5a5a5;
const OTHER: u32 = 0xa5a5a;
const VALUES: [u32; 4] = [0, ME, OTHER, MAX_SLOTS];

/// What the word says, field by field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Fields {
    subject: u32,
    waiters: bool,
    preparing: bool,
    handoff_asleep: bool,
    covered: bool,
    handoff: bool,
    contexts: bool,
    reserved: bool,
    slow_unlocks: u32,
    unreleased: bool,
    tail: u32,
}

const NOBODY: Fields = Fields {
    subject: 0,
    waiters: false,
    preparing: false,
    handoff_asleep: false,
    covered: false,
    handoff: false,
    contexts: false,
    reserved: false,
    slow_unlocks: 0,
    unreleased: false,
    tail: 0,
};

impl Fields {
    /// Returns the word, made with arithmetic where the word uses masks.
    fn word(self) -> Word {
        let bit = |set: bool, position: u32| u128::from(set) * 2u128.pow(position);
        let value = u128::from(self.subject)
            + bit(self.waiters, 20)
            + bit(self.preparing, 21)
            + bit(self.handoff_asleep, 22)
            + bit(self.covered, 32)
            + bit(self.handoff, 33)
            + bit(self.contexts, 34)
            + bit(self.reserved, 23)
            + u128::from(self.slow_unlocks) * 2u128.pow(24)
            + bit(self.unreleased, 31)
            + u128::from(self.tail) * 2u128.pow(44);
        Word(u64::try_from(value).expect("the fields fill 64 bits"))
    }

    fn all() -> Vec<Fields> {
        let mut all = Vec::new();
        for subject in VALUES {
            for tail in VALUES {
                for flags in 0..3 * 256 {
                    let flag = |bit: u32| flags >> bit & 1 == 1;
                    let slow_unlocks = [0, 1, 127][flags as usize / 256];
                    all.push(Fields {
                        subject,
                        waiters: flag(0),
                        preparing: flag(1),
                        handoff_asleep: flag(2),
                        covered: flag(3),
                        handoff: flag(4),
                        contexts: flag(5),
                        reserved: flag(6),
                        slow_unlocks,
                        unreleased: flag(7),
                        tail,
                    });
                }
            }
        }
        all
    }

    /// Returns the state in which a running thread covers the sleepers.
    fn cover(self) -> Self {
        if self.waiters {
            Fields { waiters: false, covered: true, preparing: true, ..self }
        } else {
            self
        }
    }

    /// Returns the state with slow unlocks to come, if a release must see something.
    fn with_slow_unlocks(self, slow_unlocks: u32) -> Self {
        let flagged = self.waiters || self.handoff_asleep || self.reserved;
        Fields { slow_unlocks: if flagged { slow_unlocks } else { self.slow_unlocks }, ..self }
    }

    /// Returns the state with one slow unlock less, if nobody is near.
    fn one_slow_unlock_less(self) -> Self {
        let near = self.waiters || self.covered || self.handoff || self.contexts || self.tail != 0;
        Fields {
            slow_unlocks: if near {
                self.slow_unlocks
            } else {
                self.slow_unlocks.saturating_sub(1)
            },
            ..self
        }
    }

    /// Returns the state without *reserved*, unless there is a reason for it.
    fn unless_still_reserved(self) -> Self {
        Fields { reserved: self.reserved && (self.handoff || self.contexts), ..self }
    }

    /// Returns the state in which the next release answers for sleepers.
    fn uncover(self) -> Self {
        if self.covered {
            Fields { waiters: true, covered: false, preparing: false, ..self }
        } else {
            self
        }
    }
}

fn slot(number: u32) -> Slot {
    Slot::new(number).expect("a slot number")
}

#[test]
fn word_all_zeros_is_a_free_mutex_with_nobody_near() {
    assert_eq!(Word::IDLE.0, 0);
    assert_eq!(NOBODY.word(), Word::IDLE);
    assert!(Exclusive::free(Word::IDLE));
}

#[test]
fn a_slot_has_a_number_that_the_word_has_room_for() {
    assert_eq!(MAX_SLOTS, (1 << 20) - 1);
    for (number, is) in [(0, false), (1, true), (MAX_SLOTS, true), (MAX_SLOTS + 1, false)] {
        assert_eq!(Slot::new(number).map(Slot::get), is.then_some(number));
    }
}

#[test]
fn word_every_predicate_reads_its_field_and_no_other() {
    let all = Fields::all();
    assert_eq!(all.len(), 4 * 4 * 3 * 256);
    for fields in all {
        let word = fields.word();
        assert_eq!(word.subject(), fields.subject, "{fields:?}");
        assert_eq!(word.owner(), Slot::new(fields.subject), "{fields:?}");
        assert_eq!(word.waiters(), fields.waiters, "{fields:?}");
        assert_eq!(word.preparing(), fields.preparing, "{fields:?}");
        assert_eq!(word.handoff_asleep(), fields.handoff_asleep, "{fields:?}");
        assert_eq!(word.covered(), fields.covered, "{fields:?}");
        assert_eq!(word.handoff(), fields.handoff, "{fields:?}");
        assert_eq!(word.contexts(), fields.contexts, "{fields:?}");
        assert_eq!(word.reserved(), fields.reserved, "{fields:?}");
        assert_eq!(word.unlocks_slowly(), fields.slow_unlocks != 0, "{fields:?}");
        assert_eq!(word.unreleased(), fields.unreleased, "{fields:?}");
        assert_eq!(word.tail(), Slot::new(fields.tail), "{fields:?}");
        assert_eq!(u64::from(word.low()), word.0 % (1 << 32), "{fields:?}");
        let taken = fields.subject != 0;
        assert_eq!(Exclusive::available(word), !taken, "{fields:?}");
        assert_eq!(Exclusive::free(word), !taken && !fields.handoff, "{fields:?}");
        assert_eq!(Exclusive::holder(word), Slot::new(fields.subject), "{fields:?}");
        assert_eq!(Counting::available(word), taken, "{fields:?}");
        assert_eq!(Counting::free(word), taken && !fields.handoff, "{fields:?}");
        assert_eq!(Counting::holder(word), None, "{fields:?}");
        assert_eq!(Counting::full(word), fields.subject == MAX_SLOTS, "{fields:?}");
    }
}

#[test]
fn word_every_change_writes_its_fields_and_no_other() {
    for fields in Fields::all() {
        let word = fields.word();
        let check = |changed: Word, expected: Fields| {
            assert_eq!(changed, expected.word(), "{fields:?} -> {expected:?}");
        };
        for value in VALUES {
            check(word.with_subject(value), Fields { subject: value, ..fields });
        }
        for me in [ME, OTHER, MAX_SLOTS] {
            let queued = Fields { tail: me, ..fields };
            check(word.joined(slot(me)), if fields.tail == 0 { queued.cover() } else { queued });
        }
        let closed = Fields { tail: 0, ..fields };
        check(word.closed(), if fields.handoff { closed } else { closed.uncover() });
        check(word.with_handoff(), Fields { handoff: true, reserved: true, ..fields }.cover());
        check(
            word.handoff_taken(),
            Fields { handoff: false, ..fields }.unless_still_reserved().uncover(),
        );
        let withdrawn =
            Fields { handoff: false, handoff_asleep: false, ..fields }.unless_still_reserved();
        check(word.with_contexts(), Fields { contexts: true, reserved: true, ..fields });
        check(word.with_slow_unlocks(77), fields.with_slow_unlocks(77));
        check(word.with_slow_unlocks(128 + 77), fields.with_slow_unlocks(77));
        check(word.one_slow_unlock_less(), fields.one_slow_unlock_less());
        check(word.without_slow_unlocks(), Fields { slow_unlocks: 0, ..fields });
        check(
            word.without_contexts(),
            Fields { contexts: false, ..fields }.unless_still_reserved(),
        );
        check(
            word.handoff_withdrawn(),
            if fields.tail == 0 { withdrawn.uncover() } else { withdrawn },
        );
        check(word.with_handoff_asleep(), Fields { handoff_asleep: true, ..fields });
        check(word.with_unreleased(), Fields { unreleased: true, ..fields });
        for trusted in [false, true] {
            let covered = fields.handoff || trusted && fields.tail != 0;
            let announced = if covered {
                Fields { covered: true, preparing: true, ..fields }
            } else {
                Fields { waiters: true, ..fields }
            };
            check(word.announced(trusted), announced);
        }
        let erased = Fields {
            subject: 0,
            waiters: false,
            preparing: false,
            handoff_asleep: false,
            ..fields
        };
        check(word.erased(), Fields { unreleased: false, ..erased });
        if fields.subject != MAX_SLOTS {
            check(word.counted(), Fields { subject: fields.subject + 1, ..erased });
        }
        if fields.subject == 0 {
            check(
                Exclusive::take(word, slot(ME)),
                Fields { subject: ME, ..fields.one_slow_unlock_less() },
            );
        } else {
            let fewer = Fields { subject: fields.subject - 1, ..fields };
            check(Counting::take(word, slot(ME)), fewer);
        }
    }
}

#[test]
fn word_shows_what_is_in_it_for_people() {
    let all = Fields {
        waiters: true,
        preparing: true,
        handoff_asleep: true,
        covered: true,
        handoff: true,
        reserved: true,
        slow_unlocks: 9,
        unreleased: true,
        ..NOBODY
    };
    let word = Fields { subject: 7, tail: 9, ..all }.word();
    assert_eq!(
        format!("{word:?}"),
        "{7 waiters preparing hand-off-asleep reserved slow-unlocks unreleased covered hand-off tail=9}"
    );
    assert_eq!(format!("{:?}", Word::IDLE), "{0}");
}

/// Returns all words that three participants reach from `start` by the steps that the protocol
/// allows in each.
fn reachable<K: Subject>(start: Word, release: impl Fn(Word) -> Option<Word>) -> BTreeSet<u64> {
    let mut found = BTreeSet::from([start.0]);
    let mut open = vec![start];
    while let Some(word) = open.pop() {
        let mut next = steps::<K>(word);
        next.extend(release(word));
        for word in next.into_iter().map(|word| K::written(word, 2)) {
            if found.insert(word.0) {
                open.push(word);
            }
        }
    }
    found
}

fn steps<K: Subject>(word: Word) -> Vec<Word> {
    let mut next = vec![];
    // A waiter that consumed a wake-up owes an announcement, in the same step.
    let either = |word: Word| [word, word.announced(false), word.announced(true)];
    for me in [1, 2, 3].map(slot) {
        let last = word.tail() == Some(me);
        if K::free(word) {
            next.extend(either(K::take(word, me)));
            if last {
                next.push(K::take(word.closed(), me));
            }
        } else {
            next.push(word.joined(me));
            if K::OWNED && word.owner().is_some() {
                next.push(word.with_unreleased());
            }
            next.push(word.announced(false));
            next.push(word.announced(true));
            if last {
                next.push(word.closed());
            }
        }
        if K::available(word) {
            if word.handoff() {
                // The hand-off waiter, or a waiter past the bound in its place.
                next.extend(either(K::take(word.handoff_taken(), me)));
            }
        } else {
            next.extend(either(word).map(Word::with_handoff));
            if word.handoff() {
                next.push(word.with_handoff_asleep());
                next.extend(either(word.handoff_withdrawn()));
            }
        }
    }
    next
}

#[test]
fn word_no_step_of_the_mutex_leaves_the_invariants() {
    let found = reachable::<Exclusive>(Word::IDLE, |word| {
        (!Exclusive::available(word)).then(|| word.erased())
    });
    assert!(found.len() > 50, "only {} words reached", found.len());
    for word in found.into_iter().map(Word) {
        check(word);
        assert!(!word.waiters() || word.owner().is_some(), "WORD-HELD: {word:?}");
        assert!(!word.unreleased() || word.owner().is_some(), "{word:?}");
    }
}

#[test]
fn word_no_step_of_the_semaphore_leaves_the_invariants() {
    // Three permits at most: a million would take a while.
    let found = reachable::<Counting>(Word(2), |word| (word.subject() < 3).then(|| word.counted()));
    assert!(found.len() > 50, "only {} words reached", found.len());
    for word in found.into_iter().map(Word) {
        check(word);
        assert!(word.subject() <= 3, "{word:?}");
    }
}

fn check(word: Word) {
    assert!(!word.covered() || word.handoff() || word.tail().is_some(), "WORD-SLEEPERS: {word:?}");
    assert!(!word.preparing() || word.covered(), "SLEEP-PREPARING: {word:?}");
    assert_eq!(word.reserved(), word.handoff(), "WORD-RESERVED: {word:?}");
    assert_eq!(word.0 >> 34 & 0x3ff, 0, "a change outside the fields: {word:?}");
    assert!(word.tail().is_none_or(|tail| tail.get() <= 3), "{word:?}");
}
