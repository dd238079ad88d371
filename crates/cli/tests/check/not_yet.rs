//! Cases that do not come to what they should yet.

/// Program, case, reason. A case that has come right must go from here: it fails
/// the tests.
pub(crate) const NOT_YET: &[(&str, &str, &str)] = &[];
