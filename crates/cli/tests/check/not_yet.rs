//! Cases that do not come to what they should yet.

/// Program, case, reason. A case that has come right must go from here: it fails
/// the tests.
pub(crate) const NOT_YET: &[(&str, &str, &str)] =
    &[("kinds.c", "rwlock-destroyed-while-written", "it is said to be held by a thread that ends")];
