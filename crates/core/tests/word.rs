//! The state word against a model with one field per field: every value of
//! every field beside every value of the others, and every state that the
//! protocol of `slow.rs` reaches.

use lockstead_core::word::{Counting, Exclusive, Kind, Word};
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
    handed: bool,
    heir: u32,
    tail: u32,
}

impl Fields {
    /// Written with arithmetic, where the word uses masks.
    fn word(self) -> Word {
        let bit = |set: bool, position: u32| u128::from(set) * 2u128.pow(position);
        let value = u128::from(self.subject)
            + bit(self.waiters, 20)
            + bit(self.handed, 21)
            + u128::from(self.heir) * 2u128.pow(24)
            + u128::from(self.tail) * 2u128.pow(44);
        Word(u64::try_from(value).expect("the fields fill 64 bits"))
    }

    fn all() -> Vec<Fields> {
        let mut all = Vec::new();
        for subject in VALUES {
            for heir in VALUES {
                for tail in VALUES {
                    for (waiters, handed) in
                        [(false, false), (false, true), (true, false), (true, true)]
                    {
                        all.push(Fields { subject, waiters, handed, heir, tail });
                    }
                }
            }
        }
        all
    }
}

fn slot(number: u32) -> Slot {
    Slot::new(number).expect("a slot number")
}

#[test]
fn word_all_zeros_is_a_free_mutex_with_nobody_near() {
    assert_eq!(Word::IDLE.0, 0);
    let nobody = Fields { subject: 0, waiters: false, handed: false, heir: 0, tail: 0 };
    assert_eq!(nobody.word(), Word::IDLE);
    assert!(Exclusive::free(Word::IDLE));
}

#[test]
fn word_every_predicate_reads_its_field_and_no_other() {
    let all = Fields::all();
    assert_eq!(all.len(), 4 * 4 * 4 * 4);
    for fields in all {
        let word = fields.word();
        assert_eq!(word.subject(), fields.subject, "{fields:?}");
        assert_eq!(word.owner(), Slot::new(fields.subject), "{fields:?}");
        assert_eq!(word.waiters(), fields.waiters, "{fields:?}");
        assert_eq!(word.handed(), fields.handed, "{fields:?}");
        assert_eq!(word.heir(), Slot::new(fields.heir), "{fields:?}");
        assert_eq!(word.tail(), Slot::new(fields.tail), "{fields:?}");
        assert_eq!(u64::from(word.low()), word.0 % (1 << 32), "{fields:?}");
        assert_eq!(Exclusive::free(word), fields.subject == 0, "{fields:?}");
        assert_eq!(Exclusive::holder(word), Slot::new(fields.subject), "{fields:?}");
        assert!(!Exclusive::full(word), "{fields:?}");
        assert_eq!(Counting::free(word), fields.subject != 0, "{fields:?}");
        assert_eq!(Counting::holder(word), None, "{fields:?}");
        assert_eq!(Counting::full(word), fields.subject == MAX_SLOTS, "{fields:?}");
        for me in [ME, OTHER, MAX_SLOTS] {
            assert_eq!(Exclusive::granted(word, slot(me)), fields.subject == me, "{fields:?}");
            assert_eq!(Counting::granted(word, slot(me)), fields.heir != me, "{fields:?}");
        }
    }
}

#[test]
fn word_every_change_writes_its_field_and_no_other() {
    for fields in Fields::all() {
        let word = fields.word();
        let check = |changed: Word, expected: Fields| {
            assert_eq!(changed, expected.word(), "{fields:?} -> {expected:?}");
        };
        check(word.with_waiters(), Fields { waiters: true, ..fields });
        check(word.without_waiters(), Fields { waiters: false, ..fields });
        check(word.with_handed(), Fields { handed: true, ..fields });
        check(word.without_handed(), Fields { handed: false, ..fields });
        check(word.without_heir(), Fields { heir: 0, ..fields });
        check(word.without_tail(), Fields { tail: 0, ..fields });
        for value in VALUES {
            check(word.with_subject(value), Fields { subject: value, ..fields });
        }
        for me in [ME, OTHER, MAX_SLOTS] {
            check(word.with_heir(slot(me)), Fields { heir: me, ..fields });
            check(word.with_tail(slot(me)), Fields { tail: me, ..fields });
        }
    }
}

#[test]
fn word_the_rules_of_both_kinds_change_their_fields_and_no_other() {
    for fields in Fields::all() {
        let word = fields.word();
        let mine = slot(ME);
        if fields.subject == 0 {
            let taken = Fields { subject: ME, ..fields };
            assert_eq!(Exclusive::take(word, mine), taken.word(), "{fields:?}");
        } else {
            let freed = Fields { subject: 0, ..fields };
            assert_eq!(Exclusive::release(word), freed.word(), "{fields:?}");
            let fewer = Fields { subject: fields.subject - 1, ..fields };
            assert_eq!(Counting::take(word, mine), fewer.word(), "{fields:?}");
        }
        if fields.subject != MAX_SLOTS {
            let more = Fields { subject: fields.subject + 1, ..fields };
            assert_eq!(Counting::release(word), more.word(), "{fields:?}");
        }
        if let Some(heir) = Slot::new(fields.heir) {
            let inherited = Fields { subject: fields.heir, heir: 0, ..fields };
            assert_eq!(Exclusive::hand_over(word, heir), inherited.word(), "{fields:?}");
            let passed_on = Fields { heir: 0, ..fields };
            assert_eq!(Counting::hand_over(word, heir), passed_on.word(), "{fields:?}");
        }
    }
}

#[test]
fn word_shows_what_is_in_it_for_people() {
    let word = Fields { subject: 7, waiters: true, handed: true, heir: 8, tail: 9 }.word();
    assert_eq!(format!("{word:?}"), "{7 waiters handed heir=8 tail=9}");
    assert_eq!(format!("{:?}", Word::IDLE), "{0}");
}

/// All words that three participants reach from `start` by the steps that the
/// protocol allows in each.
fn reachable<K: Kind>(start: Word) -> BTreeSet<u64> {
    let mut found = BTreeSet::from([start.0]);
    let mut open = vec![start];
    while let Some(word) = open.pop() {
        for next in steps::<K>(word) {
            if found.insert(next.0) {
                open.push(next);
            }
        }
    }
    found
}

/// Whether the subject names an owner.
fn names_an_owner<K: Kind>() -> bool {
    K::holder(Word::held(1)).is_some()
}

fn steps<K: Kind>(word: Word) -> Vec<Word> {
    let mut next = vec![];
    for me in [1, 2, 3].map(slot) {
        if K::free(word) {
            next.push(K::take(word, me));
            // One that consumed a wake-up; one that leaves the queue by taking.
            next.push(K::take(word.with_waiters(), me));
            next.push(K::take(word.without_tail(), me));
        } else {
            next.push(word.with_waiters());
            next.push(word.with_tail(me));
            next.push(word.without_tail().with_waiters());
            if word.heir().is_none() {
                next.push(word.with_heir(me));
            }
        }
        if word.heir() == Some(me) {
            next.push(word.without_heir());
        }
    }
    // `plan` of slow.rs, with the spinners alive or not. A mutex is released only
    // while it is held, a semaphore while it is not full.
    if let Some(heir) = word.heir() {
        next.push(K::hand_over(word, heir).with_handed());
    } else if !K::full(word) && (K::holder(word).is_some() || !names_an_owner::<K>()) {
        let after = K::release(word).without_handed();
        next.push(after);
        next.push(after.without_waiters());
    }
    next
}

fn check_reachable<K: Kind>(start: Word) {
    let found = reachable::<K>(start);
    assert!(found.len() > 50, "only {} words reached", found.len());
    for word in found.into_iter().map(Word) {
        // W2.
        assert!(word.heir().is_none() || !K::free(word), "an heir of a free lock: {word:?}");
        assert_eq!(word.0 >> 22 & 3, 0, "a change outside the fields: {word:?}");
        assert!(word.tail().is_none_or(|tail| tail.get() <= 3), "{word:?}");
    }
}

#[test]
fn word_no_step_of_the_mutex_leaves_the_invariants() {
    check_reachable::<Exclusive>(Word::IDLE);
}

#[test]
fn word_no_step_of_the_semaphore_leaves_the_invariants() {
    check_reachable::<Few>(Word(2));
}

/// [`Counting`], but full at three permits: a million would take a while.
struct Few;

impl Kind for Few {
    fn free(word: Word) -> bool {
        Counting::free(word)
    }
    fn take(word: Word, me: Slot) -> Word {
        Counting::take(word, me)
    }
    fn full(word: Word) -> bool {
        word.subject() == 3
    }
    fn release(word: Word) -> Word {
        Counting::release(word)
    }
    fn hand_over(word: Word, heir: Slot) -> Word {
        Counting::hand_over(word, heir)
    }
    fn granted(word: Word, me: Slot) -> bool {
        Counting::granted(word, me)
    }
    fn holder(word: Word) -> Option<Slot> {
        Counting::holder(word)
    }
}
