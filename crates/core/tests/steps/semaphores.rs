//! What both semaphores do, step by step, on a machine with one thread.

use crate::common::{
    Alone, U32, as_participant, here, script, script_pause, time, unplayed, wakes,
};
use lockstead_core::{
    Atomic32, ClassicSemaphore, LockError, Off, Ordering, PermitOverflow, Policy, Slot, Standard,
    TunedSemaphore, WaitBounds, WaitOutcome,
};

/// The operations that both have.
trait Semaphore: Sized + 'static {
    const MAX: u32;
    fn of(permits: u32) -> Option<Self>;
    fn down_how(&self, how: &WaitBounds<'_, Alone>) -> Result<(), LockError>;
    fn try_down(&self) -> bool;
    fn up(&self) -> Result<(), PermitOverflow>;
    fn permits(&self) -> u32;

    fn with(permits: u32) -> &'static Self {
        Box::leak(Box::new(Self::of(permits).expect("few permits")))
    }
    fn down(&self) -> Result<(), LockError> {
        self.down_how(&WaitBounds::FOREVER)
    }
}

macro_rules! semaphore {
    ($($name:ident),*) => {$(
        impl Semaphore for $name<Alone> {
            const MAX: u32 = Self::MAX_PERMITS;
            fn of(permits: u32) -> Option<Self> {
                Self::new(permits)
            }
            fn down_how(&self, how: &WaitBounds<'_, Alone>) -> Result<(), LockError> {
                self.down_how(how, here())
            }
            fn try_down(&self) -> bool {
                self.try_down(here())
            }
            fn up(&self) -> Result<(), PermitOverflow> {
                self.up()
            }
            fn permits(&self) -> u32 {
                self.permits()
            }
        }
    )*};
}

semaphore!(ClassicSemaphore, TunedSemaphore);

/// Runs each test function for both semaphores.
macro_rules! for_both {
    ($($name:ident),* $(,)?) => {
        mod classic {
            $(#[test] fn $name() { super::$name::<super::ClassicSemaphore<super::Alone>>() })*
        }
        mod tuned {
            $(#[test] fn $name() { super::$name::<super::TunedSemaphore<super::Alone>>() })*
        }
    };
}

for_both! {
    counts_its_permits,
    refuses_more_permits_than_it_can_count,
    sleeps_until_a_permit_is_given,
    sleeps_again_when_the_permit_was_taken_by_another,
    a_timeout_leaves_the_count_as_it_was,
    a_signal_ends_only_an_interruptible_wait,
    a_cancellation_ends_the_wait,
    a_permit_that_is_there_is_taken_whatever_the_deadline,
    two_permits_given_at_once_reach_both_sleepers,
    a_refused_try_does_not_disturb_a_sleeper,
}

fn counts_its_permits<S: Semaphore>() {
    let semaphore = S::with(2);
    assert_eq!(semaphore.permits(), 2);
    assert!(semaphore.try_down());
    assert_eq!(semaphore.down(), Ok(()));
    assert_eq!(semaphore.permits(), 0);
    assert!(!semaphore.try_down());
    assert_eq!(semaphore.permits(), 0);
    for permits in 1..=3 {
        assert_eq!(semaphore.up(), Ok(()));
        assert_eq!(semaphore.permits(), permits);
    }
    assert_eq!(wakes(), [], "nobody slept");
}

fn refuses_more_permits_than_it_can_count<S: Semaphore>() {
    assert!(S::of(S::MAX + 1).is_none());
    let semaphore = S::with(S::MAX);
    assert_eq!(semaphore.up(), Err(PermitOverflow));
    assert_eq!(semaphore.permits(), S::MAX);
    assert!(semaphore.try_down());
    assert_eq!(semaphore.permits(), S::MAX - 1);
    assert_eq!(semaphore.up(), Ok(()));
    assert_eq!(semaphore.up(), Err(PermitOverflow));
    assert_eq!(semaphore.permits(), S::MAX);
}

fn sleeps_until_a_permit_is_given<S: Semaphore>() {
    let semaphore = S::with(0);
    script(|| {
        assert_eq!(semaphore.permits(), 0);
        as_participant(2, || semaphore.up()).expect("room");
        assert_eq!(wakes().len(), 1);
        assert_eq!(semaphore.permits(), 1);
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down(), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
}

fn sleeps_again_when_the_permit_was_taken_by_another<S: Semaphore>() {
    let semaphore = S::with(0);
    script(|| {
        as_participant(2, || {
            semaphore.up().expect("room");
            assert_eq!(semaphore.down(), Ok(()), "a newcomer may be quicker");
        });
        WaitOutcome::Woken
    });
    script(|| {
        wakes();
        as_participant(2, || semaphore.up()).expect("room");
        assert_eq!(wakes().len(), 1, "it has announced itself again");
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down(), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
}

fn a_timeout_leaves_the_count_as_it_was<S: Semaphore>() {
    let semaphore = S::with(0);
    script(|| WaitOutcome::TimedOut);
    let deadline = Some(time().after(1000));
    let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
    assert_eq!(semaphore.down_how(&how), Err(LockError::TimedOut));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
    assert_eq!(semaphore.up(), Ok(()));
    assert_eq!(semaphore.permits(), 1);
    assert!(semaphore.try_down());
    assert!(!semaphore.try_down());
}

fn a_signal_ends_only_an_interruptible_wait<S: Semaphore>() {
    let semaphore = S::with(0);
    script(|| WaitOutcome::Interrupted);
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    assert_eq!(semaphore.down_how(&how), Err(LockError::Interrupted));
    script(|| WaitOutcome::Interrupted);
    script(|| {
        semaphore.up().expect("room");
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down(), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
}

fn a_cancellation_ends_the_wait<S: Semaphore>() {
    let semaphore = S::with(0);
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let how = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    script(|| {
        token.store(1, Ordering::Relaxed);
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down_how(&how), Err(LockError::Cancelled));
    assert_eq!(semaphore.up(), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 1));
}

fn a_permit_that_is_there_is_taken_whatever_the_deadline<S: Semaphore>() {
    let semaphore = S::with(1);
    let how = WaitBounds { deadline: Some(time()), ..WaitBounds::FOREVER };
    assert_eq!(semaphore.down_how(&how), Ok(()));
    assert_eq!(semaphore.down_how(&how), Err(LockError::TimedOut));
}

fn two_permits_given_at_once_reach_both_sleepers<S: Semaphore>() {
    let semaphore = S::with(0);
    script(|| {
        // While 1 sleeps, 2 comes and sleeps as well.
        as_participant(2, || assert_eq!(semaphore.down(), Ok(())));
        WaitOutcome::Woken
    });
    script(|| {
        wakes();
        as_participant(3, || {
            semaphore.up().expect("room");
            semaphore.up().expect("room");
        });
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down(), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
    assert!(wakes().len() >= 2, "the second sleeper was never woken");
}

fn a_refused_try_does_not_disturb_a_sleeper<S: Semaphore>() {
    let semaphore = S::with(0);
    script(|| {
        as_participant(2, || assert!(!semaphore.try_down()));
        as_participant(3, || semaphore.up()).expect("room");
        assert!(!wakes().is_empty());
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down(), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
}

#[test]
fn classic_a_sleeper_that_gives_up_wakes_the_next() {
    let semaphore = ClassicSemaphore::<Alone>::with(0);
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    script(|| {
        as_participant(2, || {
            let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
            assert_eq!(semaphore.down_how(&how, here()), Err(LockError::Interrupted));
        });
        assert_eq!(wakes().len(), 1, "1 sleeps with nothing in the count on its behalf");
        WaitOutcome::Woken
    });
    script(|| WaitOutcome::Interrupted);
    script(|| {
        semaphore.up().expect("room");
        assert_eq!(wakes().len(), 1);
        WaitOutcome::Woken
    });
    assert_eq!(semaphore.down_how(&how, here()), Ok(()));
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
}

#[test]
fn classic_constants_make_the_same_semaphore() {
    type Semaphore = ClassicSemaphore<Alone>;
    assert_eq!(Semaphore::MAX_PERMITS, 1 << 30);
    assert_eq!(Semaphore::initial_word(0), Some(1 << 31));
    assert_eq!(Semaphore::initial_word(3), Some((1 << 31) + 3));
    assert_eq!(Semaphore::initial_word(Semaphore::MAX_PERMITS + 1), None);
    assert_eq!(size_of::<Semaphore>(), 8);
}

#[test]
fn tuned_constants_make_the_same_semaphore() {
    type Semaphore = TunedSemaphore<Alone>;
    assert_eq!(Semaphore::initial_word(3), Some(3));
    assert_eq!(Semaphore::initial_word(Semaphore::MAX_PERMITS + 1), None);
    assert_eq!(size_of::<Semaphore>(), 8);
}

#[test]
fn tuned_a_waiter_past_the_bound_is_handed_the_permit() {
    let semaphore = TunedSemaphore::<Alone>::with(0);
    let began = time();
    script(|| WaitOutcome::TimedOut);
    script(move || {
        assert!(time().since(began) >= Standard::BOUND);
        as_participant(2, || {
            semaphore.up().expect("room");
            assert!(
                !semaphore.try_down(here()),
                "a newcomer took the permit of the hand-off waiter"
            );
        });
        assert_eq!(wakes().len(), 1);
        WaitOutcome::Woken
    });
    semaphore.down(here());
    assert_eq!((unplayed(), semaphore.permits()), (0, 0));
    assert_eq!(semaphore.up(), Ok(()));
    assert_eq!(semaphore.permits(), 1);
}

#[test]
fn tuned_an_heir_that_gives_up_leaves_the_next_permit_to_all() {
    let semaphore = TunedSemaphore::<Alone>::with(0);
    let deadline = Some(time().after(1_000_000_000));
    script(|| WaitOutcome::TimedOut);
    script(|| WaitOutcome::TimedOut);
    let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
    assert_eq!(semaphore.down_how(&how, here()), Err(LockError::TimedOut));
    assert_eq!(unplayed(), 0);
    assert!(!semaphore.peek().handoff());
    assert_eq!(semaphore.up(), Ok(()));
    assert_eq!(semaphore.permits(), 1);
}

/// Spins briefly, however many others do and however few processors there are.
struct Eager;

impl Policy for Eager {
    type Base = Standard;
    const SPIN: u64 = 1000;
    const ASK: u64 = 0;
    const TURNS: u32 = 4;
    const HANDOFF_SPIN: u64 = 0;

    fn joins(_tail: Option<Slot>, _processors: u32) -> bool {
        true
    }
}

#[test]
fn tuned_a_spinner_that_ends_the_queue_passes_the_permits_it_leaves_on() {
    let semaphore = TunedSemaphore::<Alone, Off, Eager>::new(0).expect("few permits");
    let semaphore: &'static TunedSemaphore<Alone, Off, Eager> = Box::leak(Box::new(semaphore));
    script_pause(|| {
        // While 1 spins at the head of the queue, 2 spins behind it, sleeps, and
        // leaves its place in the queue and the announcement of a sleeper.
        script(|| WaitOutcome::Interrupted);
        as_participant(2, || {
            let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
            assert_eq!(semaphore.down_how(&how, here()), Err(LockError::Interrupted));
        });
        // Both rely on the queue.
        as_participant(3, || {
            semaphore.up().expect("room");
            semaphore.up().expect("room");
        });
        assert_eq!(wakes(), []);
    });
    semaphore.down(here());
    assert_eq!((unplayed(), semaphore.permits()), (0, 1));
    let counts: Vec<u32> = wakes().into_iter().map(|it| it.1).collect();
    assert_eq!(counts, [1], "a permit is free and a sleeper was not woken for it");
}
