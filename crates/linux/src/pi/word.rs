//! Lays down the fields of the word.

/// The bits of the owner's number.
pub(super) const OWNER: u64 = 0x3fff_ffff;
/// The kernel has handed the lock over for an owner that has ended.
pub(super) const DIED: u64 = 1 << 30;
/// The bits that the kernel shares.
pub(super) const LOW: u64 = 0xffff_ffff;
/// An owner has ended while it held the lock.
pub(super) const LOST: u64 = 1 << 63;
/// The bits of the generation.
pub(super) const GENERATION: u64 = !LOW & !LOST;
