//! The fast path of x86-64: see [`fast`](mod@crate::fast) for what it does.

/// `fast_acquire! { name: real_try, flags => slow, tried; ... }`: exports `name`,
/// a function of one lock. `real_try` is the field of [`Real`](crate::real::Real)
/// of the function that tries, `flags` (`NONE`, `READ`
/// or `TRIED`) those of what is held. `slow(lock)`
/// does all; `tried(lock, answer)` goes on after the real function has
/// answered, other than 0 or too late for the fast path. Both are jumped to, and return to the
/// program what it gets: a [`thunk_frame!`](crate::thunk_frame) or a
/// [`waiting_frame!`](crate::waiting_frame).
/// `unless 16 & 8` after the flags leaves locks to `slow` that have a bit of 8 in
/// their byte 16; `marked 24 shared 16 negative`, in the library that checks, those whose cookie at
/// byte 24 is not the lock's own (see [`rules::cookie`](crate::rules)), unless processes share it:
/// so says byte 16, which is `negative` then, or `nonzero`.
#[macro_export]
macro_rules! fast_acquire {
    ($($name:ident: $real:ident, $flags:tt $(unless $byte:literal & $mask:literal)?
        $(marked $mark:literal shared $shared:literal $is_shared:tt)?
        => $slow:path, $tried:path;)*) => { $(
        /// Stands before glibc's function of this name, with a fast path.
        ///
        /// # Safety
        /// As of the function of this name.
        #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                // rdi: the lock. r8: the thread's record.
                "cmp qword ptr [rip + {state} + {base}], 0",
                "je 2f",
                #[cfg(feature = "check")]
                "// {secret}",
                $crate::own_words!("rax", "rcx", "2f"),
                "mov r8, qword ptr [rax]",
                "test r8, r8",
                "je 2f",
                $crate::is_busy!(),
                $(
                    concat!("test byte ptr [rdi + ", $byte, "], ", $mask),
                    "jne 2f",
                )?
                $(
                    #[cfg(feature = "check")]
                    $crate::is_own_mark!($mark),
                )?
                // rcx: the call site. rdx: the line.
                "mov rcx, qword ptr [rsp]",
                "lea edx, [rdi + rcx * 4]",
                "imul edx, edx, {hash}",
                "shr edx, {hash_shift}",
                "shl edx, 6",
                "lea rdx, [r8 + rdx + {lines}]",
                "cmp qword ptr [rdx + {address}], rdi",
                "jne 5f",
                $crate::chain_check!("5f"),
                "6:",
                // rdx: what is known of the lock.
                "mov eax, dword ptr [rdx + {count}]",
                "cmp eax, dword ptr [rdx + {next_sample}]",
                "jae 2f",
                "push rbx",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbx, 0",
                "push rbp",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbp, 0",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "mov rbx, rdx",
                "mov rbp, r8",
                "call qword ptr [rip + {real} + {real_try}]",
                "mov rdx, rbx",
                "mov r8, rbp",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "pop rbp",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbp",
                "pop rbx",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbx",
                "test eax, eax",
                "jne 3f",
                // In a child the record is another one.
                "mov rcx, qword ptr [rip + lockstead_words@GOTTPOFF]",
                "cmp qword ptr fs:[rcx], r8",
                "jne 3f",
                // What was known then may be forgotten, but what is known now is
                // read before that is asked.
                #[cfg(feature = "check")]
                $crate::key_of_chain!($flags),
                #[cfg(feature = "check")]
                $crate::is_chain_known!($flags),
                "mov r9, qword ptr [rdx + {place}]",
                "cmp qword ptr [rdx + {address}], rdi",
                "jne 3f",
                #[cfg(not(feature = "check"))]
                "mov rcx, qword ptr [r8 + {top}]",
                #[cfg(not(feature = "check"))]
                "cmp rcx, qword ptr [rip + {state} + {capacity}]",
                #[cfg(not(feature = "check"))]
                "jae 3f",
                "inc dword ptr [rdx + {count}]",
                // A child that a handler has forked just now may have no ledger.
                "mov rsi, qword ptr [rip + {state} + {base}]",
                "test rsi, rsi",
                "je 3f",
                "mov rsi, qword ptr [rsi + {clock}]",
                "shr rsi, {tick_shift}",
                "mov esi, esi",
                $crate::flag_mark!($flags),
                "lea r10, [rcx + 1]",
                "mov qword ptr [r8 + {top}], r10",
                #[cfg(feature = "check")]
                "mov qword ptr [r8 + rcx * 8 + {keys} + 8], r11",
                "shl rcx, 5",
                "mov qword ptr [r8 + rcx + {held} + 8], r9",
                "mov qword ptr [r8 + rcx + {held} + 16], rsi",
                "mov qword ptr [r8 + rcx + {held}], rdi",
                "ret",
                // Not in the line. rdx: the first place for the chain.
                "5:",
                "mov rcx, qword ptr [rsp]",
                "lea edx, [rsp + rcx * 8]",
                "imul edx, edx, {hash}",
                "shr edx, {chain_shift}",
                "shl edx, 7",
                "lea rdx, [r8 + rdx + {chains}]",
                "7:",
                $crate::chain_check!("8f"),
                "mov esi, dword ptr [rdx + {stack}]",
                // rdx: the first place in the set.
                "mov eax, edi",
                "shr eax, 12",
                "lea edx, [rax + rax * 4]",
                "shr eax, 6",
                "lea eax, [rax + rax * 2]",
                "add edx, eax",
                "mov eax, edi",
                "shr eax, 6",
                "add edx, eax",
                "shl edx, 6",
                "mov rax, qword ptr [r8 + {sets}]",
                "and edx, eax",
                "shr rax, 32",
                "add rdx, rax",
                "add rdx, r8",
                "cmp qword ptr [rdx + {address}], rdi",
                "je 9f",
                "add rdx, 32",
                "cmp qword ptr [rdx + {address}], rdi",
                "jne 2f",
                "9:",
                "cmp dword ptr [rdx + {stack}], esi",
                "je 6b",
                "mov dword ptr [rdx + {stack}], esi",
                "jmp 6b",
                // The other place for the chain, if this was the first.
                "8:",
                "mov rcx, qword ptr [rsp]",
                "add rdx, 64",
                "test dl, 64",
                "jne 7b",
                "jmp 2f",
                $(
                    #[cfg(feature = "check")]
                    $crate::may_lack_mark!($shared, $is_shared),
                )?
                "2:",
                "jmp {slow}",
                "3:",
                "mov esi, eax",
                "jmp {tried}",
                ".cfi_endproc",
                state = sym $crate::state::STATE,
                guard = sym $crate::arch::tls::GUARD,
                guard_at = const $crate::arch::tls::GUARD_AT,
                base = const $crate::fast::Offset::BASE,
                #[cfg(not(feature = "check"))]
                capacity = const $crate::fast::Offset::CAPACITY,
                clock = const $crate::fast::Offset::CLOCK,
                tick_shift = const $crate::fast::Offset::TICK_SHIFT,
                busy = const $crate::fast::Offset::BUSY,
                top = const $crate::fast::Offset::TOP,
                next_sample = const $crate::fast::Offset::NEXT_SAMPLE,
                hash = const $crate::fast::Offset::HASH,
                hash_shift = const $crate::fast::Offset::HASH_SHIFT,
                chain_shift = const $crate::fast::Offset::CHAIN_SHIFT,
                lines = const $crate::fast::Offset::LINES,
                chains = const $crate::fast::Offset::CHAINS,
                sets = const $crate::fast::Offset::SETS,
                address = const $crate::fast::Offset::ADDRESS,
                stack = const $crate::fast::Offset::STACK,
                site = const $crate::fast::Offset::SITE,
                sp = const $crate::fast::Offset::SP,
                returns = const $crate::fast::Offset::RETURNS,
                distances = const $crate::fast::Offset::DISTANCES,
                place = const $crate::fast::Offset::PLACE,
                count = const $crate::fast::Offset::COUNT,
                held = const $crate::fast::Offset::HELD,
                real = sym $crate::real::REAL,
                real_try = const core::mem::offset_of!($crate::real::Real, $real),
                #[cfg(feature = "check")]
                keys = const lockstead_ledger::thread::keys_offset(),
                #[cfg(feature = "check")]
                keys_last = const lockstead_ledger::thread::KEYS - 1,
                #[cfg(feature = "check")]
                mark = const core::mem::offset_of!(lockstead_ledger::thread::ThreadRecord, mark),
                #[cfg(feature = "check")]
                secret = sym $crate::rules::cookie::SECRET,
                #[cfg(feature = "check")]
                lives = sym $crate::order::chains::LIVES,
                #[cfg(feature = "check")]
                known_chains = sym $crate::order::chains::CHAINS,
                #[cfg(feature = "check")]
                slots_mask = const $crate::order::chains::SLOTS - 1,
                #[cfg(feature = "check")]
                multiplier = sym $crate::order::chains::MULTIPLIER,
                #[cfg(feature = "check")]
                near = const $crate::order::chains::NEAR,
                #[cfg(feature = "check")]
                near_shift = const $crate::order::chains::NEAR_SHIFT,
                slow = sym $slow,
                tried = sym $tried,
            )
        }
    )* };
}

/// `fast_release! { name: real => slow; ... }`: exports `name`, a function of one
/// lock, which goes on to the field `real` of [`Real`](crate::real::Real).
/// `slow(lock, &Site)` does all and returns what the program gets.
#[macro_export]
macro_rules! fast_release {
    ($($name:ident: $real:ident $(as $kind:tt)? => $slow:path;)*) => { $(
        /// Stands before glibc's function of this name, with a fast path.
        ///
        /// # Safety
        /// As of the function of this name.
        #[cfg_attr(feature = "shared-object", unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov rdx, qword ptr [rip + {state} + {base}]",
                "test rdx, rdx",
                "je 2f",
                $crate::own_words!("rax", "rcx", "2f"),
                "mov r8, qword ptr [rax]",
                "test r8, r8",
                "je 2f",
                "cmp dword ptr [r8 + {busy}], 0",
                "jne 2f",
                "mov rcx, qword ptr [r8 + {top}]",
                "sub rcx, 1",
                "jb 2f",
                "mov rax, rcx",
                "shl rax, 5",
                "add rax, r8",
                "cmp qword ptr [rax + {held}], rdi",
                "jne 2f",
                $(
                    #[cfg(feature = "check")]
                    $crate::own_check!($kind),
                )?
                #[cfg(feature = "check")]
                "// {tid}",
                "mov rdx, qword ptr [rdx + {clock}]",
                "shr rdx, {tick_shift}",
                "mov edx, edx",
                // Mostly it is the same step, and there are no flags.
                "cmp rdx, qword ptr [rax + {held} + 16]",
                "jne 4f",
                "3:",
                "mov qword ptr [rax + {held}], 0",
                "mov qword ptr [r8 + {top}], rcx",
                "jmp qword ptr [rip + {real} + {real_release}]",
                "4:",
                "cmp edx, dword ptr [rax + {held} + 16]",
                "jne 2f",
                "test byte ptr [rax + {held} + 20], {special}",
                "je 3b",
                "2:",
                "push rbp",
                ".cfi_adjust_cfa_offset 8",
                ".cfi_rel_offset rbp, 0",
                "mov rsi, rsp",
                "call {slow}",
                "pop rbp",
                ".cfi_adjust_cfa_offset -8",
                ".cfi_restore rbp",
                "ret",
                ".cfi_endproc",
                state = sym $crate::state::STATE,
                guard = sym $crate::arch::tls::GUARD,
                guard_at = const $crate::arch::tls::GUARD_AT,
                base = const $crate::fast::Offset::BASE,
                clock = const $crate::fast::Offset::CLOCK,
                tick_shift = const $crate::fast::Offset::TICK_SHIFT,
                special = const $crate::fast::Offset::SPECIAL,
                busy = const $crate::fast::Offset::BUSY,
                top = const $crate::fast::Offset::TOP,
                #[cfg(feature = "check")]
                tid = const $crate::fast::Offset::TID,
                held = const $crate::fast::Offset::HELD,
                real = sym $crate::real::REAL,
                real_release = const core::mem::offset_of!($crate::real::Real, $real),
                slow = sym $slow,
            )
        }
    )* };
}

/// Goes to `otherwise` unless the chain at rdx is that of the call, whose site is
/// in rcx; uses eax, ecx, esi.
#[doc(hidden)]
#[macro_export]
macro_rules! chain_check {
    ($otherwise:literal) => {
        concat!(
            "cmp dword ptr [rdx + {site}], ecx\n jne ",
            $otherwise,
            "\n cmp qword ptr [rdx + {sp}], rsp\n jne ",
            $otherwise,
            "\n movzx eax, word ptr [rdx + {distances}]",
            "\n movzx ecx, word ptr [rdx + {distances} + 2]",
            "\n movzx esi, word ptr [rdx + {distances} + 4]",
            "\n mov eax, dword ptr [rsp + rax * 8]",
            "\n mov ecx, dword ptr [rsp + rcx * 8]",
            "\n mov esi, dword ptr [rsp + rsi * 8]",
            "\n cmp eax, dword ptr [rdx + {returns}]\n jne ",
            $otherwise,
            "\n cmp ecx, dword ptr [rdx + {returns} + 4]\n jne ",
            $otherwise,
            "\n cmp esi, dword ptr [rdx + {returns} + 8]\n jne ",
            $otherwise,
        )
    };
}

/// Goes to `2f` unless the words of the lock at rdi say that the thread holds it:
/// of a mutex the owner's number, of the others whether anybody does. Uses esi.
#[doc(hidden)]
#[macro_export]
macro_rules! own_check {
    (mutex) => {
        "mov esi, dword ptr [r8 + {tid}]\n cmp dword ptr [rdi + 8], esi\n jne 2f"
    };
    (rwlock) => {
        "test dword ptr [rdi], -6\n je 2f"
    };
}

/// Goes to `2f` if something of ours is in progress on the thread.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "check"))]
macro_rules! is_busy {
    () => {
        "cmp dword ptr [r8 + {busy}], 0\n jne 2f"
    };
}

/// Gives the instruction that puts a flag into an entry's `how`, whose upper half the flags are.
#[doc(hidden)]
#[macro_export]
macro_rules! flag_mark {
    (NONE) => {
        ""
    };
    (READ) => {
        "bts rsi, 32"
    };
    (TRIED) => {
        "bts rsi, 35"
    };
}
