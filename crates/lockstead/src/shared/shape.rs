//! The shape of a type in a segment: as a constant of the program, and as bytes.
//!
//! # Format
//! A tree, each node before what it contains; numbers are little-endian, a name is its
//! length in 16 bits and so many bytes of UTF-8.
//!
//! | node | bytes |
//! |---|---|
//! | plain data | `0`, name, size: u64 |
//! | array | `1`, count: u64, stride: u64, element |
//! | struct | `2`, name, size: u64, fields: u16, and of each field name, offset: u64, node |
//! | lock | `3`, kind: u8, size: u64, offset of the data: u64, node of the data |

/// The layout of a [`Shareable`](super::Shareable) type, known at compile time.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Data without a lock in it.
    Plain {
        /// The name of the type.
        name: &'static str,
        /// The size in bytes.
        size: usize,
    },
    /// An array of one thing.
    Array {
        /// The number of elements.
        count: usize,
        /// The distance from one element to the next, in bytes.
        stride: usize,
        /// The shape of each element.
        element: &'static Shape,
    },
    /// Several things, each under a name.
    Struct {
        /// The name of the type.
        name: &'static str,
        /// The size in bytes.
        size: usize,
        /// The fields in the order of the source.
        fields: &'static [Field],
    },
    /// A lock, with the data that it protects.
    Lock {
        /// The kind of the lock.
        kind: LockKind,
        /// Its bytes, with the data.
        size: usize,
        /// The offset of the data that it protects.
        offset: usize,
        /// The shape of the data.
        data: &'static Shape,
    },
}

/// A field of a [`Shape::Struct`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name of the field.
    pub name: &'static str,
    /// The offset in the struct.
    pub offset: usize,
    /// The shape of its type.
    pub shape: &'static Shape,
}

/// The kinds of locks that lie in segments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// The kind of [`SharedMutex`](super::SharedMutex).
    Mutex,
    /// The kind of [`SharedRwLock`](super::SharedRwLock).
    RwLock,
    /// The kind of [`SharedSemaphore`](super::SharedSemaphore).
    Semaphore,
    /// The kind of [`SharedCondvar`](super::SharedCondvar).
    Condvar,
}

impl LockKind {
    const ALL: [LockKind; 4] =
        [LockKind::Mutex, LockKind::RwLock, LockKind::Semaphore, LockKind::Condvar];

    /// Returns the kind as it stands in a file.
    pub(super) fn code(self) -> u8 {
        Self::ALL.iter().position(|&kind| kind == self).map_or(0, |at| at as u8 + 1)
    }

    pub(super) fn of(code: u8) -> Option<LockKind> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Returns what the lock itself takes, without data.
    #[must_use]
    pub fn size(self) -> u64 {
        match self {
            LockKind::Mutex | LockKind::RwLock | LockKind::Condvar => 8,
            LockKind::Semaphore => 40,
        }
    }

    /// Returns the kind as text: `mutex`, `rwlock`, `semaphore`, `condvar`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Mutex => "mutex",
            LockKind::RwLock => "rwlock",
            LockKind::Semaphore => "semaphore",
            LockKind::Condvar => "condvar",
        }
    }
}

pub(super) const PLAIN: u8 = 0;
pub(super) const ARRAY: u8 = 1;
pub(super) const STRUCT: u8 = 2;
pub(super) const LOCK: u8 = 3;

/// The depth to which nodes may lie in one another.
pub(super) const DEEPEST: usize = 48;
/// The number of bytes that a shape may take.
pub(super) const LONGEST: usize = 1 << 20;

impl Shape {
    /// Returns the number of bytes of the type.
    #[must_use]
    pub const fn size(&self) -> usize {
        match *self {
            Shape::Plain { size, .. } | Shape::Struct { size, .. } | Shape::Lock { size, .. } => {
                size
            }
            Shape::Array { count, stride, .. } => count * stride,
        }
    }
}

/// Returns the number that tells shapes from one another (FNV-1a).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
