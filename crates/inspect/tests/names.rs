//! Names of variables and code in real programs, alive and ended.

use crate::support::{Running, build};
use lockstead_inspect::maps::Maps;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::stack::{CodeAddress, StackEnd};
use lockstead_inspect::symbols::{LockClues, Symbolizer, site};
use std::fs;
use std::process::Command;

/// The call that a thread sleeps in for a mutex.
const FUTEX: i64 = lockstead_inspect::arch::FUTEX;

fn started(name: &str, source: &str, flags: &[&str]) -> Option<Running> {
    let mut program = Running::start(&build(name, source, flags)?, &[]);
    program.read_addresses();
    Some(program)
}

fn alive(program: &Running) -> Symbolizer {
    Symbolizer::new(Modules::of(program.pid()).expect("readable"))
}

/// Returns what outlives the process, when it has ended.
fn ended(program: &mut Running) -> Symbolizer {
    let maps = fs::read(format!("/proc/{}/maps", program.pid())).expect("readable");
    program.end();
    Symbolizer::new(Modules::saved(Maps::parse(&maps)))
}

fn variable(symbols: &mut Symbolizer, address: u64) -> Option<String> {
    symbols.variable(address).map(|v| v.to_string())
}

fn mutex(address: u64) -> LockClues<'static> {
    LockClues {
        kind: "mutex",
        address,
        on_stack_of: None,
        initialised: None,
        first_used: None,
        late: false,
        is_of_second_pair: None,
        serial: Some(3),
    }
}

/// A processor's C library has mutexes of its own size.
const MUTEX: usize = size_of::<libc::pthread_mutex_t>();

/// Returns the place of the third of the server's locks, which stand behind its name and another lock.
fn third_of_server() -> String {
    format!("server+{:#x}", 24 + 3 * MUTEX)
}

fn variables_have_names(symbols: &mut Symbolizer, program: &Running) {
    let third = third_of_server();
    for (name, found) in [
        ("table_lock", Some("table_lock")),
        ("set_lock", Some("set_lock")),
        ("server.lock", Some("server+0x18")),
        ("server.locks[2]", Some(&*third)),
        ("last_lock", Some("last_lock")),
        ("far_away", Some("far_away+0x100000")),
        ("thread_lock", None),
        ("heap", None),
        ("on_stack", None),
        ("main", None),
    ] {
        let address = program.addresses[name];
        assert_eq!(variable(symbols, address).as_deref(), found, "{name}");
    }
    assert_eq!(variable(symbols, 0), None);
    assert_eq!(variable(symbols, u64::MAX), None);
}

/// Returns what locks at these places of a program are called.
fn called(symbols: &mut Symbolizer, program: &Running, places: &[&str]) -> Vec<String> {
    let name = |place: &&str| {
        symbols.lock_name(&LockClues { serial: None, ..mutex(program.addresses[*place]) })
    };
    places.iter().map(name).map(|name| name.to_string()).collect()
}

#[test]
fn static_variables_and_members_have_names() {
    for (build, flags) in [
        ("names-pie", &["-O0", "-g"][..]),
        ("names-o2", &["-O2", "-g", "-fPIE", "-pie"]),
        ("names-fixed", &["-O1", "-no-pie"]),
    ] {
        let Some(mut program) = started(build, "names.c", flags) else { return };
        variables_have_names(&mut alive(&program), &program);
        let mut symbols = ended(&mut program);
        variables_have_names(&mut symbols, &program);
        let places = ["table_lock", "server.lock", "server.locks[2]", "last_lock"];
        let third = third_of_server();
        let known = match build {
            // A symbol alone says nothing of members.
            "names-fixed" => ["table_lock", "server+0x18", &third, "last_lock"],
            _ => places,
        };
        assert_eq!(called(&mut symbols, &program, &places), known, "{build}");
    }
}

#[test]
fn elements_and_members_are_named_as_far_as_it_is_certain_which_they_are() {
    let places = [
        "grid[1][2].lock",
        "holder.deep.inner.lock",
        "holder.unnamed",
        "plain[0]",
        "plain[3]",
        "local[1]",
        "grid[1][2].either",
    ];
    for (build, flags) in [
        ("members-pie", &["-O0", "-g"][..]),
        ("members-4", &["-O2", "-gdwarf-4"]),
        ("members-fixed", &["-O2", "-gdwarf-5", "-no-pie"]),
    ] {
        let Some(program) = started(build, "members.c", flags) else { return };
        let mut found = called(&mut alive(&program), &program, &places);
        // The compiler numbers what is static in a function.
        found[5] = found[5].split_once('.').map_or_else(String::new, |(name, number)| {
            format!("{name}{}", number.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        });
        assert_eq!(found[..6], places[..6], "{build}");
        // Which part of a union it is, nobody has said.
        assert_eq!(found[6], "grid[1][2].either+0x10", "{build}");
    }
    let Some(program) = started("members-odd", "members.c", &["-O2", "-g"]) else { return };
    let places = [
        "odd.mutex",
        "odd.lock",
        "odd.locks[1][2]",
        "semaphores[1].mutex",
        "semaphores[1].condition",
        "of_thread[1]",
    ];
    let found = called(&mut alive(&program), &program, &places);
    assert_eq!(found[0], "odd+0x20", "a union without a name");
    assert_eq!(found[1..5], places[1..5]);
    assert!(!found[5].contains("of_thread"), "{found:?}");
    let Some(program) = started("members-bare", "members.c", &["-O2"]) else { return };
    let found = called(&mut alive(&program), &program, &["plain[0]", "plain[3]"]);
    assert_eq!(found, ["plain".to_owned(), format!("plain+{:#x}", 3 * MUTEX)]);
    let Some(program) = started("members-stripped", "members.c", &["-g", "-s"]) else { return };
    let found = called(&mut alive(&program), &program, &["plain[3]"]);
    assert!(found[0].starts_with("mutex in members-stripped+0x"), "{found:?}");
}

#[test]
fn debug_information_that_is_elsewhere_or_packed_gives_no_wrong_name() {
    let places = [
        ("odd", "odd.lock"),
        ("odd", "odd.locks[1][2]"),
        ("semaphores", "semaphores[1].mutex"),
        ("semaphores", "semaphores[1].condition"),
        ("plain[0]", "plain[3]"),
    ];
    for (build, flags) in [
        ("members-packed", &["-O2", "-g", "-gz=zlib"][..]),
        ("members-split", &["-O2", "-g", "-gsplit-dwarf"]),
        ("members-lto", &["-O2", "-g", "-flto"]),
        ("members-types", &["-O2", "-g", "-fdebug-types-section"]),
        ("members-2", &["-O0", "-gdwarf-2", "-gstrict-dwarf"]),
    ] {
        let Some(program) = started(build, "members.c", flags) else { return };
        let found = called(&mut alive(&program), &program, &places.map(|(_, place)| place));
        for ((start, place), found) in places.iter().zip(found) {
            let (variable, _) = place.split_once(['.', '[']).expect("a part");
            let offset = program.addresses[*place] - program.addresses[*start];
            let known = [(*place).to_owned(), format!("{variable}+{offset:#x}")];
            assert!(known.contains(&found), "{build}: {found} is none of {known:?}");
        }
    }
}

#[test]
fn types_that_have_no_end_end() {
    let Some(program) = started("hostile", "hostile.c", &["-O2"]) else { return };
    let places = ["typedefs", "itself", "arrays", "endless", "nothing"];
    let found = called(&mut alive(&program), &program, &places);
    assert_eq!(found, places.map(|place| format!("{place}+0x8")));
}

#[test]
fn members_of_variables_of_cpp_and_rust_have_names() {
    let Some(program) = started("names-members", "names.cpp", &["-O2", "-g"]) else { return };
    let places =
        ["shards[2].lock", "counted[1]", "seconds[1]", "seconds[1].own", "virtuals[1].lock"];
    let found = called(&mut alive(&program), &program, &places);
    let known = [
        "app::shards[2].lock",
        "app::Counted::all[1].lock",
        // A base has no name.
        "app::seconds[1]+0x8",
        "app::seconds[1].own",
        "app::virtuals[1].lock",
    ];
    assert_eq!(found, known);
    let flags = ["--edition=2024", "-g", "-Copt-level=2", "--crate-name=names"];
    let Some(program) = started("names-rust", "names.rs", &flags) else { return };
    let mut symbols = alive(&program);
    // Where in its mutex std has the word is its own affair; what the mutex protects is not the
    // mutex, and may have one.
    for (place, size, name) in [
        ("SHARDS[2]", 32, "names::SHARDS[2]"),
        ("PADDED[1]", 16, "names::PADDED[1].0"),
        ("PAIRS[3]", 16, "names::PAIRS[3].1"),
        ("inside", 16, "names::OUTER.data.value.inner"),
    ] {
        let words = (0..size).step_by(4).map(|offset| program.addresses[place] + offset);
        let names: Vec<String> =
            words.map(|word| symbols.lock_name(&mutex(word)).to_string()).collect();
        assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        let data = format!("{name}.data.");
        assert!(names.iter().all(|it| it == name || it.starts_with(&data)), "{name}: {names:?}");
    }
}

#[test]
fn a_heap_lock_is_named_by_the_place_that_made_it() {
    let Some(program) = started("names-made", "names.c", &["-O0", "-g"]) else { return };
    let mut symbols = alive(&program);
    let made = [CodeAddress::return_to(program.addresses["made_at"])];
    let heap = LockClues { initialised: Some(&made), ..mutex(program.addresses["heap"]) };
    assert_eq!(symbols.lock_name(&heap).to_string(), "mutex from main() at names.c:54, #3");
    let heap = LockClues { first_used: Some(&made), ..mutex(program.addresses["heap"]) };
    let name = symbols.lock_name(&heap).to_string();
    assert_eq!(name, "mutex first used in main() at names.c:54, #3");
    let name = symbols.lock_name(&LockClues { late: true, ..heap }).to_string();
    assert_eq!(name, "mutex used in main() at names.c:54, #3");
    let stack = LockClues { on_stack_of: Some("x"), ..mutex(program.addresses["on_stack"]) };
    assert_eq!(symbols.lock_name(&stack).to_string(), "mutex on the stack of thread \"x\", #3");
    let table = LockClues { first_used: Some(&made), ..mutex(program.addresses["table_lock"]) };
    assert_eq!(symbols.lock_name(&table).to_string(), "table_lock", "a variable comes first");
    let unknown = mutex(program.addresses["heap"]);
    let bare = format!("mutex at {:#x}", unknown.address);
    assert_eq!(symbols.lock_name(&unknown).to_string(), bare);
}

#[test]
fn inlined_functions_have_frames_of_their_own() {
    let Some(program) = started("names-inlined", "names.c", &["-O2", "-g"]) else { return };
    let at = [CodeAddress::exact(program.addresses["inlined_at"])];
    let stack = alive(&program).stack(&at, StackEnd::Bottom);
    let found: Vec<_> = stack.frames.iter().map(|f| (f.site(), f.inlined)).collect();
    // The address is behind the instruction that took it, which may be the
    // last of the inner functions.
    let outer = found.last().expect("a frame");
    assert!(outer.0.starts_with("outer() at names.c:") && !outer.1, "{found:?}");
    let before = [CodeAddress::return_to(program.addresses["inlined_at"])];
    let stack = alive(&program).stack(&before, StackEnd::Bottom);
    let found: Vec<_> = stack.frames.iter().map(|f| (f.site(), f.inlined)).collect();
    assert_eq!(
        found,
        [
            ("inner_most() at names.c:37".to_owned(), true),
            ("inlined_lock() at names.c:42".to_owned(), true),
            ("outer() at names.c:47".to_owned(), false),
        ]
    );
}

#[test]
fn a_stripped_program_has_places_instead_of_names() {
    let Some(program) = started("names-stripped", "names.c", &["-O2", "-s"]) else { return };
    let mut symbols = alive(&program);
    assert_eq!(variable(&mut symbols, program.addresses["table_lock"]), None);
    let name = symbols.lock_name(&mutex(program.addresses["table_lock"])).to_string();
    assert!(name.starts_with("mutex in names-stripped+0x"), "{name}");
    let main = symbols.frames(CodeAddress::exact(program.addresses["main"]));
    assert!(main[0].site().starts_with("names-stripped+0x"), "{}", main[0].site());
    // The C library keeps the names that programs link to.
    let getpid = symbols.frames(CodeAddress::exact(program.addresses["getpid"]));
    let name = getpid[0].function.as_deref().expect("exported");
    assert!(name.ends_with("getpid"), "{name}");
    assert_eq!(getpid[0].offset, 0);
}

/// Reads files as distributions make them: symbols and lines in a file of their own.
#[test]
fn a_separate_debug_file_gives_names_and_lines() {
    let flags = ["-O0", "-g", "-Wl,--build-id"];
    let Some(whole) = build("names-separate", "names.c", &flags) else { return };
    let debug = whole.with_file_name("names-separate.debug");
    let objcopy = |args: &[&str]| {
        let mut command = Command::new("objcopy");
        command.args(args).current_dir(whole.parent().expect("a folder"));
        command.status().map(|status| assert!(status.success(), "{args:?}"))
    };
    let _ = fs::remove_file(&debug);
    if let Err(why) = objcopy(&["--only-keep-debug", "names-separate", "names-separate.debug"]) {
        println!("skipped: objcopy: {why}");
        return;
    }
    let link = "--add-gnu-debuglink=names-separate.debug";
    objcopy(&["--strip-all", link, "names-separate"]).expect("it ran before");
    let mut program = Running::start(&whole, &[]);
    program.read_addresses();
    let mut symbols = alive(&program);
    variables_have_names(&mut symbols, &program);
    assert_eq!(called(&mut symbols, &program, &["server.locks[2]"]), ["server.locks[2]"]);
    let made = [CodeAddress::return_to(program.addresses["made_at"])];
    let heap = LockClues { initialised: Some(&made), ..mutex(program.addresses["heap"]) };
    assert_eq!(symbols.lock_name(&heap).to_string(), "mutex from main() at names.c:54, #3");
    drop(program);
    // A file by that name that belongs to another build is not taken.
    let flags = ["-O1", "-g", "-Wl,--build-id"];
    let other = build("names-separate-other", "names.c", &flags).expect("built before");
    fs::remove_file(&debug).expect("just made");
    fs::rename(other, &debug).expect("just built");
    let mut program = Running::start(&whole, &[]);
    program.read_addresses();
    assert_eq!(variable(&mut alive(&program), program.addresses["table_lock"]), None);
}

#[test]
fn a_replaced_file_is_not_asked() {
    let Some(program) = build("names-replaced", "names.c", &["-O0", "-g"]) else { return };
    let copy = program.with_extension("copy");
    fs::copy(&program, &copy).expect("copied");
    let mut running = Running::start(&copy, &[]);
    running.read_addresses();
    let other = build("names-other", "sleepers.c", &["-O0", "-g"]).expect("built before");
    let replacement = program.with_extension("new");
    fs::copy(other, &replacement).expect("copied");
    fs::rename(&replacement, &copy).expect("replaced");
    let maps = Maps::of(running.pid()).expect("readable");
    let mut saved = Symbolizer::new(Modules::saved(maps));
    assert_eq!(variable(&mut saved, running.addresses["table_lock"]), None);
    let main = saved.frames(CodeAddress::exact(running.addresses["main"]));
    assert_eq!((&main[0].function, &main[0].file), (&None, &None));
    assert!(main[0].site().contains("names-replaced.copy+0x"), "{}", main[0].site());
    // Alive, the kernel still has the file for those it shows it to.
    if fs::read_dir(format!("/proc/{}/map_files", running.pid()))
        .is_ok_and(|mut files| files.any(|f| f.is_ok_and(|f| fs::metadata(f.path()).is_ok())))
    {
        variables_have_names(&mut alive(&running), &running);
    } else {
        println!("skipped in part: map_files is not shown here");
    }
}

#[test]
fn addresses_outside_of_files_stay_addresses() {
    let Some(program) = started("names-outside", "names.c", &["-O0"]) else { return };
    let mut symbols = alive(&program);
    let heap = program.addresses["heap"];
    let frame = &symbols.frames(CodeAddress::exact(heap))[0];
    assert_eq!(frame.function, None);
    assert!(frame.site().starts_with(&format!("{heap:#x}")), "{}", frame.site());
    let nowhere = &symbols.frames(CodeAddress::return_to(8))[0];
    assert_eq!((nowhere.address, nowhere.site().as_str()), (8, "0x8"));
}

#[test]
fn cpp_names_are_demangled_and_guards_passed_over() {
    let flags = ["-O0", "-g"];
    let Some(program) = started("names-cpp", "names.cpp", &flags) else { return };
    let mut symbols = alive(&program);
    let mut name = |what| variable(&mut symbols, program.addresses[what]);
    assert_eq!(name("lock_").as_deref(), Some("app::Cache::lock_"));
    assert_eq!(name("local").as_deref(), Some("main::local"));
    let Some(asleep) = program.asleep("names-cpp", FUTEX, 1) else { return };
    let modules = Modules::of(program.pid()).expect("readable");
    let memory = lockstead_inspect::memory::ProcessMemory::new(program.pid());
    let mut unwinder = lockstead_inspect::unwind::Unwinder::new(modules);
    let walk = unwinder.unwind(&memory, asleep[0].registers);
    let stack = symbols.stack(&walk.frames, walk.end);
    let place = site(&stack).expect("a site");
    assert_eq!(place.site(), "app::Cache::find(int) at names.cpp:13", "{stack:#?}");
}
