//! The model as a `Robust` platform of the core.

/// Implements `Robust` of a core for [`Model`](crate::Model). `$core` is as in
/// [`platform!`](crate::platform). With `trust N, ` before it, sleepers rely for `N`
/// nanoseconds on being told of deaths, and ask then; without, for ever.
#[macro_export]
macro_rules! robust {
    (trust $nanos:literal, $($core:tt)+) => {
        $crate::robust!(@ Some($nanos), $($core)+);
    };
    (@ $trust:expr, $($core:tt)+) => {
        const _: () = {
            use $($core)+::platform::Wait;
            use $($core)+::robust::life::{LIFE_NUMBER, Life};
            use $($core)+::robust::{Addend, Robust, Watch, Woken};
            use ::core::panic::Location;
            use ::core::ptr::NonNull;
            use $crate::hidden as model;

            impl Robust for $crate::Model {
                type Segment = ();
                // One is for the cancellation word.
                const MOST_WATCHES: usize = model::MOST_WATCHES - 1;
                const TRUST: Option<u64> = $trust;
                const SPINS: u32 = 0;
                // Nobody else sees it: it is as being slow.
                const REST: Option<u64> = None;

                fn rest(_nanos: u64) -> Woken {
                    Woken::Changed
                }

                // The other way is a variant of the core: `shared_release_exchanges`.
                fn subtracts() -> bool {
                    true
                }

                #[track_caller]
                fn wait_any(watches: &[Watch<'_, Self>], how: &Wait<'_, Self>) -> Woken {
                    let site = Location::caller();
                    // No allocation: a thread that is killed here frees nothing.
                    fn word<'a>(watch: &Watch<'a, $crate::Model>) -> model::Watched<'a> {
                        match *watch {
                            Watch::Word(word, expected) => model::word(word, expected),
                            Watch::Low(word, expected) => model::low(word, expected),
                            Watch::High(word, expected) => model::high(word, expected),
                            Watch::Seen(word, expected) => model::seen(word, expected),
                        }
                    }
                    // As on Linux the cancellation word comes first: to have been woken
                    // there hides no other wake-up.
                    let cancels = usize::from(how.cancel.is_some());
                    let watched = |at: usize| match how.cancel {
                        Some(cancel) if at == 0 => model::word(cancel, 0),
                        _ => word(&watches[(at - cancels).min(watches.len() - 1)]),
                    };
                    let words: [_; model::MOST_WATCHES] = ::core::array::from_fn(watched);
                    let words = &words[..watches.len() + cancels];
                    let deadline = how.deadline.map(|deadline| deadline.0);
                    match model::wait_any(words, deadline, how.interruptible, site) {
                        model::Ended::At(index) => match index.checked_sub(cancels) {
                            Some(index) => Woken::At(index),
                            None if how.cancelled() => Woken::Cancelled,
                            None => Woken::Changed,
                        },
                        model::Ended::As(model::Outcome::TimedOut) => Woken::TimedOut,
                        model::Ended::As(model::Outcome::Interrupted) => Woken::Interrupted,
                        model::Ended::As(_) => Woken::Changed,
                    }
                }

                #[track_caller]
                fn wake_shared(word: *const Self::U32, count: u32) -> u32 {
                    model::wake_shared(word.addr(), count, Location::caller())
                }

                #[track_caller]
                fn add_and_wake(word: &Self::U32, add: Addend, count: u32) {
                    let add = match add {
                        Addend::One => 1,
                        Addend::Doorbell => 1 << 30,
                    };
                    model::add_and_wake(word, add, count, Location::caller());
                }

                #[track_caller]
                fn at_death_wake(word: Option<NonNull<Self::U32>>) -> Option<NonNull<Self::U32>> {
                    // SAFETY: who names a word sees to it that it lies still until
                    // another is named.
                    let word = word.map(|word| unsafe { &*word.as_ptr() });
                    let named = model::at_death_wake(word, Location::caller());
                    named.and_then(|named| NonNull::new(named.cast_mut()))
                }

                #[track_caller]
                fn defer_wake(word: &Self::U32) -> bool {
                    model::defer_wake(word, Location::caller())
                }

                #[track_caller]
                fn has_ended(_segment: &(), _slot: u32, life: Life) -> bool {
                    model::has_ended(life.life() & LIFE_NUMBER, Location::caller())
                }

                fn here() -> u64 {
                    model::here()
                }

                #[track_caller]
                fn turn(here: u64, kept: u64) {
                    model::turn(here, kept, Location::caller());
                }
            }
        };
    };
    ($($core:tt)+) => {
        $crate::robust!(@ None, $($core)+);
    };
}

crate::robust!(lockstead_core);
