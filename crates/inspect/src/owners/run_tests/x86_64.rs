//! Runs of code of x86-64.

use super::super::event::{Event, RunEnd};
use super::super::run::Ran;
use super::super::shape::{LockShape, Touch};
use super::super::x86_64::X86;
use super::{CODE, COMPARE, DATA, NOTIFY, RESUME, UNLOCK, WAIT, touch};
use crate::waits::modes::HoldMode;

/// Runs `code` as a landing pad: `rbx` has the address of the data, which begins with `data`.
fn pad(code: &[u8], data: &[u8], rbx: Option<u64>) -> Ran {
    super::pad::<X86>(code, data, (7, 3), rbx)
}

/// Returns the bytes of `call *slot(%rip)` that lie at `at` in the code.
fn call(slot: u64, at: u64) -> Vec<u8> {
    let distance = (slot - (CODE + at + 6)) as u32;
    [&[0xff, 0x15][..], &distance.to_le_bytes()].concat()
}

/// `xor eax, eax; xchg [rbx], eax; cmp eax, 2`.
const UNLOCK_RUST: &[u8] = &[0x31, 0xc0, 0x87, 0x03, 0x83, 0xf8, 0x02];

#[test]
fn a_pad_that_unlocks_and_resumes_is_seen_to() {
    let code = [UNLOCK_RUST, &call(RESUME, 7)].concat();
    let ran = pad(&code, &[2], Some(DATA));
    assert_eq!(ran.end, RunEnd::Resumed);
    assert_eq!(touch(&ran, LockShape::RustMutex), Some(Touch::Released(HoldMode::Alone)));
    assert_eq!(touch(&ran, LockShape::RustRwLock), Some(Touch::Taken), "no release of that kind");
}

#[test]
fn an_attempt_to_acquire_is_no_release() {
    // xor eax, eax; mov ecx, 1; lock cmpxchg [rbx], ecx; then the release.
    let acquire = [0x31, 0xc0, 0xb9, 1, 0, 0, 0, 0xf0, 0x0f, 0xb1, 0x0b];
    let code = [&acquire[..], UNLOCK_RUST, &call(RESUME, 18)].concat();
    for word in [0, 2] {
        let ran = pad(&code, &[word], Some(DATA));
        assert_eq!(touch(&ran, LockShape::RustMutex), Some(Touch::Taken), "{word}");
    }
}

#[test]
fn a_failed_exchange_from_held_to_free_is_a_release_of_parking_lot() {
    // mov al, 1; xor ecx, ecx; lock cmpxchg [rbx], cl
    let code = [0xb0, 1, 0x31, 0xc9, 0xf0, 0x0f, 0xb0, 0x0b, 0x0f, 0x0b];
    let ran = pad(&code, &[3], Some(DATA));
    assert_eq!(ran.end, RunEnd::Stopped, "ud2");
    assert_eq!(touch(&ran, LockShape::ParkingMutex), Some(Touch::Released(HoldMode::Alone)));
}

#[test]
fn calls_are_followed_or_known_by_name() {
    // mov rdi, rbx
    let code = [&[0x48, 0x89, 0xdf][..], &call(UNLOCK, 3), &call(RESUME, 9)].concat();
    let ran = pad(&code, &[1], Some(DATA));
    assert_eq!(
        (ran.end, touch(&ran, LockShape::Called)),
        (RunEnd::Resumed, Some(Touch::Released(HoldMode::Alone)))
    );
    // call over the next six bytes; call *RESUME; then the function: UNLOCK_RUST; ret.
    let code = [&[0xe8, 6, 0, 0, 0][..], &call(RESUME, 5), UNLOCK_RUST, &[0xc3]].concat();
    let ran = pad(&code, &[1], Some(DATA));
    assert_eq!(ran.end, RunEnd::Resumed);
    assert_eq!(touch(&ran, LockShape::RustMutex), Some(Touch::Released(HoldMode::Alone)));
    // The exception goes to a function that nobody knows: it is the next frame's.
    let ran = pad(&[0x48, 0x89, 0xc7, 0xff, 0xd3], &[0], Some(0x77));
    assert_eq!(ran.end, RunEnd::BadCode, "no code there");
}

#[test]
fn memory_is_compared_as_far_as_it_is_known() {
    // mov rdi, rbx; lea rsi, [rbx + 8]; mov edx, 4; call memcmp; test eax, eax; jle to the end;
    // then the release, and in both cases ud2.
    let code = [
        &[0x48, 0x89, 0xdf, 0x48, 0x8d, 0x73, 8, 0xba, 4, 0, 0, 0][..],
        &call(COMPARE, 12),
        &[0x85, 0xc0, 0x7e, UNLOCK_RUST.len() as u8],
        UNLOCK_RUST,
        &[0x0f, 0x0b],
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
fn a_wait_sleeps_or_only_spins_and_then_its_time_is_over() {
    // mov rdi, rbx; lea rsi, [rbx + 8]; call the wait; test dl, 2; jz over the release; ud2
    let code = [
        &[0x48, 0x89, 0xdf, 0x48, 0x8d, 0x73, 8][..],
        &call(WAIT, 7),
        &[0xf6, 0xc2, 2, 0x74, UNLOCK_RUST.len() as u8],
        UNLOCK_RUST,
        &[0x0f, 0x0b],
    ]
    .concat();
    let ran = |flags| pad(&code, &[2, 0, 0, 0, 0, 0, 0, 0, flags], Some(DATA));
    let slept = ran(4);
    assert_eq!((slept.end, &slept.events[..]), (RunEnd::Blocked, &[Event::Sleeps(DATA)][..]));
    let spun = ran(4 | 8);
    assert_eq!((spun.end, spun.events.len()), (RunEnd::Stopped, 1), "what follows it: a release");
    let code = [&[0x48, 0x89, 0xdf][..], &call(NOTIFY, 3), &[0x0f, 0x0b]].concat();
    let woke = pad(&code, &[2], Some(DATA));
    assert_eq!((woke.end, &woke.events[..]), (RunEnd::Stopped, &[Event::Wakes(DATA)][..]));
}

#[test]
fn what_is_not_known_ends_a_run_and_makes_nothing_up() {
    let ran = pad(UNLOCK_RUST, &[2], None);
    assert_eq!((ran.end, ran.events.len()), (RunEnd::UnknownStore, 0));
    assert!(ran.is_for_want_of_registers());
    // test ebx, ebx; je
    let ran = pad(&[0x85, 0xdb, 0x74, 0], &[], None);
    assert_eq!(ran.end, RunEnd::UnknownJump);
    let code = [&[0x48, 0x89, 0xdf][..], &call(UNLOCK, 3), &call(RESUME, 9)].concat();
    let ran = pad(&code, &[], None);
    assert!(ran.events.is_empty() && ran.vague && ran.is_for_want_of_registers());
}

#[test]
fn hostile_code_ends_within_bounds() {
    for (code, end) in [
        // jmp to itself
        (&[0xeb, 0xfe][..], RunEnd::Bound),
        // call itself
        (&[0xe8, 0xfb, 0xff, 0xff, 0xff], RunEnd::Bound),
        // push 1; jmp back
        (&[0x6a, 1, 0xeb, 0xfc], RunEnd::NoMemory),
        // rep stosb with rcx unknown
        (&[0xf3, 0xaa], RunEnd::UnknownStore),
        // mov ecx, 0x7fffffff; mov rdi, rbx; rep stosb
        (&[0xb9, 0xff, 0xff, 0xff, 0x7f, 0x48, 0x89, 0xdf, 0xf3, 0xaa], RunEnd::Bound),
        // no instruction; hlt; int3; ret into nothing
        (&[0x06], RunEnd::BadCode),
        (&[0xf4], RunEnd::Stopped),
        (&[0xcc], RunEnd::Stopped),
        (&[0xc3], RunEnd::Stopped),
        // jmp rax, which is the exception; mov rsp, rax; push rax
        (&[0xff, 0xe0], RunEnd::BadCode),
        // mov [0], eax
        (&[0x89, 0x04, 0x25, 0, 0, 0, 0], RunEnd::NoMemory),
        // xsave and the like
        (&[0x0f, 0xae, 0x23], RunEnd::BadCode),
    ] {
        assert_eq!(pad(code, &[], Some(DATA)).end, end, "{code:x?}");
    }
    // It writes over itself: what was decoded counts, and the process's memory stays.
    let ran = pad(&[0xc6, 0x05, 0, 0, 0, 0, 0x90, 0x0f, 0x0b], &[], None);
    assert_eq!(ran.end, RunEnd::Stopped);
}

#[test]
fn any_bytes_end_within_bounds() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..3000 {
        let code: Vec<u8> = (0..48)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        let known = (state & 1 == 0).then_some(DATA + (state >> 56));
        let ran = pad(&code, &code, known);
        assert!(ran.events.len() <= 4096 && ran.left.len() == ran.events.len());
    }
}
