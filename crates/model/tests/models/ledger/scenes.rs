//! What the threads of a `World` do, each with the reader that judges them.

use super::world::{Got, Party, Rules, World, holding, waiting};
use lockstead_core::Nanos;
use lockstead_ledger::futexes::{Slept, SleptWord, SleptWords};
use lockstead_ledger::publish::{Flags, Holding, WaitKind, Waiting};
use lockstead_model::{Model, Scenario, with_handler};

const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;

/// Makes the scenario in which one thread waits three times, each time holding something else. The
/// reader believes what it has confirmed, to the last field.
pub(super) fn story() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            let stack = me.stack();
            stack.push(&holding(1)).expect("room");
            me.wait().begin(&waiting(WaitKind::MUTEX, 11, 0));
            me.wait().end();
            stack.push(&holding(2)).expect("room");
            me.wait().begin(&waiting(WaitKind::WRITE, 12, 21));
            me.wait().end();
            stack.pop(2).expect("held");
            stack.push(&Holding { started: 0, ..holding(3) }).expect("room");
            stack.entry(0).set_flags(Flags::LENT);
            me.wait().begin(&waiting(WaitKind::READ, 13, 0));
        })
        .thread(|me| {
            let Some((episode, found)) = me.wait().read() else { return };
            let holds = me.holds();
            if me.wait().is_still(episode) {
                let [one, two, three] = [1, 2, 3].map(|lock| Some(holding(lock)));
                let three = three.map(|holding| Holding { started: 0, ..holding });
                let lent = Some(Holding { flags: Flags::LENT, ..holding(1) });
                let truth = match found.target {
                    11 => (waiting(WaitKind::MUTEX, 11, 0), [one, None, None]),
                    12 => (waiting(WaitKind::WRITE, 12, 21), [one, two, None]),
                    _ => (waiting(WaitKind::READ, 13, 0), [lent, three, None]),
                };
                assert_eq!((found, holds), truth);
            }
        })
}

/// Makes the scenario in which one thread waits, releases the older of its locks and waits again.
pub(super) fn out_of_order() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            let stack = me.stack();
            stack.push(&holding(1)).expect("room");
            stack.push(&holding(2)).expect("room");
            me.wait().begin(&waiting(WaitKind::MUTEX, 11, 0));
            me.wait().end();
            stack.pop(1).expect("held");
            me.wait().begin(&waiting(WaitKind::MUTEX, 12, 0));
        })
        .thread(|me| {
            let Some((episode, found)) = me.wait().read() else { return };
            let holds = me.holds();
            if me.wait().is_still(episode) {
                let [one, two] = [1, 2].map(|lock| Some(holding(lock)));
                let truth = if found.target == 11 { [one, two, None] } else { [two, None, None] };
                assert_eq!(holds, truth);
            }
        })
}

/// What the thread of [`slept`] shows.
pub(super) struct Sleeper {
    party: Party,
    words: [SleptWord<Model>; 2],
}

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper { party: Party::new(), words: [const { SleptWord::NONE }; 2] }
    }
}

/// Makes the scenario in which one thread sleeps on words, wakes the first and sleeps on, on the second
/// once more. In each
/// wait that is confirmed the reader finds what the thread has slept on and not woken.
pub(super) fn slept() -> Scenario<Sleeper> {
    let note = |word| Slept { word, stack: word as u32, at: word };
    let again = Slept { word: 12, stack: 21, at: 31 };
    Scenario::new(Sleeper::new)
        .thread(move |me| {
            let (wait, words) = (me.party.wait(), SleptWords::new(&me.words));
            wait.begin(&waiting(WaitKind::FUTEX, 11, 0));
            wait.end();
            words.note(&note(11));
            wait.begin(&waiting(WaitKind::FUTEX, 12, 0));
            wait.end();
            words.note(&note(12));
            words.forget(11);
            wait.begin(&waiting(WaitKind::FUTEX, 13, 0));
            wait.end();
            words.note(&again);
            wait.begin(&waiting(WaitKind::FUTEX, 14, 0));
        })
        .thread(move |me| {
            let Some((episode, found)) = me.party.wait().read() else { return };
            // An execution may be given up at any access, with all that it has allocated.
            let mut seen = [None; 2];
            let words = SleptWords::new(&me.words).read();
            seen.iter_mut().zip(words).for_each(|(place, word)| *place = Some(word));
            if me.party.wait().is_still(episode) {
                let truth = match found.target {
                    11 => None,
                    12 => Some(note(11)),
                    13 => Some(note(12)),
                    _ => Some(again),
                };
                assert_eq!(seen, [truth, None]);
            }
        })
}

/// Makes the scenario in which one thread takes and releases, never waiting. What the reader may
/// rely on: an entry's fields are not older than its address.
pub(super) fn running() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            for address in 1..=3 {
                me.stack().push(&holding(address)).expect("room");
                me.stack().pop(address).expect("held");
            }
        })
        .thread(|me| {
            if let Some(seen) = me.stack().entry(0).read() {
                let fields = [seen.lock.into(), seen.stack.into(), seen.tick.into(), seen.started];
                assert!(fields.iter().all(|&field| field >= seen.address), "{seen:?}");
            }
        })
}

/// Makes the scenario in which the reader looks until all have finished, or a cycle is found: each
/// that closes is found, and each that is found is closed.
fn watched(rules: Rules, threads: usize) -> Scenario<World> {
    Scenario::new(move || World::new(rules)).thread(move |w| w.watch(threads))
}

/// Makes the scenario in which the reader looks at one time, any; what it finds is closed.
fn judged(rules: Rules, threads: usize) -> Scenario<World> {
    Scenario::new(move || World::new(rules)).thread(move |w| w.glance(threads))
}

/// Takes both and releases them, unless it gets stuck.
fn both(w: &World, me: usize, first: usize, second: usize) {
    if w.lock(me, first) == Got::Held && w.lock(me, second) == Got::Held {
        w.unlock(me, second);
        w.unlock(me, first);
    }
}

/// Makes the scenario of a thread that wants a mutex it holds.
pub(super) fn alone(rules: Rules) -> Scenario<World> {
    watched(rules, 1)
        .thread(|w| {
            both(w, 0, X, X);
            w.finish();
        })
        .after(|w| assert!(w.reported(), "a thread cannot have finished"))
}

/// Makes the scenario of two threads, two locks, both orders.
pub(super) fn crossed(rules: Rules) -> Scenario<World> {
    watched(rules, 2)
        .thread(|w| {
            both(w, 0, X, Y);
            w.finish();
        })
        .thread(|w| {
            both(w, 1, Y, X);
            w.finish();
        })
}

/// Makes the scenario of one order: nothing is ever found, though both wait.
pub(super) fn ordered(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| both(w, 0, X, Y))
        .thread(|w| both(w, 1, X, Y))
        .after(|w| assert!(!w.reported()))
}

/// Makes the scenario of a thread that gives up at a deadline and then takes the locks in the other
/// order, which closes no cycle.
pub(super) fn timed(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| {
            if w.lock(0, X) != Got::Held {
                return;
            }
            match w.lock_until(0, Y, Some(Nanos(1000))) {
                Got::Held => w.unlock(0, Y),
                Got::TimedOut => {
                    w.unlock(0, X);
                    both(w, 0, Y, X);
                    return;
                }
                Got::Stuck => return,
            }
            w.unlock(0, X);
        })
        .thread(|w| both(w, 1, Y, X))
        .after(|w| assert!(!w.reported()))
}

/// Makes the scenario in which each thread waits for the other at some time, seldom at once:
/// whoever looks at one and later at the other must look again.
pub(super) fn twice(rules: Rules) -> Scenario<World> {
    judged(rules, 2).thread(|w| both(w, 0, X, Y)).thread(|w| {
        if w.lock(1, Y) == Got::Held {
            w.unlock(1, Y);
            both(w, 1, Y, X);
        }
    })
}

/// Makes the scenario of hand over hand: the older lock goes first, the newer one moves down; then
/// the other is taken again, against the order of the second thread.
pub(super) fn hand_over_hand(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| {
            if w.lock(0, X) != Got::Held || w.lock(0, Y) != Got::Held {
                return;
            }
            w.unlock(0, X);
            if w.lock(0, X) != Got::Held {
                return;
            }
            w.unlock(0, Y);
            w.unlock(0, X);
        })
        .thread(|w| both(w, 1, X, Y))
}

/// Makes the scenario of a wait on a condition with one lock, holding another: the thread that is
/// to signal may be stuck behind that one, and the waiter may find its mutex taken when it comes
/// back.
pub(super) fn condition(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| {
            if w.lock(0, Y) == Got::Held
                && w.lock(0, X) == Got::Held
                && w.wait_for_signal(0, X) == Got::Held
            {
                w.unlock(0, X);
                w.unlock(0, Y);
            }
        })
        .thread(|w| {
            if w.lock(1, X) == Got::Held {
                w.signal();
                if w.lock(1, Y) == Got::Held {
                    w.unlock(1, Y);
                    w.unlock(1, X);
                }
            }
        })
}

/// Makes the scenario of a mutex that is released by another thread than took it. Afterwards its
/// former holder waits for that thread, and that thread for whoever took it then: no cycle, for the
/// former holder holds nothing.
pub(super) fn handed_on(rules: Rules) -> Scenario<World> {
    judged(rules, 3)
        .thread(|w| {
            if w.lock(0, X) == Got::Held {
                w.signal();
                w.lock(0, Y);
            }
        })
        .thread(|w| {
            if w.lock(1, Y) == Got::Held && w.await_signal() {
                w.unlock_for(0, X);
                w.lock(1, X);
            }
        })
        .thread(|w| {
            if w.await_signal() && w.lock(2, X) == Got::Held {
                w.unlock(2, X);
            }
        })
        .after(|w| assert!(!w.reported()))
}

/// Makes the scenario of a signal handler that takes a lock, anywhere in the first thread, also
/// while it waits. The second thread wants that lock while it holds what the first one waits for:
/// no cycle, for handlers end.
pub(super) fn interrupted(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| {
            let handler = || {
                if w.lock(0, Z) == Got::Held {
                    w.unlock(0, Z);
                }
            };
            with_handler(handler, || both(w, 0, X, Y));
        })
        .thread(|w| both(w, 1, Y, Z))
        .after(|w| assert!(!w.reported()))
}

/// Makes the same scenario of the wait alone.
pub(super) fn interrupted_wait(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| {
            let handler = || {
                if w.lock(0, Z) == Got::Held {
                    w.unlock(0, Z);
                }
            };
            with_handler(handler, || w.lock(0, Y));
        })
        .thread(|w| both(w, 1, Y, Z))
        .after(|w| assert!(!w.reported()))
}

/// Makes the scenario of a signal handler that comes anywhere in the first thread's release and
/// waits for the second thread, which wants what is being released.
pub(super) fn interrupted_release(rules: Rules) -> Scenario<World> {
    judged(rules, 2)
        .thread(|w| {
            let handler = || {
                if w.lock(0, Z) == Got::Held {
                    w.unlock(0, Z);
                }
            };
            if w.lock(0, X) == Got::Held {
                with_handler(handler, || w.unlock(0, X));
            }
        })
        .thread(|w| both(w, 1, Z, X))
}

/// Makes the scenario in which a handler that takes a lock anywhere in a push or a pop leaves the
/// stack as it was, to the last field.
pub(super) fn interrupted_stack() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            let stack = me.stack();
            let handler = || {
                stack.push(&holding(7)).expect("room");
                assert_eq!(stack.pop(7), Some(holding(7)));
            };
            with_handler(handler, || {
                stack.push(&holding(1)).expect("room");
                assert_eq!(me.holds(), [Some(holding(1)), None, None]);
                assert_eq!(stack.pop(1), Some(holding(1)));
                assert_eq!(me.holds(), [None, None, None]);
            });
        })
        .thread(|me| {
            // Of a thread that runs: what is seen is held, under its address.
            for seen in me.holds().into_iter().flatten() {
                assert!([1, 7].contains(&seen.address));
            }
        })
}

/// Makes the scenario in which a thread releases its older lock while another takes the newer one
/// away.
pub(super) fn taken_away() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            me.stack().push(&holding(1)).expect("room");
            me.stack().push(&holding(2)).expect("room");
            me.stack().pop(1).expect("held");
            me.stack().push(&holding(3)).expect("room");
        })
        .thread(|me| {
            let taken = me.stack().revoke(2);
            me.wait().begin(&waiting(WaitKind::MUTEX, u64::from(taken.is_some()), 0));
        })
        .after(|me| {
            let (_, Waiting { target: taken, .. }) = me.wait().read().expect("published");
            let held = |address| {
                me.holds().iter().flatten().filter(|h| h.address == address).count() as u64
            };
            assert_eq!((held(1), held(2), held(3)), (0, 1 - taken, 1));
            me.counts_what_is_empty();
        })
}

/// Makes the scenario in which a thread gives a lock back while another one takes it away, and drops what was
/// taken away.
pub(super) fn given_twice() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            let stack = me.stack();
            (1..=2).for_each(|address| _ = stack.push(&holding(address)).expect("room"));
            stack.pop(2);
            stack.push(&holding(3)).expect("room");
            stack.tidy();
        })
        .thread(|me| {
            (1..=2).for_each(|address| _ = me.stack().revoke(address));
        })
        .after(|me| {
            me.counts_what_is_empty();
            let held = me.holds().into_iter().flatten();
            assert!(held.clone().all(|found| [1, 3].contains(&found.address)));
            assert_eq!(held.filter(|&found| found == holding(3)).count(), 1);
        })
}

/// Makes the scenario in which a thread moves the newest of its entries down over gaps, while another thread takes it away, and
/// again if it finds it twice.
pub(super) fn closed_up() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            let stack = me.stack();
            (1..=3).for_each(|address| _ = stack.push(&holding(address)).expect("room"));
            stack.revoke(1);
            stack.revoke(2);
            stack.tidy();
        })
        .thread(|me| while me.stack().revoke(3).is_some() {})
        .after(|me| {
            me.counts_what_is_empty();
            assert!(me.holds().iter().flatten().all(|left| *left == holding(3)));
        })
}

/// Makes the scenario in which another thread takes away an entry of a thread that has room for no more.
pub(super) fn without_room() -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(|me| {
            let stack = me.stack();
            (1..=3).for_each(|address| _ = stack.push(&holding(address)).expect("room"));
            let pushed = stack.push(&holding(4)).is_ok();
            let held = me.holds();
            let is_held = |address| held.iter().flatten().any(|&found| found == holding(address));
            assert!(is_held(1) && is_held(3) && is_held(4) == pushed);
            assert!(!pushed || !is_held(2), "what was taken away has made room");
            assert!(stack.pop(1).is_some());
        })
        .thread(|me| {
            me.stack().revoke(2);
        })
        .after(Party::counts_what_is_empty)
}

/// Makes the scenario in which a handler, anywhere in a push or a pop, releases what its thread has held
/// before. Another thread takes a third lock away; or, where `pops`, the handler also looks for a lock
/// that is not held, as no call does that handlers may make.
pub(super) fn interrupted_by_releases(pops: bool) -> Scenario<Party> {
    Scenario::new(Party::new)
        .thread(move |me| {
            let stack = me.stack();
            stack.push(&holding(5)).expect("room");
            stack.push(&holding(6)).expect("room");
            let handler = || {
                assert!(!pops || stack.pop(7).is_none());
                assert_eq!(stack.revoke(5), Some(holding(5)));
            };
            with_handler(handler, || {
                stack.push(&holding(1)).expect("room");
                assert_eq!(stack.find(1).map(|(_, found)| found), Some(holding(1)));
                assert_eq!(stack.pop(1), Some(holding(1)));
                assert_eq!(stack.find(1), None);
            });
            stack.revoke(5);
            stack.tidy();
        })
        .thread(move |me| {
            if !pops {
                me.stack().revoke(6);
            }
            assert!(me.holds().iter().flatten().all(|seen| [1, 5, 6].contains(&seen.address)));
        })
        .after(|me| {
            me.counts_what_is_empty();
            assert!(me.holds().iter().flatten().all(|left| *left == holding(6)));
        })
}
