//! Threads of a model: coroutines that can be put back to where they were.
//!
//! # Role
//! A search goes back to an earlier point of an execution by restoring what was there
//! then, the threads' stacks with the rest. An [`StrandImage`] is what lies on a stack and the
//! coroutine's own note of how far it is; the search takes one of each strand that has
//! run since the last time.
//!
//! # Invariants
//! - **STRAND-SUSPENDED** An image is taken, and put back, while its coroutine is suspended.
//! - **STRAND-OWNS-NOTHING** What lies on a stack owns nothing: a value that is put back twice
//!   would be dropped twice. The checker's own frames keep to that; so must the threads of a
//!   model ([`Scenario`](crate::Scenario)).
//! - **STRAND-SAME-STACK** An image is put back on the stack of which it was taken, so what points
//!   there still does.

use crate::engine::{halt, with};
use crate::report::FailureKind;
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Bytes of a thread's stack; pages that are not touched cost nothing.
const STACK: usize = 256 * 1024;

/// More than what lies below the frame in which a thread notes how deep it is: that
/// frame's rest and the switch of stacks, some hundred bytes.
const MARGIN: usize = 1024;

type Thread = Coroutine<(), (), (), DefaultStack>;

/// A thread of a model.
pub(crate) struct ModelStrand {
    /// Its stack, while nothing runs there.
    idle: Option<DefaultStack>,
    /// What runs on that stack.
    thread: Option<Thread>,
    range: Range<usize>,
    /// The lowest byte of the stack in use.
    bottom: usize,
    /// What it looks like, unless it has run since.
    image: Option<Rc<StrandImage>>,
}

/// What a suspended thread looks like.
pub(crate) struct StrandImage {
    /// The coroutine, bit by bit; a copy that nobody drops.
    thread: MaybeUninit<Option<Thread>>,
    bottom: usize,
    stack: Box<[MaybeUninit<u8>]>,
}

impl ModelStrand {
    pub(crate) fn new() -> Self {
        let stack = DefaultStack::new(STACK).expect("memory for a stack");
        let range = stack.limit().get()..stack.base().get();
        ModelStrand { bottom: range.end, idle: Some(stack), thread: None, range, image: None }
    }

    /// Returns where its stack lies.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Lets `body` run from now on, instead of what ran before. A panic in it fails the
    /// execution.
    pub(crate) fn begin(&mut self, body: impl FnOnce() + 'static) {
        self.forget();
        let stack = self.idle.take().expect("nothing runs there");
        self.thread = Some(Coroutine::with_stack(stack, move |yielder, ()| {
            with(|engine| engine.threads[engine.running].yielder = yielder);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
                let message = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                    .unwrap_or_else(|| "a panic without a message".into());
                with(|engine| engine.fail(FailureKind::Panic(message)));
                halt();
            }
        }));
    }

    /// Lets it go on until others are to. Returns true if it has ended.
    pub(crate) fn resume(&mut self) -> bool {
        self.image = None;
        let thread = self.thread.as_mut().expect("something runs there");
        let ended = matches!(thread.resume(()), CoroutineResult::Return(()));
        self.bottom = if ended {
            self.range.end
        } else {
            with(|engine| engine.deepest).saturating_sub(MARGIN).max(self.range.start)
        };
        ended
    }

    /// Forgets what ran there.
    pub(crate) fn forget(&mut self) {
        self.image = None;
        self.bottom = self.range.end;
        if let Some(mut thread) = self.thread.take() {
            // SAFETY: nothing on the stack needs to be dropped (STRAND-OWNS-NOTHING: the checker
            // and the scenario keep it), and the engine, which had pointers there, forgets
            // them in `reset`.
            unsafe { thread.force_reset() };
            self.idle = Some(thread.into_stack());
        }
    }

    /// Returns what it looks like now.
    pub(crate) fn image(&mut self) -> Rc<StrandImage> {
        Rc::clone(self.image.get_or_insert_with(|| {
            let mut thread = MaybeUninit::uninit();
            let length = self.range.end - self.bottom;
            let mut stack = Box::new_uninit_slice(length);
            // SAFETY: the coroutine is suspended (STRAND-SUSPENDED: the runner calls this only
            // between two steps), so nobody else uses it or its stack, of which the bytes
            // from `bottom` on lie above the guard page. They are copied as bytes, whatever
            // they are, and nobody drops the copies.
            unsafe {
                std::ptr::copy_nonoverlapping(&raw const self.thread, thread.as_mut_ptr(), 1);
                let from = std::ptr::with_exposed_provenance::<MaybeUninit<u8>>(self.bottom);
                std::ptr::copy_nonoverlapping(from, stack.as_mut_ptr(), length);
            }
            Rc::new(StrandImage { thread, bottom: self.bottom, stack })
        }))
    }

    /// Makes it look like that again.
    pub(crate) fn put_back(&mut self, image: &Rc<StrandImage>) {
        if self.image.as_ref().is_some_and(|now| Rc::ptr_eq(now, image)) {
            return;
        }
        // SAFETY: the coroutine is suspended (STRAND-SUSPENDED, which the runner keeps). The one
        // that is overwritten has the same stack (STRAND-SAME-STACK: the runner puts an image
        // back on its own strand), the only thing that it owns, and is not dropped; nor is
        // what lies on it (STRAND-OWNS-NOTHING).
        unsafe {
            std::ptr::copy_nonoverlapping(image.thread.as_ptr(), &raw mut self.thread, 1);
            let to = std::ptr::with_exposed_provenance_mut::<MaybeUninit<u8>>(image.bottom);
            std::ptr::copy_nonoverlapping(image.stack.as_ptr(), to, image.stack.len());
        }
        self.bottom = image.bottom;
        self.image = Some(Rc::clone(image));
    }
}

impl Drop for ModelStrand {
    fn drop(&mut self) {
        // Else the coroutine would unwind itself.
        self.forget();
    }
}
