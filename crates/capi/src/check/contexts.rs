//! What is known of the contexts of wait/wound mutexes, and the rules for them.
//!
//! The rules are those of the kernel's debugging build, and of the crate's.

use super::report::{ReportedViolation, SourcePlace};
use lockstead_rules::Rule;
use std::collections::HashMap;

/// A context that was begun at an address.
#[derive(Debug)]
struct BegunContext {
    class: usize,
    thread: u32,
    begun: SourcePlace,
    ended: Option<SourcePlace>,
    done: Option<SourcePlace>,
    /// The lock that it was refused, and where.
    refused: Option<(usize, SourcePlace)>,
    held: Vec<usize>,
}

/// How a lock is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestWay {
    Plain,
    /// The lock is asked for as the one that the context was refused.
    Slow,
    Try,
}

/// All contexts, by address, and the classes of the locks as far as they are known: as
/// initialised, or that of the first context that took it.
#[derive(Default)]
pub(super) struct Contexts {
    known: HashMap<usize, BegunContext>,
    classes: HashMap<usize, (usize, SourcePlace)>,
}

/// A call about a context: what the message says, and where.
pub(super) struct ContextCall<'a> {
    pub(super) name: &'static str,
    pub(super) thread: u32,
    pub(super) at: &'a SourcePlace,
}

impl ContextCall<'_> {
    pub(super) fn breaks(&self, rule: Rule, detail: &str) -> ReportedViolation {
        let (name, thread) = (self.name, self.thread);
        ReportedViolation::new(rule, format!("{name}: thread {thread} {detail}"), self.at)
    }
}

impl Contexts {
    /// Notes that a lock of this class begins; 0: of a class that is not known.
    pub(super) fn lock_begins(&mut self, lock: usize, class: usize, at: &SourcePlace) {
        self.classes.remove(&lock);
        if class != 0 {
            self.classes.insert(lock, (class, at.clone()));
        }
    }

    /// Asks the rules before a context begins.
    pub(super) fn may_begin(
        &self,
        ctx: usize,
        class: usize,
        call: &ContextCall<'_>,
    ) -> Result<(), ReportedViolation> {
        let live = |context: &&BegunContext| context.ended.is_none();
        if let Some(before) = self.known.get(&ctx).filter(live) {
            return Err(call.breaks(
                Rule::BegunAgain,
                &format!(
                    "begins the context at {ctx:#x}, which was begun at {} and has not ended: \
                     lks_ww_ctx_fini was forgotten",
                    before.begun
                ),
            ));
        }
        let same =
            |context: &&BegunContext| context.thread == call.thread && context.class == class;
        if let Some(other) = self.known.values().filter(live).find(same) {
            return Err(call.breaks(
                Rule::SecondContext,
                &format!(
                    "has a context of this class already, begun at {}: the two may wait for each \
                     other",
                    other.begun
                ),
            ));
        }
        Ok(())
    }

    /// Notes that a context has begun.
    pub(super) fn begins(&mut self, ctx: usize, class: usize, call: &ContextCall<'_>) {
        let fresh = BegunContext {
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

    /// Returns the context, if the thread may use it.
    fn of(
        &mut self,
        ctx: usize,
        call: &ContextCall<'_>,
    ) -> Result<&mut BegunContext, ReportedViolation> {
        let Some(context) = self.known.get_mut(&ctx) else {
            return Err(call.breaks(
                Rule::NoContext,
                &format!("uses {ctx:#x} as a context, where none was begun"),
            ));
        };
        if let Some(ended) = &context.ended {
            return Err(call.breaks(
                Rule::EndedContext,
                &format!("uses the context at {ctx:#x}, which ended at {ended}"),
            ));
        }
        if context.thread != call.thread {
            return Err(call.breaks(
                Rule::ContextOfOtherThread,
                &format!(
                    "uses the context that thread {} began at {}",
                    context.thread, context.begun
                ),
            ));
        }
        Ok(context)
    }

    /// Asks the rules before a context ends, and returns what it holds.
    pub(super) fn may_end(
        &mut self,
        ctx: usize,
        call: &ContextCall<'_>,
    ) -> Result<Vec<usize>, ReportedViolation> {
        self.of(ctx, call).map(|context| context.held.clone())
    }

    /// Notes that a context has ended.
    pub(super) fn ends(&mut self, ctx: usize, at: &SourcePlace) {
        if let Some(context) = self.known.get_mut(&ctx) {
            context.ended = Some(at.clone());
        }
    }

    /// Notes that the context says that it needs no further lock.
    pub(super) fn done(
        &mut self,
        ctx: usize,
        call: &ContextCall<'_>,
    ) -> Result<(), ReportedViolation> {
        let context = self.of(ctx, call)?;
        if let Some(before) = &context.done {
            let detail =
                format!("said before, at {before}, that the context needs no further lock");
            return Err(call.breaks(Rule::DoneTwice, &detail));
        }
        context.done = Some(call.at.clone());
        Ok(())
    }

    /// Asks the rules before a context asks for a lock; `name` is what the lock is called.
    pub(super) fn may_ask(
        &mut self,
        ctx: usize,
        (lock, name): (usize, &str),
        way: RequestWay,
        call: &ContextCall<'_>,
    ) -> Result<(), ReportedViolation> {
        let class_of_it = self.classes.get(&lock).cloned();
        let context = self.of(ctx, call)?;
        if let Some((class, known)) = class_of_it
            && class != context.class
        {
            return Err(call.breaks(
                Rule::ContextOfOtherClass,
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
                Rule::AcquisitionAfterDone,
                &format!(
                    "asks for the {name} in a context that said at {done} that it needs no further \
                     lock"
                ),
            ));
        }
        let holds = context.held.len();
        match &context.refused {
            Some((_, refused)) if holds != 0 => Err(call.breaks(
                Rule::NoBackingOff,
                &format!(
                    "was told at {refused} to back off (-EDEADLK), and asks for the {name} while it \
                     still holds {holds} lock(s) in the context: others may wait for those"
                ),
            )),
            Some((other, refused)) if *other != lock => Err(call.breaks(
                Rule::OtherLockFirst,
                &format!(
                    "was refused the lock at {other:#x} at {refused}, and asks for the {name} \
                     first: it may be refused again at once"
                ),
            )),
            None if way == RequestWay::Slow && holds != 0 => Err(call.breaks(
                Rule::SlowWhileHolding,
                &format!(
                    "waits for the {name} as long as it takes, and holds {holds} lock(s) in the \
                     context begun at {}: others may wait for those",
                    context.begun
                ),
            )),
            None if way == RequestWay::Slow => Err(call.breaks(
                Rule::SlowWithoutRefusal,
                &format!(
                    "waits for the {name}, which the context begun at {} was not refused",
                    context.begun
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Asks the rules before a thread asks for a lock without a context.
    pub(super) fn may_ask_alone(
        &self,
        (lock, name): (usize, &str),
        call: &ContextCall<'_>,
    ) -> Result<(), ReportedViolation> {
        let Some((class, _)) = self.classes.get(&lock) else { return Ok(()) };
        let beside = |context: &&BegunContext| {
            context.thread == call.thread
                && context.class == *class
                && context.ended.is_none()
                && !context.held.is_empty()
        };
        let Some(context) = self.known.values().find(beside) else { return Ok(()) };
        Err(call.breaks(
            Rule::AloneBesideContext,
            &format!(
                "asks for the {name} alone, and holds {} lock(s) of its class in the context begun \
                 at {}: it is never told to back off, and may wait for ever",
                context.held.len(),
                context.begun
            ),
        ))
    }

    /// Notes that a context has a lock.
    pub(super) fn acquired(&mut self, ctx: usize, lock: usize, at: &SourcePlace) {
        if let Some(context) = self.known.get_mut(&ctx) {
            context.refused = None;
            context.held.push(lock);
            let class = context.class;
            self.classes.entry(lock).or_insert_with(|| (class, at.clone()));
        }
    }

    /// Notes that a context was told to back off.
    pub(super) fn refused(&mut self, ctx: usize, lock: usize, at: &SourcePlace) {
        if let Some(context) = self.known.get_mut(&ctx) {
            context.refused = Some((lock, at.clone()));
        }
    }

    /// Returns whether a context holds a lock.
    pub(super) fn holds(&self, ctx: usize, lock: usize) -> bool {
        self.known.get(&ctx).is_some_and(|context| context.held.contains(&lock))
    }

    /// Notes that the thread that held a lock holds it no more.
    pub(super) fn released(&mut self, lock: usize, thread: u32) {
        for context in self.known.values_mut().filter(|context| context.thread == thread) {
            context.held.retain(|held| *held != lock);
        }
    }

    /// Returns where the contexts were begun that a thread which ends has not ended.
    pub(super) fn left_by(&mut self, thread: u32) -> Vec<SourcePlace> {
        let left = |context: &BegunContext| context.thread == thread && context.ended.is_none();
        let places = self.known.values().filter(|context| left(context));
        let places = places.map(|context| context.begun.clone()).collect();
        self.known.retain(|_, context| !left(context));
        places
    }
}
