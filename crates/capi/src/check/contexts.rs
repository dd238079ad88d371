//! What is known of the contexts of wait/wound mutexes, and the rules for them.
//!
//! The rules are those of the kernel's debugging build, and of the crate's.

use super::report::{Place, Rule};
use super::table::Table;
use std::collections::HashMap;

/// A context that was begun at an address.
#[derive(Debug)]
struct Context {
    class: usize,
    thread: u32,
    begun: Place,
    ended: Option<Place>,
    done: Option<Place>,
    /// The lock that it was refused, and where.
    refused: Option<(usize, Place)>,
    held: Vec<usize>,
}

/// How a lock is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Plain,
    /// As the one that the context was refused.
    Slow,
    Try,
}

/// All contexts, by address, and the classes of the locks as far as they are known: as
/// initialised, or that of the first context that took it.
#[derive(Default)]
pub(super) struct Contexts {
    known: HashMap<usize, Context>,
    classes: HashMap<usize, (usize, Place)>,
}

/// A call about a context: what the message says, and where.
pub(super) struct Call<'a> {
    pub(super) name: &'static str,
    pub(super) thread: u32,
    pub(super) at: &'a Place,
}

impl Call<'_> {
    fn breaks(&self, what: &'static str, detail: &str) -> Rule {
        let (name, thread) = (self.name, self.thread);
        let detail = format!("{name}: thread {thread} {detail}");
        Rule { what, detail, at: self.at.clone() }
    }
}

impl Contexts {
    /// A lock of this class begins; 0: of a class that is not known.
    pub(super) fn lock_begins(&mut self, lock: usize, class: usize, at: &Place) {
        self.classes.remove(&lock);
        if class != 0 {
            self.classes.insert(lock, (class, at.clone()));
        }
    }

    /// Before a context begins.
    pub(super) fn may_begin(&self, ctx: usize, class: usize, call: &Call<'_>) -> Result<(), Rule> {
        let live = |context: &&Context| context.ended.is_none();
        if let Some(before) = self.known.get(&ctx).filter(live) {
            return Err(call.breaks(
                "context begun again",
                &format!(
                    "begins the context at {ctx:#x}, which was begun at {} and has not ended: \
                     lks_ww_ctx_fini was forgotten",
                    before.begun
                ),
            ));
        }
        let same = |context: &&Context| context.thread == call.thread && context.class == class;
        if let Some(other) = self.known.values().filter(live).find(same) {
            return Err(call.breaks(
                "second context of a class",
                &format!(
                    "has a context of this class already, begun at {}: the two may wait for each \
                     other",
                    other.begun
                ),
            ));
        }
        Ok(())
    }

    pub(super) fn begins(&mut self, ctx: usize, class: usize, call: &Call<'_>) {
        let fresh = Context {
            class,
            thread: call.thread,
            begun: call.at.clone(),
            ended: None,
            done: None,
            refused: None,
            held: Vec::new(),
        };
        self.known.insert(ctx, fresh);
    }

    /// The context, if the thread may use it.
    fn of(&mut self, ctx: usize, call: &Call<'_>) -> Result<&mut Context, Rule> {
        let Some(context) = self.known.get_mut(&ctx) else {
            return Err(call.breaks(
                "no context",
                &format!("uses {ctx:#x} as a context, where none was begun"),
            ));
        };
        if let Some(ended) = &context.ended {
            return Err(call.breaks(
                "use of an ended context",
                &format!("uses the context at {ctx:#x}, which ended at {ended}"),
            ));
        }
        if context.thread != call.thread {
            return Err(call.breaks(
                "context of another thread",
                &format!(
                    "uses the context that thread {} began at {}",
                    context.thread, context.begun
                ),
            ));
        }
        Ok(context)
    }

    /// Before a context ends.
    pub(super) fn may_end(&mut self, ctx: usize, call: &Call<'_>) -> Result<Vec<usize>, Rule> {
        self.of(ctx, call).map(|context| context.held.clone())
    }

    pub(super) fn ends(&mut self, ctx: usize, at: &Place) {
        if let Some(context) = self.known.get_mut(&ctx) {
            context.ended = Some(at.clone());
        }
    }

    /// The context says that it needs no further lock.
    pub(super) fn done(&mut self, ctx: usize, call: &Call<'_>) -> Result<(), Rule> {
        let context = self.of(ctx, call)?;
        if let Some(before) = &context.done {
            let detail =
                format!("said before, at {before}, that the context needs no further lock");
            return Err(call.breaks("done twice", &detail));
        }
        context.done = Some(call.at.clone());
        Ok(())
    }

    /// Before a context asks for a lock; `name` is what the lock is called.
    pub(super) fn may_ask(
        &mut self,
        ctx: usize,
        (lock, name): (usize, &str),
        way: Way,
        call: &Call<'_>,
    ) -> Result<(), Rule> {
        let class_of_it = self.classes.get(&lock).cloned();
        let context = self.of(ctx, call)?;
        if let Some((class, known)) = class_of_it
            && class != context.class
        {
            return Err(call.breaks(
                "context of another class",
                &format!(
                    "asks for the {name}, which is of the class at {class:#x} since {known}, in a \
                     context of the class at {:#x} begun at {}: nobody can say which of two such \
                     contexts is older",
                    context.class, context.begun
                ),
            ));
        }
        if let Some(done) = &context.done {
            return Err(call.breaks(
                "acquisition after done",
                &format!(
                    "asks for the {name} in a context that said at {done} that it needs no further \
                     lock"
                ),
            ));
        }
        let holds = context.held.len();
        match &context.refused {
            Some((_, refused)) if holds != 0 => Err(call.breaks(
                "no backing off after a refusal",
                &format!(
                    "was told at {refused} to back off (-EDEADLK), and asks for the {name} while it \
                     still holds {holds} lock(s) in the context: others may wait for those"
                ),
            )),
            Some((other, refused)) if *other != lock => Err(call.breaks(
                "another lock after a refusal",
                &format!(
                    "was refused the lock at {other:#x} at {refused}, and asks for the {name} \
                     first: it may be refused again at once"
                ),
            )),
            None if way == Way::Slow && holds != 0 => Err(call.breaks(
                "lock_slow while holding",
                &format!(
                    "waits for the {name} as long as it takes, and holds {holds} lock(s) in the \
                     context begun at {}: others may wait for those",
                    context.begun
                ),
            )),
            None if way == Way::Slow => Err(call.breaks(
                "lock_slow without a refusal",
                &format!(
                    "waits for the {name}, which the context begun at {} was not refused",
                    context.begun
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Before a thread asks for a lock without a context.
    pub(super) fn may_ask_alone(
        &self,
        (lock, name): (usize, &str),
        call: &Call<'_>,
    ) -> Result<(), Rule> {
        let Some((class, _)) = self.classes.get(&lock) else { return Ok(()) };
        let beside = |context: &&Context| {
            context.thread == call.thread
                && context.class == *class
                && context.ended.is_none()
                && !context.held.is_empty()
        };
        let Some(context) = self.known.values().find(beside) else { return Ok(()) };
        Err(call.breaks(
            "lock taken alone beside a context",
            &format!(
                "asks for the {name} alone, and holds {} lock(s) of its class in the context begun \
                 at {}: it is never told to back off, and may wait for ever",
                context.held.len(),
                context.begun
            ),
        ))
    }

    /// A context has a lock.
    pub(super) fn acquired(&mut self, ctx: usize, lock: usize, at: &Place) {
        if let Some(context) = self.known.get_mut(&ctx) {
            context.refused = None;
            context.held.push(lock);
            let class = context.class;
            self.classes.entry(lock).or_insert_with(|| (class, at.clone()));
        }
    }

    /// A context was told to back off.
    pub(super) fn refused(&mut self, ctx: usize, lock: usize, at: &Place) {
        if let Some(context) = self.known.get_mut(&ctx) {
            context.refused = Some((lock, at.clone()));
        }
    }

    /// Whether a context holds a lock.
    pub(super) fn holds(&self, ctx: usize, lock: usize) -> bool {
        self.known.get(&ctx).is_some_and(|context| context.held.contains(&lock))
    }

    /// The thread that held a lock does no more.
    pub(super) fn released(&mut self, lock: usize, thread: u32) {
        for context in self.known.values_mut().filter(|context| context.thread == thread) {
            context.held.retain(|held| *held != lock);
        }
    }

    /// A thread has ended: where contexts of its were begun that have not.
    pub(super) fn left_by(&mut self, thread: u32) -> Vec<Place> {
        let left = |context: &Context| context.thread == thread && context.ended.is_none();
        let places = self.known.values().filter(|context| left(context));
        let places = places.map(|context| context.begun.clone()).collect();
        self.known.retain(|_, context| !left(context));
        places
    }
}

impl Table {
    /// Why a context may not end that holds locks.
    pub(super) fn unreleased(&self, held: &[usize], call: &Call<'_>) -> Option<Rule> {
        let first = self.holder(*held.first()?, Some(call.thread))?;
        Some(call.breaks(
            "context ended while holding",
            &format!(
                "ends a context that holds {} lock(s), the {} since {}: release them before",
                held.len(),
                self.name(first.address),
                first.at
            ),
        ))
    }
}
