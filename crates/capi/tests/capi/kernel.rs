//! `kernel.h`: files as one writes them for the kernel, the tables of its names, and what is said
//! of code that is wrong about its locks.

use crate::common::{
    checked, compiler, compilers, ends_well, marked, package, passes, program, scratch, strict,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const FILES: [&str; 4] = ["kernel_device", "kernel_inodes", "kernel_buffers", "completion"];

#[test]
fn files_of_the_kernel_run() {
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        for (at, file) in FILES.iter().enumerate() {
            let standard = ["gnu99", "gnu11"][at % 2];
            passes(&program(&format!("c/{file}.c"), compiler.command, standard, &[]));
        }
    }
}

#[test]
fn they_are_checked_without_a_word() {
    for file in FILES {
        let checks = ["-DLKS_DEBUG"];
        let program = program(&format!("c/{file}.c"), compiler(false), "gnu11", &checks);
        passes(&program);
        let (_, said) = checked(&program, "", None);
        assert_eq!(said, "", "{file}");
    }
}

fn misuse() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let checks = ["-DLKS_DEBUG"];
    BUILT.get_or_init(|| program("c/misuse_kernel.c", compiler(false), "gnu11", &checks))
}

#[test]
fn wrong_assertions_and_guards_are_reported_with_their_places() {
    for (case, words, places) in [
        ("unheld", &["failed assertion of a hold", "but nobody does"][..], &["UNHELD"][..]),
        ("other", &["failed assertion of a hold", "holds it since"], &["OF OTHER", "BY OTHER"]),
        ("reads", &["failed assertion of a hold", "for reading"], &["READS", "NO WRITER"]),
        ("held", &["failed assertion of a hold", "may not hold it"], &["HELD", "HELD HERE"]),
        ("rwsem", &["failed assertion of a hold"], &["RWSEM"]),
        ("guard", &["recursion"], &["GUARD", "GUARD AGAIN"]),
        ("scoped", &["recursion"], &["SCOPED", "SCOPED AGAIN"]),
        ("killable", &["recursion"], &["KILLABLE", "NESTED"]),
    ] {
        for setting in [None, Some("warn")] {
            let (output, said) = checked(misuse(), case, setting);
            // To wait for itself is no way to go on.
            let goes_on = setting.is_some() && !["guard", "scoped"].contains(&case);
            assert_eq!(output.status.success(), goes_on, "{case}: {said}");
            for word in words {
                assert!(said.contains(word), "{case}: no {word}: {said}");
            }
            for place in places {
                let place = marked("misuse_kernel.c", place);
                assert!(said.contains(&place), "{case}: no {place}: {said}");
            }
        }
    }
    for case in ["semaphore", "well"] {
        let (output, said) = checked(misuse(), case, None);
        assert!(output.status.success() && said.is_empty(), "{case}: {said}");
    }
}

/// Locks of one key are of one class; without it each of these is of its own.
#[test]
fn a_key_makes_a_class() {
    let (output, said) = checked(misuse(), "class", None);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("lock order inversion of 2 classes"), "{said}");
    let (output, said) = checked(misuse(), "no-class", None);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// Also where nothing is checked: the process goes on, or not, but never without a word.
#[test]
fn without_checks_too_something_is_said() {
    let built = program("c/misuse_kernel.c", compiler(false), "gnu99", &[]);
    for (case, words, goes_on) in [
        ("rwsem", "nobody holds the rw_semaphore", true),
        ("reads", "nobody writes under the rw_semaphore", true),
        ("contexts", "ww_acquire_init: this thread has four contexts already", false),
        ("revived", "a reference was added to what had none any more", true),
        ("dropped", "a reference was dropped more than once", true),
    ] {
        let output = crate::common::run(&built, &[case]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{case}: {said}");
        assert_eq!(output.status.success(), goes_on, "{case}: {said}");
    }
    for setting in [None, Some("warn")] {
        let (output, said) = checked(misuse(), "contexts", setting);
        let words = "ww_acquire_init: this thread has four contexts already";
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

/// Returns the names between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the names that the tables of `docs/migration.md` say are here, and those that are not.
fn tables() -> (BTreeSet<String>, BTreeSet<String>) {
    let file = package().join("../../docs/migration.md");
    let text = fs::read_to_string(file).expect("the document");
    let (_, text) = text.split_once("## Names of the kernel\n").expect("the section");
    let (text, _) = text.split_once("\n## ").expect("the next section");
    let (mut here, mut absent) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |set: &str, name: &str| {
        let set = if set == "yes" { &mut here } else { &mut absent };
        assert!(set.insert(name.to_owned()), "`{name}` is there twice");
    };
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [of_kernel, said @ ("yes" | "no"), why] => {
                assert!(said == "yes" || !why.is_empty(), "no reason for {of_kernel}");
                names(of_kernel).for_each(|name| add(said, name));
            }
            [_, of_others] => names(of_others).for_each(|name| add("yes", name)),
            _ => assert!(line.starts_with("| name |"), "{line}"),
        }
    }
    // The last sentence.
    let beyond = text.lines().filter(|line| line.starts_with("Beyond the kernel's"));
    beyond.flat_map(names).skip(1).for_each(|name| add("yes", name));
    (here, absent)
}

/// Returns a text that compiles if the name is there.
fn uses(name: &str, at: usize) -> String {
    let guard = name.strip_prefix("guard(").and_then(|kind| kind.strip_suffix(')'));
    if let Some(kind) = guard {
        let lock = if kind.starts_with("mutex") { "struct mutex" } else { "struct rw_semaphore" };
        return format!(
            "extern void use{at}({lock} *); void use{at}({lock} *lock) {{ guard({kind})(lock); }}\n"
        );
    }
    if name.starts_with("struct ") || name.ends_with("_t") {
        return format!("extern char use{at}[sizeof({name})];\n");
    }
    format!("#ifndef {name}\nextern void *use{at}; void *use{at} = (void *)&{name};\n#endif\n")
}

/// Returns a text that does not compile if the name is there.
fn clashes(name: &str, at: usize) -> String {
    if let Some(kind) = name.strip_prefix("guard(").and_then(|kind| kind.strip_suffix(')')) {
        return format!("typedef int lks_guard_{kind}__[{at} + 1];\n");
    }
    if let Some(kind) = name.strip_prefix("__free(").and_then(|kind| kind.strip_suffix(')')) {
        return format!("#ifdef __free\n#error {kind}\n#endif\n");
    }
    format!("#ifdef {name}\n#error {name}\n#endif\nextern char {name}[{at} + 1];\n")
}

#[test]
fn each_name_of_the_tables_is_here_or_is_not() {
    let (here, absent) = tables();
    assert!(here.len() > 150 && absent.len() > 40, "{} and {}", here.len(), absent.len());
    let include = "#include <lockstead/kernel.h>\n";
    let all = |texts: &BTreeSet<String>, write: fn(&str, usize) -> String| {
        let texts = texts.iter().enumerate().map(|(at, name)| write(name, at));
        include.to_owned() + &texts.collect::<String>()
    };
    for compiler in compilers().iter().filter(|compiler| !compiler.cpp) {
        let compile = |text: &str, options: &[&str]| {
            let source = scratch().join(format!("names-{}.c", compiler.command));
            fs::write(&source, text).expect("scratch can be written");
            let mut command = strict(compiler.command, "gnu11");
            command.args(["-Wno-pedantic", "-fsyntax-only"]).args(options).arg(source);
            command
        };
        for options in [&[][..], &["-DLKS_DEBUG"]] {
            ends_well(&mut compile(&all(&here, uses), options));
            ends_well(&mut compile(&all(&absent, clashes), options));
        }
        // Each of the two texts finds what is on the wrong side.
        for (name, write) in [
            ("wait_for_completion_state", uses as fn(&str, usize) -> String),
            ("guard(mutex_init)", uses),
            ("struct nothing", uses),
            ("mutex_lock", clashes),
            ("guard(mutex)", clashes),
            ("lockdep_assert_held", clashes),
        ] {
            let text = include.to_owned() + &write(name, 1);
            let output = compile(&text, &[]).output().expect("it ran before");
            assert!(!output.status.success(), "{name}");
        }
    }
}

/// Returns the functions, macros and types of the headers of the kernel's names.
fn defined() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for header in fs::read_dir(package().join("include/lockstead")).expect("the headers") {
        let path = header.expect("an entry").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        // What the checking build has is the same once more.
        if !file.starts_with("kernel") || file == "kernel-check.h" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a header").replace("\\\n", " ");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("#define ") {
                found.extend(rest.split([' ', '(']).next().map(str::to_owned));
            } else if let Some(rest) =
                line.strip_prefix("struct ").filter(|rest| rest.ends_with('{'))
            {
                let name = rest.trim_end_matches(" {").rsplit(' ').next().expect("a name");
                found.insert(format!("struct {name}"));
            } else if let Some(name) =
                line.strip_prefix("} ").and_then(|rest| rest.strip_suffix(';'))
            {
                found.insert(name.to_owned());
            } else if let Some((before, behind)) = line.split_once('(')
                && before.starts_with(['L', '_'])
            {
                let name = before.rsplit([' ', '*']).next().unwrap_or_default();
                let named = behind.split(')').next().unwrap_or_default();
                found.insert(if name == "LKS_KERNEL_NAME__" { named } else { name }.to_owned());
            }
        }
    }
    let own = |name: &String| {
        let name = name.trim_start_matches("struct ");
        name.is_empty()
            || name.starts_with("LKS_")
            || name.starts_with("lks_")
            || name.starts_with("LOCKSTEAD_")
            || name.starts_with("lockstead_")
            || name.starts_with("__attribute__")
    };
    found.retain(|name| !own(name));
    found
}

/// The tables have all that the headers define, so that a name does not come without them.
#[test]
fn each_name_that_is_here_is_in_the_tables() {
    let (here, _) = tables();
    let missing: Vec<_> = defined().into_iter().filter(|name| !here.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(defined().contains("down_killable") && defined().contains("struct completion"));
}

/// In C++ the guards are left out: programs in it have their own things of that name.
#[test]
fn in_cpp_the_plain_words_of_guards_are_free() {
    for compiler in compilers().iter().filter(|compiler| compiler.cpp) {
        let source = scratch().join("free-words.cc");
        let text = "#include <lockstead/kernel.h>\n#include <mutex>\nstd::mutex one;\n\
            void use();\nvoid use() { std::lock_guard<std::mutex> guard(one); }\n\
            static DECLARE_COMPLETION(done);\nvoid end();\nvoid end() { complete(&done); }\n";
        fs::write(&source, text).expect("scratch can be written");
        for options in [&["-std=c++11"][..], &["-std=c++20", "-DLKS_DEBUG"]] {
            let mut command = Command::new(compiler.command);
            command.args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]);
            command.arg(package().join("include")).args(options).arg(&source);
            ends_well(&mut command);
        }
    }
}
