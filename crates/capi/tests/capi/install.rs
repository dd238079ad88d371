//! A project outside builds against what `xtask install` installs.

use crate::common::{compiler, ends_well, only_builder, package, passes, scratch, strict, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::install::{InstallOptions, install};
use xtask::library::said_by;
use xtask::staging::VERSION;

const PROGRAM: &str = "\
#include <lockstead.h>
#include <stdio.h>

static lks_mutex mutex = LKS_MUTEX_INIT;

int main(void)
{
    lks_mutex_lock(&mutex);
    printf(\"%s\\n\", lks_version());
    lks_mutex_unlock(&mutex);
    return 0;
}
";

const LISTS: &str = "\
cmake_minimum_required(VERSION 3.13)
project(outside C CXX)
find_package(Lockstead 0.1 REQUIRED)
find_package(lockstead 0.1 REQUIRED)
find_package(LOCKSTEAD 0.1 REQUIRED)
foreach(kind lockstead lockstead_static check check_static)
  add_executable(with_${kind} program.c)
  target_link_libraries(with_${kind} Lockstead::${kind})
endforeach()
";

/// Installs once, with the build that the other tests have made.
fn prefix() -> PathBuf {
    let prefix = scratch().join("a prefix");
    let _ = fs::remove_dir_all(&prefix);
    let mut options = InstallOptions::new();
    options.prefix = prefix.clone();
    options.profile = "dev".into();
    options.target = target().into();
    let _only = only_builder();
    install(&options).unwrap_or_else(|error| panic!("{error}"));
    prefix
}

fn runs(program: &Path) {
    let output = ends_well(Command::new("timeout").arg("60").arg(program));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), VERSION);
}

fn is_there(command: &str) -> bool {
    let there = Command::new(command).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: {command} is not installed");
    }
    there
}

fn by_pkg_config(prefix: &Path, project: &Path) {
    let variants = [
        ("lockstead", ""),
        ("lockstead", "--static"),
        ("lockstead", "-static"),
        ("lockstead-check", ""),
    ];
    for (name, extra) in variants {
        let mut flags = Command::new("pkg-config");
        flags.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        flags.args(["--cflags", "--libs", name]);
        if !extra.is_empty() {
            flags.arg("--static");
        }
        let flags = said_by(&mut flags).unwrap_or_else(|error| panic!("{error}"));
        let program = project.join(format!("by-{name}{extra}"));
        // A shell reads the flags, as in a makefile. With an archive beside a shared
        // library the linker is told which; with -static it knows.
        let flags = match extra {
            "--static" => flags.replace("-llockstead", "-l:liblockstead.a"),
            "-static" => format!("-static {flags}"),
            _ => flags,
        };
        let mut cc = Command::new("sh");
        cc.arg("-c").arg(format!("exec \"$0\" \"$@\" {}", flags.trim()));
        cc.arg(compiler(false)).arg("-o").arg(&program).arg(project.join("program.c"));
        cc.arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()));
        ends_well(&mut cc);
        runs(&program);
    }
}

fn by_cmake(project: &Path, prefix: &Path) {
    fs::write(project.join("CMakeLists.txt"), LISTS).expect("scratch can be written");
    let build = project.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(project).arg("-B").arg(&build);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    ends_well(&mut configure);
    ends_well(Command::new("cmake").arg("--build").arg(&build));
    for kind in ["lockstead", "lockstead_static", "check", "check_static"] {
        runs(&build.join(format!("with_{kind}")));
    }
}

/// Builds the project of docs/autoconf.md, by the commands of that page, and runs its test.
fn by_autoconf(prefix: &Path) {
    let page = fs::read_to_string(xtask::root().join("docs/autoconf.md")).expect("the page");
    let block = |language: &str| {
        let rest = page.split_once(&format!("```{language}\n")).expect("a block").1;
        rest.split_once("```").expect("its end").0
    };
    let project = scratch().join("by autoconf");
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).expect("scratch can be written");
    for (language, file) in [("m4", "configure.ac"), ("make", "Makefile.am"), ("c", "orders.c")] {
        fs::write(project.join(file), block(language)).expect("scratch can be written");
    }
    let mut commands = Command::new("sh");
    commands.arg("-ec").arg(block("sh")).current_dir(&project).env("PREFIX", prefix);
    ends_well(&mut commands);
    let log = fs::read_to_string(project.join("orders.trs")).expect("what the test came to");
    assert!(log.contains(":test-result: PASS"), "{log}");
    let linked = said_by(Command::new("readelf").arg("-d").arg(project.join("orders")));
    assert!(
        linked.expect("a program").contains("liblockstead-check.so.0"),
        "not the one that checks"
    );
}

/// Asserts that the shared libraries export our names only, and that the archives show no others.
fn exports_only_ours(lib: &Path) {
    for name in ["lockstead", "lockstead-check"] {
        let dynamic = said_by(
            Command::new("nm")
                .args(["-D", "--defined-only"])
                .arg(lib.join(format!("lib{name}.so.{VERSION}"))),
        );
        let fixed = said_by(
            Command::new("nm").args(["-g", "--defined-only"]).arg(lib.join(format!("lib{name}.a"))),
        );
        for listed in [dynamic, fixed] {
            let listed = listed.unwrap_or_else(|error| panic!("{error}"));
            let names: Vec<_> =
                listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
            assert!(
                names.contains(&"lks_mutex_lock_slow")
                    || names.iter().any(|name| name.starts_with("lks_mutex_lock_slow@")),
                "{name}: {names:?}"
            );
            // The name of the version itself is one of the symbols.
            let other: Vec<_> = names
                .iter()
                .filter(|name| !name.starts_with("lks_") && **name != "LOCKSTEAD_0")
                .collect();
            assert!(other.is_empty(), "{name}: {other:?}");
        }
    }
}

#[test]
fn libraries_lie_below_the_prefix() {
    for libdir in ["/usr/lib", "../lib", "", "lib/../../lib"] {
        let mut options = InstallOptions::new();
        options.prefix = scratch().join("never made");
        options.libdir = libdir.into();
        let error = install(&options).expect_err(libdir);
        assert!(error.contains("below the prefix"), "{error}");
        assert!(!options.prefix.exists());
    }
}

#[test]
fn a_project_outside_builds_against_the_prefix() {
    let prefix = prefix();
    let project = scratch().join("outside");
    let _ = fs::remove_dir_all(&project);
    fs::create_dir_all(&project).expect("scratch can be written");
    fs::write(project.join("program.c"), PROGRAM).expect("scratch can be written");
    for file in [
        "include/lockstead.hpp",
        "include/lockstead/kernel.h",
        "include/lockstead/migrate.h",
        "include/lockstead/pthread.h",
        "share/man/man7/lockstead.7",
    ] {
        assert!(prefix.join(file).exists(), "{file}");
    }
    exports_only_ours(&prefix.join("lib"));
    if is_there("pkg-config") {
        by_pkg_config(&prefix, &project);
    }
    if is_there("cmake") {
        by_cmake(&project, &prefix);
    }
    if ["autoconf", "automake", "make", "pkg-config"].into_iter().all(is_there) {
        by_autoconf(&prefix);
    }
}

/// Builds programs of the tests for musl, each a whole program in one file, and runs them.
#[test]
fn for_another_c_library_too() {
    const TRIPLE: &str = "x86_64-unknown-linux-musl";
    if xtask::library::unwinder(TRIPLE).is_none() || !is_there("musl-gcc") {
        return eprintln!(
            "skipped: Rust has no standard library for {TRIPLE} here, or no musl-gcc"
        );
    }
    let mut options = InstallOptions::new();
    options.prefix = scratch().join("a prefix for musl");
    options.profile = "dev".into();
    options.target = target().into();
    options.triple = Some(TRIPLE.into());
    let _ = fs::remove_dir_all(&options.prefix);
    let only = only_builder();
    install(&options).unwrap_or_else(|error| panic!("{error}"));
    drop(only);
    let lib = options.prefix.join("lib");
    let shared = ["liblockstead.so", "liblockstead.so.0"].map(|name| lib.join(name).exists());
    assert_eq!(shared, [false, false]);
    for name in
        ["mutex", "fair", "semaphore", "cond", "rwlock", "once", "ww", "rt", "shared", "threads"]
    {
        let program = scratch().join(format!("{name}-musl"));
        let mut cc = strict("musl-gcc", "gnu11");
        cc.arg("-static").arg("-o").arg(&program);
        cc.arg(package().join(format!("tests/c/{name}.c"))).arg(lib.join("liblockstead.a"));
        ends_well(&mut cc);
        passes(&program);
    }
}
