//! Looks for the C and C++ peers. None is needed: a library that is not there
//! is left out, and `lockstead bench` says so when it is asked for by name.

use std::env;
use std::path::Path;

/// Name of the peer (its shim, its `cfg`) and the library to link.
const PEERS: [(&str, &str); 3] =
    [("abseil", "absl_synchronization"), ("nsync", "nsync_cpp"), ("tbb", "tbb")];

/// Set it to build without these peers although their libraries are there.
const SWITCH: &str = "LOCKSTEAD_NO_CPP_PEERS";

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed={SWITCH}");
    for (peer, _) in PEERS {
        println!("cargo:rustc-check-cfg=cfg(peer_{peer})");
    }
    if env::var_os(SWITCH).is_some() {
        return;
    }
    let found: Vec<_> = PEERS.into_iter().filter(|(peer, library)| links(peer, library)).collect();
    if found.is_empty() {
        return;
    }
    let mut shim = shim();
    for (peer, _) in &found {
        shim.file(format!("shim/{peer}.cc"));
    }
    // The archive comes before the libraries that it needs.
    shim.compile("peers");
    for (peer, library) in found {
        println!("cargo:rustc-link-lib={library}");
        println!("cargo:rustc-cfg=peer_{peer}");
    }
}

fn shim() -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).pic(true).cargo_warnings(false);
    build
}

/// Whether the peer's shim compiles and all its symbols are found: the header
/// is there, the library is there, and they fit.
fn links(peer: &str, library: &str) -> bool {
    let Ok(compiler) = shim().try_get_compiler() else {
        return false;
    };
    let output = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join(peer);
    compiler
        .to_command()
        .arg(format!("shim/{peer}.cc"))
        .args(["-shared", "-Wl,-z,defs", "-o"])
        .arg(output)
        .arg(format!("-l{library}"))
        .output()
        .is_ok_and(|probe| probe.status.success())
}
