//! The functions that are exported otherwise than by the frames of [`thunk`](mod@crate::thunk), each told
//! where it is used.

/// Loads a word of a static at `$offset`, both operands of `asm!`, into `$register`.
#[doc(hidden)]
#[macro_export]
macro_rules! load_word {
    ($register:literal, $static:literal, $offset:literal) => {
        concat!(
            "adrp ",
            $register,
            ", {",
            $static,
            "}\n",
            "add ",
            $register,
            ", ",
            $register,
            ", :lo12:{",
            $static,
            "}\n",
            "ldr ",
            $register,
            ", [",
            $register,
            ", #{",
            $offset,
            "}]",
        )
    };
}

/// `jumping_frame! { pub name => function }`: jumps to `function`.
#[doc(hidden)]
#[macro_export]
macro_rules! jumping_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident => $function:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "hint #34",
                "b {function}",
                ".cfi_endproc",
                function = sym $function,
            )
        }
    };
}

/// `looking_frame! { pub name(index) => look }`: calls `look(index, &[usize; 6], &Site)` with the six
/// arguments, and then jumps to the real function of this name, with the arguments as they were.
#[doc(hidden)]
#[macro_export]
macro_rules! looking_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident($index:expr) => $look:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::enter_frame!(),
                "sub sp, sp, #48",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                "stp x4, x5, [sp, #32]",
                "mov x0, #{index}",
                "mov x1, sp",
                "mov x2, x29",
                "bl {look}",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, #16]",
                "ldp x4, x5, [sp, #32]",
                $crate::load_word!("x16", "real", "function"),
                $crate::leave_frame!(),
                "br x16",
                ".cfi_endproc",
                index = const $index,
                look = sym $look,
                real = sym $crate::real::REAL,
                function = const core::mem::offset_of!($crate::real::Real, $name),
            )
        }
    };
}

/// `handler_frame! { name => begins, ends }`: a handler of signals. `begins(signal)` returns the handler to
/// call, with the three arguments as they were, and what `ends` gets.
#[doc(hidden)]
#[macro_export]
macro_rules! handler_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident => $begins:path, $ends:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::enter_frame!(),
                "sub sp, sp, #32",
                "stp x0, x1, [sp]",
                "str x2, [sp, #16]",
                "bl {begins}",
                "str x1, [sp, #24]",
                "mov x16, x0",
                "ldp x0, x1, [sp]",
                "ldr x2, [sp, #16]",
                "blr x16",
                "ldr x0, [sp, #24]",
                "bl {ends}",
                $crate::leave_frame!(),
                "ret",
                ".cfi_endproc",
                begins = sym $begins,
                ends = sym $ends,
            )
        }
    };
}

/// `resolved_frame! { name => real }`: jumps to the real function, if it is known already; else it only returns.
#[doc(hidden)]
#[macro_export]
macro_rules! resolved_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident => $real:ident) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "hint #34",
                $crate::load_word!("x16", "real", "test"),
                "cbz x16, 2f",
                "br x16",
                // Not resolved yet.
                "2:",
                "ret",
                ".cfi_endproc",
                real = sym $crate::real::REAL,
                test = const core::mem::offset_of!($crate::real::Real, $real),
            )
        }
    };
}

/// `system_call_frame! { pub name: real => wakes, resolves, begins, ends }`: the function for system calls, of which
/// [`futex`](crate::interpose::futex) looks at some.
#[doc(hidden)]
#[macro_export]
macro_rules! system_call_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident: $real:ident
        => $wakes:path, $resolves:path, $begins:path, $ends:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                // An indirect pointer relative to its place, of four bytes.
                ".cfi_personality 0x9b, lockstead_personality",
                "hint #34",
                "cmp w0, #{futex}",
                "b.eq 3f",
                "sub w16, w0, #{wait_for_one_of}",
                "cmp w16, #{newer}",
                "b.hi 2f",
                "cbz w16, 4f",
                "b.eq 4f",
                "cmp w16, #{newer} - 1",
                "b.eq 5f",
                // Not ours: on, with all registers as they were.
                "2:",
                $crate::load_word!("x16", "real", "function"),
                "cbz x16, 6f",
                "br x16",
                "3:",
                "and w16, w2, #{operation}",
                "cmp w16, #31",
                "b.hi 2b",
                "movz w17, #{sleeping}",
                "lsr w17, w17, w16",
                "tbnz w17, #0, 4f",
                "movz w17, #{waking}",
                "lsr w17, w17, w16",
                "tbz w17, #0, 2b",
                // It wakes.
                "5:",
                "adrp x17, {wakes}",
                "add x17, x17, :lo12:{wakes}",
                "b 7f",
                // The functions are not known yet.
                "6:",
                "adrp x17, {resolves}",
                "add x17, x17, :lo12:{resolves}",
                "7:",
                ".cfi_remember_state",
                $crate::enter_frame!(),
                "sub sp, sp, #64",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                "stp x4, x5, [sp, #32]",
                "str x6, [sp, #48]",
                "mov x3, x29",
                "blr x17",
                "mov x16, x0",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, #16]",
                "ldp x4, x5, [sp, #32]",
                "ldr x6, [sp, #48]",
                $crate::leave_frame!(),
                "br x16",
                ".cfi_restore_state",
                // It may sleep. The frame is found by the stack pointer alone, which the kernel shows.
                "4:",
                "stp x29, x30, [sp, #-16]!",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset x29, -16",
                ".cfi_offset x30, -8",
                "mov x29, sp",
                "sub sp, sp, #{size} + 80",
                ".cfi_def_cfa_offset {size} + 96",
                "stp x19, x20, [sp, #{size}]",
                ".cfi_offset x19, -96",
                ".cfi_offset x20, -88",
                "stp x21, x22, [sp, #{size} + 16]",
                ".cfi_offset x21, -80",
                ".cfi_offset x22, -72",
                "stp x23, x24, [sp, #{size} + 32]",
                ".cfi_offset x23, -64",
                ".cfi_offset x24, -56",
                "stp x25, x26, [sp, #{size} + 48]",
                ".cfi_offset x25, -48",
                ".cfi_offset x26, -40",
                "stp x27, x28, [sp, #{size} + 64]",
                ".cfi_offset x27, -32",
                ".cfi_offset x28, -24",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                "stp x4, x5, [sp, #32]",
                "str x6, [sp, #48]",
                "mov x0, sp",
                "mov x1, x29",
                "bl {begins}",
                "mov x16, x0",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, #16]",
                "ldp x4, x5, [sp, #32]",
                "ldr x6, [sp, #48]",
                "blr x16",
                "str x0, [sp, #56]",
                "mov x0, sp",
                "mov x1, x29",
                "bl {ends}",
                "ldr x0, [sp, #56]",
                // Nothing has used the other registers.
                "mov sp, x29",
                ".cfi_def_cfa_offset 16",
                "ldp x29, x30, [sp], #16",
                ".cfi_def_cfa_offset 0",
                ".cfi_restore x29",
                ".cfi_restore x30",
                "ret",
                ".cfi_endproc",
                futex = const $crate::arch::FUTEX,
                wait_for_one_of = const $crate::interpose::futex::WAIT_FOR_ONE_OF,
                newer = const {
                    use $crate::interpose::futex::{WAIT_2, WAIT_FOR_ONE_OF, WAKE_2};
                    // The code goes by these distances.
                    assert!(WAIT_2 == WAKE_2 + 1);
                    WAIT_2 - WAIT_FOR_ONE_OF
                },
                operation = const $crate::interpose::futex::OPERATION,
                sleeping = const $crate::interpose::futex::SLEEPING,
                waking = const $crate::interpose::futex::WAKING,
                real = sym $crate::real::REAL,
                function = const core::mem::offset_of!($crate::real::Real, $real),
                size = const {
                    size_of::<$crate::interpose::futex::SleepingCall>().next_multiple_of(16)
                },
                wakes = sym $wakes,
                resolves = sym $resolves,
                begins = sym $begins,
                ends = sym $ends,
            )
        }
    };
}

/// `beside_frame! { pub name: real unless ours => of_ours }`: jumps to the real function, or to `of_ours` where
/// the first argument is what the word `ours` holds, or the real one is not known yet.
#[doc(hidden)]
#[macro_export]
macro_rules! beside_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident: $real:ident unless $ours:path => $of_ours:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "hint #34",
                $crate::load_word!("x16", "table", "real"),
                "adrp x17, {ours}",
                "add x17, x17, :lo12:{ours}",
                "ldr w17, [x17]",
                "cmp w0, w17",
                "b.eq 2f",
                "cbz x16, 2f",
                "br x16",
                "2:",
                "b {of_ours}",
                ".cfi_endproc",
                table = sym $crate::real::REAL,
                real = const core::mem::offset_of!($crate::real::Real, $real),
                ours = sym $ours,
                of_ours = sym $of_ours,
            )
        }
    };
}

/// `destructor_frame! { name => programs, our }`: calls the function that `programs(value)` returns, unless that
/// is none, with the value beside it, and then `our(value)`.
#[doc(hidden)]
#[macro_export]
macro_rules! destructor_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident => $programs:path, $our:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::enter_frame!(),
                "sub sp, sp, #16",
                "str x0, [sp]",
                "bl {programs}",
                "cbz x0, 2f",
                "mov x16, x0",
                "mov x0, x1",
                "blr x16",
                "2:",
                "ldr x0, [sp]",
                "bl {our}",
                $crate::leave_frame!(),
                "ret",
                ".cfi_endproc",
                programs = sym $programs,
                our = sym $our,
            )
        }
    };
}

/// `mapping_frame! { pub name: real => before }`: calls `before` with the first four of six arguments and a
/// `&Site`, and jumps to the real function with all as they were.
#[doc(hidden)]
#[macro_export]
macro_rules! mapping_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident: $real:ident => $before:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::enter_frame!(),
                "sub sp, sp, #48",
                "stp x0, x1, [sp]",
                "stp x2, x3, [sp, #16]",
                "stp x4, x5, [sp, #32]",
                "mov x4, x29",
                "bl {before}",
                "ldp x0, x1, [sp]",
                "ldp x2, x3, [sp, #16]",
                "ldp x4, x5, [sp, #32]",
                $crate::load_word!("x16", "table", "real"),
                $crate::leave_frame!(),
                "br x16",
                ".cfi_endproc",
                before = sym $before,
                table = sym $crate::real::REAL,
                real = const core::mem::offset_of!($crate::real::Real, $real),
            )
        }
    };
}

/// `thread_frame! { name => adopt }`: begins a thread: calls the routine that `adopt(argument)` returns, with the
/// argument beside it.
#[doc(hidden)]
#[macro_export]
macro_rules! thread_frame {
    ($(#[$attribute:meta])* $visible:vis $name:ident => $adopt:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        $visible unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                $crate::enter_frame!(),
                "bl {adopt}",
                "mov x16, x0",
                "mov x0, x1",
                "blr x16",
                $crate::leave_frame!(),
                "ret",
                ".cfi_endproc",
                adopt = sym $adopt,
            )
        }
    };
}
