//! Markers at the places where the model checker's tests break an algorithm.
//!
//! `fault!(name)` stands where a wrong step stands beside the right one. It is the constant
//! `false` wherever this file is compiled, so the wrong step is no part of any lock that
//! runs. The checker compiles the same source with a `fault.rs` of its own
//! (`crates/model/core`), where a test chooses one fault by its name and shows that the
//! models notice it (`docs/verification.md`).

/// Is false: the step that follows is wrong on purpose, and for the model checker alone.
#[doc(hidden)]
#[macro_export]
macro_rules! fault {
    ($name:ident) => {
        false
    };
}
