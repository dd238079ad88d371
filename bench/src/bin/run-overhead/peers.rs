//! What other observers of locks cost in the same C program, for scale: LLVM's
//! deadlock detector, ThreadSanitizer, Helgrind.

use crate::OverheadRow;
use crate::micro::{build, time};
use crate::tools::{Result, Tools};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The shapes that the aims of `run` name, of two rows each.
const WORKLOADS: [(&str, &str); 3] =
    [("pair", "lock and unlock"), ("nested", "two locks nested"), ("many", "4096 locks in turn")];

/// An observer, how it runs the program, and how long it needs.
struct RunObserver {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    iterations: u32,
}

pub(crate) fn measure(tools: &Tools, rounds: usize) -> Result<Vec<OverheadRow>> {
    if Tools::installed("cc").is_none() {
        return Ok(Vec::new());
    }
    let program = build(tools, "plain", &[])?;
    let mut rows = Vec::new();
    for peer in peers(tools, &program) {
        for (what, name) in WORKLOADS {
            eprintln!("run-overhead: {name}, {}", peer.name);
            let mut pairs = Vec::new();
            for _ in 0..rounds {
                let native = time(quiet(Command::new(&program)), what, 5_000_000)?;
                pairs.push((native, time(quiet((peer.command)()), what, peer.iterations)?));
            }
            rows.push(OverheadRow::of(&format!("{name}, {}", peer.name), "CPU ns", &pairs, None));
        }
    }
    Ok(rows)
}

fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn peers(tools: &Tools, program: &Path) -> Vec<RunObserver> {
    let mut peers = Vec::new();
    let file = program.to_path_buf();
    match dyndd() {
        Some(library) => peers.push(RunObserver {
            name: "dyndd",
            command: Box::new(move || {
                let mut command = Command::new(&file);
                command.env("LD_PRELOAD", &library);
                command
            }),
            iterations: 2_000_000,
        }),
        None => eprintln!("run-overhead: LLVM's libclang_rt.dyndd is not installed: left out"),
    }
    match build(tools, "sanitized", &["-fsanitize=thread"]) {
        Ok(sanitized) => peers.push(RunObserver {
            name: "ThreadSanitizer",
            command: Box::new(move || Command::new(&sanitized)),
            iterations: 1_000_000,
        }),
        Err(error) => eprintln!("run-overhead: no ThreadSanitizer, left out: {error}"),
    }
    let file = program.to_path_buf();
    if let Some(valgrind) = Tools::installed("valgrind") {
        peers.push(RunObserver {
            name: "Helgrind",
            command: Box::new(move || {
                let mut command = Command::new(&valgrind);
                command.args(["-q", "--tool=helgrind"]).arg(&file);
                command
            }),
            iterations: 50_000,
        });
    }
    peers
}

/// Returns the newest of LLVM's preloadable deadlock detectors.
fn dyndd() -> Option<PathBuf> {
    let versions = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let mut found: Vec<PathBuf> = versions(Path::new("/usr/lib"))
        .into_iter()
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-"))
        })
        .flat_map(|llvm| versions(&llvm.join("lib/clang")))
        .map(|version| version.join("lib/linux/libclang_rt.dyndd-x86_64.so"))
        .filter(|library| library.is_file())
        .collect();
    found.sort();
    found.pop()
}
