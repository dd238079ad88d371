//! What the reader-writer lock does beside its word, on a machine with one thread: how long a waiter
//! spins, and what hooks and observers hear.

use crate::common::heard::{Heard, STATE, heard};
use crate::common::{
    Alone, U64, here, machine, pass, script, script_pause, set, sleeps, time, told, unplayed,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::{
    Atomic64, Awaited, AwaitedUse, Hooks, LockError, Off, OnCpu, Ordering, Policy, RawRwLock,
    ShownSleep, Site, WaitBounds, WaitOutcome,
};

type Lock<H = Off, Y = NoSpin> = &'static RawRwLock<Alone, H, Y>;

/// Makes a lock with this word, on a machine on which no time passes but where a test says so.
fn lock_with<H: Hooks, Y: Policy>(value: u64) -> Lock<H, Y> {
    set(|machine| machine.tick = 0);
    let lock = Box::leak(Box::new(RawRwLock::new()));
    force(lock, value);
    lock
}

fn force<H: Hooks, Y: Policy>(lock: Lock<H, Y>, value: u64) {
    // SAFETY: the lock begins with its word (`repr(C)`), an atomic, and lives for ever.
    let word: &U64 = unsafe { &*std::ptr::from_ref(lock).cast() };
    word.store(value, Ordering::Relaxed);
}

/// Spins shortly: two looks at the clock, each after four turns.
struct Turns;

impl Policy for Turns {
    type Base = NoSpin;
    const SPIN: u64 = 100;
    const HANDOFF_SPIN: u64 = 200;
    const TURNS: u32 = 4;
}

#[test]
fn a_waiter_spins_shortly_where_another_processor_may_run_the_writer() {
    for reads in [true, false] {
        let length = if reads { Turns::HANDOFF_SPIN } else { Turns::SPIN };
        for (processors, on_cpu, passes, spun) in [
            (1, OnCpu::Unknown, length, 0),
            (2, OnCpu::Unknown, length, 8),
            (2, OnCpu::Yes, length + 1, 8),
            (2, OnCpu::Yes, length - 1, 12),
            (2, OnCpu::No, length, 4),
        ] {
            let lock = lock_with::<Off, Turns>(2);
            set(|machine| {
                (machine.processors, machine.on_cpu, machine.pauses) = (processors, on_cpu, 0);
            });
            // The clock is looked at for the first time after the fourth turn.
            if spun >= 8 {
                (0..7).for_each(|_| script_pause(|| {}));
                script_pause(move || pass(passes));
            }
            if spun == 12 {
                (0..3).for_each(|_| script_pause(|| {}));
                script_pause(|| pass(1));
            }
            script(move || {
                assert_eq!(machine().pauses, spun, "{reads} {on_cpu:?}");
                // It spins once only.
                force(lock, 3);
                WaitOutcome::Interrupted
            });
            script(move || {
                assert_eq!(machine().pauses, spun);
                force(lock, 0);
                WaitOutcome::Interrupted
            });
            let taken = if reads { lock.read(here()) } else { lock.write(here()) };
            assert_eq!((taken, unplayed()), (Ok(()), 0));
        }
        // It takes what comes free meanwhile.
        let lock = lock_with::<Off, Turns>(2);
        set(|machine| machine.processors = 2);
        script_pause(move || force(lock, 0));
        let taken = if reads { lock.read(here()) } else { lock.write(here()) };
        assert_eq!((taken, unplayed()), (Ok(()), 0));
    }
}

#[test]
fn a_watcher_and_an_observer_hear_of_every_acquisition() {
    let lock = lock_with::<Heard, NoSpin>(0);
    assert_eq!(*lock.state(), STATE);
    let site: Site = here();
    let line = site.line();
    let uses = [(true, "Shared", AwaitedUse::Read), (false, "Alone", AwaitedUse::Write)];
    for (reads, access, wants) in uses {
        let take = |how: WaitBounds<'static, Alone>| match reads {
            true => lock.read_lazily(move || how, 5, site),
            false => lock.write_lazily(move || how, 5, site),
        };
        let leave = || {
            // SAFETY: this participant has taken it by `take` or a try.
            unsafe { if reads { lock.unlock_read() } else { lock.unlock_write() } };
            heard()
        };
        let begins = format!("will acquire {access} 5 {line}");
        let fast = format!("acquired {access} Fast {line}");
        assert_eq!(take(WaitBounds::FOREVER), Ok(()));
        assert_eq!(heard(), [begins.clone(), fast.clone()]);
        assert_eq!(leave(), ["releasing"]);
        assert!(if reads { lock.try_read(site) } else { lock.try_write(site) });
        assert_eq!(heard(), [fast]);
        leave();
        // Whoever does not say how nests in nothing.
        assert_eq!(if reads { lock.read(site) } else { lock.write(site) }, Ok(()));
        assert_eq!(heard()[0], format!("will acquire {access} 0 {line}"));
        leave();
        force(lock, 2);
        assert!(!if reads { lock.try_read(site) } else { lock.try_write(site) });
        assert_eq!(heard(), [""; 0]);
        for observed in [false, true] {
            set(|machine| machine.observed = observed);
            let deadline = observed.then(|| time().after(10));
            let awaited = Awaited { address: lock.id().0, wants, name: Some("hall"), deadline };
            force(lock, 2);
            script(move || {
                if observed {
                    return WaitOutcome::TimedOut;
                }
                force(lock, 0);
                WaitOutcome::Woken
            });
            let ended = take(WaitBounds { deadline, ..WaitBounds::FOREVER });
            let last = if observed { "abandoned" } else { &format!("acquired {access} Slow") };
            let waits = format!("will wait {}", !observed);
            assert_eq!(heard(), [begins.clone(), waits, format!("{last} {line}")]);
            let ends = observed.then_some((awaited, Some(ended.err())));
            assert_eq!(told(), [(awaited, None)].into_iter().chain(ends).collect::<Vec<_>>());
            let shown = ShownSleep { lock: lock.id().0, wants, is_endless: !observed };
            assert_eq!(sleeps()[0].shown, Some(shown));
        }
        force(lock, 1);
        told();
        assert_eq!(take(WaitBounds::FOREVER), Err(LockError::Recursive));
        assert_eq!(heard().last(), Some(&format!("abandoned {line}")));
        assert_eq!(told(), [], "that was no wait");
        force(lock, 0);
        told();
    }
}
