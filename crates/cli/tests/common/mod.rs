//! Running the command and looking at what it says and leaves.

#![allow(dead_code, reason = "each file of tests uses its part")]

use serde_json::Value;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The program of the package that includes this file.
const PROGRAM: &str =
    match (option_env!("CARGO_BIN_EXE_lockstead"), option_env!("CARGO_BIN_EXE_lockstead-bench")) {
        (Some(program), _) | (None, Some(program)) => program,
        (None, None) => panic!("the package has neither program"),
    };

/// No run of these tests takes longer, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a run of the command came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the command with these arguments, not yet started.
pub(crate) fn lockstead(args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    // As a user starts it, not cargo, under which the command has cargo build lockstead-bench.
    command.env_remove("CARGO");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a program that this process has just written. A child that another test has forked
/// meanwhile may have it open for writing until it becomes its own program.
pub(crate) fn start_copy(command: &mut Command) -> Child {
    let end = Instant::now() + DEADLINE;
    loop {
        match command.spawn() {
            Err(busy) if busy.raw_os_error() == Some(libc::ETXTBSY) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            started => return started.expect("the copy starts"),
        }
    }
}

/// Runs to the end.
pub(crate) fn run(args: &[&str]) -> Outcome {
    finish(lockstead(args).spawn().expect("the command starts"))
}

/// Runs to the end and expects success.
pub(crate) fn succeed(args: &[&str]) -> Outcome {
    let outcome = run(args);
    assert_eq!(outcome.status, 0, "{args:?}: {outcome:?}");
    outcome
}

/// Waits for the end, at most until the deadline.
pub(crate) fn finish(mut child: Child) -> Outcome {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_string(&mut text).expect("the command writes text");
            }
            text
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let status = wait(&mut child);
    Outcome {
        status: status.code().unwrap_or_else(|| panic!("killed: {status}")),
        stdout: stdout.join().expect("the reader ends"),
        stderr: stderr.join().expect("the reader ends"),
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if start.elapsed() > DEADLINE {
            child.kill().expect("a child can be killed");
            panic!("the command did not end within {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The call of the kernel in which a thread sleeps that has called `pause`.
pub(crate) const PAUSE: &str = if cfg!(target_arch = "x86_64") { "pause" } else { "ppoll" };

/// Returns the texts of a picture, after checking that all lie on the sheet.
pub(crate) fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    let size = |name| root.attribute(name).expect(name).parse::<f64>().expect("a number");
    let (width, height) = (size("width"), size("height"));
    let texts = root.descendants().filter(|node| node.tag_name().name() == "text");
    texts
        .map(|node| {
            let at = |name| node.attribute(name).expect(name).parse::<f64>().expect("a number");
            assert!((0.0..width).contains(&at("x")) && (0.0..height).contains(&at("y")));
            node.text().unwrap_or_default().trim().to_owned()
        })
        .collect()
}

/// Returns what lies in a folder.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .expect("a readable folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}

/// Returns a folder as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}

/// Checks that docs/json.md names every field of a report, however deep.
pub(crate) fn documented(report: &Value) {
    // Reports have thousands of fields: each name is looked up, not searched for.
    static NAMES: LazyLock<HashSet<&str>> =
        LazyLock::new(|| include_str!("../../../../docs/json.md").split('`').collect());
    match report {
        Value::Object(fields) => {
            for (name, value) in fields {
                assert!(NAMES.contains(&**name), "docs/json.md lacks {name}");
                documented(value);
            }
        }
        Value::Array(items) => items.iter().for_each(documented),
        _ => {}
    }
}
