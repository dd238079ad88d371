//! Where each version of CPython keeps what is read of it.
//!
//! # Source
//! The offsets are those that the compiler gave the structures of CPython's own headers, read
//! from the debug information of builds of 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0 and by
//! `offsetof` with the headers of 3.14.10, all for x86-64. From 3.13 on an interpreter describes
//! a part of its own layout, which [`offsets`](super::offsets) puts over the table. A build that
//! lays its structures out in another way (debug builds with traced references, free-threaded
//! ones) shows nothing: each object is known by the name of its type before it is believed.

/// A version of CPython: the major and the minor number.
pub(super) type Minor = (u8, u8);

/// The place where an interpreter keeps its GIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GilPlace {
    /// The record lies in the state of the runtime, at this offset.
    Runtime(u64),
    /// A pointer in the interpreter's state leads there, at this offset.
    Interpreter(u64),
}

/// The way from a thread's state to its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameRoot {
    /// A pointer at this offset.
    Direct(u64),
    /// A pointer to a record on the C stack at the first offset, in which the pointer is at the
    /// second.
    Record(u64, u64),
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameShape {
    /// An object, with a stack of its blocks: to 3.10.
    Object {
        value_stack: u64,
        last: u64,
        /// Bytes of bytecode that a step of `last` stands for.
        step: u32,
        blocks: u64,
        block_list: u64,
        locals: u64,
    },
    /// A record on the interpreter's own stack, whose blocks stand in a table of the code: from
    /// 3.11.
    Record {
        instruction: u64,
        owner: u64,
        locals: u64,
        /// Owners from this number on are entries of C, without code of Python.
        entries_from: u8,
    },
}

/// The form of the table from instructions to lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTable {
    /// Pairs of steps: to 3.9.
    Steps,
    /// Pairs of ranges: 3.10.
    Ranges,
    /// Locations of a few bytes each: from 3.11.
    Locations,
}

/// Where a code object keeps what is read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLayout {
    pub(super) file: u64,
    pub(super) name: u64,
    pub(super) qualified: Option<u64>,
    pub(super) lines: u64,
    pub(super) line_table: LineTable,
    pub(super) first_line: u64,
    pub(super) names: u64,
    pub(super) constants: u64,
    pub(super) stack_size: u64,
    /// The number of variables in front of the stack.
    pub(super) locals: u64,
    pub(super) exceptions: Option<u64>,
    pub(super) instructions: u64,
}

/// The way to the attributes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attributes {
    /// A dictionary at the offset that the type says: to 3.10.
    Dictionary,
    /// Values and a dictionary in front of the object: 3.11.
    Before,
    /// One word for both in front of the object: 3.12.
    Either,
    /// Values behind the object: from 3.13.
    Inline,
}

/// Where a generator keeps its frame, and what says that it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GeneratorLayout {
    /// A pointer to the frame, at the first offset: to 3.10. Either the generator says whether it
    /// runs, or the frame has a state.
    Frame { frame: u64, running: Option<u64>, state: Option<u64> },
    /// The frame itself, and a byte that is `suspended`, or -1, while it does not run.
    Inside { frame: u64, state: u64, suspended: i8 },
}

/// The layout of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: Minor,
    pub(super) interpreters: u64,
    pub(super) interpreter_next: u64,
    pub(super) threads: u64,
    pub(super) gil: GilPlace,
    pub(super) thread_next: u64,
    pub(super) root: FrameRoot,
    /// `pthread_self` of the thread.
    pub(super) ident: u64,
    /// The kernel's number of the thread: from 3.11.
    pub(super) native: Option<u64>,
    pub(super) frame: FrameShape,
    pub(super) frame_back: u64,
    pub(super) frame_code: u64,
    pub(super) code: CodeLayout,
    pub(super) ascii: u64,
    pub(super) compact: u64,
    pub(super) tuple_items: u64,
    pub(super) attributes: Attributes,
    pub(super) cached_keys: u64,
    pub(super) function_name: u64,
    pub(super) function_qualified: u64,
    pub(super) function_code: u64,
    pub(super) function_globals: u64,
    pub(super) function_closure: u64,
    /// The variables of the module, and those of a class or a module that is being run.
    pub(super) frame_globals: u64,
    pub(super) frame_names: u64,
    pub(super) generator: GeneratorLayout,
    /// Pointers in frames have marks in their lowest bits: from 3.14.
    pub(super) marked: bool,
}

/// The versions that are read.
pub(super) const OLDEST: Minor = (3, 9);
pub(super) const NEWEST: Minor = (3, 14);

const CODE_3_9: CodeLayout = CodeLayout {
    file: 104,
    name: 112,
    qualified: None,
    lines: 120,
    line_table: LineTable::Steps,
    first_line: 40,
    names: 64,
    constants: 56,
    stack_size: 32,
    locals: 28,
    exceptions: None,
    instructions: 48,
};

const CODE_3_11: CodeLayout = CodeLayout {
    file: 112,
    name: 120,
    qualified: Some(128),
    lines: 136,
    line_table: LineTable::Locations,
    first_line: 72,
    names: 32,
    constants: 24,
    stack_size: 68,
    locals: 76,
    exceptions: Some(40),
    instructions: 184,
};

const CODE_3_12: CodeLayout =
    CodeLayout { first_line: 68, stack_size: 64, locals: 72, instructions: 192, ..CODE_3_11 };

const V3_9: Layout = Layout {
    version: (3, 9),
    interpreters: 32,
    interpreter_next: 0,
    threads: 8,
    gil: GilPlace::Runtime(352),
    thread_next: 8,
    root: FrameRoot::Direct(24),
    ident: 176,
    native: None,
    frame: FrameShape::Object {
        value_stack: 64,
        last: 104,
        step: 1,
        blocks: 112,
        block_list: 120,
        locals: 360,
    },
    frame_back: 24,
    frame_code: 32,
    code: CODE_3_9,
    ascii: 48,
    compact: 72,
    tuple_items: 24,
    attributes: Attributes::Dictionary,
    cached_keys: 864,
    function_name: 64,
    function_qualified: 104,
    function_code: 16,
    function_globals: 24,
    function_closure: 48,
    frame_globals: 48,
    frame_names: 56,
    generator: GeneratorLayout::Frame { frame: 16, running: Some(24), state: None },
    marked: false,
};

const V3_10: Layout = Layout {
    version: (3, 10),
    frame: FrameShape::Object {
        value_stack: 64,
        last: 96,
        step: 2,
        blocks: 104,
        block_list: 112,
        locals: 352,
    },
    code: CodeLayout { line_table: LineTable::Ranges, ..CODE_3_9 },
    cached_keys: 872,
    function_name: 32,
    function_qualified: 40,
    function_code: 48,
    function_globals: 16,
    function_closure: 72,
    generator: GeneratorLayout::Frame { frame: 16, running: None, state: Some(108) },
    ..V3_9
};

const V3_11: Layout = Layout {
    version: (3, 11),
    interpreters: 40,
    threads: 16,
    gil: GilPlace::Runtime(360),
    root: FrameRoot::Record(56, 8),
    ident: 152,
    native: Some(160),
    frame: FrameShape::Record { instruction: 56, owner: 69, locals: 72, entries_from: 3 },
    frame_back: 48,
    frame_code: 32,
    code: CODE_3_11,
    frame_globals: 8,
    frame_names: 24,
    generator: GeneratorLayout::Inside { frame: 80, state: 75, suspended: -1 },
    attributes: Attributes::Before,
    cached_keys: 872,
    ..V3_10
};

const V3_12: Layout = Layout {
    version: (3, 12),
    threads: 72,
    gil: GilPlace::Interpreter(384),
    root: FrameRoot::Record(56, 0),
    ident: 136,
    native: Some(144),
    frame: FrameShape::Record { instruction: 56, owner: 70, locals: 72, entries_from: 3 },
    frame_back: 8,
    frame_code: 0,
    frame_globals: 24,
    frame_names: 40,
    generator: GeneratorLayout::Inside { frame: 72, state: 67, suspended: -1 },
    code: CODE_3_12,
    ascii: 40,
    compact: 56,
    attributes: Attributes::Either,
    cached_keys: 880,
    ..V3_11
};

const V3_13: Layout = Layout {
    version: (3, 13),
    interpreters: 632,
    interpreter_next: 7264,
    threads: 7344,
    gil: GilPlace::Interpreter(16),
    root: FrameRoot::Direct(72),
    ident: 152,
    native: Some(160),
    code: CodeLayout { instructions: 200, ..CODE_3_12 },
    attributes: Attributes::Inline,
    generator: GeneratorLayout::Inside { frame: 72, state: 67, suspended: -2 },
    ..V3_12
};

const V3_14: Layout = Layout {
    version: (3, 14),
    interpreters: 808,
    interpreter_next: 7272,
    frame: FrameShape::Record { instruction: 56, owner: 74, locals: 80, entries_from: 3 },
    code: CodeLayout { instructions: 208, ..CODE_3_12 },
    tuple_items: 32,
    marked: true,
    ..V3_13
};

impl Layout {
    /// Returns the layout of a version; `None` if it is not read.
    pub(super) fn of(version: Minor) -> Option<Layout> {
        [V3_9, V3_10, V3_11, V3_12, V3_13, V3_14]
            .into_iter()
            .find(|layout| layout.version == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_from_the_oldest_to_the_newest_has_a_layout() {
        for minor in OLDEST.1..=NEWEST.1 {
            assert_eq!(Layout::of((3, minor)).map(|found| found.version), Some((3, minor)));
        }
        assert_eq!(Layout::of((3, NEWEST.1 + 1)), None);
        assert_eq!(Layout::of((3, OLDEST.1 - 1)), None);
        assert_eq!(Layout::of((2, 9)), None);
    }
}
