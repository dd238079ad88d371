// How the shared object is made. Not a part of the crate: included by the build
// script of the command, which embeds the result, and by this crate's tests.
//
// A crate's type is the same for all who depend on it, and as a `cdylib` this
// one would need a panic handler that its tests already have; so the object is
// built by a cargo of its own, in a target directory of its own.

/// The folder, in the target directory of the repository, with a target directory for each object.
const IMAGES: &str = "preload-images";

/// Builds the shared object for `target` with the packages of `workspace`, as
/// the one that checks or the one that only observes, and returns its path. The
/// lock file of a `locked` workspace stays as it is.
///
/// # Errors
/// What cargo said.
fn build_shared_object(
    cargo: &std::ffi::OsStr,
    workspace: &std::path::Path,
    target_dir: &std::path::Path,
    target: &str,
    checks: bool,
    locked: bool,
) -> Result<std::path::PathBuf, String> {
    use std::process::{Command, Stdio};

    let run = |offline: bool| {
        let mut command = Command::new(cargo);
        command.current_dir(workspace);
        command.args(["rustc", "--package", "lockstead-preload", "--lib"]);
        if locked {
            command.arg("--locked");
        }
        let features = if checks { "shared-object,check" } else { "shared-object" };
        command.args(["--crate-type", "cdylib", "--features", features]);
        command.args(["--profile", "preload", "--target", target, "--target-dir"]).arg(target_dir);
        if offline {
            command.arg("--offline");
        }
        command.args([
            "--",
            // Neither start-up code nor finalisers of the C compiler's.
            "-Clink-arg=-nostartfiles",
            // Its constructor runs before all others, and its few references to
            // libc are bound before that, not on the first call.
            "-Clink-arg=-Wl,-z,initfirst,-z,now",
        ]);
        // What changes the outer build is not for this one: lints, coverage and
        // sanitizers would put calls into it that its process cannot answer.
        for variable in ["RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS"] {
            command.env_remove(variable);
        }
        // Debuggers and profilers must find their way through its frames.
        let mut flags = vec!["-Cforce-unwind-tables=yes"];
        if target.starts_with("aarch64") {
            // Atomics by functions of the compiler's choose their instructions when the library is loaded,
            // by a function of libc that other C libraries may lack.
            flags.push("-Ctarget-feature=-outline-atomics");
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        command.stdin(Stdio::null()).output()
    };
    // Without the network first: the outer cargo may have been told to do
    // without, which it does not pass on, and mostly nothing is missing.
    let mut output = run(true);
    if let Ok(failed) = &output
        && !failed.status.success()
        && String::from_utf8_lossy(&failed.stderr).contains("--offline")
    {
        output = run(false);
    }
    let command = cargo.to_string_lossy();
    let output = output.map_err(|error| format!("cannot run {command}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{command} rustc --package lockstead-preload: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(target_dir.join(target).join("preload").join("liblockstead_preload.so"))
}
