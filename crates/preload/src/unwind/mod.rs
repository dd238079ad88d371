//! The call stack of the calling thread, from inside a lock call.
