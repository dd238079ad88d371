//! Random chains of calls through functions of all shapes: every return address
//! must be the one that glibc's unwinder gives, with rules cold and learned.

use crate::live;
use crate::program::Program;
use crate::random::Random;
use lockstead_preload::unwind::{Rules, WalkEnd};
use std::sync::{Mutex, PoisonError};

/// The functions take a script: each byte says which to call next, 0 to call the
/// leaf. Each goes on after the call, so that none is a tail call.
const PROLOGUE: &str = r#"
#define _GNU_SOURCE
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
typedef void leaf_t(void *);
typedef void entry_t(const unsigned char *, leaf_t *, void *);
extern entry_t *const table[];
extern const unsigned count;
static volatile unsigned long sink;
static inline __attribute__((always_inline)) void
go(const unsigned char *p, leaf_t *leaf, void *data) {
    if (*p) table[*p % count](p + 1, leaf, data); else leaf(data);
    sink++;
}
#define F(n) __attribute__((noinline)) void n(const unsigned char *p, leaf_t *leaf, void *data)

F(plain) { go(p, leaf, data); }
F(early) {
    if (p[0] == 255 && p[1] == 255) { sink = 1; return; }
    unsigned long a = sink, b = sink, c = sink, d = sink, e = sink, f = sink;
    go(p, leaf, data);
    sink = a ^ b ^ c ^ d ^ e ^ f;
}
F(pressure) {
    unsigned long a = sink, b = sink + a, c = sink + b, d = sink + c, e = sink + d;
    for (int i = 0; i < 2; i++) {
        if (i == 1) go(p, leaf, data);
        a = a * 31 + b; b ^= c; c += d; d -= e; e = e * a + 1;
    }
    sink = a + b + c + d + e;
}
F(with_alloca) {
    char *room = alloca(16 + *p * 8);
    memset(room, *p, 16 + *p * 8);
    go(p, leaf, data);
    sink += room[3];
}
F(aligned) {
    _Alignas(64) char room[192];
    memset(room, *p, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    go(p, leaf, data);
    sink += room[3];
}
F(aligned_alloca) {
    _Alignas(128) char room[256];
    char *more = alloca(32 + *p);
    __asm__ volatile("" : : "r"(room), "r"(more) : "memory");
    go(p, leaf, data);
    sink += room[1] + more[1];
}
F(middling) {
    char room[5000];
    __asm__ volatile("" : : "r"(room) : "memory");
    go(p, leaf, data);
    sink += room[4000];
}
F(large) {
    char room[70000];
    __asm__ volatile("" : : "r"(room) : "memory");
    go(p, leaf, data);
    sink += room[60000];
}
static __attribute__((noinline)) void
many(long a, long b, long c, long d, long e, long f, long g, long h, long i,
     const unsigned char *p, leaf_t *leaf, void *data) {
    go(p, leaf, data);
    sink += a + b + c + d + e + f + g + h + i;
}
F(arguments) { many(1, sink, 3, sink, 5, 6, sink, 8, 9, p, leaf, data); sink++; }
F(recursive) {
    if (sink++ % 5) { recursive(p, leaf, data); sink++; return; }
    go(p, leaf, data);
}

static __thread struct { const unsigned char *p; leaf_t *leaf; void *data; } next;
static int compare(const void *a, const void *b) {
    if (next.leaf) {
        leaf_t *leaf = next.leaf;
        next.leaf = 0;
        go(next.p, leaf, next.data);
    }
    return *(const int *)a - *(const int *)b;
}
F(through_libc) {
    int two[2] = {2, 1};
    next.p = p; next.leaf = leaf; next.data = data;
    qsort(two, 2, sizeof *two, compare);
    sink += two[0];
}
static void handler(int signal) { go(next.p, next.leaf, next.data); }
F(signal_by_call) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER}, old;
    sigaction(SIGUSR2, &action, &old);
    next.p = p; next.leaf = leaf; next.data = data;
    raise(SIGUSR2);
    sigaction(SIGUSR2, &old, 0);
}
#ifdef __aarch64__
#define TRAP "brk #0"
/* The trap is returned to, and the return address still in its register. */
#define LEAF TRAP "\nstp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n" \
    ".cfi_offset 29, -16\n.cfi_offset 30, -8\nldp x29, x30, [sp], #16\n" \
    ".cfi_def_cfa_offset 0\n.cfi_restore 29\n.cfi_restore 30\nret\n"
#define RESUME(context) ((ucontext_t *)(context))->uc_mcontext.pc += 4
#else
#define TRAP "int3"
#define LEAF TRAP "\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\n" \
    "pop %rbp\n.cfi_def_cfa_offset 8\nret\n"
#define RESUME(context)
#endif
static void trapped(int signal, siginfo_t *info, void *context) {
    go(next.p, next.leaf, next.data);
    RESUME(context);
}
F(signal_between) {
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_NODEFER | SA_SIGINFO}, old;
    sigaction(SIGTRAP, &action, &old);
    next.p = p; next.leaf = leaf; next.data = data;
    __asm__ volatile(TRAP : : : "memory");
    sigaction(SIGTRAP, &old, 0);
}
F(signal_in_leaf_prologue) {
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_NODEFER | SA_SIGINFO}, old;
    sigaction(SIGTRAP, &action, &old);
    next.p = p; next.leaf = leaf; next.data = data;
    void first_instruction(void);
    first_instruction();
    sigaction(SIGTRAP, &old, 0);
}
__asm__(".text\n.globl first_instruction\n.hidden first_instruction\n"
        ".type first_instruction, @function\nfirst_instruction:\n.cfi_startproc\n"
        LEAF
        ".cfi_endproc\n.size first_instruction, .-first_instruction\n");

entry_t *const table[] = {plain, early, pressure, with_alloca, aligned, aligned_alloca, middling,
    large, arguments, recursive, through_libc, signal_by_call, signal_between,
    signal_in_leaf_prologue};
const unsigned count = sizeof table / sizeof *table;
F(start) { go(p, leaf, data); }
"#;

const CHAINS: usize = 400;

fn agree_with_glibc(flags: &[&str]) {
    let Some(loaded) = live::loaded() else { return };
    let Some(program) = Program::new(PROLOGUE, flags) else { return };
    // The handlers of signals belong to the process.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = program.entry("start");
    let rules = Box::new(Rules::new());
    let mut random = Random::new(flags.len() as u64);
    let mut longest = 0;
    for _ in 0..CHAINS {
        let length = random.below(24);
        let mut script: Vec<u8> = (0..length).map(|_| 1 + random.below(254) as u8).collect();
        script.push(0);
        let mut check = |start| {
            let expected = live::expected(start);
            let cold = Box::new(Rules::new());
            for rules in [&cold, &cold, &rules] {
                let (walk, chain) = live::walk(Some(loaded), rules, start);
                assert_eq!(chain, expected, "{flags:?} {script:?}: {walk:?}");
                assert_eq!(walk.end, WalkEnd::Bottom, "{flags:?} {script:?}");
                assert!(!walk.guessed);
                // SAFETY: the walk ran on this stack from the same place, whose caller waits.
                assert!(unsafe { walk.slots.lead_to(start.sp, &chain) });
            }
            longest = longest.max(expected.len());
        };
        live::through(entry, &script, &mut check);
    }
    assert!(longest > 24, "the scripts were not followed: {longest}");
}

/// Declares a test for each, with a thread and a name of its own, so that a failure says which
/// flags it was.
macro_rules! agrees {
    ($($name:ident: $($flag:literal)*;)*) => {$(
        #[test]
        fn $name() {
            agree_with_glibc(&[$($flag),*]);
        }
    )*};
}

agrees! {
    chains_optimised_without_frame_pointer: "-O2" "-fomit-frame-pointer";
    chains_optimised_with_frame_pointer: "-O2" "-fno-omit-frame-pointer";
    chains_not_optimised: "-O0";
    chains_optimised_for_size: "-Os";
    chains_optimised_hard_with_cold_parts_apart: "-O3" "-freorder-blocks-and-partition";
    chains_with_indirect_stubs: "-O1" "-Wl,-z,lazy" "-fplt";
}

#[cfg(target_arch = "x86_64")]
agrees! {
    chains_with_all_protection: "-O2" "-fstack-protector-all" "-fcf-protection" "-fstack-clash-protection";
    chains_with_arguments_stored: "-O2" "-maccumulate-outgoing-args";
}

#[cfg(target_arch = "aarch64")]
agrees! {
    chains_with_all_protection: "-O2" "-fstack-protector-all" "-mbranch-protection=standard" "-fstack-clash-protection";
    chains_with_leaves_signed: "-O1" "-mbranch-protection=pac-ret+leaf";
    chains_with_pairs_left_out: "-O2" "-fomit-frame-pointer" "-momit-leaf-frame-pointer";
}
