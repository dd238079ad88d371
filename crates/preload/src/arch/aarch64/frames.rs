//! The frames of exported functions: see [`thunk`](mod@crate::thunk) for what is in them.
//!
//! A `CallSite` is the pair of frame pointer and return address that a function saves when it begins: the
//! frame pointer leads to it.

/// Saves the pair and leads the frame pointer to it: `$size` more bytes of the frame are below.
#[doc(hidden)]
#[macro_export]
macro_rules! enter_frame {
    () => {
        // The mark for indirect calls.
        "hint #34
        stp x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov x29, sp
        .cfi_def_cfa x29, 16"
    };
}

/// Takes the pair back, wherever the stack pointer is.
#[doc(hidden)]
#[macro_export]
macro_rules! leave_frame {
    () => {
        "mov sp, x29
        .cfi_def_cfa sp, 16
        ldp x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30"
    };
}

/// Gives the register in which a function of so many arguments gets its call site.
#[doc(hidden)]
#[macro_export]
macro_rules! site_register {
    (0) => {
        "x0"
    };
    (1) => {
        "x1"
    };
    (2) => {
        "x2"
    };
    (3) => {
        "x3"
    };
    (4) => {
        "x4"
    };
    (5) => {
        "x5"
    };
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
                $crate::enter_frame!(),
                concat!("mov ", $crate::site_register!($arity), ", sp"),
                "bl {implementation}",
                $crate::leave_frame!(),
                "ret",
                ".cfi_endproc",
                implementation = sym $implementation,
            )
        }
    };
}

/// `passing_frame! { /// what it does
/// pub name(1) => before }`: the function of [`passing!`](crate::passing), with these attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! passing_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident($arity:tt) => $before:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::enter_frame!(),
                "sub sp, sp, #32",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                concat!("mov ", $crate::site_register!($arity), ", x29"),
                "bl {before}",
                "mov x16, x0",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, #16]",
                $crate::leave_frame!(),
                "br x16",
                ".cfi_endproc",
                before = sym $before,
            )
        }
    };
}

/// `waiting_frame! { /// what it does
/// pub name => before, after }`: the function of [`cancellable!`](crate::cancellable), with these
/// attributes.
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
                $crate::enter_frame!(),
                "sub sp, sp, #{size}",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                $(concat!("bl {test} // ", stringify!($test)),)?
                "mov x0, sp",
                "mov x1, x29",
                "bl {before}",
                "cbz x0, 2f",
                "mov x16, x0",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, #16]",
                "blr x16",
                "sxtw x0, w0",
                "str x0, [sp, #32]",
                "mov x0, sp",
                "mov x1, x29",
                "bl {after}",
                "2:",
                "ldr x0, [sp, #32]",
                $crate::leave_frame!(),
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
