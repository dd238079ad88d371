//! How readers and writers of the lock between processes wait for each other, step by step, on a machine
//! with one thread.

use crate::common::segment::{Segment, get, life, name, rings, segment, set, words};
use crate::common::shared::{
    Call, Watch, answer, at, calls, deeds, heard, named, script_sleep, unslept,
};
use crate::common::{U32, pass, script_access, script_exchange32, time, unplayed};
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::robust::word::{INCONSISTENT, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{Got, Life, ReadHold, RobustError, RobustUse, RobustWait, Woken};
use lockstead_core::{Atomic32, Nanos, WaitBounds};

const PATIENCE: u64 = 5_000_000;

fn parts(segment: &'static Segment) -> (&'static U32, &'static U32) {
    let [word, reserved_for] = words::<_, 2>(&segment.rwlock);
    (word, reserved_for)
}

#[test]
fn a_writer_waits_for_one_reader_after_the_other() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, _) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    segment.claims(2, 1, what, 0);
    segment.claims(4, 0, what | AWAITED, 0);
    set(&segment.doorbell, 1 << 30);
    let sleeps = move |slot: u32, number: usize| {
        let (claim, record) = (segment.claim(slot, number), segment.record(slot));
        assert_eq!((get(word), named()), (name(1).bits() | UNTOUCHED, Some(at(&segment.doorbell))));
        assert_eq!(get(&claim.what), what | AWAITED);
        let life = Life(record.life.silently());
        let Some(Call::Sleep(slept, None)) = calls().pop() else { panic!() };
        let expected = [
            Watch::Word(at(&claim.what), what | AWAITED),
            Watch::Word(at(&segment.doorbell), get(&segment.doorbell)),
            Watch::Low(at(&record.life), life.life()),
            Watch::High(at(&record.life), life.high()),
        ];
        assert_eq!(slept, expected);
    };
    for (index, rung) in [(0, false), (1, false), (1, true), (2, true)] {
        script_sleep(move || {
            sleeps(2, 1);
            set(&segment.claim(2, 1).what, 0);
            Woken::At(0)
        });
        script_sleep(move || {
            assert_eq!(calls().len(), 1, "a reader that leaves is no death");
            Woken::Changed
        });
        script_sleep(move || {
            sleeps(4, 0);
            segment.dies(4);
            if rung {
                set(&segment.doorbell, get(&segment.doorbell).wrapping_add(1 << 30));
            }
            Woken::At(index)
        });
        assert_eq!(lock.write(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
        let everybody = index == 2 || index == 1 && !rung;
        assert_eq!(deeds(), Vec::from_iter(everybody.then(|| rings(segment))));
        assert_eq!((get(word), named(), unslept()), (name(1).bits(), None, 0));
        set(word, 0);
        segment.lives(4, life(4));
        segment.claims(2, 1, what, 0);
    }
}

#[test]
fn a_writer_that_gives_up_lets_others_in_again() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    segment.claims(2, 0, what, 0);
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let forever = WaitBounds::FOREVER;
    let late =
        |after: u64| WaitBounds { deadline: Some(time().after(after)), ..WaitBounds::FOREVER };
    let signals = WaitBounds { interruptible: true, ..forever };
    let cancel = WaitBounds { cancel: Some(token), ..forever };
    for (how, woken, expected) in [
        (late(5), Woken::TimedOut, RobustError::TimedOut),
        (late(0), Woken::Changed, RobustError::TimedOut),
        (signals, Woken::Interrupted, RobustError::Interrupted),
        (forever, Woken::Cancelled, RobustError::Cancelled),
        (cancel, Woken::Unsure, RobustError::Cancelled),
        (forever, Woken::Copied, RobustError::Copied),
    ] {
        set(word, 0);
        token.write(0);
        script_sleep(move || {
            token.write(1);
            set(word, get(word) | WAITERS);
            woken
        });
        assert_eq!(lock.write(&me, &how), Err(expected));
        let stays = woken == Woken::Copied;
        let left = if stays { name(1).bits() | UNTOUCHED | WAITERS } else { 0 };
        assert_eq!((get(word), named()), (left, None), "{expected:?}");
        let passes = (!stays).then(|| Call::Wake(at(reserved_for), 1));
        assert_eq!(deeds().split_off(1), Vec::from_iter(passes));
    }
    // What does not end its wait.
    token.write(0);
    for (how, woken) in
        [(late(5), Woken::Changed), (forever, Woken::Interrupted), (cancel, Woken::Unsure)]
    {
        set(word, 0);
        segment.claims(2, 0, what, 0);
        script_sleep(move || woken);
        script_sleep(move || {
            set(&segment.claim(2, 0).what, 0);
            Woken::At(0)
        });
        assert_eq!(lock.write(&me, &how), Ok(Got::Clean));
    }
    // A participant that reads by another way waits for itself: refused.
    segment.claims(2, 0, what, 0);
    answer(|answers| answers.callers = 1 << 2);
    set(word, 0);
    assert_eq!(lock.write(&me, &forever), Err(RobustError::Recursive));
    assert_eq!(get(word), 0);
    answer(|answers| answers.callers = 0);
    set(&segment.claim(2, 0).what, 0);
    // So is one whose own claim comes to stand there meanwhile, which a peer has written.
    let own = &segment.claim(1, 0).what;
    segment.claims(1, 0, 0, 0);
    script_access(own, || {});
    script_access(own, move || set(own, what));
    assert_eq!(lock.write(&me, &forever), Err(RobustError::Recursive));
    assert_eq!((get(word), unplayed(), unslept()), (0, 0, 0));
}

#[test]
fn a_writer_marks_the_claim_that_it_waits_for_and_sleeps_on_no_other() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, _) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    let claim = &segment.claim(2, 0).what;
    segment.claims(2, 0, what, 0);
    // It goes as the writer marks it: no sleep.
    script_exchange32(|| {});
    script_exchange32(move || set(claim, 0));
    assert_eq!(lock.write(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
    assert_eq!((get(claim), unplayed()), (0, 0));
    // Another writer before has marked it: it stays.
    set(word, 0);
    set(claim, what);
    script_exchange32(|| {});
    script_exchange32(move || set(claim, what | AWAITED));
    script_sleep(move || {
        assert_eq!(get(claim), what | AWAITED);
        set(claim, 0);
        Woken::Unsure
    });
    calls();
    assert_eq!(lock.write(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
    assert_eq!((unplayed(), unslept()), (0, 0));
    assert!(calls().contains(&Call::Missed), "it went, and nobody was woken");
    // It stands still: nothing was missed.
    set(word, 0);
    set(claim, what);
    script_sleep(|| Woken::Unsure);
    script_sleep(move || {
        set(claim, 0);
        Woken::At(0)
    });
    assert_eq!(lock.write(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
    assert!(!calls().contains(&Call::Missed));
}

#[test]
fn a_reader_that_is_late_gives_its_claim_back_and_waits() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    let claim = &segment.claim(1, 0).what;
    for flag in [name(2).bits(), RESERVED, INCONSISTENT] {
        set(reserved_for, name(2).bits());
        set(word, name(2).bits());
        // The owner goes, and somebody comes between the claim and the second look.
        script_access(word, || {});
        script_access(word, move || set(word, 0));
        script_access(word, move || {
            assert_eq!(get(claim), what);
            set(word, flag);
        });
        let got = lock.try_read(&me, Some(0));
        let expected = match flag {
            INCONSISTENT => Ok(ReadHold::OwnerDied),
            _ => Err(RobustError::TimedOut),
        };
        assert_eq!((got, get(claim), unplayed()), (expected, 0, 0), "{flag:x}");
    }
    // One that waits, and was woken, passes on.
    set(word, name(2).bits());
    set(reserved_for, 0);
    script_sleep(move || {
        set(word, WAITERS);
        deeds();
        Woken::At(0)
    });
    assert_eq!(lock.read(&me, Some(0), &WaitBounds::FOREVER), Ok(ReadHold::Claim(0)));
    assert_eq!((get(word), get(claim)), (WAITERS, what));
    assert_eq!(deeds(), [Call::Wake(at(reserved_for), 1)]);
    assert!(lock.unread(&me, ReadHold::Claim(0)));
}

/// A reader that the lock is reserved for reads, and lets the others in.
#[test]
fn an_heir_that_reads_passes_on() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, reserved_for) = parts(segment);
    let me = segment.party(1);
    for comes in [false, true] {
        set(word, name(2).bits());
        script_sleep(|| {
            pass(PATIENCE);
            Woken::Unsure
        });
        script_sleep(move || {
            assert_eq!(
                (get(word), get(reserved_for)),
                (name(2).bits() | WAITERS | RESERVED, name(1).bits())
            );
            set(word, WAITERS | RESERVED);
            deeds();
            if comes {
                // Before it takes its right off the word.
                script_exchange32(move || set(word, RESERVED));
            }
            Woken::Unsure
        });
        assert_eq!(lock.read(&me, Some(0), &WaitBounds::FOREVER), Ok(ReadHold::Claim(0)));
        assert_eq!((get(word), get(reserved_for)), (if comes { 0 } else { WAITERS }, 0));
        assert!(deeds().contains(&Call::Wake(at(reserved_for), 1)));
        assert!(lock.unread(&me, ReadHold::Claim(0)));
        assert_eq!((unslept(), unplayed()), (0, 0));
    }
    // A writer to be, too: with what a dead one has left, and readers still there.
    set(word, name(2).bits());
    let what = segment.offset(lock);
    script_sleep(move || {
        segment.dies(2);
        segment.claims(4, 0, what, 0);
        Woken::At(2)
    });
    script_sleep(move || {
        assert_eq!(get(word), name(1).bits() | UNTOUCHED | WAITERS | INCONSISTENT);
        set(&segment.claim(4, 0).what, 0);
        Woken::At(0)
    });
    assert_eq!(lock.read(&me, Some(0), &WaitBounds::FOREVER), Ok(ReadHold::OwnerDied));
    assert_eq!(get(word), name(1).bits() | WAITERS | INCONSISTENT);
}

#[test]
fn an_observer_hears_of_each_wait_once() {
    let segment = segment();
    let lock = &segment.rwlock;
    let (word, _) = parts(segment);
    let me = segment.party(1);
    let what = segment.offset(lock);
    crate::common::set(|machine| machine.observed = true);
    let ends: Nanos = time().after(70);
    let how = WaitBounds { deadline: Some(ends), ..WaitBounds::FOREVER };
    let told = |wants| {
        let wait = RobustWait { address: at(lock), wants, deadline: Some(ends) };
        [Call::Begin(wait), Call::End(wait, Some(RobustError::TimedOut))]
    };
    let timed_out = || script_sleep(|| Woken::TimedOut);
    // At the word.
    for (claim, writes) in [(Some(0), false), (None, false), (None, true)] {
        set(word, name(2).bits());
        timed_out();
        let wants = if writes { RobustUse::Write } else { RobustUse::Read };
        let got = match writes {
            true => lock.write(&me, &how).err(),
            false => lock.read(&me, claim, &how).err(),
        };
        assert_eq!((got, heard()), (Some(RobustError::TimedOut), told(wants).to_vec()));
    }
    // At a reader: from the fast path and not.
    segment.claims(2, 0, what, 0);
    for left in [0, WAITERS] {
        set(word, left);
        timed_out();
        assert_eq!(lock.write(&me, &how), Err(RobustError::TimedOut));
        assert_eq!(heard(), told(RobustUse::Write));
    }
    // A reader that is to repair, by what it has begun with: at the word, and at the reader.
    for claim in [Some(0), None] {
        set(word, INCONSISTENT);
        timed_out();
        assert_eq!(lock.read(&me, claim, &how), Err(RobustError::TimedOut));
        let waited = heard();
        assert_eq!(waited[2..], told(RobustUse::Read));
        assert!(matches!(waited[1], Call::End(_, None)));
    }
    // What is free is had without a wait.
    set(word, 0);
    set(&segment.claim(2, 0).what, 0);
    assert_eq!(lock.read(&me, None, &how), Ok(ReadHold::Alone));
    set(word, 0);
    assert_eq!(lock.write(&me, &how), Ok(Got::Clean));
    set(word, 0);
    assert_eq!(lock.read(&me, Some(0), &how), Ok(ReadHold::Claim(0)));
    assert_eq!(heard(), []);
}
