//! Exports functions: a few instructions of assembler each, which note where the caller
//! stands and go on to Rust.
//!
//! | macro | for | what is live while the real function runs |
//! |---|---|---|
//! | [`thunk!`](crate::thunk!) | functions at which no thread is cancelled | a Rust function that calls the real one |
//! | [`passing!`](crate::passing) | functions that need a look first and none after | nothing: a jump |
//! | [`cancellable!`](crate::cancellable) | functions at which a thread may be cancelled, or that wait | the trampoline's frame, which the unwinder can leave, and `lockstead attach` |
//!
//! A cancelled thread unwinds its stack. No Rust frame may be in the way, and
//! the published wait must be withdrawn: that is what the trampoline's
//! personality routine ([`cancel`](crate::cancel)) does when the unwinder comes through, so
//! that the way without cancellation costs nothing.
//!
//! All frames have unwind tables, for debuggers and profilers too.

/// What a [`cancellable!`](crate::cancellable) function passes from before the
/// real call to after it.
#[repr(C)]
#[derive(Debug)]
pub struct Passage {
    /// The arguments, also for the real function, which gets these.
    pub arguments: [usize; 4],
    /// What the program gets: set by the real function, or by the part before
    /// it if it does without.
    pub result: isize,
    /// The words that the part before leaves for the part after.
    pub notes: [usize; 3],
}

/// `thunk! { name(2) => implementation; ... }`: exports `name`, a function of
/// two arguments, which calls `implementation` with them and a `&Site`.
#[macro_export]
macro_rules! thunk {
    ($($name:ident($arity:tt) => $implementation:path;)*) => { $(
        $crate::thunk_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name($arity) => $implementation
        }
    )* };
}

/// `passing! { name(1) => before; ... }`: exports `name`, which calls `before`
/// with the arguments and a `&Site`, and then jumps to the address that `before`
/// returned, with the arguments as they were: four at most.
#[macro_export]
macro_rules! passing {
    ($($name:ident($arity:tt) => $before:path;)*) => { $(
        $crate::passing_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name($arity) => $before
        }
    )* };
}

/// `cancellable! { name => before, after; ... }`: exports `name`, a function of
/// up to four arguments, around whose real function nothing of ours is live but a
/// [frame](crate::waiting_frame): at which threads are cancelled, or that waits.
/// `before(&mut Passage, &Site) -> usize` returns the
/// address of the real function, or 0 if `result` is to be returned as it is;
/// `after(&mut Passage, &Site)` may change `result`, and does not run if the
/// thread is cancelled in the real function.
///
/// `name after test => ...` calls `test`, a function that a cancelled thread does
/// not come back from, first of all; with nothing of ours live but the frame.
#[macro_export]
macro_rules! cancellable {
    ($($name:ident $(after $test:path)? => $before:path, $after:path;)*) => { $(
        $crate::waiting_frame! {
            /// Stands before glibc's function of this name.
            ///
            /// # Safety
            /// As of the function of this name.
            #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
            pub $name $(after $test)? => $before, $after
        }
    )* };
}

const _: () = assert!(size_of::<Passage>() == 64);
