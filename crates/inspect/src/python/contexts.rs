//! What a frame is inside of: `with` statements, and loops over generators.
//!
//! # How
//! A `with` keeps the way out, `__exit__` of its object, on the stack of its frame until it is left.
//! Its block is entered only when `__enter__` has returned: what lies on the stack below
//! the innermost block that the frame is in belongs to statements that have been entered. A
//! statement that still waits for its lock is not among them, in any version, though
//! 3.9 to 3.11 and 3.14 put the way out on the stack before they wait.
//!
//! A generator that a loop goes through lies on the stack as well, at the depth of the loop. Its frame is suspended, and is looked at like any other; so is that of
//! `contextlib.contextmanager`, which its way out leads to.

use super::code::Code;
use super::frames::{self, KnownCode, RawFrame};
use super::locks::{self, receiver};
use super::objects::{Name, Objects};
use super::rebound::Rebound;
use super::scope::{Scope, Variables, in_classes};
use std::collections::HashSet;
use std::rc::Rc;

/// How deep frames are looked for in frames.
const DEEPEST: u32 = 8;
/// The most that one `contextlib.ExitStack` is asked for, and what a block of its queue has.
const STACKED: u64 = 1024;
const QUEUE_BLOCK: u64 = 64;
/// The methods that give a lock back where they are called at the end.
const CALLED: &[&str] = &["__exit__", "release"];
/// The function and the object of a method.
const FUNCTION: u64 = 16;
const OBJECT: u64 = 24;
/// The name of a method of C that is not bound.
const NAME: u64 = 24;
/// The iterator that an `enumerate` goes through.
const ENUMERATED: u64 = 24;

/// A frame, and what it is inside of, the outermost first.
#[derive(Debug)]
pub(super) struct Activation {
    pub(super) frame: RawFrame,
    pub(super) contexts: Vec<Context>,
}

impl Activation {
    /// Returns the innermost of the frames that lie in one another.
    pub(super) fn innermost(&self) -> &RawFrame {
        let inner = self.contexts.iter().rev().find_map(|context| match context {
            Context::Suspended { inner, .. } => Some(inner.innermost()),
            Context::Release(_) | Context::Exit { .. } => None,
        });
        inner.unwrap_or(&self.frame)
    }
}

/// Something that a frame is inside of.
#[derive(Debug)]
pub(super) enum Context {
    /// The statement releases this object at its end, a lock or a condition.
    Release(u64),
    /// A function of Python runs at its end, for an object.
    Exit { code: Rc<Code>, scope: Scope, object: u64 },
    /// The frame of a generator that is suspended. One that a loop goes through another thread may
    /// go on with; that of a manager of contexts is its statement's own.
    Suspended { inner: Box<Activation>, is_iterated: bool },
}

/// Finds what frames are inside of.
pub(super) struct Finder<'a, 'o> {
    pub(super) objects: &'a Objects<'o>,
    pub(super) known: &'a mut KnownCode,
    /// The generators that some frame goes through.
    pub(super) run: HashSet<u64>,
    /// The names that functions give another value.
    pub(super) rebound: &'a Rebound,
}

impl Finder<'_, '_> {
    /// Returns a frame with what it is inside of.
    pub(super) fn activation(&mut self, frame: &RawFrame) -> Activation {
        self.at_depth(frame, 0)
    }

    /// Returns the frame of a suspended generator that no frame goes through, with what it is inside
    /// of; the next time it counts as gone through.
    pub(super) fn unrun(&mut self, generator: u64) -> Option<Activation> {
        if !self.run.insert(generator) {
            return None;
        }
        let frame = frames::of_generator(self.objects, generator, self.known)?;
        Some(self.activation(&frame))
    }

    fn at_depth(&mut self, frame: &RawFrame, depth: u32) -> Activation {
        let mut contexts = Vec::new();
        let kept = frame.kept(self.objects);
        for (at, &value) in kept.iter().enumerate() {
            let above = kept.get(at + 1).copied().filter(|_| self.objects.layout.marked);
            self.exit(value, above, &["__exit__"], depth, &mut contexts);
        }
        for value in frame.iterated(self.objects) {
            let iterated = self.objects.is(value, "enumerate");
            let inner = iterated.then(|| self.objects.reader.pointer(value, ENUMERATED)).flatten();
            self.generator(inner.unwrap_or(value), true, depth, &mut contexts);
        }
        Activation { frame: frame.clone(), contexts }
    }

    fn generator(
        &mut self,
        value: u64,
        is_iterated: bool,
        depth: u32,
        contexts: &mut Vec<Context>,
    ) {
        if depth >= DEEPEST || self.run.contains(&value) {
            return;
        }
        let Some(frame) = frames::of_generator(self.objects, value, self.known) else { return };
        self.run.insert(value);
        let inner = self.at_depth(&frame, depth + 1);
        contexts.push(Context::Suspended { inner: Box::new(inner), is_iterated });
    }

    /// Adds what a value stands for that may be a way out, a method with one of these names;
    /// `above`: the value above it, which is its object in versions that do not bind it.
    fn exit(
        &mut self,
        value: u64,
        above: Option<u64>,
        named: &[&str],
        depth: u32,
        contexts: &mut Vec<Context>,
    ) {
        let (objects, reader) = (self.objects, self.objects.reader);
        let Some(kind) = objects.type_name(value) else { return };
        match kind.as_ref() {
            "builtin_function_or_method" => {
                // The description of a function of C begins with its name.
                let name = reader.pointer(value, FUNCTION);
                let name = name.and_then(|it| reader.c_string(reader.pointer(it, 0)?, 16));
                let releases = name.is_some_and(|name| named.contains(&name.as_str()));
                contexts
                    .extend(receiver(objects, value).filter(|_| releases).map(Context::Release));
            }
            "method" => {
                let parts = reader.pointer(value, FUNCTION).zip(reader.pointer(value, OBJECT));
                if let Some((function, object)) = parts {
                    self.method(function, object, depth, contexts);
                }
            }
            "function" | "method_descriptor" => {
                if let Some(object) = above {
                    self.method(value, object, depth, contexts);
                }
            }
            _ => {}
        }
    }

    fn method(&mut self, function: u64, object: u64, depth: u32, contexts: &mut Vec<Context>) {
        let (objects, reader) = (self.objects, self.objects.reader);
        if objects.is(function, "method_descriptor") {
            let name = reader.pointer(function, NAME).and_then(|name| objects.text(name));
            if name.is_some_and(|name| name == "__exit__") {
                contexts.push(Context::Release(object));
            }
            return;
        }
        let Some((code, qualified)) = self.function(function) else { return };
        let is = |file: &str, name: &str| code.is_in(file) && qualified == name;
        if is("threading.py", "Condition.__exit__") {
            contexts.push(Context::Release(object));
        } else if is("contextlib.py", "_GeneratorContextManager.__exit__") {
            if let Some(generator) = objects.attribute(object, "gen") {
                self.generator(generator, false, depth, contexts);
            }
        } else if is("contextlib.py", "ExitStack.__exit__") {
            if depth < DEEPEST {
                for callback in self.stacked(object) {
                    self.callback(callback, depth + 1, contexts);
                }
            }
        } else if code.name == "__exit__" {
            let scope = Scope {
                variables: Variables::Given(vec![object]),
                own: code.locals,
                globals: reader.pointer(function, objects.layout.function_globals),
                names: None,
            };
            contexts.push(Context::Exit { code, scope, object });
        }
    }

    /// Returns the code of a function of Python, and its name with its class.
    fn function(&mut self, function: u64) -> Option<(Rc<Code>, String)> {
        let (objects, layout) = (self.objects, self.objects.layout);
        if !objects.is(function, "function") {
            return None;
        }
        let qualified =
            objects.text(objects.reader.pointer(function, layout.function_qualified)?)?;
        let code = objects.reader.pointer(function, layout.function_code)?;
        let known = self.known.entry(code).or_insert_with(|| Code::read(objects, code));
        Some((known.clone()?, qualified))
    }

    /// Adds what a `contextlib.ExitStack` calls at its end.
    fn callback(&mut self, callback: u64, depth: u32, contexts: &mut Vec<Context>) {
        /// The value of a cell.
        const CELL: u64 = 16;
        let (objects, reader) = (self.objects, self.objects.reader);
        let closure = objects.is(callback, "function").then(|| {
            let closure = reader.pointer(callback, objects.layout.function_closure)?;
            Some(objects.items(closure, 8))
        });
        match closure.flatten() {
            // What was given to `ExitStack.callback`, with its arguments.
            Some(cells) => {
                for value in cells.into_iter().filter_map(|cell| reader.pointer(cell, CELL)) {
                    self.exit(value, None, CALLED, depth, contexts);
                }
            }
            None => self.exit(callback, None, CALLED, depth, contexts),
        }
    }

    /// Returns what a `contextlib.ExitStack` calls at its end, the last one last.
    fn stacked(&self, stack: u64) -> Vec<u64> {
        let (objects, reader) = (self.objects, self.objects.reader);
        let read = || {
            let queue = objects.attribute(stack, "_exit_callbacks")?;
            if !objects.is(queue, "collections.deque") {
                return None;
            }
            let count = reader.u64(queue.checked_add(16)?)?.min(STACKED);
            let mut block = reader.pointer(queue, 24)?;
            let mut at = reader.u64(queue.checked_add(40)?)?;
            let mut found = Vec::new();
            for _ in 0..count {
                if at >= QUEUE_BLOCK {
                    (block, at) = (reader.pointer(block, 8 + 8 * QUEUE_BLOCK)?, 0);
                }
                let entry = reader.pointer(block, 8 + 8 * at)?;
                found.extend(objects.item(entry, 1));
                at += 1;
            }
            Some(found)
        };
        read().unwrap_or_default()
    }
}

/// Returns the lock that an object is, or that of a `threading.Condition`.
pub(super) fn lock_behind(objects: &Objects<'_>, object: u64) -> Option<u64> {
    if locks::lock(objects, object).is_some() {
        return Some(object);
    }
    if !is_threading(objects, object, &["Condition"]) {
        return None;
    }
    objects.attribute(object, "_lock").filter(|&lock| locks::lock(objects, lock).is_some())
}

/// Tells whether an object is of one of these classes of the module `threading`, and not of one that
/// is called alike.
pub(super) fn is_threading(objects: &Objects<'_>, object: u64, classes: &[&str]) -> bool {
    let is_called = objects.type_name(object).is_some_and(|kind| classes.contains(&kind.as_ref()));
    let module = || {
        let name = Name { text: "__module__", address: None };
        objects.text(in_classes(objects, objects.kind(object)?, name)?)
    };
    is_called && module().as_deref() == Some("threading")
}

/// Returns the `__enter__` of an object's class, if it is a function of Python.
pub(super) fn enters(finder: &mut Finder<'_, '_>, object: u64) -> Option<Rc<Code>> {
    let name = Name { text: "__enter__", address: None };
    let function = in_classes(finder.objects, finder.objects.kind(object)?, name)?;
    finder.function(function).map(|(code, _)| code)
}
