//! Who answers a call that the kernel has told of, when the one who was told has gone.
//!
//! # Role
//! The kernel tells of each call once. A call that was told and is not answered stands still for
//! ever, so a command that is killed between the two must not take the call's number with it. The
//! kernel therefore writes each notice into memory that the command shares with its heir.
//!
//! ```text
//!   command   clear ─▶ receive (the kernel writes) ─▶ record ─▶ let go ─▶ clear …
//!                 ╲            ╲                         ╲          ╲
//!   heir           from wherever the command was killed: let go what lies here, then serve
//! ```
//!
//! # Why it suffices
//! The kernel marks a call as told and writes the notice in one call, which a signal that kills
//! does not cut in two. So a call that is told and not answered lies on the desk: the desk is
//! cleared only after the call that lay there was let go. To let a call go twice does no harm,
//! because no number comes again.
//!
//! The tests run every schedule of small scenes with a kill at each step.

#[cfg(test)]
mod tests;

use super::filter::Notice;
use std::cell::Cell;
use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;
use std::ptr;

/// What the kernel offers to whoever answers for the calls of a filter.
pub(super) trait Listener {
    /// Takes the next call that has not been told of, into a notice that is all zero. Returns
    /// whether there was one: its thread may have been killed meanwhile.
    fn receive(&self, notice: &Cell<Notice>) -> bool;

    /// Lets a thread make its call. A number of no call does nothing.
    fn let_go(&self, id: u64);

    /// Waits until a call is there, or the other descriptor is readable, for at most so many
    /// milliseconds (-1: for ever). Returns whether either is; `None` when nobody has the filter
    /// any more.
    fn wait(&self, other: RawFd, limit: i32) -> Option<(bool, bool)>;
}

/// The memory into which the kernel writes the call that is being answered.
pub(super) struct Desk(*mut Cell<Notice>);

// SAFETY: the memory stays until the value is dropped, and one thread at a time uses it: the
// command's, and the heir only when the command has ended.
unsafe impl Send for Desk {}

impl Desk {
    /// Makes one that a process forked from this one shares.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn new() -> io::Result<Desk> {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, which replaces nothing.
        let at = unsafe { libc::mmap(ptr::null_mut(), size_of::<Notice>(), both, shared, -1, 0) };
        if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Desk(at.cast())) }
    }

    fn notice(&self) -> &Cell<Notice> {
        // SAFETY: the mapping has room for one notice, of which every bit pattern is one, and stays
        // as long as this value.
        unsafe { &*self.0 }
    }

    /// Takes the call that a thread is about to make, if one waits for an answer, hands it to
    /// `record` and lets it go. For a child that has only been forked as well.
    pub(super) fn serve(&self, listener: &impl Listener, record: impl FnOnce(&Notice)) {
        let notice = self.notice();
        // The kernel demands it. What lay here has been let go.
        notice.set(Notice::default());
        if listener.receive(notice) {
            let told = notice.get();
            record(&told);
            listener.let_go(told.id);
        }
    }

    /// Answers in the place of one that has ended, until nobody has the filter any more.
    pub(super) fn inherit(&self, listener: &impl Listener) {
        // The one that it was about to let go, or has let go.
        listener.let_go(self.notice().get().id);
        while let Some((told, _)) = listener.wait(-1, -1) {
            if told {
                self.serve(listener, |_| {});
            }
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, and nobody refers to it any more.
        unsafe { libc::munmap(self.0.cast(), size_of::<Notice>()) };
    }
}
