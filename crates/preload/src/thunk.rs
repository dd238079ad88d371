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

/// Gives the register in which a function of so many arguments gets its call site.
#[doc(hidden)]
#[macro_export]
macro_rules! site_register {
    (0) => {
        "rdi"
    };
    (1) => {
        "rsi"
    };
    (2) => {
        "rdx"
    };
    (3) => {
        "rcx"
    };
    (4) => {
        "r8"
    };
    (5) => {
        "r9"
    };
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

/// `thunk_frame! { /// what it does
/// pub name(2) => implementation }`: the function of [`thunk!`](crate::thunk), with these attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! thunk_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident($arity:tt) => $implementation:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                concat!("mov ", $crate::site_register!($arity), ", rsp"),
                "call {implementation}",
                "pop rbp",
                ".cfi_def_cfa_offset 8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                implementation = sym $implementation,
            )
        }
    };
}

/// `passing! { name(1) => before; ... }`: exports `name`, which calls `before`
/// with the arguments and a `&Site`, and then jumps to the address that `before`
/// returned, with the arguments as they were.
#[macro_export]
macro_rules! passing {
    ($($name:ident($arity:tt) => $before:path;)*) => { $(
        /// Stands before glibc's function of this name.
        ///
        /// # Safety
        /// As of the function of this name.
        #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 32",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                concat!("mov ", $crate::site_register!($arity), ", rbp"),
                "call {before}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "jmp rax",
                ".cfi_endproc",
                before = sym $before,
            )
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

/// `waiting_frame! { /// what it does
/// pub name => before, after }`: the function of [`cancellable!`](crate::cancellable), with these
/// attributes.
///
/// `lockstead attach` knows the frame by the instructions behind the call of the real function, and
/// leads a thread past it that sleeps there when the library is to go: what comes after is only our
/// bookkeeping.
#[doc(hidden)]
#[macro_export]
macro_rules! waiting_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident $(after $test:path)?
        => $before:path, $after:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                // An indirect pointer relative to its place, of four bytes.
                ".cfi_personality 0x9b, lockstead_personality",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, {size}",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                $(concat!("call {test} # ", stringify!($test)),)?
                "mov rdi, rsp",
                "mov rsi, rbp",
                "call {before}",
                "test rax, rax",
                "jz 2f",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "call rax",
                "cdqe",
                "mov [rsp + 32], rax",
                "mov rdi, rsp",
                "mov rsi, rbp",
                "call {after}",
                "2:",
                "mov rax, [rsp + 32]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                $(test = sym $test,)?
                before = sym $before,
                after = sym $after,
                size = const size_of::<$crate::thunk::Passage>(),
            )
        }
    };
}

const _: () = assert!(size_of::<Passage>() == 64);
