//! Walks through this program's own functions: depth, limits, what a walk costs
//! in stack, and stacks of which little is known.

use crate::live::{self, DEPTH};
use lockstead_preload::unwind::{OwnStack, Rules, StackMemory, Unwinder, WalkEnd, WalkStart};
use std::hint::black_box;

#[inline(never)]
fn deep(levels: usize, run: &mut dyn FnMut(WalkStart)) -> usize {
    if levels == 0 {
        live::here(run);
        return 0;
    }
    black_box(deep(black_box(levels - 1), run)) + 1
}

#[test]
fn a_deep_recursion_is_followed_to_its_bottom() {
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    let levels = deep(1000, &mut |start| {
        let expected = live::expected(start);
        let (walk, chain) = live::walk(Some(loaded), &rules, start);
        assert_eq!(chain, expected);
        assert_eq!(walk.end, WalkEnd::Bottom);
        assert!(chain.len() > 1000);
    });
    assert_eq!(levels, 1000);
}

#[test]
fn a_short_buffer_takes_the_innermost_and_says_that_it_is_full() {
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    deep(50, &mut |start| {
        let (_, all) = live::walk(Some(loaded), &rules, start);
        for size in [0, 1, 2, 3, 4, 20] {
            let mut chain = vec![0; size];
            let walk =
                Unwinder::new(Some(loaded), &rules).walk(start, live::stack(start), &mut chain);
            assert_eq!((walk.len, walk.end), (size, WalkEnd::Full));
            assert_eq!(chain, all[..size]);
            assert_eq!(usize::from(walk.slots.known), size.saturating_sub(1).min(3));
        }
    });
}

#[test]
fn slots_recognise_the_chain_and_refuse_another() {
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    deep(8, &mut |start| {
        let (walk, mut chain) = live::walk(Some(loaded), &rules, start);
        assert_eq!(walk.slots.known, 3);
        // SAFETY: the walk ran on this stack from the same place, whose caller waits.
        assert!(unsafe { walk.slots.lead_to(start.sp, &chain) });
        for changed in 1..=3 {
            chain[changed] ^= 1;
            // SAFETY: the walk ran on this stack from the same place, whose caller waits.
            assert!(!unsafe { walk.slots.lead_to(start.sp, &chain) });
            chain[changed] ^= 1;
        }
        // SAFETY: the walk ran on this stack from the same place, whose caller waits.
        assert!(!unsafe { walk.slots.lead_to(start.sp, &chain[..3]) });
    });
}

#[test]
fn a_stack_that_ends_early_ends_the_walk_there() {
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    deep(20, &mut |start| {
        let (_, all) = live::walk(Some(loaded), &rules, start);
        let mut before = 0;
        for bytes in (0..2048).step_by(8) {
            // SAFETY: the range is a part of the thread's stack, above a caller that waits.
            let part = unsafe { OwnStack::new(start.sp, start.sp + bytes) };
            let mut chain = vec![0; DEPTH];
            let walk = Unwinder::new(Some(loaded), &rules).walk(start, part, &mut chain);
            assert_eq!(walk.end, WalkEnd::OffStack);
            assert_eq!(chain[..walk.len], all[..walk.len]);
            assert!(walk.len >= before);
            before = walk.len;
        }
        assert!(before > 3, "2 KiB hold more than {before} frames");
        // SAFETY: `start` is of a caller that waits until this returns.
        let unnamed = unsafe { OwnStack::unnamed(start.sp) };
        let mut chain = vec![0; DEPTH];
        let walk = Unwinder::new(Some(loaded), &rules).walk(start, unnamed, &mut chain);
        assert_eq!(chain[..walk.len], all[..walk.len]);
    });
}

#[test]
fn a_stack_gives_aligned_words_of_its_own_and_nothing_else() {
    let words = [1_u64, 2, 3, 4];
    let low = words.as_ptr() as u64;
    // SAFETY: the range is the array, which outlives the stack that stands for it.
    let mut stack = unsafe { OwnStack::new(low, low + 32) };
    assert_eq!(stack.word(low), Some(1));
    assert_eq!(stack.word(low + 24), Some(4));
    for outside in [0, 8, low - 8, low + 32, u64::MAX - 7, u64::MAX, low + 1, low + 28] {
        assert_eq!(stack.word(outside), None, "{outside:#x}");
    }
    assert!(!stack.enter(low));

    // SAFETY: the array outlives it; its halves stand for two stacks.
    let mut signal = unsafe { OwnStack::new(low + 16, low + 32).over(low, low + 16) };
    assert_eq!(signal.word(low + 8), None);
    assert!(signal.enter(low + 8));
    assert_eq!(signal.word(low + 8), Some(2));
    assert_eq!(signal.word(low), None, "below the stack pointer");
    assert_eq!(signal.word(low + 16), None, "the signal's stack was left");
    assert!(!signal.enter(low + 8), "a second time");

    // SAFETY: the test reads no word of this stack, which does not exist.
    let high = unsafe { OwnStack::unnamed(u64::MAX - 100) };
    assert_eq!(high.word(u64::MAX), None);
}

#[test]
fn without_modules_there_are_only_frame_pointers_and_the_walk_says_so() {
    let rules = Box::new(Rules::new());
    // Three frames as code with frame pointers leaves them.
    let mut words = [0_u64; 16];
    let low = words.as_ptr() as u64;
    words[2] = low + 6 * 8;
    words[3] = 0x40_1000;
    words[6] = low + 10 * 8;
    words[7] = 0x40_2000;
    words[10] = 0;
    words[11] = 0;
    let start = WalkStart { pc: 0x40_0000, sp: low, bp: low + 16 };
    let from = |start, words: &[u64; 16]| {
        let low = words.as_ptr() as u64;
        // SAFETY: the range is the array of the caller, which is alive.
        let stack = unsafe { OwnStack::new(low, low + 128) };
        let mut chain = [0; 8];
        let walk = Unwinder::new(None::<lockstead_preload::unwind::Loaded>, &rules)
            .walk(start, stack, &mut chain);
        (chain[..walk.len].to_vec(), walk.end, walk.guessed)
    };
    let all = vec![0x40_0000, 0x40_1000, 0x40_2000];
    assert_eq!(from(start, &words), (all.clone(), WalkEnd::Bottom, true));
    // Used for something else: not in the stack, not aligned, below the frame.
    for bp in [0, 17, low + 20, low - 8, low + 120, low + 4096] {
        let start = WalkStart { bp, ..start };
        assert_eq!(from(start, &words), (all[..1].to_vec(), WalkEnd::Uncharted, false), "{bp:#x}");
    }
    // A circle, and a return address that is no code.
    words[6] = low + 16;
    assert_eq!(from(start, &words), (all[..2].to_vec(), WalkEnd::Uncharted, true));
    words[6] = low + 80;
    // Of the last, processors that sign return addresses make one of the kernel's.
    for bad in [1, low + 8, (1 << 55) | (1 << lockstead_unwind::arch::ADDRESS_BITS)] {
        words[7] = bad;
        assert_eq!(from(start, &words), (all[..2].to_vec(), WalkEnd::Uncharted, true), "{bad:#x}");
    }
}

/// Runs `run(data)` on the stack that ends at `top`.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn on_stack(top: u64, run: extern "C" fn(u64), data: u64) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        ".cfi_def_cfa x29, 16",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        ".cfi_def_cfa sp, 16",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        "ret",
        ".cfi_endproc",
    )
}

/// Runs `run(data)` on the stack that ends at `top`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn on_stack(top: u64, run: extern "C" fn(u64), data: u64) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// The most that a walk with nothing learned may take from the program's stack.
/// On aarch64 a frame has room for twelve registers more.
const STACK_LIMIT: usize = if cfg!(target_arch = "aarch64") { 2304 } else { 2048 };

#[test]
fn a_walk_takes_less_than_two_kib_of_stack() {
    struct Job<'a> {
        start: WalkStart,
        unwinder: Unwinder<'a, Option<lockstead_preload::unwind::Loaded>>,
        stack: OwnStack,
        chain: &'a mut [u64],
        len: usize,
    }
    extern "C" fn run(job: u64) {
        // SAFETY: the number is the address of the job below, which waits meanwhile.
        let job = unsafe { &mut *(job as *mut Job<'_>) };
        job.len = job.unwinder.walk(job.start, job.stack, job.chain).len;
    }
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    deep(30, &mut |start| {
        const PAINT: u64 = 0x5a5a_a5a5_5a5a_a5a5;
        let mut own = vec![PAINT; 8192];
        let mut chain = vec![0; DEPTH];
        let mut job = Job {
            start,
            unwinder: Unwinder::new(Some(loaded), &rules),
            stack: live::stack(start),
            chain: &mut chain,
            len: 0,
        };
        let top = (own.as_mut_ptr_range().end as u64) & !15;
        // SAFETY: a stack of its own, large enough, and the job outlives the call.
        unsafe { on_stack(top, run, (&raw mut job) as u64) };
        assert!(job.len > 30);
        let unused = own.iter().take_while(|&&word| word == PAINT).count();
        let used = (own.len() - unused) * 8;
        println!("a cold walk used {used} bytes of stack");
        assert!(used < STACK_LIMIT, "{used} bytes");
    });
}
