//! The bits of a wait and of a held entry.

use lockstead_ledger::publish::{Flags, RAREST, WaitKind};

#[test]
fn a_wait_is_a_kind_with_what_is_special_about_it() {
    let kinds = [
        WaitKind::MUTEX,
        WaitKind::WRITE,
        WaitKind::READ,
        WaitKind::SPIN,
        WaitKind::JOIN,
        WaitKind::CONDITION,
        WaitKind::SEMAPHORE,
        WaitKind::BARRIER,
        WaitKind::FUTEX,
    ];
    assert_eq!(kinds.map(|kind| kind.0), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for kind in kinds.into_iter().chain([WaitKind(0xff)]) {
        let is = |wait: WaitKind| [wait.is_timed(), wait.is_realtime(), wait.is_upgradable()];
        let ways = [
            (kind, 0, [false, false, false]),
            (kind.timed(), 1 << 8, [true, false, false]),
            (kind.timed_realtime(), 1 << 8 | 1 << 9, [true, true, false]),
            (kind.upgradable(), 1 << 10, [false, false, true]),
            (kind.timed().upgradable(), 1 << 8 | 1 << 10, [true, false, true]),
            (kind.upgradable().timed_realtime(), 7 << 8, [true, true, true]),
        ];
        for (wait, bits, expected) in ways {
            assert_eq!((wait.0, wait.kind(), is(wait)), (kind.0 | bits, kind, expected));
            // What is set already stays.
            let again = [wait.timed(), wait.timed_realtime(), wait.upgradable()];
            assert_eq!(again.map(|wait| wait.kind()), [kind; 3]);
            assert_eq!(again.map(|wait| wait.is_timed()), [true, true, expected[0]]);
            assert_eq!(again.map(|wait| wait.is_realtime()), [expected[1], true, expected[1]]);
            assert_eq!(again.map(|wait| wait.is_upgradable()), [expected[2], expected[2], true]);
        }
    }
    assert_eq!(WaitKind(!0 << 11 | 7).kind(), WaitKind::SEMAPHORE);
}

#[test]
fn flags_are_bits_of_their_own_and_a_rarity() {
    let all = [
        Flags::READ,
        Flags::TIMED,
        Flags::LENT,
        Flags::TRIED,
        Flags::CONTENDED,
        Flags::INHERITED,
        Flags::BY_WORD,
        Flags::RECURSIVE,
    ];
    assert_eq!(all.map(|flag| flag.0), [1, 2, 4, 8, 16, 32, 1 << 10, 1 << 11]);
    assert_eq!((Flags::NONE.0, RAREST), (0, 8));
    for rarity in 0..=10 {
        let timed = Flags::timed(rarity);
        let kept = rarity.min(8);
        assert_eq!((timed.0, timed.weight()), (2 | kept << 6, 1 << kept));
        assert_eq!(timed.untimed(), Flags::NONE);
        for flag in all {
            let both = timed.and(flag);
            assert_eq!(both.0, timed.0 | flag.0);
            assert_eq!((both.weight(), both.has(flag), both.has(timed)), (1 << kept, true, true));
            let left = if flag == Flags::TIMED { Flags::NONE } else { flag };
            assert_eq!(both.untimed(), left);
            assert_eq!(both.without(flag).0, timed.0 & !flag.0);
            assert_eq!(timed.has(flag), flag == Flags::TIMED);
        }
    }
    assert_eq!(Flags(!0).weight(), 1 << 15);
    assert_eq!(Flags(!0).untimed(), Flags(!(2 | 15 << 6)));
    let some = Flags(1 | 4);
    assert!(some.has(Flags::NONE) && some.has(some) && !some.has(Flags(1 | 2)));
    assert_eq!(some.without(Flags(4 | 8)), Flags(1));
}
