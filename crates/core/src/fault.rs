//! Markers at the places where the model checker's tests break an algorithm.
//!
//! `fault!(name)` stands where a wrong step stands beside the right one. It is `false` at compile
//! time wherever this file is compiled, so the wrong step is no part of any lock that runs. The
//! checker compiles the same source with a `fault.rs` of its own
//! (`crates/model/core`), where a test chooses one fault by its name and shows that the
//! models notice it (`docs/verification.md`).

/// Is false: the step that follows is wrong on purpose, and for the model checker alone.
#[doc(hidden)]
#[macro_export]
macro_rules! fault {
    ($name:ident) => {
        $crate::fault::never(stringify!($name))
    };
}

/// Returns false, whatever the fault is called. A call and no constant, since readers of code such
/// as clippy then see two faults as two.
#[doc(hidden)]
#[inline(always)]
#[must_use]
pub const fn never(_name: &str) -> bool {
    false
}
