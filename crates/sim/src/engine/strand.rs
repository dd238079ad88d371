//! What runs a task: a coroutine, or an operating system's thread that is given
//! its turn.
//!
//! # Role
//! The engine resumes a strand, which runs until it suspends itself or ends. The
//! coroutine is what simulations use; the thread is some thousand times slower
//! and is there to check it: both give the same trace.
//!
//! # Invariants
//! - **STRAND-TURN** One strand runs at a time, and the engine does not run meanwhile: what
//!   they share needs no lock.
//! - **SIM-OWNS-NOTHING** What lies on a task's stack owns nothing: at the end of a simulation
//!   coroutines are forgotten, not unwound.

use super::turn::{Baton, Said, TaskBody, TurnEnd};
use super::world::{SimWorld, with, with_world};
use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The number of bytes of a task's stack; pages that are not touched cost nothing.
const STACK: usize = 64 * 1024;

/// A stack that begins somewhat below the end of its memory. All would begin at the same
/// place of a page else, and tasks that take turns push each other's out of the cache.
struct Shifted {
    stack: DefaultStack,
    by: usize,
}

/// The size of such a step in bytes, and the number of steps: half of a page in all.
const STEP: usize = 64;
const STEPS: usize = 32;

impl Shifted {
    fn new() -> Self {
        let stack = DefaultStack::new(STACK).expect("memory for a stack");
        let many = MADE.get();
        MADE.set(many + 1);
        Shifted { stack, by: many % STEPS * STEP }
    }
}

// SAFETY: the memory is that of a stack with a guard page, but for less than a page, and far
// more than the least is left; the step is a multiple of the alignment of stacks.
unsafe impl Stack for Shifted {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.stack.base().get() - self.by).expect("far from the beginning")
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

type StrandRoutine = Coroutine<(), (), (), Shifted>;

thread_local! {
    /// The stacks of simulations that are over.
    static MADE: Cell<usize> = const { Cell::new(0) };
    static STACKS: RefCell<Vec<Shifted>> = const { RefCell::new(Vec::new()) };
}

/// The end of a thread whose simulation is over.
struct Over;

/// The execution of a task.
pub(crate) struct TaskStrand(Inner);

enum Inner {
    Routine(StrandRoutine),
    Thread { go: Option<Sender<()>>, done: Receiver<Said>, thread: Option<JoinHandle<()>> },
    Ended,
}

/// Passes what belongs to one simulation to another thread.
struct Carried<T>(T);

// SAFETY: by STRAND-TURN the threads of a simulation take turns, and each turn is handed over
// through a channel, which orders what they do.
unsafe impl<T> Send for Carried<T> {}

impl<T> Carried<T> {
    fn open(self) -> T {
        self.0
    }
}

impl TaskStrand {
    /// Makes a strand that will run `body` as a coroutine.
    pub(crate) fn routine(body: TaskBody) -> TaskStrand {
        let stack = STACKS.with_borrow_mut(Vec::pop);
        let stack = stack.unwrap_or_else(Shifted::new);
        TaskStrand(Inner::Routine(Coroutine::with_stack(stack, move |yielder, ()| {
            with(|w| w.tasks[w.current].turn = TurnEnd::Routine(yielder));
            body();
        })))
    }

    /// Makes a strand that will run `body` on a thread of its own.
    pub(crate) fn thread(body: TaskBody, world: *mut SimWorld) -> TaskStrand {
        let (go, told) = channel();
        let (say, done) = channel();
        let carried = Carried((body, world));
        let thread = std::thread::spawn(move || {
            let (body, world) = carried.open();
            let baton = Baton { go: told, done: say };
            if baton.go.recv().is_err() {
                return;
            }
            let ran = catch_unwind(AssertUnwindSafe(|| {
                with_world(world, || {
                    with(|w| w.tasks[w.current].turn = TurnEnd::Thread(&raw const baton));
                    body();
                });
            }));
            let last = match ran {
                Ok(()) => Said::Ended,
                Err(panic) if panic.is::<Over>() => return,
                Err(panic) => Said::Panicked(panic),
            };
            // The engine may have gone.
            let _ = baton.done.send(last);
        });
        TaskStrand(Inner::Thread { go: Some(go), done, thread: Some(thread) })
    }

    /// Lets the task run until it suspends itself. Returns true if it has ended.
    pub(crate) fn resume(&mut self) -> bool {
        let ended = match &mut self.0 {
            Inner::Routine(routine) => matches!(routine.resume(()), CoroutineResult::Return(())),
            Inner::Thread { go, done, .. } => {
                let go = go.as_ref().expect("a thread that runs");
                go.send(()).expect("the thread listens");
                match done.recv().expect("the thread answers") {
                    Said::Suspended => false,
                    Said::Ended => true,
                    Said::Panicked(panic) => resume_unwind(panic),
                }
            }
            Inner::Ended => unreachable!("a task that has ended is not resumed"),
        };
        if ended {
            self.forget();
        }
        ended
    }

    fn forget(&mut self) {
        match std::mem::replace(&mut self.0, Inner::Ended) {
            Inner::Routine(mut routine) => {
                if routine.started() && !routine.done() {
                    // SAFETY: what lies on the stack owns nothing (SIM-OWNS-NOTHING), and the
                    // engine keeps no pointer to it past the simulation.
                    unsafe { routine.force_reset() };
                }
                if routine.done() {
                    STACKS.with_borrow_mut(|stacks| stacks.push(routine.into_stack()));
                }
            }
            Inner::Thread { go, thread, .. } => {
                drop(go);
                if let Some(thread) = thread {
                    // It has ended, or finds its sender gone and unwinds.
                    let _ = thread.join();
                }
            }
            Inner::Ended => {}
        }
    }
}

impl Drop for TaskStrand {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Gives the turn back to the engine, until resumed.
pub(crate) fn suspend() {
    let turn = with(|w| w.tasks[w.current].turn);
    match turn {
        // SAFETY: the yielder lives as long as its coroutine, which is the caller.
        TurnEnd::Routine(yielder) => unsafe { (*yielder).suspend(()) },
        TurnEnd::Thread(baton) => {
            // SAFETY: the baton lies on the stack of the calling thread.
            let baton = unsafe { &*baton };
            let gone = baton.done.send(Said::Suspended).is_err() || baton.go.recv().is_err();
            if gone {
                resume_unwind(Box::new(Over));
            }
        }
        TurnEnd::None => unreachable!("only a task suspends itself"),
    }
}
