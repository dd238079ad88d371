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

/// How a [`Shareable`](super::Shareable) type is laid out.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Data without a lock in it.
    Plain {
        /// What the type is called.
        name: &'static str,
        /// Its bytes.
        size: usize,
    },
    /// The same thing several times.
    Array {
        /// How often.
        count: usize,
        /// From one to the next, in bytes.
        stride: usize,
        /// What it is.
        element: &'static Shape,
    },
    /// Several things, each under a name.
    Struct {
        /// What the type is called.
        name: &'static str,
        /// Its bytes.
        size: usize,
        /// What is in it, in the order of the source.
        fields: &'static [Field],
    },
    /// A lock.
    Lock {
        /// What kind of lock.
        kind: LockKind,
        /// Its bytes, with the data.
        size: usize,
        /// Where in it the data is that it protects.
        offset: usize,
        /// Of the data.
        data: &'static Shape,
    },
}

/// A field of a [`Shape::Struct`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Where it begins in the struct.
    pub offset: usize,
    /// Its type.
    pub shape: &'static Shape,
}

/// The kinds of locks that lie in segments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// [`SharedMutex`](super::SharedMutex).
    Mutex,
    /// [`SharedRwLock`](super::SharedRwLock).
    RwLock,
    /// [`SharedSemaphore`](super::SharedSemaphore).
    Semaphore,
    /// [`SharedCondvar`](super::SharedCondvar).
    Condvar,
}

impl LockKind {
    const ALL: [LockKind; 4] =
        [LockKind::Mutex, LockKind::RwLock, LockKind::Semaphore, LockKind::Condvar];

    /// As it stands in a file.
    pub(super) fn code(self) -> u8 {
        Self::ALL.iter().position(|&kind| kind == self).map_or(0, |at| at as u8 + 1)
    }

    pub(super) fn of(code: u8) -> Option<LockKind> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// What the lock itself takes, without data.
    #[must_use]
    pub fn size(self) -> u64 {
        match self {
            LockKind::Mutex | LockKind::RwLock | LockKind::Condvar => 8,
            LockKind::Semaphore => 40,
        }
    }

    /// As text: `mutex`, `rwlock`, `semaphore`, `condvar`.
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

/// So deep may nodes lie in one another.
pub(super) const DEEPEST: usize = 48;
/// So many bytes may a shape take.
pub(super) const LONGEST: usize = 1 << 20;

impl Shape {
    /// Bytes of the type.
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

/// The number by which shapes are told from one another (FNV-1a).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
