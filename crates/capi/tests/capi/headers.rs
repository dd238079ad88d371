//! The headers alone: each compiles by itself, in each language, without a warning.

use crate::common::{compilers, ends_well, package, scratch, strict};
use std::fs;

fn standards(cpp: bool) -> &'static [&'static str] {
    if cpp { &["c++11", "c++20"] } else { &["c99", "c11"] }
}

#[test]
fn each_header_compiles_by_itself_without_warnings() {
    let mut headers = vec!["lockstead.h".to_owned()];
    for entry in fs::read_dir(package().join("include/lockstead")).expect("the headers") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        if name.ends_with(".h") {
            headers.push(format!("lockstead/{name}"));
        }
    }
    let mut headers_of_cpp = vec!["lockstead.hpp".to_owned()];
    for entry in fs::read_dir(package().join("include/lockstead/cpp")).expect("the headers") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        headers_of_cpp.push(format!("lockstead/cpp/{name}"));
    }
    for compiler in compilers() {
        for standard in standards(compiler.cpp) {
            // All in one command: the compiler starts once for each.
            let mut command = strict(compiler.command, standard);
            command.arg("-fsyntax-only");
            if compiler.command.starts_with("clang") {
                command.arg("-Wthread-safety");
            }
            let of_cpp = match *standard {
                "c++20" => &headers_of_cpp[..],
                // The one that includes the others: the newer standard library includes less by
                // itself, so that shows what a header forgets.
                "c++11" => &headers_of_cpp[..1],
                _ => &[],
            };
            for header in headers.iter().chain(of_cpp) {
                let extension = if compiler.cpp { "cc" } else { "c" };
                let stem = header.replace(['/', '.'], "-");
                let source = scratch().join(format!("{stem}-{standard}.{extension}"));
                let twice = format!("#include <{header}>\n#include <{header}>\nextern int x;\n");
                fs::write(&source, twice).expect("scratch can be written");
                command.arg(source);
            }
            ends_well(&mut command);
            // In the checking build they include each other in other orders.
            if !compiler.cpp {
                ends_well(command.arg("-DLKS_DEBUG"));
            }
        }
    }
}

/// Each call has a page, and each page is of a call that there is.
#[test]
fn each_call_has_a_manual_page() {
    let mut calls = Vec::new();
    for header in fs::read_dir(package().join("include/lockstead")).expect("the headers") {
        let path = header.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        // The other names of calls that have a page, and what the headers have for themselves.
        let others = ["check", "kernel", "pthread", "migrate", "base", "low-half", "cpp"];
        if others.iter().any(|other| name.starts_with(other)) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a header");
        for line in text.lines().filter(|line| !line.starts_with([' ', '#', '/'])) {
            let Some((before, _)) = line.split_once('(') else { continue };
            let name = before.rsplit([' ', '*']).next().unwrap_or_default();
            // What the headers call, and what they have for themselves, is not described.
            let own = name.ends_with("__") || name.ends_with("_how");
            let is_slow = name.ends_with("_slow") && name != "lks_ww_mutex_lock_slow";
            if name.starts_with("lks_") && !own && !is_slow {
                calls.push(format!("{name}.3"));
            }
        }
    }
    let mut pages: Vec<_> = fs::read_dir(package().join("man/man3"))
        .expect("the pages")
        .map(|page| page.expect("a page").file_name().into_string().expect("a name"))
        .collect();
    calls.sort();
    calls.dedup();
    pages.sort();
    assert_eq!(calls, pages);
}
