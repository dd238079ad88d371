//! Says that this is the checker's build of the core.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=faults");
}
