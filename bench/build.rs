//! Builds the C and C++ peers, each as a shared object that the command carries
//! and loads when the peer is measured: nothing is linked that only benchmarks
//! need. None is needed: a library that is not there is left out, and `lockstead
//! bench` says so when it is asked for by name.

use std::env;
use std::path::Path;

/// The name of the peer (its shim, its `cfg`) and the library to link.
const PEERS: [(&str, &str); 3] =
    [("abseil", "absl_synchronization"), ("nsync", "nsync_cpp"), ("tbb", "tbb")];

/// Set it to build without these peers although their libraries are there.
const SWITCH: &str = "LOCKSTEAD_NO_CPP_PEERS";

fn main() {
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed={SWITCH}");
    for (peer, library) in PEERS {
        println!("cargo:rustc-check-cfg=cfg(peer_{peer})");
        if env::var_os(SWITCH).is_none() && builds(peer, library) {
            println!("cargo:rustc-cfg=peer_{peer}");
        }
    }
}

/// Builds the peer's shim as `OUT_DIR/PEER.so`, if its header is there, its
/// library is there, and they fit.
fn builds(peer: &str, library: &str) -> bool {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).pic(true).debug(false).cargo_warnings(false);
    let Ok(compiler) = build.try_get_compiler() else {
        return false;
    };
    let output = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join(peer);
    compiler
        .to_command()
        .arg(format!("shim/{peer}.cc"))
        .args(["-shared", "-Wl,-z,defs", "-Wl,-s", "-o"])
        .arg(output.with_extension("so"))
        .arg(format!("-l{library}"))
        .output()
        .is_ok_and(|built| built.status.success())
}
