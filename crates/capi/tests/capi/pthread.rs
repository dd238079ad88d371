//! `pthread.h`: programs that know nothing of lockstead, with its locks.

use crate::common::{
    checked, checking_archive, compilers, ends_well, marked, package, passes, program, run,
    scratch, strict,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::library::said_by;

const INCLUDE: &[&str] = &["-include", "lockstead/pthread.h"];
const CANCEL: &str = "-DLKS_PTHREAD_CANCEL";

/// Returns a source, by the language that a compiler is for, and standards of the language.
fn source(name: &str, cpp: bool) -> (String, &'static [&'static str]) {
    if cpp {
        (format!("cpp/{name}.cc"), &["gnu++11", "gnu++20"])
    } else {
        (format!("c/{name}.c"), &["gnu99", "gnu11"])
    }
}

fn says_done(program: &Path) {
    passes(program);
    let output = run(program, &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{}", program.display());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", program.display());
}

/// Returns the calls of the system's locks that an object file makes.
fn system_calls(source: &str, compiler: &str, standard: &str, options: &[&str]) -> Vec<String> {
    let object: PathBuf = scratch().join(format!("existing-{compiler}-{}.o", options.len()));
    let mut command = strict(compiler, standard);
    command.args(options).arg("-c").arg("-o").arg(&object);
    ends_well(command.arg(package().join("tests").join(source)));
    let listed = said_by(Command::new("nm").arg("-u").arg(&object)).expect("nm runs");
    let locks = ["pthread_mutex_", "pthread_cond_", "pthread_rwlock_", "pthread_once"];
    listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter(|name| locks.iter().any(|lock| name.starts_with(lock)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn an_existing_program_runs_unmodified() {
    for compiler in compilers() {
        let (source, standards) = source("existing", compiler.cpp);
        for standard in standards {
            assert!(!system_calls(&source, compiler.command, standard, &[]).is_empty());
            let left = system_calls(&source, compiler.command, standard, INCLUDE);
            assert!(left.is_empty(), "{} {standard}: {left:?}", compiler.command);
            says_done(&program(&source, compiler.command, standard, INCLUDE));
        }
        says_done(&program(&source, compiler.command, standards[0], &[]));
        let mut checked = INCLUDE.to_vec();
        checked.push("-DLKS_DEBUG");
        says_done(&program(&source, compiler.command, standards[1], &checked));
    }
}

#[test]
fn each_call_returns_what_posix_has_it_return() {
    for compiler in compilers() {
        let (source, standards) = source("pthread", compiler.cpp);
        for standard in standards {
            passes(&program(&source, compiler.command, standard, &[CANCEL]));
        }
    }
}

#[test]
fn what_could_only_go_wrong_ends_the_program_with_a_message() {
    let (source, standards) = source("pthread", false);
    // Of its own, since the other test may be at building that one.
    let options = &[CANCEL, "-DENDS"];
    let built = program(&source, crate::common::compiler(false), standards[1], options);
    for (case, words) in [("again", "recursion"), ("refused", "pthread_mutex_init refused")] {
        let output = run(&built, &[case]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{case}: {said}");
    }
}

/// Without checks it is another lock then, which nobody reads; with them it is refused, and stays.
#[test]
fn a_lock_that_is_read_and_initialised_again() {
    let compiler = crate::common::compiler(false);
    // Of its own, since the other test may be at building that one.
    let built = program("c/pthread.c", compiler, "gnu11", &[CANCEL, "-DENDS"]);
    assert_eq!(run(&built, &["held"]).status.code(), Some(0));
    let built = program("c/pthread.c", compiler, "gnu11", &[CANCEL, "-DLKS_DEBUG"]);
    for (setting, status) in [(None, None), (Some("warn"), Some(3))] {
        let (output, said) = checked(&built, "held", setting);
        assert_eq!(output.status.code(), status, "{said}");
        assert!(said.contains("RULE: initialised while held\n"), "{said}");
        for comment in ["READ HERE", "INITIALISED HERE"] {
            let place = marked("pthread.c", comment);
            assert!(said.contains(&place), "no {place}: {said}");
        }
    }
}

#[test]
fn the_standard_library_keeps_its_own_locks() {
    for compiler in compilers().iter().filter(|compiler| compiler.cpp) {
        for standard in ["gnu++11", "gnu++20"] {
            for options in [&["-DDIRECTLY"][..], &["-DDIRECTLY", "-DSTANDARD_FIRST"], INCLUDE] {
                passes(&program("cpp/beside.cc", compiler.command, standard, options));
            }
        }
    }
}

/// Shows what happens when a lock is handed to code that was not built with the header.
#[test]
fn locks_of_two_kinds_are_not_mistaken_for_each_other() {
    for compiler in compilers() {
        let compile = |name: &str, options: &[&str]| {
            let (source, standards) = source(name, compiler.cpp);
            let mut command = Command::new(compiler.command);
            command.arg(format!("-std={}", standards[1])).arg("-I").arg(package().join("include"));
            command.args(["-c", "-o", "/dev/null"]).args(options);
            let output = command.arg(package().join("tests").join(source)).output();
            let output = output.expect("the compiler runs");
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (fine, said) = compile("foreign", &[]);
        assert!(fine && said.is_empty(), "{}: {said}", compiler.command);
        for wrong in ["-DARGUMENT", "-DMEMBER"] {
            let (fine, said) = compile("foreign", &[wrong]);
            assert!(!fine && said.contains("lks_pthread_"), "{wrong}: {said}");
        }
        if compiler.cpp {
            let (fine, said) = compile("beside", &["-DDIRECTLY", "-DHANDED_OVER"]);
            assert!(!fine && said.contains("lks_pthread_"), "{said}");
        }
        // No error, but not passed over in silence either.
        let (fine, said) = compile("foreign", &["-DCANCELLED"]);
        assert!(fine && said.contains("LKS_PTHREAD_CANCEL"), "{}: {said}", compiler.command);
        let (fine, said) = compile("foreign", &["-DCANCELLED", CANCEL]);
        assert!(fine && said.is_empty(), "{}: {said}", compiler.command);
    }
}

/// The checks come with the header: places are those of the program.
#[test]
fn checked_it_says_where_the_program_went_wrong() {
    let program = scratch().join("pthread-misuse");
    let text = "#include <pthread.h>\n\
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n\
        int main(void)\n{\n    pthread_mutex_lock(&lock);\n    pthread_mutex_lock(&lock);\n}\n";
    let source = scratch().join("pthread-misuse.c");
    std::fs::write(&source, text).expect("scratch can be written");
    let mut command = strict(crate::common::compiler(false), "gnu11");
    command.args(INCLUDE).args(["-DLKS_DEBUG", "-pthread", "-o"]).arg(&program).arg(&source);
    ends_well(crate::common::with_library(&mut command, checking_archive()));
    let output = run(&program, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("RULE: recursion"), "{said}");
    for place in ["pthread-misuse.c:5", "pthread-misuse.c:6"] {
        assert!(said.contains(place), "{said}");
    }
}
