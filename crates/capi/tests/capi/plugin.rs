//! The archive inside a library that a program loads and closes again.

use crate::common::{archive, compiler, ends_well, package, scratch, strict, with_library};
use std::process::Command;

#[test]
fn a_library_with_the_archive_inside_is_closed_while_threads_live() {
    let source = package().join("tests/c/plugin.c");
    let build = |name: &str, extra: &[&str]| {
        let mut cc = strict(compiler(false), "gnu11");
        // POSIX has functions come from `dlsym` as pointers to data.
        cc.arg("-Wno-pedantic").args(extra).arg(&source).arg("-o").arg(scratch().join(name));
        cc
    };
    let mut library = build("plugin.so", &["-shared", "-fPIC", "-DPLUGIN", "-Wl,--gc-sections"]);
    ends_well(with_library(&mut library, archive()));
    ends_well(build("loads-plugin", &[]).args(["-lpthread", "-ldl"]));
    let mut run = Command::new("timeout");
    run.args(["-k", "5", "60"]).arg(scratch().join("loads-plugin"));
    ends_well(run.arg(scratch().join("plugin.so")));
}
