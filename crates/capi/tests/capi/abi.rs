//! What programs that were built before rely on: layouts, values, names.
//!
//! A test here that turns red on purpose means that the number in
//! `xtask::staging::ABI` has to change with it; `docs/abi.md` says what may change.

use crate::common::{compilers, package, program, run};
use lockstead_core::MAX_SLOTS;
use std::collections::HashMap;
use std::fs;
use std::process::Command;
use xtask::library::said_by;

fn agreed(file: &str) -> String {
    fs::read_to_string(package().join(file)).expect("what is agreed")
}

#[test]
fn the_layout_is_the_one_agreed_on_in_each_language() {
    for compiler in compilers() {
        let standard = if compiler.cpp { "c++17" } else { "gnu11" };
        let options: &[&str] = if compiler.cpp { &["-xc++", "-Wno-invalid-offsetof"] } else { &[] };
        if compiler.cpp {
            // The archive would be taken for a source of this language, too.
            let object = crate::common::scratch().join(format!("abi-{}", compiler.command));
            let mut command = crate::common::strict(compiler.command, standard);
            command.args(options).arg(package().join("tests/c/abi.c"));
            command.args(["-xnone", "-o"]).arg(&object);
            crate::common::ends_well(crate::common::with_library(
                &mut command,
                crate::common::archive(),
            ));
            let printed = run(&object, &[]);
            assert_eq!(String::from_utf8_lossy(&printed.stdout), agreed("abi.txt"));
            continue;
        }
        let printed = run(&program("c/abi.c", compiler.command, standard, options), &[]);
        assert_eq!(String::from_utf8_lossy(&printed.stdout), agreed("abi.txt"));
    }
}

/// Compares the other side: the same sizes and values in Rust.
#[test]
fn rust_agrees_with_the_layout() {
    let text = agreed("abi.txt");
    let agreed: HashMap<_, _> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((
                words.next()?,
                words.map(|word| word.parse::<usize>().expect("a number")).collect::<Vec<_>>(),
            ))
        })
        .collect();
    macro_rules! same {
        ($($type:ident)*) => {$(
            let here = vec![size_of::<lockstead_capi::$type>(), align_of::<lockstead_capi::$type>()];
            assert_eq!(agreed[stringify!($type)], here, stringify!($type));
        )*};
    }
    same!(lks_mutex lks_fair_mutex lks_semaphore lks_rwlock lks_cond lks_once lks_cancel);
    same!(lks_ww_mutex lks_rt_mutex lks_rt_recursive_mutex);
    same!(lks_shared_mutex lks_shared_rwlock lks_shared_semaphore lks_shared_cond);
    same!(lks_shm_field lks_shm_type lks_shm_options);
    use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, OWNER};
    assert_eq!(agreed["LKS_SHARED_INCONSISTENT__"], [INCONSISTENT as usize]);
    assert_eq!(agreed["LKS_SHARED_OWNER__"], [OWNER as usize]);
    assert_eq!(agreed["LKS_SHARED_LOST__"], [NOT_RECOVERABLE as usize]);
    assert_eq!(agreed["LKS_MAX_SLOTS__"], [MAX_SLOTS as usize]);
    assert_eq!(agreed["LKS_SEMAPHORE_MAX"], [MAX_SLOTS as usize]);
    use lockstead_core::ww::Scheme;
    assert_eq!(agreed["LKS_WAIT_DIE"], [Scheme::WaitDie as usize]);
    assert_eq!(agreed["LKS_WOUND_WAIT"], [Scheme::WoundWait as usize]);
}

/// Compares the functions that the library has: one that is gone breaks programs.
#[test]
fn the_names_are_those_agreed_on() {
    let listed =
        said_by(Command::new("nm").args(["-g", "--defined-only"]).arg(crate::common::archive()))
            .unwrap_or_else(|error| panic!("{error}"));
    let mut names: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("lks_"))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.join("\n") + "\n", agreed("symbols.txt"));
}
