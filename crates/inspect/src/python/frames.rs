//! The frames of a thread.
//!
//! # Bounds
//! A chain may go round or lead anywhere, and recursion may be deep: no more than so many
//! frames are read, and the rest is said to be missing.

use super::code::Code;
use super::layout::{FrameRoot, FrameShape, GeneratorLayout};
use super::model::PythonFrame;
use super::objects::Objects;
use super::scope::{Scope, Variables};
use std::collections::HashMap;
use std::rc::Rc;

/// The most frames of a thread that are read.
pub(super) const MOST: usize = 1024;
/// The most bytes of bytecode of a function.
const LONGEST: u64 = 1 << 24;
/// The most blocks that a frame of 3.10 or before is in.
const BLOCKS: u32 = 20;
/// Bytes of such a block, which begins with its kind, and where its handler and the depth stand.
const BLOCK: u64 = 12;
const BLOCK_TRY: u32 = 122;
const BLOCK_HANDLER: u64 = 4;
const BLOCK_DEPTH: u64 = 8;
/// The most variables, or values on the stack, that are looked through for locks.
const SOME: u32 = 256;

/// One frame, and where its variables are.
#[derive(Clone, Debug)]
pub(super) struct RawFrame {
    pub(super) code: Rc<Code>,
    address: u64,
    /// The instruction that it is at, in bytes from the first.
    pub(super) offset: u32,
    /// The handlers of the blocks that it is in, the innermost first, in bytes: to 3.10.
    pub(super) handlers: Vec<u32>,
    locals: u64,
    stack: u64,
    /// Values on the stack that stay until the innermost block is left.
    depth: u32,
}

/// Code objects by their addresses.
pub(super) type KnownCode = HashMap<u64, Option<Rc<Code>>>;

/// The frames of one thread, innermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    pub(super) frames: Vec<RawFrame>,
    pub(super) cut: bool,
    /// The innermost frame, and the word of it that changes as it goes on.
    top: Option<(u64, u64)>,
    /// The frames are those of one moment.
    pub(super) steady: bool,
}

impl Chain {
    /// Reads the frames of the thread whose state is at an address.
    pub(super) fn read(objects: &Objects<'_>, state: u64, known: &mut KnownCode) -> Chain {
        const ATTEMPTS: u32 = 3;
        let mut chain = Chain::default();
        for _ in 0..ATTEMPTS {
            objects.reader.forget();
            let Some(top) = top(objects, state) else { return chain };
            let at = instruction(objects, top);
            chain = walk(objects, top, known);
            chain.top = at.map(|at| (top, at));
            let same = chain.is_still_there(objects, state);
            chain.steady = same;
            if same {
                break;
            }
        }
        chain
    }

    /// Tells whether the thread is where it was when the frames were read.
    pub(super) fn is_still_there(&self, objects: &Objects<'_>, state: u64) -> bool {
        let Some((top, at)) = self.top else { return false };
        let place = root(objects, state).map(|(place, _)| place);
        place.is_some_and(|place| objects.reader.now(place) == Some(top))
            && instruction(objects, top) == Some(at)
    }
}

/// Returns where the pointer to the innermost frame stands, and the offset it was found by.
fn root(objects: &Objects<'_>, state: u64) -> Option<(u64, u64)> {
    match objects.layout.root {
        FrameRoot::Direct(offset) => Some((state.checked_add(offset)?, offset)),
        FrameRoot::Record(record, offset) => {
            let record = objects.reader.now(state.checked_add(record)?)?;
            Some((record.checked_add(offset)?, offset))
        }
    }
}

fn top(objects: &Objects<'_>, state: u64) -> Option<u64> {
    let (place, _) = root(objects, state)?;
    objects.reader.now(place).filter(|&frame| frame != 0)
}

/// Returns the word of a frame that changes as it goes on, as it is now.
fn instruction(objects: &Objects<'_>, frame: u64) -> Option<u64> {
    let offset = match objects.layout.frame {
        FrameShape::Object { last, .. } => last,
        FrameShape::Record { instruction, .. } => instruction,
    };
    objects.reader.now(frame.checked_add(offset)?)
}

fn walk(objects: &Objects<'_>, top: u64, known: &mut KnownCode) -> Chain {
    let (reader, layout) = (objects.reader, objects.layout);
    let mut chain = Chain::default();
    let mut next = Some(top);
    for _ in 0..2 * MOST {
        let Some(frame) = next else { return chain };
        if chain.frames.len() == MOST {
            break;
        }
        next = reader.pointer(frame, layout.frame_back);
        let is_entry = match layout.frame {
            FrameShape::Record { owner, entries_from, .. } => {
                let owner = frame.checked_add(owner).and_then(|at| reader.u8(at));
                owner.is_none_or(|owner| owner >= entries_from)
            }
            FrameShape::Object { .. } => !objects.is(frame, "frame"),
        };
        if !is_entry && let Some(found) = read(objects, frame, known) {
            chain.frames.push(found);
        }
    }
    chain.cut = next.is_some();
    chain
}

fn read(objects: &Objects<'_>, frame: u64, known: &mut KnownCode) -> Option<RawFrame> {
    let (reader, layout) = (objects.reader, objects.layout);
    let code = objects.plain(reader.pointer(frame, layout.frame_code)?);
    let code = known.entry(code).or_insert_with(|| Code::read(objects, code)).clone()?;
    match layout.frame {
        FrameShape::Record { instruction, locals, .. } => {
            let at = reader.pointer(frame, instruction)?;
            // In front of the first instruction, of a function that has just been entered.
            let offset = at.saturating_sub(code.instructions);
            let offset = u32::try_from(offset).ok().filter(|_| offset < LONGEST)?;
            let locals = frame.checked_add(locals)?;
            let stack = locals.checked_add(8 * u64::from(code.locals))?;
            let depth = code.depth(offset);
            Some(RawFrame {
                code,
                address: frame,
                offset,
                handlers: Vec::new(),
                locals,
                stack,
                depth,
            })
        }
        FrameShape::Object { value_stack, last, step, blocks, block_list, locals } => {
            let last = reader.u32(frame.checked_add(last)?)?.cast_signed().max(0);
            let offset = last.unsigned_abs().checked_mul(step)?;
            let stack = reader.pointer(frame, value_stack)?;
            let count = reader.u32(frame.checked_add(blocks)?)?;
            let count = if count <= BLOCKS { count } else { 0 };
            let block = |at: u32, part: u64| {
                let place = block_list + BLOCK * u64::from(at) + part;
                reader.u32(frame.checked_add(place)?)
            };
            let depth = match count.checked_sub(1) {
                Some(innermost) => block(innermost, BLOCK_DEPTH)?,
                None => 0,
            };
            let handler = |at: u32| {
                let is_try = block(at, 0)? == BLOCK_TRY;
                is_try.then(|| block(at, BLOCK_HANDLER)?.checked_mul(step))?
            };
            let handlers = (0..count).rev().filter_map(handler).collect();
            let depth = depth.min(code.stack_size);
            let locals = frame.checked_add(locals)?;
            Some(RawFrame { code, address: frame, offset, handlers, locals, stack, depth })
        }
    }
}

/// Returns the frame of a generator that is suspended.
pub(super) fn of_generator(
    objects: &Objects<'_>,
    generator: u64,
    known: &mut KnownCode,
) -> Option<RawFrame> {
    if !objects.is(generator, "generator") {
        return None;
    }
    let reader = objects.reader;
    let state = |at: u64| reader.u8(at).map(u8::cast_signed);
    let frame = match objects.layout.generator {
        GeneratorLayout::Inside { frame, state: at, suspended } => {
            let state = state(generator.checked_add(at)?)?;
            (state == suspended || state == -1).then_some(generator.checked_add(frame)?)?
        }
        GeneratorLayout::Frame { frame, running, state: at } => {
            let frame = reader.pointer(generator, frame)?;
            let runs = match (running, at) {
                (Some(at), _) => state(generator.checked_add(at)?)? != 0,
                (None, Some(at)) => state(frame.checked_add(at)?)? != -1,
                (None, None) => true,
            };
            let FrameShape::Object { last, .. } = objects.layout.frame else { return None };
            // In front of the first instruction it has not begun.
            let has_begun = reader.u32(frame.checked_add(last)?)?.cast_signed() >= 0;
            (!runs && has_begun && objects.is(frame, "frame")).then_some(frame)?
        }
    };
    read(objects, frame, known)
}

impl RawFrame {
    /// Returns the frame as it is shown.
    pub(super) fn shown(&self) -> PythonFrame {
        PythonFrame {
            function: self.code.shown().to_owned(),
            file: self.code.file.clone(),
            line: self.code.line(self.offset),
        }
    }

    /// Returns the values on the stack that stay until the innermost block is left, the lowest
    /// first.
    pub(super) fn kept(&self, objects: &Objects<'_>) -> Vec<u64> {
        self.values(objects, self.stack, self.depth)
    }

    /// Returns the iterators of the loops that the frame is in, and the generator that it waits for,
    /// the outermost first.
    pub(super) fn iterated(&self, objects: &Objects<'_>) -> Vec<u64> {
        let slots = self.code.body(objects).and_then(|body| {
            let at = body.bytecode.index(self.offset)?;
            Some(body.bytecode.iterated(at))
        });
        let stack = self.values(objects, self.stack, self.code.stack_size);
        let slots = slots.unwrap_or_default().into_iter();
        slots.filter_map(|slot| stack.get(slot as usize).copied()).collect()
    }

    /// Returns the function's own variables, without those that it shares to 3.10.
    pub(super) fn variables(&self, objects: &Objects<'_>) -> Vec<u64> {
        self.values(objects, self.locals, self.code.locals.min(SOME))
    }

    /// Returns where its names are looked up.
    pub(super) fn scope(&self, objects: &Objects<'_>) -> Scope {
        let (reader, layout) = (objects.reader, objects.layout);
        let count = self.stack.saturating_sub(self.locals) / 8;
        Scope {
            variables: Variables::At(self.locals, u32::try_from(count).unwrap_or(0)),
            own: self.code.locals,
            globals: reader.pointer(self.address, layout.frame_globals),
            names: reader.pointer(self.address, layout.frame_names),
        }
    }

    /// Returns the variables, and whatever lies on the stack above them: also values of which the
    /// stack has been cleared.
    pub(super) fn all(&self, objects: &Objects<'_>) -> Vec<u64> {
        let mut all = self.values(objects, self.stack, self.code.stack_size.min(SOME));
        all.extend(self.variables(objects));
        all
    }

    /// Returns the first variable: `self`, of a method.
    pub(super) fn first(&self, objects: &Objects<'_>) -> Option<u64> {
        self.values(objects, self.locals, 1).first().copied().filter(|&first| first != 0)
    }

    fn values(&self, objects: &Objects<'_>, from: u64, count: u32) -> Vec<u64> {
        let words = objects.reader.block(from, 8 * u64::from(count), 8 << 16).unwrap_or_default();
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b));
        words.chunks_exact(8).map(|bytes| objects.plain(word(bytes))).collect()
    }
}
