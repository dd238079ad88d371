//! Who is who among those that share a segment: after the file was copied, in the next
//! container of the same process number, where there is no `/proc` or no descriptor to
//! spare, beside programs that lock the file or sleep at its words, after giving up a user's rights, and where somebody
//! is stopped between two steps. A program of its own, since it forks.

mod copies;
mod locks;
mod readers;
mod support;
mod windows;
mod without;
