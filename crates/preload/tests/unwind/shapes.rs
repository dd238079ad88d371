//! Programs that keep few rules: other stacks, no tables, code without a module,
//! and a module that goes away.

use crate::live::{self, DEPTH};
use crate::program::Program;
use lockstead_preload::unwind::{OwnStack, Rules, Unwinder, WalkEnd, WalkStart};

const CHAIN: &str = r"
typedef void leaf_t(void *);
static volatile int sink;
#define F(n, next) __attribute__((noinline)) void n(const char *p, leaf_t *leaf, void *data) \
    { next; sink++; }
F(inner, leaf(data))
F(middle, inner(p, leaf, data))
F(outer, middle(p, leaf, data))
";

const NO_TABLES: [&str; 2] = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];

fn run(program: &Program, run: &mut dyn FnMut(WalkStart)) {
    live::through(program.entry("outer"), &[0], run);
}

#[test]
fn code_without_tables_is_left_by_its_frame_pointer() {
    let Some(loaded) = live::loaded() else { return };
    let flags = ["-O1", "-fno-omit-frame-pointer", NO_TABLES[0], NO_TABLES[1]];
    let Some(program) = Program::new(CHAIN, &flags) else { return };
    let rules = Box::new(Rules::new());
    let mut outside = Vec::new();
    live::here(&mut |start| outside = live::expected(start));
    run(&program, &mut |start| {
        let (walk, chain) = live::walk(Some(loaded), &rules, start);
        assert!(walk.guessed);
        assert_eq!(walk.end, WalkEnd::Bottom, "{chain:x?}");
        // Beyond the three are functions that have tables, to the bottom.
        assert_eq!(chain[chain.len() - 3..], outside[outside.len() - 3..]);
    });
}

#[test]
fn code_without_tables_or_frame_pointer_gives_no_invented_callers() {
    let Some(loaded) = live::loaded() else { return };
    let flags = ["-O2", "-fomit-frame-pointer", NO_TABLES[0], NO_TABLES[1]];
    let Some(program) = Program::new(CHAIN, &flags) else { return };
    let rules = Box::new(Rules::new());
    run(&program, &mut |start| {
        for bp in [0, 1, 0x1234_5678, start.sp - 8, live::stack_end()] {
            let (walk, chain) = live::walk(Some(loaded), &rules, WalkStart { bp, ..start });
            assert_eq!((chain, walk.end), (vec![start.pc], WalkEnd::Uncharted));
            assert!(!walk.guessed);
        }
    });
}

#[test]
fn unloading_and_forgetting_lets_other_code_take_the_addresses() {
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    let mut at_same_address = 0;
    let mut previous = 0;
    // Frames of another size each time, so that a stale rule would show.
    for round in 1..=6 {
        let size = format!("-DSIZE={}", round * 64);
        let source = CHAIN.replace("{ next;", "{ volatile char room[SIZE]; room[1] = 1; next;");
        let Some(program) = Program::new(&source, &["-O2", &size]) else { return };
        run(&program, &mut |start| {
            at_same_address += u32::from(start.pc == previous);
            previous = start.pc;
            let (walk, chain) = live::walk(Some(loaded), &rules, start);
            assert_eq!(chain, live::expected(start));
            assert_eq!(walk.end, WalkEnd::Bottom);
        });
        program.unload();
        rules.forget();
    }
    println!("{at_same_address} of 5 took the address of the one before");
}

#[test]
fn stale_rules_give_wrong_frames_and_no_fault() {
    let Some(loaded) = live::loaded() else { return };
    let rules = Box::new(Rules::new());
    for round in [1, 40, 3, 7, 100] {
        let size = format!("-DSIZE={}", round * 64);
        let source = CHAIN.replace("{ next;", "{ volatile char room[SIZE]; room[1] = 1; next;");
        let Some(program) = Program::new(&source, &["-O2", &size]) else { return };
        run(&program, &mut |start| {
            let (walk, chain) = live::walk(Some(loaded), &rules, start);
            assert_eq!(chain[0], start.pc);
            assert!(walk.len < DEPTH);
        });
        program.unload();
    }
}

const ON_SIGNAL_STACK: &str = r"
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
typedef void leaf_t(void *);
static volatile int sink;
static leaf_t *to_call;
static void *to_pass;
void *signal_stack_end;
static void handler(int signal) { to_call(to_pass); sink++; }
void outer(const char *p, leaf_t *leaf, void *data) {
    stack_t mine = {.ss_size = 1 << 16}, old;
    mine.ss_sp = malloc(mine.ss_size);
    sigaltstack(&mine, &old);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK}, before;
    sigaction(SIGWINCH, &action, &before);
    to_call = leaf;
    to_pass = data;
    raise(SIGWINCH);
    sigaction(SIGWINCH, &before, 0);
    sigaltstack(&old, 0);
    free(mine.ss_sp);
    sink++;
}
";

#[test]
fn a_handler_on_a_stack_of_its_own_leads_to_the_stack_it_interrupted() {
    let Some(loaded) = live::loaded() else { return };
    let Some(program) = Program::new(ON_SIGNAL_STACK, &["-O2"]) else { return };
    let rules = Box::new(Rules::new());
    let low = {
        let here = 0_u8;
        (&raw const here) as u64 - (128 << 10)
    };
    run(&program, &mut |start| {
        let expected = live::expected(start);
        let mut now = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: the kernel writes `now`, and changes nothing without a new stack.
        assert_eq!(unsafe { libc::sigaltstack(std::ptr::null(), &mut now) }, 0);
        let high = now.ss_sp as u64 + now.ss_size as u64;
        assert!(start.sp < high && start.sp > now.ss_sp as u64, "not on the signal stack");
        // SAFETY: both ranges lie on stacks of this thread, which waits meanwhile.
        let both = unsafe { OwnStack::new(start.sp, high).over(low, live::stack_end()) };
        let mut chain = vec![0; DEPTH];
        let unwinder = Unwinder::new(Some(loaded), &rules);
        let walk = unwinder.walk(start, both, &mut chain);
        assert_eq!(chain[..walk.len], expected);
        assert_eq!(walk.end, WalkEnd::Bottom);
        assert_eq!(walk.slots.known, 2, "of the handler and of what it interrupted");

        // SAFETY: this part of the handler's stack is in use while the closure runs.
        let one = unsafe { OwnStack::new(start.sp, high) };
        let walk = unwinder.walk(start, one, &mut chain);
        assert_eq!(walk.end, WalkEnd::OffStack);
        assert_eq!(chain[..walk.len], expected[..walk.len]);
    });
}
