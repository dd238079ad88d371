//! What a thread waits for, as it publishes it and as others read it.

use crate::common::{Watched, before_access, part, stores, unplayed};
use lockstead_ledger::publish::{Episode, PublishedWait, WaitKind, Waiting};

type Published = PublishedWait<Watched>;

/// The words of a wait, in their order.
const EPISODE: usize = 0;
const WORDS: usize = 6;

fn published() -> &'static Published {
    Box::leak(Box::new(Published::NONE))
}

fn places(wait: &Published) -> [usize; WORDS] {
    std::array::from_fn(|index| part(wait, index))
}

fn waiting(number: u64) -> Waiting {
    Waiting {
        how: WaitKind::FUTEX.timed(),
        stack: 0x8000_0000 | number as u32,
        target: number << 40 | 1,
        since: number << 40 | 2,
        deadline: number << 40 | 3,
        companion: number << 40 | 4,
    }
}

fn fields(number: u64) -> [(usize, u64); 5] {
    let how = (0x8000_0000 | number) << 32 | 0x109;
    let [target, since, deadline, companion] = [1, 2, 3, 4].map(|it| number << 40 | it);
    [(1, how), (2, target), (3, since), (4, deadline), (5, companion)]
}

/// The order is what a reader relies on (LEDGER-EPISODE).
#[test]
fn a_wait_has_its_fields_before_its_episode_and_none_after_it() {
    let wait = published();
    let places = places(wait);
    assert!(!wait.is_waiting());
    assert_eq!(wait.read(), None);
    wait.end();
    assert_eq!(stores(&places), []);
    wait.begin(&waiting(1));
    let mut expected = fields(1).to_vec();
    expected.push((EPISODE, 1));
    assert_eq!(stores(&places), expected);
    assert!(wait.is_waiting());
    assert_eq!(wait.read(), Some((Episode(1), waiting(1))));
    wait.end();
    assert_eq!(stores(&places), [(EPISODE, 2)]);
    assert!(!wait.is_waiting());
    assert_eq!(wait.read(), None);
    wait.end();
    assert_eq!(stores(&places), []);
    // A wait that nobody has ended ends first.
    wait.begin(&waiting(2));
    stores(&places);
    wait.begin(&waiting(3));
    let mut expected = vec![(EPISODE, 4)];
    expected.extend(fields(3));
    expected.push((EPISODE, 5));
    assert_eq!(stores(&places), expected);
    assert_eq!(wait.read(), Some((Episode(5), waiting(3))));
}

#[test]
fn a_wait_is_confirmed_while_it_is_the_same() {
    let wait = published();
    wait.begin(&waiting(1));
    let (episode, _) = wait.read().expect("it waits");
    assert!(wait.is_still(episode));
    // Between the first look at the episode and the last it ends, or another one begins.
    for again in [false, true] {
        before_access(part(wait, EPISODE), || {});
        before_access(part(wait, EPISODE), move || {
            wait.end();
            if again {
                wait.begin(&waiting(2));
            }
        });
        assert_eq!((wait.read(), unplayed()), (None, 0));
        assert!(!wait.is_still(episode));
        wait.begin(&waiting(1));
        assert!(!wait.is_still(episode));
    }
    // Each field is read after the first look and before the last.
    for field in 1..WORDS {
        before_access(part(wait, field), move || {
            wait.end();
            wait.begin(&waiting(9));
        });
        assert_eq!((wait.read(), unplayed()), (None, 0), "{field}");
    }
}
