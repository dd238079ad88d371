//! What the kernel tells of a process and its threads in `/proc`.
//!
//! # Role
//! Texts of `/proc` become values here, and reasons become sentences. Nothing
//! is held open, and no thread is stopped: two values read one after the other
//! may be of different moments, and the reader of a report is told only what
//! two readings agree on.
//!
//! | module | what it knows |
//! |---|---|
//! | [`process`] | whether a process can be looked at, and what it is |
//! | [`task`] | one thread: name, state, the system call it sleeps in |
//! | `file` | reading small files |
//! | [`futex`] | the waits among the system calls |
//! | [`calls`] | names of system calls that sleep |
//! | [`asleep`] | what the other calls wait for, and who could end that |
//! | [`processor`] | whether a thread that does not sleep has a processor |
//! | [`shown`] | under which number the kernel shows memory and files |
//! | [`access`] | why a process does not let itself be read, and what helps |
//! | [`status`] | the fields of `/proc/PID/status` |

pub mod access;
pub mod asleep;
pub mod calls;
mod file;
pub mod futex;
pub mod process;
pub mod processor;
pub mod shown;
pub mod status;
pub mod task;
