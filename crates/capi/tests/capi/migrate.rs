//! `migrate.h`: one text for semaphores and mutexes, in each language, and what it does
//! not let pass.

use crate::common::{compilers, package, passes, program, run, strict};

const MAPPED: &str = "-DLKS_SEMAPHORES_ARE_MUTEXES";

#[test]
fn the_calls_are_chosen_by_type_in_each_language() {
    for compiler in compilers() {
        let (source, standards): (_, &[_]) = if compiler.cpp {
            ("cpp/migrate.cc", &["gnu++11", "gnu++20"])
        } else {
            ("c/migrate.c", &["gnu99", "gnu11"])
        };
        for standard in standards {
            passes(&program(source, compiler.command, standard, &[]));
        }
        for options in
            [&[MAPPED][..], &["-DKERNEL_FIRST"], &["-DLKS_DEBUG"], &["-DLKS_DEBUG", MAPPED]]
        {
            passes(&program(source, compiler.command, standards[1], options));
        }
    }
}

/// Takes a count that only the running program knows.
#[test]
fn a_mutex_that_is_given_a_count_ends_the_program() {
    for compiler in compilers() {
        let (source, standard) =
            if compiler.cpp { ("cpp/migrate.cc", "gnu++11") } else { ("c/migrate.c", "gnu99") };
        // Of its own, since the other test may be at building that one.
        let built = program(source, compiler.command, standard, &["-DCOUNTS"]);
        let output = run(&built, &["3"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{}", compiler.command);
        assert!(said.contains("a mutex cannot begin with the count 3"), "{said}");
        let text = std::fs::read_to_string(package().join("tests/c/migrate.c")).expect("a source");
        let line = text.lines().position(|line| line.contains("/* COUNTED */")).expect("a line");
        assert!(said.contains(&format!("migrate.c:{}: ", line + 1)), "{said}");
    }
}

#[test]
fn what_cannot_be_right_does_not_compile() {
    for compiler in compilers() {
        let (source, standard) =
            if compiler.cpp { ("cpp/refused.cc", "c++17") } else { ("c/refused.c", "c11") };
        let compile = |options: &[&str]| {
            let mut command = strict(compiler.command, standard);
            command.args(["-Wno-unused-variable", "-c", "-o", "/dev/null"]).args(options);
            let output = command.arg(package().join("tests").join(source)).output();
            let output = output.expect("the compiler runs");
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        for right in [&[][..], &[MAPPED], &["-DDECLARED_COUNT"], &["-DCOUNTED_SEMAPHORE"]] {
            let (fine, said) = compile(right);
            assert!(fine, "{} {right:?}: {said}", compiler.command);
        }
        for (wrong, words) in [
            (&["-DCOUNTED_MUTEX"][..], "lks_semaphore"),
            (&["-DCOUNTED_SEMAPHORE", MAPPED], "lks_semaphore"),
            (&["-DDECLARED_COUNT", MAPPED], "lks_semaphore"),
            (&["-DDECLARED_LOCKED", MAPPED], "lks_semaphore"),
            (&["-DOTHER_TYPE"], "rw_semaphore"),
            (&["-DMUTEX_CALL_ON_A_SEMAPHORE"], "struct mutex"),
        ] {
            let (fine, said) = compile(wrong);
            let words = if compiler.cpp { words.trim_start_matches("struct ") } else { words };
            assert!(!fine && said.contains(words), "{} {wrong:?}: {said}", compiler.command);
        }
    }
}
