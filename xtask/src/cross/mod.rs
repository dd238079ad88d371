//! `cargo xtask cross aarch64`: builds what there is for another processor, and runs its tests under
//! emulation.
//!
//! ```text
//!   mmdebstrap ──▶ a root with rustc, std and a C compiler for it, qemu-user, a kernel
//!                     │ chroot: cargo build, cargo test --no-run
//!                     ▼
//!   test programs ──▶ qemu-aarch64: one process         (core, told, the crate, the C library, …)
//!                 └─▶ qemu-system-aarch64: a machine    (what needs a kernel of that processor)
//!                          └─ with a disk               (what needs compilers and programs there)
//! ```

mod disk;
mod machine;
mod suites;
mod system;

use crate::root;
use std::path::PathBuf;
use system::{Root, TRIPLE, Toolchain, ends_well};

/// What the command says of itself.
pub const USAGE: &str = "\
usage: cargo xtask cross aarch64 [--test] [--here] [--folder DIR] [--mirror URL] [--suite NAME]
                                 [--kernel NAME] [PACKAGE…] [-- WORD…]

builds the packages (all that are built for it) for aarch64-unknown-linux-gnu, in a root of Debian that
it sets up with mmdebstrap: that takes root, 3 GB and the network, once.

  --test         runs the tests, too: those of one process under qemu-aarch64, those that need a kernel
                 of that processor in a machine that qemu-system-aarch64 emulates, those of the command
                 in one with a disk, which is made for it (2.5 GB). Some hours for all
  --here         by the Rust and the emulator that are installed on this system, where they are: builds,
                 and runs the tests of one process. Says what is absent, and ends well
  --folder DIR   for the root and what is built: target/cross
  --mirror URL   where Debian is taken from: what mmdebstrap takes by itself
  --suite NAME   of Debian: unstable. It must have a Rust that is new enough
  --kernel NAME  of the machine: cloud-arm64; arm64-16k, whose pages have 16 KiB; or arm64-64k, of which
                 Debian has no package: it is built from the sources, once, which takes the network,
                 2 GB and about ten minutes
  -- WORD…       for each test program: parts of the names of its tests, --skip NAME
";

/// What is to be done.
struct CrossOptions {
    tests: bool,
    here: bool,
    folder: PathBuf,
    mirror: Option<String>,
    suite: String,
    kernel: String,
    packages: Vec<String>,
    words: Vec<String>,
}

impl CrossOptions {
    /// Reads the arguments behind the name of the processor; `None`: help was wanted.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = CrossOptions {
            tests: false,
            here: false,
            folder: root().join("target/cross"),
            mirror: None,
            suite: "unstable".into(),
            kernel: "cloud-arm64".into(),
            packages: Vec::new(),
            words: Vec::new(),
        };
        let mut processor = None;
        while let Some(name) = arguments.next() {
            let mut value =
                || arguments.next().ok_or_else(|| format!("{name} wants a value\n\n{USAGE}"));
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--test" => options.tests = true,
                "--here" => options.here = true,
                "--folder" => options.folder = value()?.into(),
                "--mirror" => options.mirror = Some(value()?),
                "--suite" => options.suite = value()?,
                "--kernel" => options.kernel = value()?,
                "--" => {
                    options.words = arguments.collect();
                    break;
                }
                _ if name.starts_with('-') => {
                    return Err(format!("{name} means nothing\n\n{USAGE}"));
                }
                _ if processor.is_none() => processor = Some(name),
                _ => options.packages.push(name),
            }
        }
        match processor.as_deref() {
            Some("aarch64") => {}
            Some(other) => {
                return Err(format!("{other} is not built for: x86-64 is, and aarch64\n\n{USAGE}"));
            }
            None => return Err(format!("say for which processor: aarch64\n\n{USAGE}")),
        }
        // A shell of the machine reads them.
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-:=".contains(c);
        if let Some(word) = options.words.iter().find(|word| !word.chars().all(plain)) {
            return Err(format!("{word:?} is no part of the name of a test\n\n{USAGE}"));
        }
        for package in &options.packages {
            if !suites::PACKAGES.contains(&package.as_str()) {
                let known = suites::PACKAGES.join(" ");
                return Err(format!("{package} is not built for aarch64; these are: {known}"));
            }
        }
        if options.packages.is_empty() {
            options.packages = suites::PACKAGES.map(String::from).to_vec();
        }
        Ok(Some(options))
    }
}

/// Does what the arguments behind `cross` say. Returns whether all was well.
///
/// # Errors
/// What they mean not, what is missing and which package has it, what a command said.
pub fn cross(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let Some(options) = CrossOptions::parse(arguments)? else {
        print!("{USAGE}");
        return Ok(true);
    };
    let toolchain: Box<dyn Toolchain> = if options.here {
        match system::Here::find() {
            Ok(here) => Box::new(here),
            Err(missing) => {
                println!("skipped: {missing}");
                return Ok(true);
            }
        }
    } else {
        Box::new(Root::set_up(&options.folder, &options.suite, options.mirror.as_deref())?)
    };
    let toolchain = toolchain.as_ref();
    let packages: Vec<&str> = options.packages.iter().map(String::as_str).collect();
    println!("== building {} packages for {TRIPLE}", packages.len());
    let mut build = vec!["cargo", "build", "--locked", "--target", TRIPLE];
    packages.iter().for_each(|package| build.extend(["-p", package]));
    build.extend(suites::OPTIMISED);
    ends_well(&mut toolchain.command(&build))?;
    if !options.tests {
        return Ok(true);
    }
    let programs = suites::build(toolchain, &packages)?;
    let mut report = suites::Report::default();
    let words = &options.words;
    let mut all = || {
        suites::in_one_process(toolchain, &programs, words, &mut report)?;
        suites::of_the_c_library(toolchain, &packages, &mut report)?;
        let Some(folder) = toolchain.machine_folder(&options.kernel)? else {
            report.skipped("all suites that need a machine", "only without --here");
            return Ok(());
        };
        let machine = machine::Machine::find(&folder, &options.kernel)?;
        suites::in_a_machine(&machine, toolchain, &programs, words, &mut report)?;
        suites::on_a_disk(&machine, toolchain, &programs, words, &mut report)
    };
    let ended = all();
    // What has run is told, also where something could not be started after it.
    report.print();
    ended.map(|()| report.is_well())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Option<CrossOptions>, String> {
        CrossOptions::parse(words.iter().map(|&word| word.to_owned()))
    }

    fn refused(words: &[&str]) -> String {
        parse(words).err().unwrap_or_else(|| panic!("taken: {words:?}"))
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        assert!(refused(&[]).contains("say for which processor: aarch64"));
        assert!(refused(&["riscv64"]).contains("riscv64 is not built for"));
        assert!(refused(&["aarch64", "--tests"]).contains("--tests means nothing"));
        assert!(refused(&["aarch64", "--mirror"]).contains("--mirror wants a value"));
        assert!(refused(&["aarch64", "--", "a;b"]).contains("no part of the name of a test"));
        let package = refused(&["aarch64", "lockstead-unknown"]);
        assert!(package.contains("lockstead-unknown") && package.contains("lockstead-core"));
    }

    #[test]
    fn all_packages_are_meant_where_none_is_named() {
        let options = parse(&["aarch64", "--test"]).expect("right").expect("no help");
        assert_eq!(options.packages, suites::PACKAGES);
        assert!(options.tests && !options.here);
        let one = parse(&["--here", "aarch64", "lockstead-core"]).expect("right").expect("no help");
        assert_eq!(one.packages, ["lockstead-core"]);
        assert!(parse(&["aarch64", "--help"]).expect("right").is_none());
        let some = parse(&["aarch64", "--", "--skip", "run::"]).expect("right").expect("no help");
        assert_eq!(some.words, ["--skip", "run::"]);
    }

    #[test]
    fn a_program_that_is_absent_is_told_with_its_package() {
        let missing = system::is_installed("no-such-emulator", "some-package").err();
        let missing = missing.expect("there is no such program");
        assert!(missing.contains("no-such-emulator") && missing.contains("some-package"));
        let folder = std::env::temp_dir();
        if let Err(missing) = machine::Machine::find(&folder, "of-no-sort") {
            assert!(missing.contains("vmlinuz-of-no-sort") || missing.contains("not installed"));
        } else {
            panic!("a machine without a kernel");
        }
    }
}
