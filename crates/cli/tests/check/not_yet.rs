//! Cases that do not come to what they should yet.

const FREED: &str = "the library does not see yet when memory goes";
const BLOCKS: &str = "the library does not look at calls that block yet";
const WEAK: &str = "the command does not take it for ORDER yet";
const SIGNALS: &str = "the library does not look at signal handlers yet";

/// Program, case, reason. A case that has come right must go from here.
pub(crate) const NOT_YET: &[(&str, &str, &str)] = &[
    ("sleepy.c", "sleep", BLOCKS),
    ("sleepy.c", "poll", BLOCKS),
    ("sleepy.c", "fsync", BLOCKS),
    ("sleepy.c", "connect", BLOCKS),
    ("sleepy.c", "usleep", BLOCKS),
    ("memory.c", "freed-while-held", FREED),
    ("memory.c", "moved-by-realloc-while-held", FREED),
    ("memory.c", "unmapped-while-held", FREED),
    ("memory.c", "stack-left-while-held", FREED),
    ("around.c", "join-while-it-waits", "the cycle with a time-out is all that is reported"),
    ("around.c", "join-while-holding", WEAK),
    ("around.c", "wait-while-holding-what-some-need", WEAK),
    ("rules.c", "process-exits-with-a-lock", WEAK),
    ("lives.c", "freed-unseen", FREED),
    ("lives.c", "freed-one-of-two", FREED),
    ("lives.c", "freed-in-a-block", FREED),
    ("lives.c", "on-the-stack-unseen", FREED),
    ("lives.c", "on-the-stack-of-an-ended-thread", FREED),
    ("lives.c", "thread-local", FREED),
    ("lives.c", "in-a-mapping", FREED),
    ("lives.c", "mapped-over", FREED),
    ("signals.c", "in-a-handler-and-outside", SIGNALS),
    ("signals.c", "outside-first", SIGNALS),
    ("signals.c", "handlers-that-interrupt-each-other", SIGNALS),
    ("signals.c", "order-between-the-worlds", SIGNALS),
    ("standard.cpp", "objects-in-the-same-place", FREED),
    ("standard.cpp", "deleted-while-held", FREED),
];
