//! The semaphores on the model checker.
