//! The library from outside: what was agreed on, and programs in C and C++ against a real etcd. Where etcd
//! is not installed those are skipped and say so.

mod access;

use lockstead_cluster::member::{self, Members};
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use xtask::cluster;
use xtask::library::{ArchiveBuild, newest_glibc, said_by};

/// The compilers, the standards that the headers are for, and whether they compile C++.
const COMPILERS: [(&str, &str, bool); 6] = [
    ("gcc", "gnu99", false),
    ("g++", "gnu++11", true),
    ("g++", "gnu++20", true),
    ("clang", "gnu11", false),
    ("clang++", "gnu++11", true),
    ("clang++", "gnu++17", true),
];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scratch() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns the archive, built once, of the profile `dev`, in the folder in which the tests are built.
fn archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let build = ArchiveBuild {
            package: "lockstead-cluster-capi",
            workspace: &xtask::root(),
            target_dir: scratch().parent().expect("cargo's folder for tests is below its own"),
            profile: "dev",
            triple: None,
            checks: false,
        };
        build.run(env!("CARGO").as_ref()).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Compiles a program, once: another test may run it already. `None`: there is no such compiler.
fn program(source: &str, compiler: (&'static str, &'static str, bool)) -> Option<PathBuf> {
    type Built = HashMap<(String, &'static str, &'static str), Option<PathBuf>>;
    static BUILT: Mutex<Option<Built>> = Mutex::new(None);
    let mut all = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.get_or_insert_default().entry((source.to_owned(), compiler.0, compiler.1));
    known.or_insert_with(|| compiled(source, compiler)).clone()
}

/// Compiles with all warnings, none of which is accepted.
fn compiled(source: &str, (compiler, standard, cpp): (&str, &str, bool)) -> Option<PathBuf> {
    if Command::new(compiler).arg("--version").output().is_err() {
        eprintln!("skipped: {compiler} is not installed");
        return None;
    }
    let name = source.replace(['/', '.'], "-");
    let program = scratch().join(format!("cluster-{name}-{compiler}-{standard}"));
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}"));
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wno-sign-conversion"]);
    command.args(["-D_GNU_SOURCE", "-pthread", "-I"]).arg(package().join("include"));
    if cpp {
        command.args(["-xc++", "-Wno-missing-field-initializers", "-Wno-invalid-offsetof"]);
    }
    command.arg(package().join("tests").join(source)).args(["-xnone", "-o"]).arg(&program);
    command.arg(archive()).args(["-lgcc_s", "-lpthread", "-ldl", "-lm"]);
    said_by(&mut command).unwrap_or_else(|error| panic!("{error}"));
    Some(program)
}

/// Returns a command that runs a program for at most a minute and a half.
fn timed(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "90"]).arg(program).args(words);
    command
}

fn members() -> Option<Members> {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return None;
    }
    Some(Members::start(1).expect("etcd starts"))
}

fn agreed(file: &str) -> String {
    fs::read_to_string(package().join(file)).expect("what is agreed")
}

#[test]
fn the_layout_is_the_one_agreed_on_in_each_language() {
    for compiler in COMPILERS {
        let Some(program) = program("c/abi.c", compiler) else { continue };
        let printed = said_by(&mut timed(&program, &[])).expect("it runs");
        assert_eq!(printed, agreed("abi.txt"), "{compiler:?}");
    }
}

#[test]
fn rust_agrees_with_the_layout() {
    use lockstead_cluster_capi::lks_cluster_options as options;
    let own = format!("lks_cluster_options {} {}\n", size_of::<options>(), align_of::<options>());
    assert!(agreed("abi.txt").starts_with(&own), "{own}");
    let last = std::mem::offset_of!(options, patience_ns);
    assert!(agreed("abi.txt").contains(&format!("lks_cluster_options.patience_ns {last}\n")));
}

/// Compares the functions that the library has: one that is gone breaks programs.
#[test]
fn the_names_are_those_agreed_on() {
    let listed = said_by(Command::new("nm").args(["-g", "--defined-only"]).arg(archive()));
    let listed = listed.unwrap_or_else(|error| panic!("{error}"));
    let names = listed.lines().filter_map(|line| line.split_whitespace().nth(2));
    let mut names: Vec<_> = names.filter(|name| name.starts_with("lks_")).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.join("\n") + "\n", agreed("symbols.txt"));
    let header = agreed("include/lockstead_cluster.h");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "the header does not declare {name}");
    }
}

/// Each function, and each of the ways to lock, has a page, and each page is of one that there is.
#[test]
fn each_call_has_a_manual_page() {
    let header = agreed("include/lockstead_cluster.h");
    let ways = header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once('('));
    let ways = ways.map(|(name, _)| name).filter(|name| name.starts_with("lks_"));
    let symbols = agreed("symbols.txt");
    let mut calls: Vec<_> = symbols.lines().chain(ways).map(|name| format!("{name}.3")).collect();
    let pages = fs::read_dir(package().join("man/man3")).expect("the pages");
    let mut pages: Vec<_> = pages
        .map(|page| page.expect("a page").file_name().into_string().expect("a name"))
        .collect();
    calls.sort();
    pages.sort();
    assert_eq!(calls, pages);
    for name in pages {
        let text = agreed(&format!("man/man3/{name}"));
        let text = match text.strip_prefix(".so ") {
            Some(other) => agreed(&format!("man/{}", other.trim())),
            None => text,
        };
        let name = name.trim_end_matches(".3");
        let declared = [" ", "*"].map(|before| format!("{before}{name}("));
        assert!(declared.iter().any(|call| text.contains(call)), "its page has no {name}");
    }
}

/// Installs into the prefix as `xtask install --cluster` and `xtask dist` do, once.
fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let (made, prefix) = (scratch().join("cluster-made"), scratch().join("a prefix for etcd"));
        let _ = fs::remove_dir_all(&prefix);
        archive();
        let target = scratch().parent().expect("cargo's folder for tests is below its own");
        cluster::build("dev", target, &made)
            .and_then(|()| cluster::stage(&made, &prefix, "lib/etcd"))
            .and_then(|()| cluster::describe(&prefix, "lib/etcd", None))
            .unwrap_or_else(|error| panic!("{error}"));
        prefix
    })
}

/// Returns a folder, with nothing in it, for a project outside.
fn project(name: &str) -> PathBuf {
    let project = scratch().join(name);
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).expect("scratch can be written");
    project
}

#[test]
fn what_is_installed_is_found_by_cmake() {
    if Command::new("cmake").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no cmake");
    }
    let project = project("etcd by cmake");
    for source in ["c/mutex.c", "cpp/mutex.cc"] {
        let to = project.join(Path::new(source).file_name().expect("a name"));
        fs::copy(package().join("tests").join(source), to).expect("scratch can be written");
    }
    let lists = "cmake_minimum_required(VERSION 3.13)\nproject(outside C CXX)\n\
        add_compile_definitions(_GNU_SOURCE)\nfind_package(Threads REQUIRED)\n\
        find_package(lockstead-cluster 0.1 REQUIRED)\nfind_package(Lockstead-Cluster 0.1 REQUIRED)\n\
        find_package(lockstead-cluster 0.2 QUIET)\nif(lockstead-cluster_FOUND)\n\
        message(FATAL_ERROR \"another version is none\")\nendif()\n\
        foreach(kind cluster cluster_static)\n\
        add_executable(c_${kind} mutex.c)\nadd_executable(cpp_${kind} mutex.cc)\n\
        foreach(language c cpp)\n\
        target_link_libraries(${language}_${kind} Lockstead::${kind} Threads::Threads)\n\
        endforeach()\nendforeach()\n";
    fs::write(project.join("CMakeLists.txt"), lists).expect("scratch can be written");
    let build = project.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&project).arg("-B").arg(&build);
    // CMake looks below `lib` by itself; other folders are named.
    let folder = installed().join("lib/etcd/cmake/lockstead-cluster");
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", folder.display()));
    said_by(&mut configure).unwrap_or_else(|error| panic!("{error}"));
    said_by(Command::new("cmake").arg("--build").arg(&build)).unwrap_or_else(|e| panic!("{e}"));
    for kind in ["c_cluster", "cpp_cluster_static"] {
        // What is not recoverable stays so: each begins anew.
        let Some(members) = members() else { return };
        let program = build.join(kind);
        said_by(&mut timed(&program, &[&members.endpoints()])).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn what_is_installed_is_found_by_pkg_config_and_shows_our_names_only() {
    let lib = installed().join("lib/etcd");
    let shown = Command::new("nm")
        .args(["-D", "--defined-only", "--format=just-symbols"])
        .arg(lib.join("liblockstead-cluster.so"))
        .output()
        .expect("nm runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let mut names: Vec<_> = shown.lines().filter_map(|name| name.split('@').next()).collect();
    names.retain(|name| !name.starts_with("LOCKSTEAD"));
    names.sort_unstable();
    assert_eq!(names.join("\n") + "\n", agreed("symbols.txt"));
    let glibc = newest_glibc(&lib.join("liblockstead-cluster.so")).expect("a shared library");
    assert!(glibc <= (2, 34), "docs/install.md says where it runs: {glibc:?}");
    let mut flags = Command::new("pkg-config");
    flags.env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
    flags.args(["--cflags", "--libs", "lockstead-cluster"]);
    let Ok(flags) = flags.output() else { return eprintln!("skipped: there is no pkg-config") };
    assert!(flags.status.success(), "{}", String::from_utf8_lossy(&flags.stderr));
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let program = scratch().join("cluster-by-pkg-config");
    // A shell reads the flags, as in a makefile.
    let mut cc = Command::new("sh");
    cc.arg("-c").arg(format!("exec cc \"$@\" {}", flags.trim())).arg("sh");
    cc.arg(package().join("tests/c/mutex.c")).args(["-D_GNU_SOURCE", "-pthread", "-o"]);
    cc.arg(&program).arg(format!("-Wl,-rpath,{}", lib.display()));
    said_by(&mut cc).unwrap_or_else(|error| panic!("{error}"));
    let linked = said_by(Command::new("readelf").arg("-d").arg(&program)).expect("a program");
    assert!(linked.contains("liblockstead-cluster.so.0]"), "{linked}");
    let Some(members) = members() else { return };
    said_by(&mut timed(&program, &[&members.endpoints()]))
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_calls_do_what_the_header_says_in_c_and_in_cpp() {
    // One of each language: the others compile the same.
    for compiler in [COMPILERS[0], COMPILERS[1]] {
        // What is not recoverable stays so: each begins anew.
        let Some(members) = members() else { return };
        let Some(program) = program("c/mutex.c", compiler) else { continue };
        said_by(&mut timed(&program, &[&members.endpoints()])).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn the_types_of_cpp_do_what_their_header_says() {
    let Some(members) = members() else { return };
    for compiler in COMPILERS.into_iter().filter(|compiler| compiler.2) {
        let Some(program) = program("cpp/mutex.cc", compiler) else { continue };
        said_by(&mut timed(&program, &[&members.endpoints()])).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_loss_is_told_by_the_descriptor() {
    let Some(mut members) = members() else { return };
    let Some(program) = program("c/mutex.c", COMPILERS[0]) else { return };
    let mut child = timed(&program, &[&members.endpoints(), "lost"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut said = String::new();
    let output = child.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut said).expect("a line, or the end");
    assert_eq!(said, "in\n");
    members.kill(0);
    assert!(child.wait().expect("it ends").success());
}
