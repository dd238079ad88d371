//! Cases that do not come to what they should yet.

/// Program, case, reason. A case that has come right must go from here.
pub(crate) const NOT_YET: &[(&str, &str, &str)] = &[
    ("around.c", "join-while-it-waits", "the cycle with a time-out is all that is reported"),
    (
        "excuses.c",
        "trylock-that-fails",
        "the joined thread is taken for one that was joined before",
    ),
    ("rules.c", "process-exits-with-a-lock", "the command does not take it for ORDER yet"),
    ("signals.c", "order-between-the-worlds", "the library does not say who is interrupted"),
];
