//! Which locks a thread holds, by what its frames have done and would do.
//!
//! # How
//! For one lock, the frames of a thread are gone through from the outermost on, each with what it is
//! inside of, and what is known of the lock goes from one to the next. A frame holds it that is in a
//! `with` of it, or has acquired it and not released it on any way to where it is. An
//! exception's handler that would release it confirms that, and is the landing pad of Python.
//!
//! # What is left out
//! - `Condition.wait` gives back the lock of its condition while it waits: a thread in it does not
//!   hold that, though the statement around it goes on.
//! - A thread that would release a lock, and did not acquire it in a frame that is seen, contradicts
//!   all others: whoever acquired it may be waiting for that.

use super::calls::Body;
use super::code::Code;
use super::contexts::{self, Activation, Context, Finder, lock_behind};
use super::flow::{About, Flow, Past};
use super::frames::RawFrame;
use super::locks;
use super::model::{PythonClaim, PythonEvidence, PythonFrame, PythonLock};
use super::objects::Objects;
use super::opcodes::Op;
use super::rebound::Rebound;
use super::scope::Scope;

/// What a thread has to do with one lock.
struct Search<'a, 'o> {
    objects: &'a Objects<'o>,
    rebound: &'a Rebound,
    lock: u64,
    past: Past,
    /// Where it was acquired, and whether by a `with`.
    by: Option<(PythonFrame, bool)>,
    /// The frame whose handler would release it, and the line.
    pad: Option<(PythonFrame, Option<u32>)>,
    /// Some frame would release it as it goes on.
    releases: bool,
}

/// Returns what a thread has to do with a lock, if anything; `frames`: outermost first; `waits`: it
/// waits for the lock.
pub(super) fn claim(
    finder: &mut Finder<'_, '_>,
    frames: &[Activation],
    lock: &PythonLock,
    waits: bool,
) -> Option<PythonClaim> {
    let mut search = Search {
        objects: finder.objects,
        rebound: finder.rebound,
        lock: lock.object,
        past: Past::Untouched,
        by: None,
        pad: None,
        releases: false,
    };
    for frame in frames {
        search.frame(finder, frame);
    }
    search.claim(lock, waits)
}

impl Search<'_, '_> {
    fn claim(self, lock: &PythonLock, waits: bool) -> Option<PythonClaim> {
        let would_release = self.pad.is_some() || self.releases;
        let (evidence, rests_on) = match (self.past, self.by, self.pad) {
            (Past::Held, Some((frame, true)), _) => {
                (PythonEvidence::Guard, format!("{} is inside `with`", frame.site()))
            }
            // What acquires a lock twice waits for a signal.
            (Past::Held, Some(_), _) if waits => (PythonEvidence::Perhaps, String::new()),
            (Past::Held, Some(_), Some((frame, line))) => {
                let line = line.map(|line| format!(" at line {line}")).unwrap_or_default();
                let site = frame.site();
                (PythonEvidence::Pad, format!("{site}, whose handler{line} would release it"))
            }
            (Past::Held, Some((frame, false)), None) => (
                PythonEvidence::Likely,
                format!("{} acquired it, and has not released it", frame.site()),
            ),
            (Past::Untouched, None, Some(_)) if !waits => {
                (PythonEvidence::WouldRelease, String::new())
            }
            (Past::Untouched | Past::Perhaps | Past::Released, ..) if would_release && !waits => {
                (PythonEvidence::MayRelease, String::new())
            }
            (Past::Perhaps, ..) => (PythonEvidence::Perhaps, String::new()),
            _ => return None,
        };
        Some(PythonClaim { lock: lock.key, evidence, rests_on })
    }

    fn frame(&mut self, finder: &mut Finder<'_, '_>, activation: &Activation) {
        let frame = &activation.frame;
        if let Some(released) = locks::condition_lock(self.objects, frame) {
            // Which lock it has given back is not always known.
            if released.is_none_or(|lock| lock == self.lock) {
                self.set(Past::Released);
            }
            return;
        }
        let scope = frame.scope(self.objects);
        let mut own = Past::Untouched;
        if self.past == Past::Held && frame.code.body(self.objects).is_none() {
            // What a function has done whose instructions cannot be read is not known.
            self.set(Past::Perhaps);
        }
        // `ExitStack` takes the ways out of classes, and calls none of them then.
        if !frame.code.is_in("contextlib.py")
            && let Some((body, at)) = place(self.objects, frame)
            && let Some(about) = self.about(&frame.code, body, &scope)
        {
            let is_true =
                |local| scope.local(self.objects, local).and_then(|it| self.objects.truth(it));
            let flow = Flow { body, about, is_true: &is_true };
            own = flow.past(at);
            let pad = self.handler(&flow, frame, &scope, at);
            let releases = flow.would_release(at);
            match own {
                Past::Untouched => {}
                Past::Held => {
                    self.past = own;
                    self.by = Some((frame.shown(), false));
                }
                Past::Released | Past::Perhaps => self.set(own),
            }
            self.releases |= releases;
            if let Some(pad) = pad {
                let line = body.bytecode.instructions.get(pad);
                let line = line.and_then(|it| frame.code.line(it.start));
                self.pad = Some((frame.shown(), line));
            }
        }
        for context in &activation.contexts {
            self.context(finder, context, frame, own);
        }
    }

    fn set(&mut self, past: Past) {
        (self.past, self.by) = (past, None);
    }

    /// Takes in something that a frame is inside of; `own`: what the frame itself did to the lock.
    fn context(
        &mut self,
        finder: &mut Finder<'_, '_>,
        context: &Context,
        frame: &RawFrame,
        own: Past,
    ) {
        let enters = |search: &mut Self| match own {
            Past::Untouched | Past::Held => {
                search.past = Past::Held;
                search.by = Some((frame.shown(), true));
            }
            Past::Released | Past::Perhaps => search.set(own),
        };
        match context {
            Context::Release(object) => {
                if lock_behind(self.objects, *object) == Some(self.lock) {
                    enters(self);
                }
            }
            Context::Suspended { inner, is_iterated } => {
                self.frame(finder, inner);
                if *is_iterated {
                    // Another thread may have gone on with it.
                    self.by = self.by.take().map(|(frame, _)| (frame, false));
                    self.pad = None;
                }
                if matches!(own, Past::Released | Past::Perhaps) {
                    self.set(own);
                }
            }
            Context::Exit { code, scope, object } => {
                let ends = self.ways(code, scope);
                match ends {
                    Some(Way::Releases) => {
                        let enter = contexts::enters(finder, *object);
                        let acquires = enter.and_then(|code| self.acquires(&code, scope));
                        if acquires == Some(true) {
                            enters(self);
                        } else {
                            self.set(Past::Perhaps);
                        }
                    }
                    Some(Way::Acquires) => self.set(Past::Released),
                    None => {}
                }
            }
        }
    }

    /// Returns what the sites of a function are about; `None` if none can be about this lock.
    fn about(&self, code: &Code, body: &Body, scope: &Scope) -> Option<Vec<About>> {
        let names = code.names(self.objects);
        let about = |site: &super::calls::Site| {
            let Some(path) = &site.path else { return About::Unknown };
            let Some(object) = scope.value(self.objects, names, path) else {
                return About::Unknown;
            };
            match lock_behind(self.objects, object) {
                // Which lock it was when it was acquired is not known.
                Some(_) if self.rebound.may_change(self.objects, names, scope, path) => {
                    About::Unknown
                }
                Some(lock) if lock == self.lock => About::This,
                Some(_) => About::Another,
                None if self.is_other(object) => About::Another,
                None => About::Unknown,
            }
        };
        let about: Vec<About> = body.sites.iter().map(about).collect();
        about.iter().any(|&about| about != About::Another).then_some(about)
    }

    /// Tells whether an object, which is no lock, has methods of the same names that do nothing to
    /// any lock of this kind that is still held behind them.
    fn is_other(&self, object: u64) -> bool {
        const OTHERS: &[&str] = &["_multiprocessing.SemLock", "memoryview", "NoneType"];
        self.objects.type_name(object).is_some_and(|kind| OTHERS.contains(&kind.as_ref()))
            || contexts::is_threading(self.objects, object, &["Semaphore", "BoundedSemaphore"])
    }

    fn handler(
        &self,
        flow: &Flow<'_>,
        frame: &RawFrame,
        scope: &Scope,
        at: usize,
    ) -> Option<usize> {
        let (body, objects) = (flow.body, self.objects);
        let decide = |op: Op, tested: usize| {
            let path = body.path_to(objects, &frame.code, tested)?;
            let value = scope.value(objects, frame.code.names(objects), &path)?;
            match op {
                Op::JumpIf(wanted) => objects.truth(value).map(|truth| truth == wanted),
                Op::JumpIfNone(wanted) => objects.is_none(value).map(|none| none == wanted),
                _ => None,
            }
        };
        let by_table = |at: usize| body.bytecode.handler(at);
        let mut blocks = frame.handlers.iter().filter_map(|&byte| body.bytecode.index(byte));
        if self.objects.layout.version < (3, 11) {
            let first = blocks.next()?;
            flow.released_by_handler(first, &mut |_| blocks.next(), &decide)
        } else {
            flow.released_by_handler(by_table(at)?, &mut |at| by_table(at), &decide)
        }
    }

    /// Returns what a function that runs at the end of a `with` would do to the lock.
    fn ways(&self, code: &Code, scope: &Scope) -> Option<Way> {
        let body = code.body(self.objects)?;
        let about = self.about(code, body, scope)?;
        if !about.contains(&About::This) {
            return None;
        }
        let flow = Flow { body, about, is_true: &|_| None };
        Some(if flow.would_release(0) { Way::Releases } else { Way::Acquires })
    }

    /// Tells whether a function acquires the lock in any case, and does not release it.
    fn acquires(&self, code: &Code, scope: &Scope) -> Option<bool> {
        let body = code.body(self.objects)?;
        let about = self.about(code, body, scope)?;
        let flow = Flow { body, about, is_true: &|_| None };
        let ends = 0..body.bytecode.instructions.len();
        let mut ends = ends.filter(|&at| body.bytecode.instructions[at].op == Op::Return);
        Some(ends.all(|at| matches!(flow.past(at), Past::Held)))
    }
}

/// What a function does to a lock first.
enum Way {
    Releases,
    Acquires,
}

/// Returns the code of a frame's function, if it has calls that concern locks, and the index of the
/// present instruction.
fn place<'f>(objects: &Objects<'_>, frame: &'f RawFrame) -> Option<(&'f Body, usize)> {
    let body = frame.code.body(objects)?;
    if body.sites.is_empty() {
        return None;
    }
    Some((body, body.bytecode.index(frame.offset)?))
}
