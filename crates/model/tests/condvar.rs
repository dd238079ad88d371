//! The condition variable on the model checker.
