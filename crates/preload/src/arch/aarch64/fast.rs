//! The fast path of aarch64: see [`fast`](mod@crate::fast) for what it does.
//!
//! # Registers
//! x0 the lock, x8 the thread's record, x10 the line or the place of the lock in it; in x1 what the real
//! function that tries has answered. The pair of frame pointer and return address is saved at the beginning, as the
//! frames of [`thunk`](mod@crate::thunk) save it: of a chain that is known less far than three callers the line leads to
//! the word with the return address (CHAIN-READABLE in [`chain`](crate::chain)), which no call has pushed
//! here. The pair is taken back before anything is jumped to, which saves it again.
//!
//! # Ordering
//! Labels LED-3 to LED-5: a store that another process reads is a `stlr`. All else is the thread's own, and its
//! signal handlers find it in the order of the program. They may count in the same word: an exclusive store fails when
//! one has come in between.

use crate::fast::Offset;

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
                $crate::enter_frame!(),
                $crate::load!("x9", "{state} + {base}"),
                "cbz x9, 2f",
                #[cfg(feature = "check")]
                "// {secret}",
                $crate::own_words!("x9", "x11", "x12", "2f"),
                "ldr x8, [x9]",
                "cbz x8, 2f",
                $crate::is_busy!(),
                $(
                    concat!("ldrb w9, [x0, #", $byte, "]\n tst w9, #", $mask),
                    "b.ne 2f",
                )?
                $(
                    #[cfg(feature = "check")]
                    $crate::is_own_mark!($mark),
                )?
                // x30: the call site. x10: the line.
                "add w10, w0, w30, lsl #2",
                $crate::load_hash!("w11"),
                "mul w10, w10, w11",
                "lsr w10, w10, #{hash_shift}",
                "add x10, x8, x10, lsl #6",
                "add x10, x10, #{lines}",
                "ldr x9, [x10, #{address}]",
                "cmp x9, x0",
                "b.ne 5f",
                $crate::chain_check!("5f"),
                "6:",
                // x10: what is known of the lock.
                "ldr w9, [x10, #{count}]",
                "ldr w11, [x10, #{next_sample}]",
                "cmp w9, w11",
                "b.hs 2f",
                "stp x19, x20, [sp, #-32]!",
                ".cfi_offset x19, -48",
                ".cfi_offset x20, -40",
                "str x0, [sp, #16]",
                "mov x19, x10",
                "mov x20, x8",
                $crate::load!("x16", "{real} + {real_try}"),
                "blr x16",
                "mov w1, w0",
                "mov x10, x19",
                "mov x8, x20",
                "ldr x0, [sp, #16]",
                "ldp x19, x20, [sp], #32",
                ".cfi_restore x19",
                ".cfi_restore x20",
                "cbnz w1, 3f",
                // In a child the record is another one.
                "mrs x9, tpidr_el0",
                "adrp x11, :gottprel:lockstead_words",
                "ldr x11, [x11, #:gottprel_lo12:lockstead_words]",
                "ldr x9, [x9, x11]",
                "cmp x9, x8",
                "b.ne 3f",
                // What was known then may be forgotten, but what is known now is
                // read before that is asked.
                #[cfg(feature = "check")]
                $crate::key_of_chain!($flags),
                #[cfg(feature = "check")]
                $crate::is_chain_known!($flags),
                "ldr x13, [x10, #{place}]",
                "ldr x16, [x10, #{address}]",
                "cmp x16, x0",
                "b.ne 3f",
                #[cfg(not(feature = "check"))]
                "ldr x9, [x8, #{top}]",
                #[cfg(not(feature = "check"))]
                $crate::load!("x11", "{state} + {capacity}"),
                #[cfg(not(feature = "check"))]
                "cmp x9, x11",
                #[cfg(not(feature = "check"))]
                "b.hs 3f",
                $crate::count_up!("w", "x10", "{count}"),
                // A child that a handler has forked just now may have no ledger.
                $crate::load!("x11", "{state} + {base}"),
                "cbz x11, 3f",
                "ldr x11, [x11, #{clock}]",
                "ubfx x11, x11, #{tick_shift}, #32",
                $crate::flag_mark!($flags),
                "add x12, x9, #1",
                // ord: LED-5 (release): as `push` in the ledger.
                "stlr x12, [x8]",
                #[cfg(feature = "check")]
                "add x12, x8, x12, lsl #3",
                #[cfg(feature = "check")]
                "str x15, [x12, #{keys}]",
                "add x9, x8, x9, lsl #5",
                "add x9, x9, #{held}",
                "add x12, x9, #8",
                // ord: LED-3 (release): as `fill` in the ledger.
                "stlr x13, [x12]",
                "add x12, x9, #16",
                "stlr x11, [x12]", // ord: LED-3 (release)
                // ord: LED-4 (release): an address that is seen has its fields.
                "stlr x0, [x9]",
                "mov w0, #0",
                ".cfi_remember_state",
                $crate::leave_frame!(),
                "ret",
                ".cfi_restore_state",
                // Not in the line. x10: the first place for the chain.
                "5:",
                "add x10, x29, #8",
                "add w10, w10, w30, lsl #3",
                $crate::load_hash!("w11"),
                "mul w10, w10, w11",
                "lsr w10, w10, #{chain_shift}",
                "add x10, x8, x10, lsl #7",
                "add x10, x10, #{chains}",
                "7:",
                $crate::chain_check!("8f"),
                "ldr w13, [x10, #{stack}]",
                // x10: the first place in the set.
                "lsr w9, w0, #12",
                "add w10, w9, w9, lsl #2",
                "lsr w9, w9, #6",
                "add w9, w9, w9, lsl #1",
                "add w10, w10, w9",
                "add w10, w10, w0, lsr #6",
                "lsl w10, w10, #6",
                "ldr x9, [x8, #{sets}]",
                "and w10, w10, w9",
                "add x10, x10, x9, lsr #32",
                "add x10, x10, x8",
                "ldr x9, [x10, #{address}]",
                "cmp x9, x0",
                "b.eq 9f",
                "add x10, x10, #32",
                "ldr x9, [x10, #{address}]",
                "cmp x9, x0",
                "b.ne 2f",
                "9:",
                "ldr w9, [x10, #{stack}]",
                "cmp w9, w13",
                "b.eq 6b",
                "str w13, [x10, #{stack}]",
                "b 6b",
                // The other place for the chain, if this was the first.
                "8:",
                "add x10, x10, #64",
                "tbnz w10, #6, 7b",
                "b 2f",
                $(
                    #[cfg(feature = "check")]
                    $crate::may_lack_mark!($shared, $is_shared),
                )?
                "2:",
                ".cfi_remember_state",
                $crate::leave_frame!(),
                "b {slow}",
                ".cfi_restore_state",
                "3:",
                $crate::leave_frame!(),
                "b {tried}",
                ".cfi_endproc",
                state = sym $crate::state::STATE,
                learned = sym $crate::arch::tls::LEARNED,
                base = const $crate::fast::Offset::BASE,
                #[cfg(not(feature = "check"))]
                capacity = const $crate::fast::Offset::CAPACITY,
                clock = const $crate::fast::Offset::CLOCK,
                tick_shift = const $crate::fast::Offset::TICK_SHIFT,
                busy = const $crate::fast::Offset::BUSY,
                top = const $crate::fast::Offset::TOP,
                next_sample = const $crate::fast::Offset::NEXT_SAMPLE,
                hash_low = const $crate::fast::Offset::HASH as u32 & 0xffff,
                hash_high = const $crate::fast::Offset::HASH as u32 >> 16,
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
                slots = const core::mem::offset_of!($crate::order::chains::Chains, slots),
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
                // The mark for indirect calls.
                "hint #34",
                $crate::load!("x9", "{state} + {base}"),
                "cbz x9, 2f",
                $crate::own_words!("x10", "x11", "x12", "2f"),
                "ldr x8, [x10]",
                "cbz x8, 2f",
                "ldr w10, [x8, #{busy}]",
                "cbnz w10, 2f",
                "ldr x10, [x8, #{top}]",
                "subs x10, x10, #1",
                "b.lo 2f",
                "add x11, x8, x10, lsl #5",
                "add x11, x11, #{held}",
                "ldr x12, [x11]",
                "cmp x12, x0",
                "b.ne 2f",
                $(
                    #[cfg(feature = "check")]
                    $crate::own_check!($kind),
                )?
                #[cfg(feature = "check")]
                "// {tid}",
                "ldr x9, [x9, #{clock}]",
                "ubfx x9, x9, #{tick_shift}, #32",
                // Mostly it is the same step, and there are no flags.
                "ldr x12, [x11, #16]",
                "cmp x9, x12",
                "b.ne 4f",
                "3:",
                // ord: LED-3 (release): as `clear` in the ledger.
                "stlr xzr, [x11]",
                // ord: LED-5 (release): as `pop` in the ledger.
                "stlr x10, [x8]",
                $crate::load!("x16", "{real} + {real_release}"),
                "br x16",
                "4:",
                "cmp w9, w12",
                "b.ne 2f",
                "lsr x12, x12, #32",
                "mov w13, #{special}",
                "tst w12, w13",
                "b.eq 3b",
                "2:",
                $crate::enter_frame!(),
                "mov x1, sp",
                "bl {slow}",
                $crate::leave_frame!(),
                "ret",
                ".cfi_endproc",
                state = sym $crate::state::STATE,
                learned = sym $crate::arch::tls::LEARNED,
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

/// Loads a word of eight bytes, at a place that is a symbol and perhaps a distance.
#[doc(hidden)]
#[macro_export]
macro_rules! load {
    ($register:literal, $place:literal) => {
        concat!(
            "adrp ", $register, ", ", $place, "\n ldr ", $register, ", [", $register, ", :lo12:",
            $place, "]",
        )
    };
}

/// Loads the multiplier of the cache's hash.
#[doc(hidden)]
#[macro_export]
macro_rules! load_hash {
    ($register:literal) => {
        concat!("movz ", $register, ", #{hash_low}\n movk ", $register, ", #{hash_high}, lsl #16",)
    };
}

/// Adds one to a counter of this width (`w` or `x`), at a distance from a register, such that a handler's counting
/// is not lost that comes in between. Uses x11, x12, x16.
#[doc(hidden)]
#[macro_export]
macro_rules! count_up {
    ($width:literal, $base:literal, $at:literal) => {
        concat!(
            "add x12, ",
            $base,
            ", #",
            $at,
            "\n 21: ldxr ",
            $width,
            "16, [x12]\n add ",
            $width,
            "16, ",
            $width,
            "16, #1\n stxr w11, ",
            $width,
            "16, [x12]\n cbnz w11, 21b",
        )
    };
}

/// Goes to `otherwise` unless the chain at x10 is that of the call, whose site is
/// in x30; uses x9, x11, x12, x13.
#[doc(hidden)]
#[macro_export]
macro_rules! chain_check {
    ($otherwise:literal) => {
        concat!(
            "ldr w9, [x10, #{site}]\n cmp w9, w30\n b.ne ",
            $otherwise,
            // x11: where the return address lies.
            "\n ldr x9, [x10, #{sp}]\n add x11, x29, #8\n cmp x9, x11\n b.ne ",
            $otherwise,
            "\n ldrh w9, [x10, #{distances}]",
            "\n ldrh w12, [x10, #{distances} + 2]",
            "\n ldrh w13, [x10, #{distances} + 4]",
            "\n ldr x9, [x11, x9, lsl #3]",
            "\n ldr x12, [x11, x12, lsl #3]",
            "\n ldr x13, [x11, x13, lsl #3]",
            "\n ldr w11, [x10, #{returns}]\n cmp w9, w11\n b.ne ",
            $otherwise,
            "\n ldr w11, [x10, #{returns} + 4]\n cmp w12, w11\n b.ne ",
            $otherwise,
            "\n ldr w11, [x10, #{returns} + 8]\n cmp w13, w11\n b.ne ",
            $otherwise,
        )
    };
}

/// Goes to `2f` unless the words of the lock at x0 say that the thread holds it:
/// of a mutex the owner's number, of the others whether anybody does. Uses x12, x13.
#[doc(hidden)]
#[macro_export]
macro_rules! own_check {
    (mutex) => {
        "ldr w12, [x8, #{tid}]\n ldr w13, [x0, #8]\n cmp w12, w13\n b.ne 2f"
    };
    (rwlock) => {
        "ldr w12, [x0]\n mov w13, #-6\n tst w12, w13\n b.eq 2f"
    };
}

/// Goes to `2f` if something of ours is in progress on the thread.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "check"))]
macro_rules! is_busy {
    () => {
        "ldr w9, [x8, #{busy}]\n cbnz w9, 2f"
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
        "orr x11, x11, #0x100000000"
    };
    (TRIED) => {
        "orr x11, x11, #0x800000000"
    };
}

/// Tells whether `add` can add this number, which has 12 bits, or 12 and as many zeroes behind them.
const fn is_addend(number: usize) -> bool {
    number < 1 << 12 || number.is_multiple_of(1 << 12) && number < 1 << 24
}

const _: () = assert!(is_addend(Offset::LINES) && is_addend(Offset::CHAINS));
const _: () = assert!(is_addend(Offset::HELD));
// What is loaded and stored at a distance lies at a multiple of its size that has 12 bits.
const _: () = assert!(lockstead_ledger::thread::keys_offset() + 4 < 4 << 12);
const _: () = assert!(Offset::CLOCK.is_multiple_of(8) && Offset::CLOCK < 8 << 12);
const _: () = assert!(size_of::<lockstead_ledger::thread::ThreadRecord>() <= 4 << 12);
// A release's store has no distance; the number of entries is the first word of the record.
const _: () = assert!(Offset::TOP == 0);
// A place that is loaded by its distance from a symbol is aligned as the symbol is.
const _: () = assert!(Offset::BASE.is_multiple_of(8) && Offset::CAPACITY.is_multiple_of(8));
const _: () = assert!(Offset::TICK_SHIFT <= 32 && Offset::SPECIAL < 1 << 16);
