//! The functions that the shared object puts before libc's: all there are, and
//! no others; and what it needs of libc itself.
//!
//! The list of libc's functions is that of the libc this test runs with, so
//! that a new glibc with a new function is noticed.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::Library;
use lockstead_ledger::attach;
use lockstead_ledger::violation::BLOCKING;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{LittleEndian, elf};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Functions of libc that belong to the families and go past us, and why.
const NOT_INTERPOSED: &[(&[&str], &str)] = &[
    (
        &[
            "pthread_mutex_consistent",
            "pthread_mutex_consistent_np",
            "pthread_mutex_getprioceiling",
        ],
        "neither acquire nor release",
    ),
    (
        &["pthread_mutex_setprioceiling"],
        "takes the mutex and gives it back inside libc: nothing is held afterwards",
    ),
    (&["sem_getvalue"], "asks only"),
    (&["sem_unlink"], "takes a name; the semaphores that are open stay"),
    (
        &["pthread_exit", "thrd_exit"],
        "the end of a thread is seen by the destructor of a key, however it ends",
    ),
    (
        &[
            "pthread_cancel",
            "pthread_setcancelstate",
            "pthread_setcanceltype",
            "pthread_testcancel",
        ],
        "who is cancelled leaves the frames of our functions by their personality routine",
    ),
    (&["fork", "__fork", "forkpty"], "libc calls the handlers that the library has registered"),
    (
        &["_Fork"],
        "calls no handlers, so that the child, in which only async-signal-safe functions may be \
         called, is not recorded",
    ),
    (&["vfork", "__vfork"], "the child shares the memory, and the ledger, until it executes"),
    (
        &["pthread_once", "__pthread_once", "call_once"],
        "not a lock: who runs the routine cannot be told from outside",
    ),
    (&["pthread_self", "pthread_equal", "thrd_current", "thrd_equal"], "only answer"),
    (&["thrd_sleep", "thrd_yield", "pthread_yield"], "wait for no other thread"),
    (&["pthread_atfork"], "the library's handlers come first all the same"),
    (&["pthread_kill", "pthread_sigmask", "pthread_sigqueue"], "signals"),
    (&["pthread_kill_other_threads_np"], "does nothing"),
];

/// Beginnings of names of functions that concern no lock, and why.
const OTHER_FAMILIES: &[(&str, &str)] = &[
    ("pthread_attr_", "attributes of threads"),
    ("pthread_mutexattr_", "attributes, which are read from the mutex itself"),
    ("pthread_condattr_", "attributes, which are read at the initialisation"),
    ("pthread_rwlockattr_", "attributes, which are read from the lock itself"),
    ("pthread_barrierattr_", "attributes, which are read at the initialisation"),
    ("pthread_get", "only answer"),
    ("pthread_set", "scheduling, affinity"),
    ("__pthread_mutexattr_", "attributes, which are read from the mutex itself"),
    ("__pthread_cleanup_", "cancellation"),
    ("__pthread_register_cancel", "cancellation"),
    ("__pthread_unregister_cancel", "cancellation"),
    ("__pthread_unwind", "cancellation"),
    ("__pthread_get_minstack", "for libthread_db"),
    ("__pthread_keys", "for libthread_db"),
];

/// What we interpose though it is in none of the families, and why.
const EXTRA: &[(&str, &str)] = &[
    ("dlclose", "addresses of code may change their meaning"),
    ("prctl", "a thread that may not read the clock any more"),
    ("syscall", "futex words, on which the locks of other libraries sleep"),
    ("pthread_setname_np", "names"),
    ("pthread_key_create", "our key is the program's too, where it wants all"),
    ("__pthread_key_create", "as that"),
    ("pthread_key_delete", "as that"),
    ("pthread_getspecific", "values of that key"),
    ("__pthread_getspecific", "as that"),
    ("pthread_setspecific", "as that"),
    ("__pthread_setspecific", "as that"),
    ("tss_create", "as pthread_key_create"),
    ("tss_delete", "as pthread_key_create"),
    ("tss_get", "as pthread_getspecific"),
    ("tss_set", "as pthread_getspecific"),
];

/// What only the library that checks interposes, and why.
const CHECKING: &[(&str, &str)] = &[
    ("exit", "a process that ends while it holds"),
    ("quick_exit", "as exit"),
    ("_exit", "as exit"),
    ("_Exit", "as exit"),
    ("__poll_chk", "poll, in programs that are fortified"),
    ("__ppoll_chk", "as that"),
    ("__recv_chk", "as that"),
    ("__recvfrom_chk", "as that"),
    ("sigaction", "handlers are replaced by ours"),
    ("__sigaction", "as sigaction"),
    ("signal", "as sigaction"),
    ("bsd_signal", "as sigaction"),
    ("ssignal", "as sigaction"),
    ("sysv_signal", "as sigaction"),
    ("__sysv_signal", "as sigaction"),
    ("sigset", "as sigaction"),
    ("longjmp", "may leave a handler"),
    ("_longjmp", "as longjmp"),
    ("siglongjmp", "as longjmp"),
    ("__longjmp_chk", "as longjmp"),
    ("setcontext", "as longjmp"),
    ("swapcontext", "as longjmp"),
    ("sem_getvalue", "a mutex has no count"),
    ("free", "locks in the block are no more"),
    ("realloc", "as free"),
    ("reallocarray", "as free"),
    ("munmap", "locks in the pages are no more"),
    ("mremap", "as munmap"),
    ("mmap", "as munmap, where it takes the place of something"),
    ("mmap64", "as mmap"),
];

/// What the shared object may ask of libc: nothing that allocates through the
/// program's allocator, takes a lock of the program's kind, or prints.
const NEEDED: &[(&str, &str)] = &[
    ("dlsym", "before the first call only, for names that exist"),
    ("__errno_location", "an address"),
    ("clock_gettime", "the kernel's page"),
    ("getauxval", "what the kernel has told at the start"),
    ("abort", "instead of a panic"),
    ("memcpy", "memory"),
    ("memmove", "memory"),
    ("memset", "memory"),
    ("memcmp", "memory"),
    ("bcmp", "memory"),
    ("strlen", "memory"),
    ("pthread_attr_init", "fills in the attributes of a new thread"),
    ("pthread_attr_getstacksize", "reads attributes"),
    ("pthread_mutexattr_getpshared", "reads attributes"),
    ("pthread_barrierattr_getpshared", "reads attributes"),
    ("pthread_condattr_getpshared", "reads attributes"),
    ("pthread_condattr_getclock", "reads attributes"),
    // Weak, for the start-up code that the object does not have.
    ("__cxa_finalize", "weak"),
    ("__gmon_start__", "weak"),
    ("_ITM_deregisterTMCloneTable", "weak"),
    ("_ITM_registerTMCloneTable", "weak"),
];

fn is_of_the_families(name: &str) -> bool {
    ["pthread_", "__pthread_", "sem_", "mtx_", "cnd_", "thrd_"]
        .iter()
        .any(|family| name.starts_with(family))
        || ["fork", "_Fork", "vfork", "__fork", "__vfork", "forkpty", "call_once"].contains(&name)
}

fn reason(name: &str) -> Option<&'static str> {
    let of_name = NOT_INTERPOSED.iter().find(|(names, _)| names.contains(&name));
    of_name.map(|(_, why)| *why).or_else(|| {
        OTHER_FAMILIES.iter().find(|(family, _)| name.starts_with(family)).map(|(_, why)| *why)
    })
}

/// The dynamic symbols of an ELF file: defined ones and undefined ones.
#[derive(Default)]
struct Symbols {
    defined: BTreeSet<String>,
    undefined: BTreeSet<String>,
}

type Header = elf::FileHeader64<LittleEndian>;

fn symbols(data: &[u8]) -> Symbols {
    let mut all = Symbols::default();
    let endian = LittleEndian;
    let header = Header::parse(data).expect("ELF");
    let sections = header.sections(endian, data).expect("sections");
    let table = sections.symbols(endian, data, elf::SHT_DYNSYM).expect("dynamic symbols");
    for symbol in table.iter() {
        let name = table.symbol_name(endian, symbol).expect("a name");
        let name = String::from_utf8(name.to_vec()).expect("ASCII");
        if name.is_empty() {
            continue;
        }
        if symbol.is_undefined(endian) { &mut all.undefined } else { &mut all.defined }
            .insert(name);
    }
    all
}

/// Returns the libc of this process.
fn libc_path() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").expect("/proc");
    let path = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| path.ends_with("/libc.so.6"));
    path.expect("a libc").into()
}

fn every_lock_function_of_libc_is_interposed_or_explained(library: Library) {
    let (libc, ours) = (fs::read(libc_path()).expect("libc"), library.read());
    let libc = symbols(&libc);
    let ours = symbols(&ours);
    let family: Vec<_> = libc.defined.iter().filter(|name| is_of_the_families(name)).collect();
    assert!(family.len() > 150, "libc has {} functions of the families", family.len());
    for name in family {
        let interposed = ours.defined.contains(name);
        assert!(interposed || reason(name).is_some(), "{name}: neither interposed nor explained");
    }
}

fn everything_that_is_exported_stands_before_a_function_of_libc(library: Library) {
    let (libc, ours) = (fs::read(libc_path()).expect("libc"), library.read());
    let libc = symbols(&libc);
    let ours = symbols(&ours);
    assert!(ours.defined.len() > 60, "{:?}", ours.defined);
    let checks = library == Library::Checking;
    // What a program may say to the library, if it is there.
    let told = |name: &str| name.starts_with("lockstead_told_") || name == "lockstead_listener_1";
    // What the command calls in a process that runs already.
    let late =
        |name: &str| [attach::ATTACH, attach::LEAVE, attach::FORGET, attach::SIGN].contains(&name);
    let said =
        |name: &&String| told(name) || late(name) || checks && name.starts_with("lockstead_");
    for name in ours.defined.iter().filter(|name| !said(name)) {
        assert!(libc.defined.contains(name), "{name} is exported, and no function of libc");
        let extra = EXTRA.iter().any(|(extra, _)| extra == name)
            || checks && CHECKING.iter().any(|(extra, _)| extra == name)
            || checks && BLOCKING.contains(&name.as_str());
        assert!(extra || is_of_the_families(name), "{name} is exported");
        assert!(extra || reason(name).is_none(), "{name} is interposed and explained away");
    }
}

#[test]
fn explanations_are_of_functions_that_exist() {
    let libc = fs::read(libc_path()).expect("libc");
    let libc = symbols(&libc);
    // For programs of before 2003: where the C library is younger, each program has its own.
    let is_younger = |name: &str| name == "pthread_atfork" && cfg!(target_arch = "aarch64");
    for name in NOT_INTERPOSED.iter().flat_map(|(names, _)| *names) {
        assert_eq!(libc.defined.contains(*name), !is_younger(name), "{name}");
    }
    for (family, _) in OTHER_FAMILIES {
        assert!(libc.defined.iter().any(|name| name.starts_with(family)), "{family}");
    }
}

fn nothing_is_asked_of_libc_that_allocates_locks_or_prints(library: Library) {
    let ours = library.read();
    let ours = symbols(&ours);
    for name in &ours.undefined {
        assert!(NEEDED.iter().any(|(needed, _)| needed == name), "{name} is undefined");
    }
    assert!(ours.undefined.contains("dlsym"), "the list of undefined symbols was not read");
}

fn the_object_comes_first_and_is_bound_at_once(library: Library) {
    let (endian, data) = (LittleEndian, &*library.read());
    let header = Header::parse(data).expect("ELF");
    let sections = header.sections(endian, data).expect("sections");
    let (entries, _) = sections.dynamic(endian, data).expect("readable").expect("there");
    let value =
        |tag| entries.iter().find(|entry| entry.tag(endian) == tag).map(|entry| entry.val(endian));
    let flags = elf::DynamicFlags1(value(elf::DT_FLAGS_1).expect("flags"));
    assert_eq!(flags & elf::DF_1_INITFIRST, elf::DF_1_INITFIRST, "{flags:?}");
    assert_eq!(flags & elf::DF_1_NOW, elf::DF_1_NOW, "{flags:?}");
    assert_eq!(value(elf::DT_TEXTREL), None);
    // It pulls in no library, and asks for no version of a function: so it can be
    // loaded, and does nothing, in programs with another libc.
    assert_eq!(value(elf::DT_NEEDED), None);
    assert_eq!(value(elf::DT_VERNEED), None);
    // Code is not writable, nor are the tables that lead to libc once bound.
    let both = elf::PF_W | elf::PF_X;
    let segments = header.program_headers(endian, data).expect("segments");
    assert!(segments.iter().all(|segment| segment.p_flags(endian) & both != both));
    assert!(segments.iter().any(|segment| segment.p_type(endian) == elf::PT_GNU_RELRO));
}

/// Shows that a thread's own words are reached without a call: `__tls_get_addr` and its like
/// allocate when a thread comes for the first time.
fn the_words_of_a_thread_lie_where_it_begins(library: Library) {
    let (endian, data) = (LittleEndian, &*library.read());
    let header = Header::parse(data).expect("ELF");
    let sections = header.sections(endian, data).expect("sections");
    let mut kinds = BTreeSet::new();
    for section in sections.iter() {
        if let Some((relocations, _)) = section.rela(endian, data).expect("readable") {
            kinds.extend(relocations.iter().map(|relocation| relocation.r_type(endian, false)));
        }
    }
    // The last plain one: a pointer to a function that is exported, in a table.
    let (own_word, plain_ones) = if cfg!(target_arch = "aarch64") {
        let plain = [
            elf::R_AARCH64_RELATIVE,
            elf::R_AARCH64_GLOB_DAT,
            elf::R_AARCH64_JUMP_SLOT,
            elf::R_AARCH64_ABS64,
        ];
        (elf::R_AARCH64_TLS_TPREL, plain)
    } else {
        let plain = [
            elf::R_X86_64_RELATIVE,
            elf::R_X86_64_GLOB_DAT,
            elf::R_X86_64_JUMP_SLOT,
            elf::R_X86_64_64,
        ];
        (elf::R_X86_64_TPOFF64, plain)
    };
    assert!(kinds.remove(&own_word), "{kinds:?}");
    for kind in kinds {
        let plain = plain_ones.contains(&kind);
        assert!(plain, "a relocation of kind {kind:?}");
    }
}

with_both! {
    every_lock_function_of_libc_is_interposed_or_explained,
    everything_that_is_exported_stands_before_a_function_of_libc,
    nothing_is_asked_of_libc_that_allocates_locks_or_prints,
    the_object_comes_first_and_is_bound_at_once,
    the_words_of_a_thread_lie_where_it_begins
}
