//! The tests that may kill: which there are, what each reaches, and how one is run.

use crate::mutants::about_faults::AboutFaults;
use crate::mutants::plan::{load, save};
use crate::mutants::tree::Program;
use crate::root;
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test may take at least until it is stopped.
const LEAST: Duration = Duration::from_secs(20);

/// How much longer than usually a test may take.
const LONGER: u32 = 10;

/// One test of a program.
#[derive(Clone, Debug)]
pub struct Test {
    /// The program and the test: `model/models locks::mutex::…`.
    pub name: String,
    program: Program,
    of: String,
    /// How much time of the processor it takes with no mutant chosen.
    pub usual: Duration,
    /// The numbers of mutants, as indices, that are the first of a site that the test comes to.
    pub reached: Vec<u8>,
}

/// How a run of a test ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The test passed: the mutant is not noticed.
    Passed,
    /// It failed, or crashed.
    Failed,
    /// It took too long.
    TimedOut,
}

/// Lists the tests of the programs whose names have one of the parts `wanted`, runs each with no mutant chosen, and notes what it reaches.
///
/// # Errors
/// A test that fails although no mutant is chosen.
pub fn measure(programs: &[Program], wanted: &[String]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    let about_faults = AboutFaults::read();
    for program in programs {
        let listed = Command::new(&program.executable)
            .args(["--list", "--format", "terse"])
            .current_dir(&program.folder)
            .output()
            .map_err(|error| format!("{}: {error}", program.executable.display()))?;
        for line in String::from_utf8_lossy(&listed.stdout).lines() {
            let Some(of) = line.strip_suffix(": test") else { continue };
            let name = format!("{} {of}", program.name);
            let meant = wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
            if meant && !about_faults.is(&program.name, of) {
                let test = Test {
                    name,
                    program: program.clone(),
                    of: of.into(),
                    usual: Duration::ZERO,
                    reached: Vec::new(),
                };
                tests.push(test);
            }
        }
    }
    let count = tests.len();
    let mut known = load(&measured());
    for (index, test) in tests.iter_mut().enumerate() {
        let stamp = stamp(&test.program);
        if let Some(before) = known.get(&test.name).filter(|before| before["stamp"] == stamp) {
            test.usual = Duration::from_secs_f64(before["seconds"].as_f64().unwrap_or_default());
            test.reached = unpacked(before["reached"].as_str().unwrap_or_default());
            continue;
        }
        let trace = scratch("trace");
        let _ = std::fs::remove_file(&trace);
        let (outcome, spent) = test.execute(0, Some(&trace), Duration::from_secs(600))?;
        test.usual = spent;
        if outcome != Outcome::Passed {
            return Err(format!("{} fails with no mutant chosen", test.name));
        }
        test.reached = std::fs::read(&trace).unwrap_or_default();
        let reached: String = test.reached.iter().map(|&seen| char::from(b'0' + seen)).collect();
        let seconds = test.usual.as_secs_f64();
        let entry = json!({ "stamp": stamp, "seconds": seconds, "reached": reached });
        known.insert(test.name.clone(), entry);
        if index % 20 == 19 {
            eprintln!("mutants: measured {} of {count} tests", index + 1);
            save(&measured(), known.clone())?;
        }
    }
    save(&measured(), known)?;
    tests.retain(|test| test.reached.contains(&1));
    Ok(tests)
}

fn measured() -> PathBuf {
    root().join("target/mutants/measured.json")
}

/// Returns what is another for each build of a program.
fn stamp(program: &Program) -> String {
    let of = std::fs::metadata(&program.executable);
    let written = of.as_ref().ok().and_then(|of| of.modified().ok());
    let since = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{:?} {}", since.unwrap_or_default(), of.map_or(0, |of| of.len()))
}

fn unpacked(reached: &str) -> Vec<u8> {
    reached.bytes().map(|seen| seen - b'0').collect()
}

impl Test {
    /// Runs the test with a mutant, given by its number.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn run(&self, number: u32) -> Result<Outcome, String> {
        let most = LEAST.max(self.usual * LONGER);
        self.execute(number, None, most).map(|(outcome, _)| outcome)
    }

    /// Returns the same test in another build of its program, if that is among `programs`.
    #[must_use]
    pub fn moved(&self, programs: &[Program]) -> Option<Self> {
        let program = programs.iter().find(|program| program.name == self.program.name)?;
        Some(Test { program: program.clone(), ..self.clone() })
    }

    /// Returns whether the test comes to the site whose first mutant has this number.
    #[must_use]
    pub fn reaches(&self, first: u32) -> bool {
        self.reached.get(first as usize) == Some(&1)
    }

    /// Runs the test for so much time of the processor at most. Returns how it ended, and after
    /// how much.
    fn execute(
        &self,
        number: u32,
        trace: Option<&PathBuf>,
        most: Duration,
    ) -> Result<(Outcome, Duration), String> {
        let told = scratch("told");
        let file =
            std::fs::File::create(&told).map_err(|error| format!("{}: {error}", told.display()))?;
        // A mutant may ask for memory without end.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "ulimit -v 8000000; ulimit -c 0; exec \"$@\"", "sh"])
            .arg(&self.program.executable)
            .args(["--exact", &self.of, "--test-threads", "1", "--nocapture"])
            .current_dir(&self.program.folder)
            .env("LOCKSTEAD_MUTANT", number.to_string())
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(|error| error.to_string())?)
            .stderr(file);
        if let Some(trace) = trace {
            command.env("LOCKSTEAD_MUTANT_TRACE", trace);
        }
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", self.name))?;
        let began = Instant::now();
        let mut nap = Duration::from_millis(1);
        let mut spent = Duration::ZERO;
        loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                if status.success() {
                    return Ok((Outcome::Passed, spent));
                }
                // More executions than a search may have (`FailureKind::TooMany`) are a long time, not a
                // mistake.
                let many = std::fs::read_to_string(&told).is_ok_and(|it| it.contains("TooMany,"));
                let outcome = if many { Outcome::TimedOut } else { Outcome::Failed };
                return Ok((outcome, spent));
            }
            spent = processor_time(child.id()).unwrap_or(spent);
            // Other programs may have the processor; and one that sleeps for ever uses none.
            if spent > most || began.elapsed() > most.saturating_mul(LONGER) {
                let _ = child.kill();
                let _ = child.wait();
                return Ok((Outcome::TimedOut, spent));
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        }
    }
}

/// Returns how long the threads of a test program have had a processor.
fn processor_time(process: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may have spaces; in hundredths of a second (proc(5)).
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

/// Returns a place for what one thread of this process writes.
fn scratch(what: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    root().join(format!("target/mutants/{what}-{}-{thread}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::processor_time;
    use std::time::Duration;

    #[test]
    fn the_time_of_a_program_that_computes_grows() {
        let me = std::process::id();
        let before = processor_time(me).expect("this process runs");
        while processor_time(me).expect("this process runs") < before + Duration::from_millis(20) {}
        assert_eq!(processor_time(0), None);
    }
}
