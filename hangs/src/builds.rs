//! The programs, built in several ways: how far optimised, with symbols or stripped, with unwinding
//! or without.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A way to build a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// What the tables call it.
    pub name: &'static str,
    optimised: bool,
    stripped: bool,
    aborts: bool,
    /// It is built with debug information.
    debug: bool,
}

impl Way {
    const fn new(name: &'static str, optimised: bool, stripped: bool, aborts: bool) -> Way {
        Way { name, optimised, stripped, aborts, debug: false }
    }

    const fn with_debug(self) -> Way {
        Way { debug: true, ..self }
    }
}

/// All ways in which compiled programs are built.
pub const WAYS: [Way; 7] = [
    Way::new("O0", false, false, false),
    Way::new("O0 stripped", false, true, false),
    Way::new("O3", true, false, false),
    Way::new("O3 stripped", true, true, false),
    // Without unwinding, stripped: no landing pads.
    Way::new("O3 stripped abort", true, true, true),
    // With the names of variables and their types.
    Way::new("O3 debug", true, false, false).with_debug(),
    Way::new("O3 debug abort", true, false, true).with_debug(),
];

/// The way in which a program is shipped.
pub const SHIPPED: Way = WAYS[3];

/// A program that hangs in one of several ways, its cases.
#[derive(Clone, Debug)]
pub struct Program {
    /// The language and the locks.
    pub family: String,
    /// How it was built; for an interpreted one the version of the interpreter.
    pub way: String,
    /// The words that start it, without the case.
    pub command: Vec<OsString>,
}

impl Program {
    /// Returns what starts the program with one of its cases.
    #[must_use]
    pub fn case(&self, case: &str) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).arg(case);
        command
    }

    /// Returns the names of the cases.
    ///
    /// # Errors
    /// If the program does not start.
    pub fn cases(&self) -> Result<Vec<String>, String> {
        let output = self.case("--list").output().map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }
}

/// Returns the folder of the programs' sources.
#[must_use]
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// What was built, and why some was not.
#[derive(Debug)]
pub struct Builds {
    folder: PathBuf,
    /// The programs that were built.
    pub programs: Vec<Program>,
    /// The reasons why programs are missing.
    pub skipped: Vec<String>,
}

impl Builds {
    /// Returns no programs, which are to be built in the folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Builds {
        Builds { folder, programs: Vec::new(), skipped: Vec::new() }
    }

    /// Builds what has std's locks, which needs the Rust compiler alone.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn std(&mut self, way: Way) -> Result<(), String> {
        self.rustc("Rust std", "rust/std.rs", way, &[])
    }

    /// Builds what mixes std's locks with pthread's.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn pthread(&mut self, way: Way) -> Result<(), String> {
        self.rustc("Rust and pthread", "mixed/pthread.rs", way, &[])
    }

    fn rustc(
        &mut self,
        family: &str,
        source: &str,
        way: Way,
        more: &[String],
    ) -> Result<(), String> {
        let mut command = Command::new("rustc");
        command.args(["--edition", "2024", "-C"]);
        command.arg(if way.debug { "debuginfo=2" } else { "debuginfo=0" }).arg("-C");
        command.arg(if way.optimised { "opt-level=3" } else { "opt-level=0" });
        if way.aborts {
            command.args(["-C", "panic=abort"]);
        }
        let to = self.place(family, way);
        command.args(more).arg("-o").arg(&to).arg(sources().join(source));
        self.optional(family, way, command, to)
    }

    /// Builds what needs crates, by cargo and profiles of its own.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn crates(&mut self, way: Way) -> Result<(), String> {
        let profile = match (way.optimised, way.aborts, way.debug) {
            (false, ..) => "hangs-0",
            (true, false, false) => "hangs-3",
            (true, true, false) => "hangs-3-abort",
            (true, false, true) => "hangs-3-debug",
            (true, true, true) => "hangs-3-abort-debug",
        };
        let set = |name: &str, value: &str| format!("profile.{profile}.{name}={value}");
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args([
            "build",
            "--quiet",
            "--package",
            "lockstead-hangs",
            "--features",
            "programs",
        ]);
        command.args(["--profile", profile, "--config", &set("inherits", "\"release\"")]);
        command.args(["--config", &set("opt-level", if way.optimised { "3" } else { "0" })]);
        command.args(["--config", &set("strip", "\"none\"")]);
        command.args(["--config", &set("debug", if way.debug { "2" } else { "0" })]);
        command
            .args(["--config", &set("panic", if way.aborts { "\"abort\"" } else { "\"unwind\"" })]);
        for binary in ["hang-parking_lot", "hang-lockstead", "hang-three"] {
            command.args(["--bin", binary]);
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
        run(command.current_dir(root))?;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        for (family, binary) in [
            ("Rust parking_lot", "hang-parking_lot"),
            ("Rust lockstead", "hang-lockstead"),
            ("Rust, three crates", "hang-three"),
        ] {
            let to = self.place(family, way);
            fs::copy(target.join(profile).join(binary), &to).map_err(|error| error.to_string())?;
            self.finished(family, way, to)?;
        }
        Ok(())
    }

    /// Builds what needs a C compiler alone.
    ///
    /// # Errors
    /// If it does not compile.
    pub fn c(&mut self, way: Way) -> Result<(), String> {
        let mut command = compiler("cc", way);
        command.arg(sources().join("c/cases.c"));
        let to = self.place("C", way);
        command.arg("-o").arg(&to);
        self.optional("C", way, command, to)
    }

    /// Builds what needs a C++ compiler, and abseil where that is.
    ///
    /// # Errors
    /// If a program does not compile.
    pub fn cpp(&mut self, way: Way) -> Result<(), String> {
        self.cpp_but(way, |_| false)
    }

    /// Does as [`cpp`](Self::cpp), without the families of which `leaves_out` says so.
    ///
    /// # Errors
    /// As there.
    pub fn cpp_but(&mut self, way: Way, leaves_out: fn(&str) -> bool) -> Result<(), String> {
        if way.aborts {
            // The programs throw.
            return Ok(());
        }
        let abseil = Command::new("pkg-config")
            .args(["--cflags", "--libs", "absl_synchronization"])
            .output()
            .ok()
            .filter(|output| output.status.success());
        let abseil = abseil.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        for (family, define) in [
            ("C++ std", "-DFAMILY_STD"),
            ("C++ abseil", "-DFAMILY_ABSEIL"),
            ("C++20 atomic wait", "-DFAMILY_ATOMIC"),
            ("C++20 semaphore", "-DFAMILY_SEMAPHORE"),
        ] {
            if leaves_out(family) {
                continue;
            }
            let to = self.place(family, way);
            let mut command = compiler("c++", way);
            command.args(["-std=c++20", define, "-o"]).arg(&to);
            command.args(
                ["cases.cpp", "more.cpp", "units.cpp"].map(|file| sources().join("cpp").join(file)),
            );
            if family == "C++ abseil" {
                let Some(options) = &abseil else {
                    self.skip("C++ abseil: pkg-config does not know absl_synchronization");
                    continue;
                };
                command.args(options.split_whitespace());
            }
            self.optional(family, way, command, to)?;
        }
        Ok(())
    }

    /// Builds what mixes languages: Rust with C++, and a library in C for Python.
    ///
    /// # Errors
    /// If a program does not compile.
    pub fn mixed(&mut self, way: Way) -> Result<(), String> {
        let object = self.folder.join(format!("mixed-{}.o", file_name(way.name)));
        let mut command = compiler("c++", way);
        command.args(["-std=c++20", "-c", "-o"]).arg(&object).arg(sources().join("mixed/cpp.cpp"));
        if !available("c++") {
            self.skip("Rust and C++: no C++ compiler");
            return Ok(());
        }
        run(&mut command)?;
        let more = [format!("link-arg={}", object.display()), "link-arg=-lstdc++".into()];
        let more: Vec<String> = more.into_iter().flat_map(|option| ["-C".into(), option]).collect();
        self.rustc("Rust and C++", "mixed/cpp.rs", way, &more)
    }

    /// Finds the interpreters of Python, each with the cases in Python and those with a library in C.
    ///
    /// # Errors
    /// If the library does not compile.
    pub fn python(&mut self) -> Result<(), String> {
        let library = self.folder.join("libmixed.so");
        if available("cc") {
            let mut command = compiler("cc", SHIPPED);
            command.args(["-shared", "-fPIC", "-o"]).arg(&library);
            run(command.arg(sources().join("mixed/native.c")))?;
        } else {
            self.skip("Python and C: no C compiler");
        }
        let found = pythons();
        if found.is_empty() {
            self.skip("Python: no interpreter of 3.9 or newer");
        }
        for (version, interpreter) in found {
            let script = |name: &str| sources().join(name).into_os_string();
            self.programs.push(Program {
                family: "Python".into(),
                way: version.clone(),
                command: vec![interpreter.clone().into(), script("python/cases.py")],
            });
            if library.exists() {
                self.programs.push(Program {
                    family: "Python and C".into(),
                    way: version,
                    command: vec![
                        interpreter.into(),
                        script("mixed/native.py"),
                        library.clone().into(),
                    ],
                });
            }
        }
        Ok(())
    }

    fn place(&self, family: &str, way: Way) -> PathBuf {
        self.folder.join(file_name(&format!("{family} {}", way.name)))
    }

    fn skip(&mut self, reason: &str) {
        if !self.skipped.iter().any(|known| known == reason) {
            self.skipped.push(reason.into());
        }
    }

    fn optional(
        &mut self,
        family: &str,
        way: Way,
        mut command: Command,
        to: PathBuf,
    ) -> Result<(), String> {
        let compiler = command.get_program().to_string_lossy().into_owned();
        if !available(&compiler) {
            self.skip(&format!("{family}: no {compiler}"));
            return Ok(());
        }
        if !is_fresh(&to) {
            run(&mut command)?;
        }
        self.finished(family, way, to)
    }

    fn finished(&mut self, family: &str, way: Way, to: PathBuf) -> Result<(), String> {
        if way.stripped
            && let Err(error) = run(Command::new("strip").arg(&to))
        {
            self.skip(&format!("{family}, stripped: {error}"));
            return Ok(());
        }
        self.programs.push(Program {
            family: family.into(),
            way: way.name.into(),
            command: vec![to.into()],
        });
        Ok(())
    }
}

/// Returns whether a program is younger than all sources, and so need not be built again.
fn is_fresh(program: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let Some(built) = changed(program) else { return false };
    let mut open = vec![sources()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if changed(&path).is_none_or(|changed| changed >= built) {
                return false;
            }
        }
    }
    true
}

fn file_name(words: &str) -> String {
    words.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

fn compiler(name: &str, way: Way) -> Command {
    let mut command = Command::new(name);
    command.args(["-pthread", if way.optimised { "-O2" } else { "-O0" }]);
    command.arg(if way.aborts { "-fno-exceptions" } else { "-fexceptions" });
    if way.debug {
        command.arg("-g");
    }
    command
}

fn available(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns the interpreters that are found by name or where pyenv puts them, one for each version.
fn pythons() -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")));
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let installed = versions.into_iter().flatten().flatten().map(|v| v.path().join("bin/python3"));
    let named = (9..=14).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let usual = [PathBuf::from("python3"), PathBuf::from("/usr/bin/python3")];
    for python in installed.chain(named).chain(usual) {
        let script = "import sys; print('%d.%d' % sys.version_info[:2])";
        let Ok(output) = Command::new(&python).args(["-c", script]).output() else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let minor = version.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
        if minor.is_some_and(|minor| minor >= 9)
            && !found.iter().any(|(known, _)| *known == version)
        {
            found.push((version, python));
        }
    }
    found.sort_by_key(|(version, _)| version[2..].parse::<u32>().unwrap_or_default());
    found
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}:\n{}", String::from_utf8_lossy(&output.stderr)))
}
