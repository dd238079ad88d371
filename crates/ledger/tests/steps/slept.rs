//! The words on which a thread has slept, and its sums of sleeps.

use crate::common::{Watched, part, stores};
use lockstead_ledger::futexes::{
    FUTEX_TIMES, FutexTime, SLEPT_WORDS, Slept, SleptWord, SleptWords,
};
use std::sync::atomic::Ordering::Relaxed;

/// The words of a place, in their order.
const WORD: usize = 0;
const STACK: usize = 1;
const AT: usize = 2;

fn slept(word: u64, at: u64) -> Slept {
    Slept { word, stack: 0x8000_0000 | word as u32, at }
}

/// The order is what a reader relies on: it finds nothing while a place changes.
#[test]
fn a_place_is_empty_while_it_changes() {
    assert_eq!((SLEPT_WORDS, FUTEX_TIMES), (8, 16));
    let places = [const { SleptWord::<Watched>::NONE }; 3];
    let words = SleptWords::new(&places);
    let all: Vec<usize> =
        places.iter().flat_map(|place| (0..3).map(move |word| part(place, word))).collect();
    let known = || words.read().map(|known| known.word).collect::<Vec<_>>();
    let noted = |place: usize, sleep: Slept| {
        words.note(&sleep);
        let at = 3 * place;
        let expected = [
            (at + WORD, 0),
            (at + STACK, u64::from(sleep.stack)),
            (at + AT, sleep.at),
            (at + WORD, sleep.word),
        ];
        assert_eq!(stores(&all), expected);
        assert!(words.read().any(|known| known == sleep));
    };
    noted(0, slept(10, 5));
    noted(1, slept(20, 4));
    noted(2, slept(30, 6));
    // A word that is known stays in its place, before one that is free.
    words.forget(20);
    assert_eq!((stores(&all), known()), (vec![(3 + WORD, 0)], vec![10, 30]));
    words.forget(99);
    assert_eq!(stores(&all), []);
    noted(2, slept(30, 7));
    noted(1, slept(40, 9));
    // The oldest goes.
    noted(0, slept(50, 8));
    noted(2, slept(60, 10));
    assert_eq!(known(), [50, 40, 60]);
    // One that is free goes before the oldest, however late it was used.
    words.forget(60);
    stores(&all);
    noted(2, slept(70, 11));
    words.clear();
    assert_eq!((stores(&all).len(), known()), (3, vec![]));
    SleptWords::<Watched>::new(&[]).note(&slept(1, 1));
}

fn sums(times: &[FutexTime]) -> Vec<[u64; 4]> {
    let sums = |time: &FutexTime| {
        let [lock, generation] =
            [&time.lock, &time.generation].map(|it| u64::from(it.load(Relaxed)));
        let [waited, idled] = [&time.waited, &time.idled].map(|it| it.load(Relaxed));
        [lock, generation, waited, idled]
    };
    times.iter().map(sums).collect()
}

#[test]
fn a_sleep_counts_for_one_life_of_one_lock() {
    let times = [const { FutexTime::default }; 2].map(|new| new());
    FutexTime::add(&times, (7, 1), 30, true);
    FutexTime::add(&times, (8, 1), 5, false);
    assert_eq!(sums(&times), [[7, 1, 30, 0], [8, 1, 0, 5]]);
    FutexTime::add(&times, (7, 1), 1, false);
    FutexTime::add(&times, (8, 1), 40, true);
    assert_eq!(sums(&times), [[7, 1, 30, 1], [8, 1, 40, 5]]);
    // The shortest goes: what counts is the sum of both.
    FutexTime::add(&times, (7, 2), 44, false);
    assert_eq!(sums(&times), [[7, 2, 0, 44], [8, 1, 40, 5]]);
    FutexTime::add(&times, (9, 2), 60, false);
    assert_eq!(sums(&times), [[9, 2, 0, 60], [8, 1, 40, 5]]);
    times[0].clear();
    assert_eq!(sums(&times), [[0, 2, 0, 0], [8, 1, 40, 5]]);
    FutexTime::add(&[], (1, 1), 1, true);
}
