//! The frames of exported functions: see [`thunk`](mod@crate::thunk) for what is in them.

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
    };
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
