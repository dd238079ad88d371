//! The word against a model with one field per field, and the invariants
//! RWLOCK-PROMISE and RWLOCK-READERS in every state that the protocol reaches.

use super::*;

const ME: u32 = 0x5a5a5;
const OTHER: u32 = 0xa5a5a;
const SLOTS: [u32; 3] = [ME, OTHER, MAX_SLOTS];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    Nobody,
    Writer(u32),
    Readers(u32),
}

/// What the word says, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fields {
    holder: Holder,
    asleep: bool,
    next: Option<(u32, RwLockMode)>,
    promised: bool,
}

impl Fields {
    fn state(self) -> RwLockState {
        let holder = match self.holder {
            Holder::Nobody => 0,
            Holder::Writer(slot) => u64::from(slot),
            Holder::Readers(count) => 0x10_0000 + u64::from(count),
        };
        let next = self.next.map_or(0, |(slot, mode)| {
            u64::from(slot) * 0x1_0000_0000 + if mode == RwLockMode::Read { 0x80_0000 } else { 0 }
        });
        let asleep = if self.asleep { 0x20_0000 } else { 0 };
        let promised = if self.promised { 0x40_0000 } else { 0 };
        RwLockState(holder + next + asleep + promised)
    }

    fn allows(self, mode: RwLockMode) -> bool {
        match (self.holder, mode) {
            (Holder::Nobody, _) => true,
            (Holder::Readers(count), RwLockMode::Read) => count < MAX_SLOTS,
            _ => false,
        }
    }

    fn admits(self, mode: RwLockMode) -> bool {
        self.allows(mode) && !self.promised
    }

    fn take(self, mode: RwLockMode, slot: u32) -> Self {
        let holder = match (self.holder, mode) {
            (Holder::Nobody, RwLockMode::Write) => Holder::Writer(slot),
            (Holder::Nobody, RwLockMode::Read) => Holder::Readers(1),
            (Holder::Readers(count), RwLockMode::Read) => Holder::Readers(count + 1),
            _ => unreachable!("no room"),
        };
        Fields { holder, ..self }
    }

    fn left(self) -> Self {
        let holder = match self.holder {
            Holder::Readers(count) if count > 1 => Holder::Readers(count - 1),
            _ => Holder::Nobody,
        };
        Fields { holder, ..self }
    }

    fn settled(self) -> (Self, RwLockCalls) {
        let mut after = self;
        let mut calls = RwLockCalls::default();
        if let Some((slot, mode)) = self.next
            && self.allows(mode)
        {
            after = Fields { next: None, promised: false, ..after };
            if self.promised {
                after = after.take(mode, slot);
            }
            calls.next = Slot::new(slot);
        }
        if after.asleep && after.admits(RwLockMode::Read) {
            after.asleep = false;
            calls.readers = true;
        }
        (after, calls)
    }

    fn for_all(mut check: impl FnMut(Fields)) {
        let holders = [
            Holder::Nobody,
            Holder::Writer(ME),
            Holder::Writer(OTHER),
            Holder::Writer(MAX_SLOTS),
            Holder::Readers(1),
            Holder::Readers(2),
            Holder::Readers(MAX_SLOTS - 1),
            Holder::Readers(MAX_SLOTS),
        ];
        for holder in holders {
            for asleep in [false, true] {
                check(Fields { holder, asleep, next: None, promised: false });
                for slot in SLOTS {
                    for mode in [RwLockMode::Read, RwLockMode::Write] {
                        for promised in [false, true] {
                            check(Fields { holder, asleep, next: Some((slot, mode)), promised });
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn word_rwlock_predicates_agree_with_the_model() {
    Fields::for_all(|fields| {
        let state = fields.state();
        let (writer, readers) = match fields.holder {
            Holder::Nobody => (None, 0),
            Holder::Writer(slot) => (Slot::new(slot), 0),
            Holder::Readers(count) => (None, count),
        };
        assert_eq!(state.writer(), writer, "{fields:?}");
        assert_eq!(state.readers(), readers, "{fields:?}");
        assert_eq!(state.free(), fields.holder == Holder::Nobody, "{fields:?}");
        assert_eq!(state.next().map(Slot::get), fields.next.map(|(slot, _)| slot), "{fields:?}");
        assert_eq!(state.promised(), fields.promised, "{fields:?}");
        for mode in [RwLockMode::Read, RwLockMode::Write] {
            assert_eq!(state.admits(mode), fields.admits(mode), "{fields:?} {mode:?}");
        }
    });
}

#[test]
fn word_rwlock_changes_agree_with_the_model() {
    Fields::for_all(|fields| {
        let state = fields.state();
        for mode in [RwLockMode::Read, RwLockMode::Write] {
            for slot in SLOTS {
                let me = Slot::new(slot).expect("a slot number");
                if fields.allows(mode) {
                    let taken = fields.take(mode, slot).state();
                    assert_eq!(state.take(mode, me), taken, "{fields:?} {mode:?}");
                }
                let named = Fields { next: Some((slot, mode)), promised: false, ..fields };
                assert_eq!(state.with_next(me, mode), named.state(), "{fields:?} {mode:?}");
            }
        }
        if fields.next.is_some() {
            let promised = Fields { promised: true, ..fields };
            assert_eq!(state.with_promise(), promised.state(), "{fields:?}");
        }
        let nameless = Fields { next: None, promised: false, ..fields };
        assert_eq!(state.without_next(), nameless.state(), "{fields:?}");
        assert_eq!(
            state.with_readers_asleep(),
            Fields { asleep: true, ..fields }.state(),
            "{fields:?}"
        );
        if fields.holder != Holder::Nobody {
            assert_eq!(state.left(), fields.left().state(), "{fields:?}");
        }
        if let Holder::Writer(_) = fields.holder {
            let reads = Fields { holder: Holder::Readers(1), ..fields };
            assert_eq!(state.downgraded(), reads.state(), "{fields:?}");
        }
        let (after, calls) = fields.settled();
        assert_eq!(state.settled(), (after.state(), calls), "{fields:?}");
    });
}

#[test]
fn word_rwlock_a_reader_leaves_quietly_only_where_nobody_needs_a_call() {
    Fields::for_all(|fields| {
        let Some(after) = fields.state().quietly_left() else { return };
        assert!(matches!(fields.holder, Holder::Readers(_)), "{fields:?}");
        assert_eq!(after, fields.left().state(), "{fields:?}");
        if !late(fields) {
            assert_eq!(after.settled(), (after, RwLockCalls::default()), "{fields:?}");
        }
    });
}

/// Tells whether a thread has room and has not been called, or waits to read behind as many readers
/// as there can be, where it would have been refused: the protocol never leads there.
fn late(fields: Fields) -> bool {
    let reads_next = fields.next.is_some_and(|(_, mode)| mode == RwLockMode::Read);
    let is_full = fields.holder == Holder::Readers(MAX_SLOTS);
    fields.asleep && fields.admits(RwLockMode::Read)
        || fields.next.is_some_and(|(_, mode)| fields.allows(mode))
        || is_full && (reads_next || fields.asleep && !fields.promised)
}

/// A set of words, without the standard library.
struct Reached {
    words: [u64; 4096],
    count: usize,
}

impl Reached {
    fn insert(&mut self, state: RwLockState) {
        if !self.words[..self.count].contains(&state.0) {
            self.words[self.count] = state.0;
            self.count += 1;
        }
    }
}

/// Adds every step that the protocol allows three threads in `seen`.
fn steps(seen: RwLockState, reached: &mut Reached) {
    for number in 1..=3 {
        let me = Slot::new(number).expect("a slot number");
        for mode in [RwLockMode::Read, RwLockMode::Write] {
            if seen.admits(mode) && seen.readers() < 3 {
                // A newcomer; the thread that was *next*.
                reached.insert(seen.take(mode, me));
                reached.insert(seen.without_next().take(mode, me));
            } else if !seen.promised()
                && !seen.allows(mode)
                && seen.next().is_none_or(|next| next == me)
            {
                reached.insert(seen.with_next(me, mode));
                reached.insert(seen.with_next(me, mode).with_promise());
            }
        }
        if seen.next() == Some(me) {
            reached.insert(seen.without_next().settled().0);
        }
    }
    if !seen.admits(RwLockMode::Read) {
        reached.insert(seen.with_readers_asleep());
    }
    if !seen.free() {
        reached.insert(seen.left().settled().0);
    }
    if seen.readers() > 0
        && let Some(after) = seen.quietly_left()
    {
        assert_eq!(after.settled(), (after, RwLockCalls::default()), "{seen:?}");
    }
    if seen.writer().is_some() {
        reached.insert(seen.downgraded().settled().0);
    }
}

#[test]
fn word_rwlock_no_step_leaves_the_invariants() {
    let mut reached = Reached { words: [0; 4096], count: 1 };
    let mut done = 0;
    while done < reached.count {
        let seen = RwLockState(reached.words[done]);
        done += 1;
        // RWLOCK-PROMISE, RWLOCK-READERS.
        if seen.promised() {
            assert!(seen.next().is_some_and(|_| !seen.allows(seen.next_mode())), "{seen:?}");
        }
        assert!(!(seen.has(ASLEEP) && seen.admits(RwLockMode::Read)), "{seen:?}");
        steps(seen, &mut reached);
    }
    assert!(done > 50, "only {done} words reached");
}
