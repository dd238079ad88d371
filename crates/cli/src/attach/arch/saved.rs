//! What is kept of a thread that is borrowed, by which it comes back.

/// A thread as it was before it was borrowed: `S` says how it stands, `E` has the registers beside the general
/// ones.
#[derive(Debug)]
pub(crate) struct Saved<S, E> {
    /// Its general registers, and the system call that it sleeps in.
    pub(crate) standing: S,
    /// The registers beside the general ones.
    pub(crate) extended: E,
    /// The signals that it has blocked.
    pub(crate) blocked: u64,
    /// The place that handlers return to.
    pub(crate) restorer: u64,
}

/// The frame by which a thread comes back by itself, as it lies below the thread's stack.
#[derive(Debug)]
pub(crate) struct ReturnFrame {
    /// The stack pointer with which a function is called that returns to the restorer.
    pub(crate) sp: u64,
    /// The bytes, and where each piece of them lies.
    pub(crate) pieces: Vec<(u64, Vec<u8>)>,
}
