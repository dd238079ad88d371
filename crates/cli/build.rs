//! Builds the libraries that `lockstead run` puts under a program, for the
//! command to embed: one that observes, and one that checks as well.
//!
//! In the repository it is built where its sources are. The package that a registry has stands alone
//! and carries them, by the links in `embedded/`, which packing follows: a workspace is made of them.
//!
//! On a target that the library does not support the command is built without, and says so when asked
//! to `run`.
//!
//! The compiler's unwinder is linked in where it is there as an archive, so that the command needs no
//! library but the C library: see `src/find_object.rs`.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

include!("embedded/shared_object.rs");

/// The packages of which the library is made.
const PACKAGES: [&str; 6] = ["core", "rules", "told", "ledger", "unwind", "preload"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(preload_image)");
    println!("cargo::rustc-check-cfg=cfg(carried_unwinder)");
    println!("cargo::rerun-if-changed=build.rs");
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    if !is_supported() {
        return;
    }
    carry_unwinder();
    let embedded = package.join("embedded");
    // The links of the repository are what packing has made files of.
    let packed = !embedded.join("workspace.toml").is_symlink();
    let workspace = if packed {
        let staged = Path::new(&variable("OUT_DIR")).join("library");
        stage(&package, &embedded, &staged).unwrap_or_else(|error| fail(&error));
        staged
    } else {
        package.ancestors().nth(2).expect("crates/cli lies in the repository").to_owned()
    };
    let crates = if packed { embedded } else { workspace.join("crates") };
    println!("cargo::rerun-if-changed={}", crates.join("preload/shared_object.rs").display());
    for name in PACKAGES {
        let manifest = if packed { "manifest.toml" } else { "Cargo.toml" };
        println!("cargo::rerun-if-changed={}", crates.join(name).join(manifest).display());
        println!("cargo::rerun-if-changed={}", crates.join(name).join("src").display());
    }
    for file in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", workspace.join(file).display());
    }
    println!("cargo::rustc-cfg=preload_image");
    build(&workspace, packed, "preload", false);
    build(&workspace, packed, "check", true);
}

/// Links the unwinder as an archive, in front of the shared one that Rust's library names, which then
/// nothing needs. Whole, since what wants it is linked later. Where the compiler has no such archive, the
/// shared one is linked, as in every program of Rust.
fn carry_unwinder() {
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    let Ok(output) = asked else { return };
    let answer = String::from_utf8_lossy(&output.stdout);
    let archive = Path::new(answer.trim());
    // Without a folder where the compiler does not find it.
    let (true, Some(folder)) = (archive.is_absolute() && archive.is_file(), archive.parent())
    else {
        return;
    };
    println!("cargo::rustc-cfg=carried_unwinder");
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-link-lib=static:-bundle,+whole-archive=gcc_eh");
}

/// Builds one of them, in a directory `name`, and tells the command where it is.
///
/// In the repository this is a directory of the whole target directory: the tests of the library, and
/// builds of the command by other profiles, want the same two images, and each takes its time to link.
fn build(workspace: &Path, packed: bool, name: &str, checks: bool) {
    let own = PathBuf::from(variable("OUT_DIR"));
    // `TARGET_DIR/PROFILE/build/PACKAGE/out`.
    let shared = own.ancestors().nth(4).filter(|_| !packed).map(|whole| whole.join(IMAGES));
    let target_dir = shared.unwrap_or_else(|| own.clone()).join(name);
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = variable("TARGET");
    match build_shared_object(&cargo, workspace, &target_dir, &target, checks, !packed) {
        Ok(built) => {
            // A copy, which nobody else builds again before it is embedded.
            let image = own.join(format!("{name}.so"));
            if let Err(error) = fs::copy(&built, &image) {
                fail(&format!("{}: {error}", image.display()));
            }
            let name = name.to_uppercase();
            println!("cargo::rustc-env=LOCKSTEAD_{name}_IMAGE={}", image.display());
            let bytes = std::fs::read(&image).expect("it was just built");
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            println!("cargo::rustc-env=LOCKSTEAD_{name}_HASH={:016x}", hasher.finish());
        }
        Err(reason) => fail(&reason),
    }
}

/// Makes a workspace of the sources that the package carries.
fn stage(package: &Path, embedded: &Path, staged: &Path) -> Result<(), String> {
    let read = |file: &Path| {
        fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
    };
    let write = |file: &Path, text: &str| {
        fs::create_dir_all(file.parent().expect("a file lies in a folder"))
            .and_then(|()| fs::write(file, text))
            .map_err(|error| format!("{}: {error}", file.display()))
    };
    let workspace = read(&embedded.join("workspace.toml"))?;
    let kept = sections(&workspace, |header| {
        header.starts_with("[workspace.") || header == "[profile.preload]"
    });
    let members = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n\n";
    write(&staged.join("Cargo.toml"), &format!("{members}{kept}"))?;
    // The versions of what other packages it is built of: those of the command.
    if let Ok(lock) = fs::read_to_string(package.join("Cargo.lock")) {
        write(&staged.join("Cargo.lock"), &lock)?;
    }
    for name in PACKAGES {
        let manifest = read(&embedded.join(name).join("manifest.toml"))?;
        // Tests and what they need stay in the repository.
        let kept = sections(&manifest, |header| {
            !["[dev-dependencies]", "[[test]]", "[[example]]"].contains(&header)
        });
        let folder = staged.join("crates").join(name);
        write(&folder.join("Cargo.toml"), &kept)?;
        let sources = folder.join("src");
        if !sources.is_symlink() {
            std::os::unix::fs::symlink(embedded.join(name).join("src"), &sources)
                .map_err(|error| format!("{}: {error}", sources.display()))?;
        }
    }
    Ok(())
}

/// Returns the sections of a manifest whose header, as it is written, is wanted.
fn sections(manifest: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut keep = false;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            keep = wanted(line.trim());
        }
        keep
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn fail(reason: &str) -> ! {
    eprintln!("the library for `lockstead run` could not be built: {reason}");
    std::process::exit(1);
}

fn is_supported() -> bool {
    let target = |what: &str| variable(&format!("CARGO_CFG_TARGET_{what}"));
    ["x86_64", "aarch64"].contains(&&*target("ARCH"))
        && [("OS", "linux"), ("ENV", "gnu"), ("POINTER_WIDTH", "64")]
            .iter()
            .all(|(what, value)| target(what) == *value)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
