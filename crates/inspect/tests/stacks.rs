//! Stacks of real threads, asleep at lines that are known.

use crate::support::{Running, build};
use lockstead_inspect::memory::{ProcMem, ProcessMemory};
use lockstead_inspect::modules::Modules;
use lockstead_inspect::stack::{Stack, StackEnd};
use lockstead_inspect::symbols::{Symbolizer, site};
use lockstead_inspect::unwind::{MAX_FRAMES, Unwinder};

/// The number of the futex call, which no test makes: the Linux crate does.
const FUTEX: i64 = lockstead_inspect::arch::FUTEX;

/// Returns the stacks of the threads `name`, asleep in the system call `call`.
fn stacks(program: &Running, name: &str, call: i64, count: usize) -> Option<Vec<Stack>> {
    let asleep = program.asleep(name, call, count)?;
    let modules = || Modules::of(program.pid()).expect("readable");
    let mut unwinder = Unwinder::new(modules());
    let mut symbols = Symbolizer::new(modules());
    let memory = ProcessMemory::new(program.pid());
    let file = ProcMem::open(program.pid()).expect("readable");
    let stacks = asleep
        .iter()
        .map(|thread| {
            let walk = unwinder.unwind(&memory, thread.registers);
            assert_eq!(walk, unwinder.unwind(&file, thread.registers), "by either way");
            symbols.stack(&walk.frames, walk.end)
        })
        .collect();
    Some(stacks)
}

/// Returns the program's own frames, innermost first.
fn own(stack: &Stack, program: &str) -> Vec<String> {
    let module = |m: &String| m.ends_with(program);
    stack
        .frames
        .iter()
        .filter(|f| f.module.as_ref().is_some_and(module))
        .map(|f| f.site())
        .collect()
}

/// Asserts that every build of the program, with tables for exceptions, has whole stacks.
fn sleepers_are_found(name: &str, flags: &[&str]) {
    let Some(program) = build(name, "sleepers.c", flags) else { return };
    let program = Running::start(&program, &["2", "2"]);
    let Some(holders) = stacks(&program, "holder", libc::SYS_clock_nanosleep, 1) else { return };
    let Some(waiters) = stacks(&program, "waiter", FUTEX, 2) else { return };
    let holder = ["hold_for_long() at sleepers.c:17", "holder() at sleepers.c:26"];
    assert_eq!(own(&holders[0], name), holder);
    let waiter = [
        "take_the_lock() at sleepers.c:39",
        "take_the_lock() at sleepers.c:36",
        "take_the_lock() at sleepers.c:36",
        "waiter() at sleepers.c:47",
    ];
    if waiters.iter().all(ends_by_an_unsaved_register) {
        println!("skipped: no function of this C library that sleeps for a mutex has saved rbp");
        return;
    }
    for stack in &waiters {
        assert_eq!(own(stack, name), waiter);
    }
    for stack in holders.iter().chain(&waiters) {
        assert_eq!(stack.end, StackEnd::Bottom, "{stack:#?}");
        // Once found, the frame pointer stays known.
        assert!(stack.frames.iter().filter(|f| f.found).count() <= 1, "{stack:#?}");
        assert!(stack.frames[0].is_libc(), "asleep in a system call of libc's");
        let file = site(stack).and_then(|f| f.file.clone()).expect("a file");
        assert!(file.starts_with('/') && file.ends_with("tests/programs/sleepers.c"), "{file}");
    }
    assert_eq!(site(&waiters[0]).expect("a site").site(), waiter[0], "past libc's frames");
}

/// Tells whether the program's function is the last frame since it goes by the frame pointer, which the C
/// library has in a register (glibc 2.43 of Debian; that of 2.36 has saved it).
fn ends_by_an_unsaved_register(stack: &Stack) -> bool {
    let last = stack.frames.last().is_some_and(|frame| !frame.is_libc());
    last && matches!(&stack.end, StackEnd::UnknownRegister { register, .. } if register == "rbp")
}

#[test]
fn optimised_code_without_frame_pointers_is_unwound() {
    sleepers_are_found("sleepers-o2", &["-O2", "-g", "-fomit-frame-pointer"]);
}

#[test]
fn unoptimised_code_is_unwound_without_its_frame_pointer() {
    sleepers_are_found("sleepers-o0", &["-O0", "-g"]);
}

#[test]
fn optimised_code_with_frame_pointers_is_unwound_without_them() {
    sleepers_are_found("sleepers-fp", &["-O2", "-g", "-fno-omit-frame-pointer"]);
}

/// Without tables for exceptions, the compiler writes them for debuggers.
#[test]
fn tables_for_debuggers_alone_are_enough() {
    let none = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"];
    sleepers_are_found("sleepers-debug", &[&["-O2", "-g"], &none[..]].concat());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_without_tables_is_left_as_it_says_itself() {
    let flags = ["-O2", "-g0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let Some(program) = build("sleepers-bare", "sleepers.c", &flags) else { return };
    let program = Running::start(&program, &["1", "2"]);
    let Some(found) = stacks(&program, "waiter", FUTEX, 1) else { return };
    assert_eq!(found[0].end, StackEnd::Bottom, "{found:#?}");
    let own = own(&found[0], "sleepers-bare");
    let names: Vec<&str> = own.iter().filter_map(|frame| frame.split('+').next()).collect();
    assert_eq!(names, ["take_the_lock", "take_the_lock", "take_the_lock", "waiter"]);
}

#[test]
fn code_without_tables_that_goes_by_an_unknown_frame_ends_the_stack_with_a_reason() {
    let flags = ["-O0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let Some(program) = build("sleepers-bare-o0", "sleepers.c", &flags) else { return };
    let program = Running::start(&program, &["1", "2"]);
    let Some(found) = stacks(&program, "waiter", FUTEX, 1) else { return };
    let own = own(&found[0], "sleepers-bare-o0");
    assert!(own[0].starts_with("take_the_lock+0x"), "{own:?}");
    if cfg!(target_arch = "aarch64") {
        // What sleeps there keeps the frame pointer, by which the stack goes on.
        let names: Vec<&str> = own.iter().filter_map(|frame| frame.split('+').next()).collect();
        assert_eq!(names, ["take_the_lock", "take_the_lock", "take_the_lock", "waiter"]);
        return;
    }
    assert_eq!(own.len(), 1, "{own:?}");
    let StackEnd::NoUnwindInformation { module, .. } = &found[0].end else { panic!("{found:#?}") };
    assert!(module.as_ref().is_some_and(|m| m.ends_with("sleepers-bare-o0")), "{module:?}");
}

/// What is read behind a call that does not return is another function's way out.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_frame_is_made_of_a_return_address_among_variables() {
    let tables = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let flags = [&["-O2", "-g0", "-fno-toplevel-reorder"], &tables[..]].concat();
    let Some(program) = build("ending", "ending.c", &flags) else { return };
    let program = Running::start(&program, &[]);
    let Some(found) = stacks(&program, "sleeper", libc::SYS_nanosleep, 1) else { return };
    let own = own(&found[0], "ending");
    let names: Vec<&str> = own.iter().filter_map(|frame| frame.split('+').next()).collect();
    assert!(["snooze", "ends", "calls", "sleeper"].starts_with(&names), "{names:?}");
    assert!(names.len() >= 2, "{names:?}");
}

#[test]
fn a_stripped_program_has_frames_without_names() {
    let name = "sleepers-stripped";
    let flags = ["-O2", "-s", "-fomit-frame-pointer"];
    let Some(program) = build(name, "sleepers.c", &flags) else { return };
    let program = Running::start(&program, &["1", "2"]);
    let Some(found) = stacks(&program, "waiter", FUTEX, 1) else { return };
    assert_eq!(found[0].end, StackEnd::Bottom);
    let own = own(&found[0], name);
    assert_eq!(own.len(), 4, "{own:?}");
    for frame in own {
        let offset = frame.strip_prefix("sleepers-stripped+0x").expect("file and offset");
        assert!(u64::from_str_radix(offset, 16).expect("hex") < 0x10000, "{offset}");
    }
}

#[test]
fn a_deep_stack_is_cut_and_says_so() {
    let flags = ["-O2", "-g", "-fomit-frame-pointer"];
    let Some(program) = build("sleepers-deep", "sleepers.c", &flags) else { return };
    let program = Running::start(&program, &["1", "300"]);
    let Some(found) = stacks(&program, "waiter", FUTEX, 1) else { return };
    assert_eq!(found[0].end, StackEnd::Limit { frames: MAX_FRAMES });
    let compiled = found[0].frames.iter().filter(|f| !f.inlined).count();
    assert_eq!(compiled, MAX_FRAMES);
    let last = found[0].frames.last().expect("many");
    assert_eq!(last.site(), "take_the_lock() at sleepers.c:36");
}

#[test]
fn a_signal_handler_stands_on_what_it_interrupted() {
    for (name, flags) in [("handler-o0", ["-O0", "-g"]), ("handler-o1", ["-O1", "-g"])] {
        let Some(program) = build(name, "handler.c", &flags) else { return };
        for args in [&[][..], &["own stack"]] {
            let program = Running::start(&program, args);
            let Some(found) = stacks(&program, "handler", libc::SYS_clock_nanosleep, 1) else {
                return;
            };
            // Not the line after the access, nor the function's end: the
            // address of the interrupted instruction is exact.
            let expected = [
                "on_signal() at handler.c:16",
                "faults() at handler.c:22",
                "main() at handler.c:36",
            ];
            let own = own(&found[0], name);
            // The program's own first code has no line.
            assert_eq!(own[..3], expected, "{args:?} {:#?}", found[0]);
            assert!(own[3].starts_with("_start+0x"), "{own:?}");
            assert_eq!(found[0].end, StackEnd::Bottom);
        }
    }
}
