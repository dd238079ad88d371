//! Once on the model checker.
