//! A program that says its truth and hangs, from its start until all its threads sleep.

use crate::truth::Truth;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(30);
/// The time between two looks at the threads.
const BETWEEN: Duration = Duration::from_millis(4);
/// The number of looks in a row that find all threads asleep and none to have run.
const STILL: u32 = 3;
/// The number of such looks after which it is enough that all sleep: some waits look up now and
/// then by themselves.
const RESTLESS: u32 = 60;

/// A program that hangs; it is ended with the value.
pub struct Hung {
    child: Child,
    /// The id of the process that hangs: the started one, or its child under `lockstead run`.
    pub pid: u32,
    /// What it said of itself.
    pub truth: Truth,
    /// The ids of the threads that the truth names.
    pub ids: BTreeMap<String, u32>,
}

impl Drop for Hung {
    fn drop(&mut self) {
        if self.pid != self.child.id() {
            let _ = self.kill();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Hung {
    /// Starts a program, reads what it says, and waits until all its threads sleep; `under` says
    /// that the started one is `lockstead run`, whose child hangs.
    ///
    /// # Errors
    /// If it does not start, says something else, ends, or has threads that do not come to rest.
    pub fn start(mut program: Command, under: bool) -> Result<Hung, String> {
        program.stdin(Stdio::null()).stdout(Stdio::piped());
        program.stderr(if under { Stdio::piped() } else { Stdio::null() });
        let child = program.spawn().map_err(|error| format!("it does not start: {error}"))?;
        let pid = child.id();
        let mut hung = Hung { child, pid, truth: Truth::default(), ids: BTreeMap::new() };
        let output = hung.child.stdout.take().ok_or("it has no output")?;
        let mut ended = false;
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|error| error.to_string())?;
            ended = line == "END";
            if ended {
                break;
            }
            hung.truth.line(&line)?;
        }
        if !ended {
            return Err("it ended before it hung".into());
        }
        if under {
            hung.pid = only_child(pid).ok_or("lockstead run has no child")?;
        }
        hung.settle()?;
        Ok(hung)
    }

    /// Returns the standard error of `lockstead run`, once.
    pub fn errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Ends the process that hangs, so that `lockstead run` ends by itself.
    ///
    /// # Errors
    /// If the started one does not end.
    pub fn finish(&mut self) -> Result<(), String> {
        self.kill()?;
        // The id may be that of another process from now on.
        self.pid = self.child.id();
        self.child.wait().map(drop).map_err(|error| error.to_string())
    }

    fn kill(&self) -> Result<(), String> {
        // The shell's own: small systems have no program of this name.
        let mut kill = Command::new("sh");
        let kill =
            kill.args(["-c", "kill -KILL \"$0\"", &self.pid.to_string()]).stderr(Stdio::null());
        kill.status().map(drop).map_err(|error| error.to_string())
    }

    fn settle(&mut self) -> Result<(), String> {
        let start = Instant::now();
        let (mut before, mut still, mut asleep) = (Vec::new(), 0, 0);
        loop {
            let now = threads(self.pid);
            self.find(&now);
            let known = self.truth.threads().iter().all(|name| self.ids.contains_key(*name));
            let sleeps = known && !now.is_empty() && now.iter().all(|thread| thread.asleep);
            asleep = if sleeps { asleep + 1 } else { 0 };
            still = if sleeps && now == before { still + 1 } else { 0 };
            if still >= STILL || asleep >= RESTLESS {
                return Ok(());
            }
            if now.iter().all(|thread| thread.ended) {
                return Err("it ended instead of hanging".into());
            }
            if start.elapsed() > DEADLINE {
                return Err(format!("its threads do not come to rest: {now:?}"));
            }
            before = now;
            thread::sleep(BETWEEN);
        }
    }

    fn find(&mut self, threads: &[Thread]) {
        let said = self.truth.ids.iter().map(|(name, id)| (name.clone(), *id));
        let named = threads.iter().map(|thread| (thread.name.clone(), thread.id));
        self.ids = named.chain(said).collect();
    }
}

/// A thread as the kernel shows it.
#[derive(Debug, PartialEq, Eq)]
struct Thread {
    id: u32,
    name: String,
    asleep: bool,
    ended: bool,
    /// How often it gave up the processor or lost it.
    switches: u64,
}

fn threads(pid: u32) -> Vec<Thread> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<Thread> = tasks
        .filter_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                Some(line.trim().to_owned())
            };
            let count = |name: &str| field(name)?.parse::<u64>().ok();
            Some(Thread {
                id: task.file_name().to_string_lossy().parse().ok()?,
                name: field("Name:")?,
                asleep: field("State:")?.starts_with('S'),
                ended: field("State:")?.starts_with(['Z', 'X']),
                switches: count("voluntary_ctxt_switches:")?
                    + count("nonvoluntary_ctxt_switches:")?,
            })
        })
        .collect();
    threads.sort_by_key(|thread| thread.id);
    threads
}

fn only_child(pid: u32) -> Option<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .next()?
        .parse()
        .ok()
}
