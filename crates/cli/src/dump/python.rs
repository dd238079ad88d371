//! Frames of Python beside the native ones.
//!
//! # Role
//! The interpreter's own functions tell nobody anything: where the frames of Python are
//! known, they stand in their place. What lies between, C extensions and the locks of
//! other libraries, stays.

use super::text::DumpText;
use crate::cycle_text::native_part;
use lockstead_inspect::python::PythonStack;
use lockstead_inspect::stack::Stack;
use lockstead_render::words::clean;

/// The frames of Python that are shown, unless all are asked for.
const SHOWN: usize = 12;

impl DumpText<'_> {
    /// Adds native frames: where frames of Python are known, as far as the interpreter's own.
    pub(super) fn native(&mut self, stack: &Stack) {
        let has_python = self.found.threads.iter().any(|thread| thread.python.is_some());
        let inner = native_part(stack).filter(|_| has_python && !self.everything);
        self.frames(6, inner.as_ref().unwrap_or(stack));
    }

    /// Adds frames of Python.
    pub(super) fn python(&mut self, indent: usize, stack: &PythonStack) {
        let shown = if self.everything { stack.frames.len() } else { SHOWN };
        for frame in stack.frames.iter().take(shown) {
            self.line(indent, &clean(&frame.site()));
        }
        if stack.frames.len() > shown {
            let more = stack.frames.len() - shown;
            self.line(indent, &format!("({more} more frames of Python: --all shows them)"));
        }
        if stack.cut {
            let frames = stack.frames.len();
            self.line(indent, &format!("(cut after {frames} frames of Python)"));
        }
    }
}
