//! Holds what `lockstead attach` knows of a processor: registers, the frame of a signal's handler,
//! instructions of the C library, and how a thread is led through a call and back.
//!
//! One folder a processor, of which there is one: on others `attach_elsewhere.rs` stands in for all of
//! this, and refuses. What the rest of the command knows of a processor is in [`lockstead_inspect::arch`].

mod x86_64;

pub(crate) use x86_64::*;

pub(crate) use lockstead_inspect::arch::{HeldRegisters, stack_pointer};

/// A thread as it was before it was borrowed.
#[derive(Debug)]
pub(crate) struct SavedThread {
    /// Its general registers, and the system call that it sleeps in.
    pub(crate) standing: Standing,
    /// The registers beside the general ones.
    pub(crate) extended: Extended,
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
