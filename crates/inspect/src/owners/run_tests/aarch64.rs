//! Runs of code of aarch64.

use super::super::aarch64::Aarch64;
use super::super::event::{Change, Event, RunEnd};
use super::super::run::Ran;
use super::super::shape::{LockShape, Touch};
use super::{ANOTHER, COMPARE, DATA, END_CATCH, NOTIFY, RESUME, UNLOCK, WAIT, touch};
use crate::waits::modes::HoldMode;

/// Runs `code` as a landing pad: `x19` has the address of the data, which begins with `data`.
fn pad(code: &[u32], data: &[u8], x19: Option<u64>) -> Ran {
    let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    super::pad::<Aarch64>(&bytes, data, (31, 19), x19)
}

/// `mov w0, #0; swpl w0, w0, [x19]; cmp w0, #2`.
const UNLOCK_RUST: &[u32] = &[0x5280_0000, 0xb860_8260, 0x7100_081f];
/// Makes `x19` the first argument: `mov x0, x19`.
const FIRST_IS_X19: u32 = 0xaa13_03e0;
/// Ends a run: `brk #1`.
const BREAK: u32 = 0xd420_0020;

/// Returns `bl` over so many instructions, itself among them.
fn call(distance: i32) -> u32 {
    0x9400_0000 | distance.cast_unsigned() & 0x3ff_ffff
}

/// Returns the stub by which the function of a slot is called: `bti c; adrp x16, DATA; ldr x17,
/// [x16, slot]; add x16, x16, slot; br x17`.
fn stub(slot: u64) -> [u32; 5] {
    let distance = (slot - DATA) as u32;
    let (load, sum) = (0xf940_0211 | (distance / 8) << 10, 0x9100_0210 | distance << 10);
    [0xd503_245f, 0xb000_0010, load, sum, 0xd61f_0220]
}

const RELEASED: Option<Touch> = Some(Touch::Released(HoldMode::Alone));

#[test]
fn a_pad_that_unlocks_and_resumes_is_seen_to() {
    let code = [UNLOCK_RUST, &[call(1)], &stub(RESUME)].concat();
    let ran = pad(&code, &[2], Some(DATA));
    assert_eq!(ran.end, RunEnd::Resumed);
    assert_eq!(touch(&ran, LockShape::RustMutex), RELEASED);
    assert_eq!(touch(&ran, LockShape::RustRwLock), Some(Touch::Taken), "no release of that kind");
}

/// The exception comes in the register of the first argument.
#[test]
fn a_function_is_not_given_the_exception_by_what_was_there_before() {
    // mov x21, x0; the call; the release; mov x0, x21; _Unwind_Resume
    let code = |slot| {
        let body = [&[0xaa00_03f5, call(6)], UNLOCK_RUST, &[0xaa15_03e0, call(6)]].concat();
        [&body[..], &stub(slot), &stub(RESUME)].concat()
    };
    let ran = pad(&code(END_CATCH), &[2], Some(DATA));
    assert_eq!((ran.end, touch(&ran, LockShape::RustMutex)), (RunEnd::Resumed, RELEASED));
    let ran = pad(&code(ANOTHER), &[2], Some(DATA));
    assert_eq!((ran.end, ran.events.len()), (RunEnd::Stopped, 0), "it may not return");
    // mov x21, x0; mov x0, x21; the call
    let ran = pad(&[&[0xaa00_03f5, 0xaa15_03e0, call(1)], &stub(ANOTHER)[..]].concat(), &[2], None);
    assert_eq!(ran.end, RunEnd::Resumed, "it was given");
}

#[test]
fn what_an_instruction_may_change_is_forgotten() {
    // mov x16, #0; chkfeat x16; cbz x16 over the next; brk
    let ran = pad(&[0xd280_0010, 0xd503_251f, 0xb400_0050, BREAK], &[], None);
    assert_eq!(ran.end, RunEnd::UnknownJump);
    // mov x16, #0; nop; cbz x16 over the next; nop; brk
    let ran = pad(&[0xd280_0010, 0xd503_201f, 0xb400_0050, 0xd503_201f, BREAK], &[], None);
    assert_eq!(ran.end, RunEnd::Stopped);
    // movi v0.2d, #0; smstart sm; fmov x0, d0; cbz x0 over the next; brk
    let vectors = [0x6f00_e400, 0xd503_437f, 0x9e66_0000, 0xb400_0040, BREAK];
    assert_eq!(pad(&vectors, &[], None).end, RunEnd::UnknownJump);
    let kept = [vectors[0], vectors[2], 0xb400_0040, 0xd503_201f, BREAK];
    assert_eq!(pad(&kept, &[], None).end, RunEnd::Stopped);
}

#[test]
fn a_pair_that_loads_into_nothing_exchanges() {
    // ldxr wzr, [x19]; stlxr w1, wzr, [x19]; brk
    let ran = pad(&[0x885f_7e7f, 0x8801_fe7f, BREAK], &[1], Some(DATA));
    assert_eq!((ran.end, touch(&ran, LockShape::RustMutex)), (RunEnd::Stopped, RELEASED));
}

#[test]
fn a_pair_compares_all_that_its_instruction_compares() {
    // mov x9, #1; movk x9, #1, lsl #32; ldaxr w8, [x19]; cmp x8, x9; b.ne over the next;
    // stlxr w10, wzr, [x19]; brk
    let high = [0xd280_0029, 0xf2c0_0029];
    let pair = [0x885f_fe68, 0xeb09_011f, 0x5400_0041, 0x880a_fe7f, BREAK];
    let ran = pad(&[&high[..1], &pair].concat(), &[1], Some(DATA));
    let change = Change::CompareExchange { expected: Some(1), new: Some(0) };
    assert!(matches!(ran.events[..], [Event::Locked { change: c, .. }] if c == change), "{ran:?}");
    let ran = pad(&[&high[..], &pair].concat(), &[1], Some(DATA));
    let change = Change::CompareExchange { expected: None, new: Some(0) };
    assert!(matches!(ran.events[..], [Event::Locked { change: c, .. }] if c == change), "{ran:?}");
}

#[test]
fn an_attempt_to_acquire_is_no_release() {
    // mov w8, #0; mov w9, #1; casal w8, w9, [x19]
    let at_once = [0x5280_0008, 0x5280_0029, 0x88e8_fe69];
    // mov w10, #1; ldaxr w8, [x19]; cbnz w8, over the next; stxr w9, w10, [x19]; clrex
    let in_pair = [0x5280_002a, 0x885f_fe68, 0x3500_0048, 0x8809_7e6a, 0xd503_3f5f];
    for acquire in [&at_once[..], &in_pair] {
        let code = [acquire, UNLOCK_RUST, &[call(1)], &stub(RESUME)].concat();
        for word in [0, 2] {
            let ran = pad(&code, &[word], Some(DATA));
            assert_eq!(ran.end, RunEnd::Resumed, "{word}");
            assert_eq!(touch(&ran, LockShape::RustMutex), Some(Touch::Taken), "{word}");
            assert_eq!(ran.events.len(), 2, "{word}");
        }
    }
}

#[test]
fn a_failed_exchange_from_held_to_free_is_a_release_of_parking_lot() {
    // mov w8, #1; casalb w8, wzr, [x19]; udf
    let ran = pad(&[0x5280_0028, 0x08e8_fe7f, 0], &[3], Some(DATA));
    assert_eq!(ran.end, RunEnd::Stopped, "udf");
    assert_eq!(touch(&ran, LockShape::ParkingMutex), RELEASED);
    // mov x2, x19; mov w0, #1; mov w1, #0; uxtb w16, w0; 1: ldxrb w0, [x2]; cmp w0, w16; b.ne 2f;
    // stlxrb w17, w1, [x2]; cbnz w17, 1b; 2: brk
    let code = [
        0xaa13_03e2,
        0x5280_0020,
        0x5280_0001,
        0x5300_1c10,
        0x085f_7c40,
        0x6b10_001f,
        0x5400_0061,
        0x0811_fc41,
        0x35ff_ff91,
        BREAK,
    ];
    for word in [1, 3] {
        let ran = pad(&code, &[word], Some(DATA));
        assert_eq!((ran.end, ran.events.len()), (RunEnd::Stopped, 1), "{word}");
        assert_eq!(touch(&ran, LockShape::ParkingMutex), RELEASED, "{word}");
    }
}

#[test]
fn atomics_out_of_line_are_seen_to_in_either_way() {
    // mov w0, #0; mov x1, x19; bl behind brk; brk; bti c; adrp x16, DATA; ldrb w16, [x16, #64];
    // cbz w16, 2f; swpl w0, w0, [x1]; ret; 2: mov w16, w0; 3: ldxr w0, [x1];
    // stlxr w17, w16, [x1]; cbnz w17, 3b; ret
    let code = [
        0x5280_0000,
        0xaa13_03e1,
        call(2),
        BREAK,
        0xd503_245f,
        0xb000_0010,
        0x3941_0210,
        0x3400_0070,
        0xb860_8020,
        0xd65f_03c0,
        0x2a00_03f0,
        0x885f_7c20,
        0x8811_fc30,
        0x35ff_ffd1,
        0xd65f_03c0,
    ];
    for has in [0, 1] {
        let mut data = [0; 65];
        (data[0], data[64]) = (2, has);
        let ran = pad(&code, &data, Some(DATA));
        assert_eq!((ran.end, ran.events.len()), (RunEnd::Stopped, 1), "{has}");
        assert_eq!(touch(&ran, LockShape::RustMutex), RELEASED, "{has}");
    }
}

#[test]
fn a_pair_that_computes_is_an_update() {
    // 1: ldxr w8, [x19]; sub w8, w8, #1; stlxr w9, w8, [x19]; cbnz w9, 1b; brk
    let code = [0x885f_7e68, 0x5100_0508, 0x8809_fe68, 0x35ff_ffa9, BREAK];
    let ran = pad(&code, &[2, 0, 0, 0xc0], Some(DATA));
    assert_eq!(ran.end, RunEnd::Stopped);
    let less = Some(Touch::Released(HoldMode::Shared));
    assert_eq!(touch(&ran, LockShape::RustRwLock), less);
    let ran = pad(&code, &[1], Some(DATA));
    assert_eq!(touch(&ran, LockShape::RustMutex), Some(Touch::Taken), "no exchange");
    // mov w8, #-1; ldaddl w8, w9, [x19]; brk
    let ran = pad(&[0x1280_0008, 0xb868_0269, BREAK], &[2, 0, 0, 0xc0], Some(DATA));
    assert_eq!(touch(&ran, LockShape::RustRwLock), less);
}

#[test]
fn a_pair_is_a_comparison_only_of_all_that_was_loaded_at_one_place() {
    let compares = |code: &[u32], data: &[u8]| {
        let ran = pad(code, data, Some(DATA));
        let is_comparison = |event: &Event| {
            matches!(event, Event::Locked { change: Change::CompareExchange { .. }, .. })
        };
        ran.events.iter().any(is_comparison)
    };
    // mov x10, xzr; 1: ldxr x8, [x19]; cbnz x8, 2f; stlxr w9, x10, [x19]; cbnz w9, 1b; 2: brk
    let whole = [0xaa1f_03ea, 0xc85f_7e68, 0xb500_0068, 0xc809_fe6a, 0x35ff_ffa9, BREAK];
    assert!(compares(&whole, &[0; 8]));
    // The same with cbnz w8: the upper half may be anything.
    let half = [0xaa1f_03ea, 0xc85f_7e68, 0x3500_0068, 0xc809_fe6a, 0x35ff_ffa9, BREAK];
    assert!(!compares(&half, &[0, 0, 0, 0, 1, 0, 0, 0]));
    // The same with ldxr x19, [x19]; cbnz x19: the store is elsewhere.
    let moved = [0xaa1f_03ea, 0xc85f_7e73, 0xb500_0073, 0xc809_fe6a, 0x35ff_ffa9, BREAK];
    assert!(!compares(&moved, &[0; 8]));
}

#[test]
fn calls_are_followed_or_known_by_name() {
    let code = [&[FIRST_IS_X19, call(2), call(6)], &stub(UNLOCK)[..], &stub(RESUME)].concat();
    let ran = pad(&code, &[1], Some(DATA));
    assert_eq!((ran.end, touch(&ran, LockShape::Called)), (RunEnd::Resumed, RELEASED));
    // A function that saves its registers: stp x29, x30, [sp, #-16]!; …; ldp x29, x30, [sp], #16
    let function = [&[0xa9bf_7bfd][..], UNLOCK_RUST, &[0xa8c1_7bfd, 0xd65f_03c0]].concat();
    let code = [&[call(2), call(7)], &function[..], &stub(RESUME)].concat();
    let ran = pad(&code, &[1], Some(DATA));
    assert_eq!((ran.end, touch(&ran, LockShape::RustMutex)), (RunEnd::Resumed, RELEASED));
    // blr x19
    let ran = pad(&[0xd63f_0260], &[0], Some(0x77));
    assert_eq!(ran.end, RunEnd::BadCode, "no code there");
}

#[test]
fn memory_is_compared_as_far_as_it_is_known() {
    // mov x0, x19; add x1, x19, #8; mov w2, #4; bl memcmp; cmp w0, #0; b.le to the end; then the
    // release, and in both cases brk.
    let code = [
        &[FIRST_IS_X19, 0x9100_2261, 0x5280_0082, call(7), 0x7100_001f, 0x5400_008d],
        UNLOCK_RUST,
        &[BREAK],
        &stub(COMPARE),
    ]
    .concat();
    let ran = |one: [u8; 4], other: [u8; 4], place| {
        let data = [&one[..], &[0; 4], &other].concat();
        let ran = pad(&code, &data, place);
        (ran.end, ran.events.len())
    };
    assert_eq!(ran([2, 0, 0, 0], [2, 0, 0, 0], Some(DATA)), (RunEnd::Stopped, 0), "equal");
    assert_eq!(ran([2, 0, 0, 9], [2, 0, 1, 0], Some(DATA)), (RunEnd::Stopped, 0), "less");
    assert_eq!(ran([2, 0, 0x80, 0], [2, 0, 1, 0], Some(DATA)), (RunEnd::Stopped, 1), "more");
    assert_eq!(ran([2, 0, 0, 0], [2, 0, 0, 0], None), (RunEnd::UnknownJump, 0), "unknown");
}

#[test]
fn a_pointer_is_followed_through_a_vector() {
    // ldr q0, [x19, #16]; str q0, [sp, #-32]!; ldp x8, x9, [sp]; swpal w8, wzr, [x9]; brk
    let code = [0x3dc0_0660, 0x3c9e_0fe0, 0xa940_27e8, 0xb8e8_813f, BREAK];
    let mut data = [0; 32];
    data[0] = 1;
    data[24..].copy_from_slice(&DATA.to_le_bytes());
    assert_eq!(touch(&pad(&code, &data, Some(DATA)), LockShape::RustMutex), RELEASED);
}

#[test]
fn a_wait_sleeps_or_only_spins_and_then_its_time_is_over() {
    // mov x0, x19; add x1, x19, #8; bl to the wait; tbz w1, #1, over the release; brk
    let code = [
        &[FIRST_IS_X19, 0x9100_2261, call(6), 0x3608_0081][..],
        UNLOCK_RUST,
        &[BREAK],
        &stub(WAIT),
    ]
    .concat();
    let ran = |flags| pad(&code, &[2, 0, 0, 0, 0, 0, 0, 0, flags], Some(DATA));
    let slept = ran(4);
    assert_eq!((slept.end, &slept.events[..]), (RunEnd::Blocked, &[Event::Sleeps(DATA)][..]));
    let spun = ran(4 | 8);
    assert_eq!((spun.end, spun.events.len()), (RunEnd::Stopped, 1), "what follows it: a release");
    let code = [&[FIRST_IS_X19, call(2), BREAK][..], &stub(NOTIFY)].concat();
    let woke = pad(&code, &[2], Some(DATA));
    assert_eq!((woke.end, &woke.events[..]), (RunEnd::Stopped, &[Event::Wakes(DATA)][..]));
}

#[test]
fn what_is_not_known_ends_a_run_and_makes_nothing_up() {
    let ran = pad(UNLOCK_RUST, &[2], None);
    assert_eq!((ran.end, ran.events.len()), (RunEnd::UnknownStore, 0));
    assert!(ran.is_for_want_of_registers());
    // cbz w19; tbz w19, #0
    for jump in [0x3400_0053, 0x3600_0053] {
        assert_eq!(pad(&[jump], &[], None).end, RunEnd::UnknownJump);
    }
    let code = [&[FIRST_IS_X19, call(2), call(6)], &stub(UNLOCK)[..], &stub(RESUME)].concat();
    let ran = pad(&code, &[], None);
    assert!(ran.events.is_empty() && ran.vague && ran.is_for_want_of_registers());
    // mov w0, #0; crc32b w0, w0, w0; swpl w0, w0, [x19]: it is not known what is stored.
    let ran = pad(&[0x5280_0000, 0x1ac0_4000, 0xb860_8260, BREAK], &[2], Some(DATA));
    assert_eq!(touch(&ran, LockShape::RustMutex), Some(Touch::Taken));
}

#[test]
fn hostile_code_ends_within_bounds() {
    for (code, end) in [
        // b to itself
        (&[0x1400_0000][..], RunEnd::Bound),
        // bl to itself
        (&[0x9400_0000], RunEnd::Bound),
        // stp x29, x30, [sp, #-16]!; b back
        (&[0xa9bf_7bfd, 0x17ff_ffff], RunEnd::NoMemory),
        // dc zva, x19; a jump that is none; udf; brk; ret into nothing
        (&[0xd50b_7433], RunEnd::BadCode),
        (&[0xffff_ffff], RunEnd::BadCode),
        (&[0], RunEnd::Stopped),
        (&[BREAK], RunEnd::Stopped),
        (&[0xd65f_03c0], RunEnd::Stopped),
        // br x0, which is the exception
        (&[0xd61f_0000], RunEnd::BadCode),
        // str xzr, [x8]; mov x8, #0; str xzr, [x8]
        (&[0xf900_011f], RunEnd::UnknownStore),
        (&[0xd280_0008, 0xf900_011f], RunEnd::NoMemory),
        // stlxr w17, w16, [x19] without a load
        (&[0x8811_fe70], RunEnd::BadCode),
        // ld1 {v0.16b}, [x19]: a load of another kind
        (&[0x4c40_7260], RunEnd::BadCode),
    ] {
        assert_eq!(pad(code, &[], Some(DATA)).end, end, "{code:x?}");
    }
    // It writes over itself: what was decoded counts. adr x8, .+8; str wzr, [x8]; brk
    let ran = pad(&[0x1000_0048, 0xb900_011f, BREAK], &[], None);
    assert_eq!(ran.end, RunEnd::Stopped);
}

#[test]
fn any_words_end_within_bounds() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for turn in 0..20_000_u32 {
        let code: Vec<u32> = (0..8)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let word = (state >> 32) as u32;
                // Half of them are of the groups whose instructions are done.
                let group = [0b1000, 0b0101, 0b1101, 0b0100, 0b1100, 0b1010, 0b0111, 0b1001];
                let known: u32 = group[(state & 7) as usize];
                if turn & 1 == 0 { word } else { word & !(0xf << 25) | known << 25 }
            })
            .collect();
        let known = (state & 1 == 0).then_some(DATA + (state >> 56));
        let ran = pad(&code, &[7; 64], known);
        assert!(ran.events.len() <= 4096 && ran.left.len() == ran.events.len());
    }
}
