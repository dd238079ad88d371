//! Every release, stepped through: between any two of its instructions other threads come, wait,
//! try, hurry or give up. One of them gets the lock at last, and frees its memory at once.

use crate::frame::Dice;
use crate::kinds;
use crate::step::stop_at;
use crate::visitors::{Page, Take, Visit, Visitor, about, eventually, set_about, tell_of_faults};
use lockstead_core::{Platform, WaitBounds};
use lockstead_linux::Linux;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// The threads that wait when the release begins, and those that come at the step.
#[derive(Clone, Copy, Debug)]
struct Case {
    sleepers: &'static [Visit],
    comes: &'static [Visit],
    /// Whether the first sleeper is cancelled at the step.
    cancels: bool,
}

const CASES: &[Case] = &[
    Case { sleepers: &[], comes: &[Visit::Waits], cancels: false },
    Case { sleepers: &[], comes: &[Visit::Tries], cancels: false },
    Case { sleepers: &[], comes: &[Visit::Hurries], cancels: false },
    Case { sleepers: &[Visit::Waits], comes: &[], cancels: false },
    Case { sleepers: &[Visit::Waits], comes: &[Visit::Waits], cancels: false },
    Case { sleepers: &[Visit::Waits], comes: &[Visit::Tries], cancels: false },
    Case { sleepers: &[Visit::Waits], comes: &[Visit::Hurries], cancels: false },
    Case { sleepers: &[Visit::MayBeCancelled], comes: &[], cancels: true },
    Case { sleepers: &[Visit::MayBeCancelled, Visit::Waits], comes: &[], cancels: true },
];

/// Has one thread take the lock by `R` and release it, in which it is stopped at each step, and
/// others come by `V`.
fn each_step<R: Take, V: Take<Lock = R::Lock>>(name: &str) {
    tell_of_faults();
    let page = Page::new();
    let visitors = [Visitor::new(), Visitor::new()];
    let (mut steps, mut attempts) = (0, 0);
    std::thread::scope(|scope| {
        for visitor in &visitors {
            let page = &page;
            scope.spawn(move || visitor.serve::<V>(page));
        }
        Linux::me();
        // Usually each case takes every third step, another one each: to come to a step costs as
        // many traps as there are before it.
        let every = if std::env::var_os("LOCKSTEAD_STRESS_OPS").is_some() { 1 } else { 3 };
        for (number, case) in CASES.iter().enumerate() {
            for step in (number as u64 % every..).step_by(every as usize) {
                set_about(format!("{name}, {case:?}, step {step}"));
                attempts += 1;
                if !attempt::<R, V>(&page, &visitors, case, Some(step)) {
                    steps = steps.max(step);
                    break;
                }
            }
        }
        for visitor in &visitors {
            visitor.leaves();
        }
    });
    println!("{name}: {steps} instructions at most, {attempts} releases");
    assert!(steps > 10, "so short is no release: {steps} instructions");
}

/// Makes one release, in which others come at the step, or at any moment. Returns false if the
/// release has not so many steps.
fn attempt<R: Take, V: Take<Lock = R::Lock>>(
    page: &Page<R::Lock>,
    visitors: &[Visitor; 2],
    case: &Case,
    step: Option<u64>,
) -> bool {
    page.renew(R::fresh());
    page.expected.store((case.sleepers.len() + case.comes.len()) as u32, SeqCst);
    let (sleepers, others) = visitors.split_at(case.sleepers.len());
    let takes = || R::lock(page.lock(), &WaitBounds::FOREVER).expect("it is free");
    let early = (!R::COMES_LATER).then(takes);
    for (sleeper, visit) in sleepers.iter().zip(case.sleepers) {
        sleeper.comes(*visit);
        sleeper.settles();
    }
    let hold = early.unwrap_or_else(takes);
    let others = || others.iter().zip(case.comes);
    let begins = || {
        if case.cancels {
            sleepers[0].is_cancelled();
        }
        others().for_each(|(other, visit)| other.comes(*visit));
    };
    // SAFETY: this thread has taken the lock, by `hold`.
    let release = || unsafe { R::unlock(page.lock(), hold) };
    let reached = match step {
        Some(step) => {
            let mut there = |_: &mut libc::ucontext_t| {
                begins();
                sleepers.iter().chain(others().map(|(other, _)| other)).for_each(Visitor::settles);
            };
            let reached = stop_at(step, &mut there, release);
            if !reached {
                begins();
            }
            reached
        }
        None => {
            begins();
            release();
            true
        }
    };
    page.through.store(true, SeqCst);
    eventually("all are back", || visitors.iter().all(Visitor::is_back));
    let again = V::try_lock(page.lock());
    // SAFETY: this thread has just taken the lock.
    unsafe { V::unlock(page.lock(), again.unwrap_or_else(|| panic!("not free: {}", about()))) };
    reached
}

/// Releases at full speed.
const ROUNDS: u32 = 1_000;

/// Has releases run at their usual speed while another thread tries to take the lock, and frees its
/// memory as soon as it has it: for what cannot be stepped through, sections that the kernel restarts.
fn at_full_speed<R: Take, V: Take<Lock = R::Lock>>(name: &str) {
    tell_of_faults();
    set_about(format!("{name}, at full speed"));
    let (page, mut dice) = (Page::<R::Lock>::new(), Dice::new(2026));
    let round = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 1..=ROUNDS {
                eventually("the next round", || round.load(SeqCst) == turn);
                let mut hold = None;
                eventually("it is released", || {
                    hold = (0..1000).find_map(|_| V::try_lock(page.lock()));
                    hold.is_some()
                });
                page.free(|| {});
                // SAFETY: this thread has just taken the lock.
                unsafe { V::unlock(page.lock(), hold.expect("it has it")) };
                page.expected.store(0, SeqCst);
            }
        });
        for turn in 1..=ROUNDS {
            page.renew(R::fresh());
            let Ok(hold) = R::lock(page.lock(), &WaitBounds::FOREVER) else { panic!("it is free") };
            page.expected.store(1, SeqCst);
            round.store(turn, SeqCst);
            (0..dice.below(300)).for_each(|_| std::hint::spin_loop());
            // SAFETY: this thread has taken the lock, by `hold`.
            unsafe { R::unlock(page.lock(), hold) };
            page.through.store(true, SeqCst);
            eventually("it is back", || page.expected.load(SeqCst) == 0);
        }
    });
}

/// Makes the test of a kind: `name, what the releaser does, what the visitors do`.
macro_rules! releases {
    ($($test:ident: $name:literal, $releaser:ty, $visitor:ty;)*) => {
        $(
            #[test]
            fn $test() {
                let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
                at_full_speed::<$releaser, $visitor>($name);
                each_step::<$releaser, $visitor>($name);
            }
        )*
    };
}

/// One at a time: they share what a fault tells.
pub(crate) static ALONE: Mutex<()> = Mutex::new(());

releases! {
    mutex: "mutex", kinds::Mutex, kinds::Mutex;
    mutex_hand_off: "mutex with hand-off waiters", kinds::HastyMutex, kinds::HastyMutex;
    writer_to_writer: "reader-writer lock, writer to writer", kinds::Write, kinds::Write;
    writer_to_reader: "reader-writer lock, writer to reader", kinds::Write, kinds::Read;
    reader_to_writer: "reader-writer lock, reader to writer", kinds::Read, kinds::Write;
    writer_hand_off: "reader-writer lock with hand-off waiters", kinds::HastyWrite, kinds::HastyWrite;
    semaphore: "semaphore", kinds::Tuned, kinds::Tuned;
    classic_semaphore: "classic semaphore", kinds::Classic, kinds::Classic;
    ww_context_to_context: "wait/wound mutex, contexts", kinds::InContext, kinds::InContext;
    ww_context_to_alone: "wait/wound mutex, to one without context", kinds::InContext, kinds::Bare;
    ww_alone_to_context: "wait/wound mutex, to a context", kinds::Bare, kinds::InContext;
    biased: "biased mutex", kinds::Biased, kinds::Biased;
    real_time: "real-time mutex", kinds::Rt, kinds::Rt;
    recursive_real_time: "recursive real-time mutex", kinds::RecursiveRt, kinds::RecursiveRt;
    condition: "condition variable", kinds::Opens, kinds::Condition;
    once: "once", kinds::Once, kinds::Once;
}
