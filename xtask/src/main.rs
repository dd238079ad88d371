//! `cargo xtask install`: the library for C and C++, its headers and pages. `cargo xtask dist`: the
//! command, packed. `cargo xtask wheel`: the package for Python. `cargo xtask mutants`: whether the models notice each change of a protocol. `cargo xtask cross`: all of it for another
//! processor.

use std::path::PathBuf;
use std::process::ExitCode;
use xtask::dist;
use xtask::install::{InstallOptions, install};
use xtask::mutants::mutants;
use xtask::mutants::options::{MutantOptions, USAGE as MUTANTS};

const USAGE: &str = "\
usage: cargo xtask mutants [OPTIONS]          (see cargo xtask mutants --help)
       cargo xtask cross aarch64 [OPTIONS]    (see cargo xtask cross --help)
       cargo xtask install --prefix DIR [--destdir DIR] [--libdir NAME] [--profile NAME]
                            [--target TRIPLE] [--cluster]
       cargo xtask dist [--out DIR] [--programs DIR]
       cargo xtask wheel [--out DIR] [--programs DIR]

install builds the library for C and C++ and installs it, its headers, manual pages and what
pkg-config and CMake want to know, below the prefix.

  --prefix DIR    where programs find it: /usr/local
  --destdir DIR   in front of the prefix while installing, for packages
  --libdir NAME   of the libraries below the prefix: lib
  --profile NAME  of cargo: preload, which is a release without unwinding
  --target TRIPLE another C library than this system's: x86_64-unknown-linux-musl, for which
                  `rustup target add` gets what it takes; no shared library then
  --cluster       the library of the locks over etcd, liblockstead-cluster, as well

dist builds the programs and the library of the locks over etcd as a release and packs them, with manual
pages and completions: an archive with an installer, and a Debian package where dpkg-deb is.

  --out DIR       for what is made: target/dist
  --programs DIR  where lockstead, lockstead-bench, lockstead-cluster and liblockstead-cluster lie already;
                  nothing is built then

wheel builds the package for Python with the command in it. It takes maturin; the tests of the project
then test the wheel that lies in target/wheels.

  --out DIR       for the wheel: target/wheels
  --programs DIR  where lockstead lies already; it is not built then
";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    match arguments.next().as_deref() {
        Some("install") => {}
        Some("dist") => return dist(arguments),
        Some("wheel") => return wheel(arguments),
        Some("cross") => return xtask::cross::cross(arguments),
        Some("mutants") => {
            let Some(options) = MutantOptions::parse(arguments)? else {
                print!("{MUTANTS}");
                return Ok(true);
            };
            return mutants(&options);
        }
        Some("--help" | "-h") => {
            print!("{USAGE}");
            return Ok(true);
        }
        _ => return Err(format!("say what to do\n\n{USAGE}")),
    }
    let mut options = InstallOptions::new();
    let mut prefix = None;
    while let Some(name) = arguments.next() {
        if name == "--help" {
            print!("{USAGE}");
            return Ok(true);
        }
        if name == "--cluster" {
            options.cluster = true;
            continue;
        }
        let value = arguments.next().filter(|value| !value.starts_with("--"));
        let value = value.ok_or_else(|| format!("{name} wants a value\n\n{USAGE}"))?;
        match name.as_str() {
            "--prefix" => prefix = Some(PathBuf::from(value)),
            "--destdir" => options.destdir = Some(value.into()),
            "--libdir" => options.libdir = value,
            "--profile" => options.profile = value,
            "--target" => options.triple = Some(value),
            _ => return Err(format!("{name} means nothing\n\n{USAGE}")),
        }
    }
    options.prefix = prefix.ok_or_else(|| format!("--prefix is missing\n\n{USAGE}"))?;
    install(&options)?;
    let prefix = std::path::absolute(&options.prefix).map_err(|error| error.to_string())?;
    let lib = prefix.join(&options.libdir);
    let (prefix, lib) = (prefix.display(), lib.display());
    println!("installed, for {prefix}");
    println!("  to build: export PKG_CONFIG_PATH={lib}/pkgconfig");
    let Some(triple) = &options.triple else {
        println!("            cc program.c $(pkg-config --cflags --libs lockstead)");
        println!("  to run:   export LD_LIBRARY_PATH={lib}   unless the system looks there");
        return Ok(true);
    };
    let compiler = if triple.contains("musl") { "musl-gcc" } else { "cc" };
    println!("            {compiler} program.c $(pkg-config --cflags --static --libs lockstead)");
    Ok(true)
}

/// Reads `--out` and `--programs`; `None`: help was wanted, and given.
fn places(
    mut arguments: impl Iterator<Item = String>,
    usual: &str,
) -> Result<Option<(PathBuf, Option<PathBuf>)>, String> {
    let (mut out, mut programs) = (xtask::root().join(usual), None);
    while let Some(name) = arguments.next() {
        if name == "--help" {
            print!("{USAGE}");
            return Ok(None);
        }
        let value = arguments.next().ok_or_else(|| format!("{name} wants a value\n\n{USAGE}"))?;
        match name.as_str() {
            "--out" => out = value.into(),
            "--programs" => programs = Some(PathBuf::from(value)),
            _ => return Err(format!("{name} means nothing\n\n{USAGE}")),
        }
    }
    Ok(Some((out, programs)))
}

fn dist(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let Some((out, programs)) = places(arguments, "target/dist")? else { return Ok(true) };
    let programs = match programs {
        Some(programs) => programs,
        None => dist::build()?,
    };
    for made in dist::package(&programs, &out)? {
        println!("{}", made.display());
    }
    Ok(true)
}

fn wheel(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let Some((out, programs)) = places(arguments, "target/wheels")? else { return Ok(true) };
    println!("{}", xtask::wheel::wheel(programs, &out)?.display());
    Ok(true)
}
