//! The reader-writer lock on the model checker.
