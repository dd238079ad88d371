//! The types that may lie in a segment, and how they describe themselves.
//!
//! # Invariants
//! - **SHAREABLE-BITS** Every bit pattern of the size of a [`Shareable`] type is a value of it, and
//!   zeroes are a fresh one: a peer may write anything at any time. The implementations keep it,
//!   and the derive checks it field by field.

use super::shape::Shape;
use core::marker::PhantomData;
use core::num::Wrapping;
use core::sync::atomic::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize,
};

/// A type that may lie in memory that processes share.
///
/// Implemented for numbers, atomics of numbers, arrays, and the locks of this module.
/// For a `struct` of those, derive it:
///
/// ```
/// use lockstead::shared::{Shareable, SharedMutex};
///
/// #[derive(Shareable)]
/// #[repr(C)]
/// struct Account {
///     number: u64,
///     balance: SharedMutex<i64>,
/// }
/// ```
///
/// The derive wants `#[repr(C)]`, since two programs are to agree on the layout, and
/// refuses enums, unions and packed structs. What it does not refuse the types of the
/// fields do: pointers and references lead nowhere in another process; a `bool`, a `char`
/// or an enum does not allow every bit pattern, and a peer may write any; what needs to
/// be dropped never would be. Where a `bool` is wanted, take a `u8` or an `AtomicU32`.
///
/// # Safety
/// Of an implementation:
/// - every bit pattern of the type's size is a valid value, and zeroes are a fresh one;
/// - it contains no pointer, no reference, and nothing whose meaning depends on the
///   process, and does not need to be dropped;
/// - its layout is the same in every program with the same [`SHAPE`](Self::SHAPE), which
///   says where in it locks lie, and truthfully so.
///
/// # Padding
/// Bytes between fields travel with a value that is written as a whole, and may hold
/// what your process had there before. Towards a peer that is not to see anything of it,
/// leave no gaps.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may not lie in memory that processes share",
    label = "not `Shareable`",
    note = "use numbers, atomics, arrays, the locks of `lockstead::shared`, and `#[repr(C)]` \
            structs of them with `#[derive(Shareable)]`",
    note = "pointers lead nowhere in another process; `bool`, `char` and enums do not allow \
            every bit pattern: use `u8` or `u32` instead"
)]
pub unsafe trait Shareable: Sized + Send + Sync + 'static {
    /// The layout of the type, and the places of its locks. [`Segment`](super::Segment) writes it
    /// into the file, so that programs that do not agree about it find out, and `lockstead shm` can
    /// name the locks.
    const SHAPE: Shape;
}

macro_rules! plain {
    ($($type:ty)*) => {$(
        // SAFETY: SHAREABLE-BITS: a number, or an atomic one of the same layout, has no padding.
        unsafe impl Shareable for $type {
            const SHAPE: Shape = Shape::Plain { name: stringify!($type), size: size_of::<Self>() };
        }
    )*};
}

plain! {
    u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64
    AtomicU8 AtomicU16 AtomicU32 AtomicU64 AtomicUsize
    AtomicI8 AtomicI16 AtomicI32 AtomicI64 AtomicIsize
}

// SAFETY: SHAREABLE-BITS: the type has no bytes at all.
unsafe impl Shareable for () {
    const SHAPE: Shape = Shape::Plain { name: "()", size: 0 };
}

// SAFETY: SHAREABLE-BITS: the type has no bytes at all.
unsafe impl<T: Shareable> Shareable for PhantomData<T> {
    const SHAPE: Shape = Shape::Plain { name: "PhantomData", size: 0 };
}

// SAFETY: SHAREABLE-BITS: the same bytes as a `T` (`repr(transparent)`).
unsafe impl<T: Shareable> Shareable for Wrapping<T> {
    const SHAPE: Shape = T::SHAPE;
}

// SAFETY: SHAREABLE-BITS: `N` times a `T`, one after the other, as the shape says.
unsafe impl<T: Shareable, const N: usize> Shareable for [T; N] {
    const SHAPE: Shape = Shape::Array { count: N, stride: size_of::<T>(), element: &T::SHAPE };
}
