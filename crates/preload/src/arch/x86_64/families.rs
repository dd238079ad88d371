//! The functions that are exported otherwise than by the frames of [`thunk`](mod@crate::thunk), each told
//! where it is used.

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
                "jmp {function}",
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
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 48",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov edi, {index}",
                "mov rsi, rsp",
                "mov rdx, rbp",
                "call {look}",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "mov r11, qword ptr [rip + {real} + {function}]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "jmp r11",
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
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 32",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "call {begins}",
                "mov [rsp + 24], rdx",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "call rax",
                "mov rdi, [rsp + 24]",
                "call {ends}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
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
                "mov rax, qword ptr [rip + {real} + {test}]",
                "test rax, rax",
                "je 2f",
                "jmp rax",
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
                "cmp edi, {futex}",
                "je 3f",
                "lea eax, [rdi - {wait_for_one_of}]",
                "cmp eax, {wait_2} - {wait_for_one_of}",
                "ja 2f",
                "cmp edi, {wait_for_one_of}",
                "je 4f",
                "cmp edi, {wait_2}",
                "je 4f",
                "cmp edi, {wake_2}",
                "je 5f",
                // Not ours: on, with all registers as they were.
                "2:",
                "mov rax, qword ptr [rip + {real} + {function}]",
                "test rax, rax",
                "je 6f",
                "jmp rax",
                "3:",
                "mov eax, edx",
                "and eax, {operation}",
                "cmp eax, 31",
                "ja 2b",
                "mov r11d, {sleeping}",
                "bt r11d, eax",
                "jc 4f",
                "mov r11d, {waking}",
                "bt r11d, eax",
                "jnc 2b",
                // It wakes.
                "5:",
                "lea r11, [rip + {wakes}]",
                "jmp 7f",
                // The functions are not known yet.
                "6:",
                "lea r11, [rip + {resolves}]",
                "7:",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 48",
                "mov [rsp], rdi",
                "mov [rsp + 8], rsi",
                "mov [rsp + 16], rdx",
                "mov [rsp + 24], rcx",
                "mov [rsp + 32], r8",
                "mov [rsp + 40], r9",
                "mov rcx, rbp",
                "call r11",
                "mov rdi, [rsp]",
                "mov rsi, [rsp + 8]",
                "mov rdx, [rsp + 16]",
                "mov rcx, [rsp + 24]",
                "mov r8, [rsp + 32]",
                "mov r9, [rsp + 40]",
                "leave",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "jmp rax",
                // It may sleep. The frame is found by the stack pointer alone, which the kernel shows.
                "4:",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "push rbx",
                ".cfi_def_cfa_offset 24",
                ".cfi_offset rbx, -24",
                "push r12",
                ".cfi_def_cfa_offset 32",
                ".cfi_offset r12, -32",
                "push r13",
                ".cfi_def_cfa_offset 40",
                ".cfi_offset r13, -40",
                "push r14",
                ".cfi_def_cfa_offset 48",
                ".cfi_offset r14, -48",
                "push r15",
                ".cfi_def_cfa_offset 56",
                ".cfi_offset r15, -56",
                "sub rsp, {size} + 16",
                ".cfi_def_cfa_offset {size} + 72",
                // The real function has its last argument on the stack: at rsp, when it is called.
                "mov [rsp + 16], rdi",
                "mov [rsp + 24], rsi",
                "mov [rsp + 32], rdx",
                "mov [rsp + 40], rcx",
                "mov [rsp + 48], r8",
                "mov [rsp + 56], r9",
                "mov rax, [rsp + {size} + 72]",
                "mov [rsp + 64], rax",
                "mov [rsp], rax",
                "lea rdi, [rsp + 16]",
                "lea rsi, [rsp + {size} + 56]",
                "call {begins}",
                "mov rdi, [rsp + 16]",
                "mov rsi, [rsp + 24]",
                "mov rdx, [rsp + 32]",
                "mov rcx, [rsp + 40]",
                "mov r8, [rsp + 48]",
                "mov r9, [rsp + 56]",
                "call rax",
                "mov [rsp + 72], rax",
                "lea rdi, [rsp + 16]",
                "lea rsi, [rsp + {size} + 56]",
                "call {ends}",
                "mov rax, [rsp + 72]",
                "add rsp, {size} + 16",
                ".cfi_def_cfa_offset 56",
                "pop r15",
                ".cfi_def_cfa_offset 48",
                ".cfi_restore r15",
                "pop r14",
                ".cfi_def_cfa_offset 40",
                ".cfi_restore r14",
                "pop r13",
                ".cfi_def_cfa_offset 32",
                ".cfi_restore r13",
                "pop r12",
                ".cfi_def_cfa_offset 24",
                ".cfi_restore r12",
                "pop rbx",
                ".cfi_def_cfa_offset 16",
                ".cfi_restore rbx",
                "pop rbp",
                ".cfi_def_cfa_offset 8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                futex = const $crate::arch::FUTEX,
                wait_for_one_of = const $crate::interpose::futex::WAIT_FOR_ONE_OF,
                wake_2 = const $crate::interpose::futex::WAKE_2,
                wait_2 = const $crate::interpose::futex::WAIT_2,
                operation = const $crate::interpose::futex::OPERATION,
                sleeping = const $crate::interpose::futex::SLEEPING,
                waking = const $crate::interpose::futex::WAKING,
                real = sym $crate::real::REAL,
                function = const core::mem::offset_of!($crate::real::Real, $real),
                size = const size_of::<$crate::interpose::futex::SleepingCall>(),
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
                "mov rax, qword ptr [rip + {table} + {real}]",
                "cmp edi, dword ptr [rip + {ours}]",
                "je 2f",
                "test rax, rax",
                "je 2f",
                "jmp rax",
                "2:",
                "jmp {of_ours}",
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
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 16",
                "mov [rsp], rdi",
                "call {programs}",
                "test rax, rax",
                "je 2f",
                "mov rdi, rdx",
                "call rax",
                "2:",
                "mov rdi, [rsp]",
                "call {our}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
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
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "mov r8, rbp",
                "call {before}",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "jmp qword ptr [rip + {table} + {real}]",
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
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "call {adopt}",
                "mov rdi, rdx",
                "call rax",
                "pop rbp",
                ".cfi_def_cfa rsp, 8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                adopt = sym $adopt,
            )
        }
    };
}
