//! Frames and stacks as data, and their one rendering as text.

use serde::Serialize;

/// One level of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Where the thread was, or where it will return to.
    pub address: u64,
    /// Name of the function, demangled; `None` where no symbol covers the
    /// address.
    pub function: Option<String>,
    /// Bytes from the start of the function.
    pub offset: u64,
    /// Source file as the debug information names it.
    pub file: Option<String>,
    /// Line in `file`.
    pub line: Option<u32>,
    /// File that the code was loaded from.
    pub module: Option<String>,
    /// The compiler inlined this function into the one of the next frame.
    pub inlined: bool,
}
