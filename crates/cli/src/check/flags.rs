//! The flags of `run` that are about checking, and what they come to.

use crate::report::ReportFlags;
use clap::Args;
use lockstead_inspect::check::suppress::Suppressions;
use lockstead_render::failure::Failure;
use lockstead_render::files::can_write;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// What to look for, what to leave out, and where to write it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Checking")]
pub(crate) struct CheckFlags {
    /// Check the order in which locks are taken, and the rules of their use; exit status 3 if
    /// anything was found
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what cannot hurt as it was seen too, and count it as found: locks in both orders by
    /// one thread, or under a common lock
    #[arg(long)]
    pub(crate) strict: bool,
    /// Report calls that may block (sleep, poll, fsync, connect, ...) made under a lock
    #[arg(long)]
    pub(crate) sleepy: bool,
    /// Leave out the findings that this file lists; may be given again (`lockstead check
    /// --suggest` writes one)
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// Count what well-known programs do on purpose as well: leave out nothing by the list that
    /// comes with lockstead
    #[arg(long)]
    pub(crate) no_shipped_suppressions: bool,
    /// Write what is reported while the program runs to a file as well, as text
    #[arg(long, value_name = "FILE")]
    pub(crate) report_file: Option<PathBuf>,
    /// Write the findings to a file in SARIF 2.1.0, for code hosts and editors
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
}

impl CheckFlags {
    /// Says before the program runs what cannot be done.
    ///
    /// # Errors
    /// [`Failure::Usage`], with the option.
    pub(crate) fn check(&self, report: &ReportFlags) -> Result<(), Failure> {
        let needing = [
            ("--strict", self.strict),
            ("--sleepy", self.sleepy),
            ("--suppressions", !self.suppressions.is_empty()),
            ("--no-shipped-suppressions", self.no_shipped_suppressions),
            ("--sarif", self.sarif.is_some()),
        ];
        if let Some((option, _)) = needing.iter().find(|(_, given)| *given && !self.check) {
            return Err(Failure::Usage(format!(
                "'{option}' is about what --check finds; add --check"
            )));
        }
        for (option, file) in [("--report-file", &self.report_file), ("--sarif", &self.sarif)] {
            let Some(file) = file else { continue };
            if file.as_os_str() == OsStr::new("-") {
                let why = "standard output belongs to the program; name a file";
                return Err(Failure::option(option, "-", why));
            }
            can_write(file).map_err(|why| Failure::option(option, file.display(), why))?;
        }
        let all = [
            ("--json", &report.json),
            ("--html", &report.html),
            ("--report-file", &self.report_file),
            ("--sarif", &self.sarif),
        ];
        for (at, (option, file)) in all.iter().enumerate() {
            let same = all[..at].iter().find(|(_, other)| file.is_some() && other == file);
            if let (Some((other, _)), Some(file)) = (same, file) {
                let why = format!("{other} writes this file");
                return Err(Failure::option(option, file.display(), why));
            }
        }
        Ok(())
    }

    /// Empties the report file, to be written to from the beginning.
    ///
    /// # Errors
    /// [`Failure::Usage`], with the option.
    pub(crate) fn open_report_file(&self) -> Result<Option<File>, Failure> {
        let Some(file) = &self.report_file else { return Ok(None) };
        let opened = File::create(file);
        opened.map(Some).map_err(|e| Failure::option("--report-file", file.display(), e))
    }

    /// Adds to the report file at the end.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn append(&self, text: &str) -> Result<(), Failure> {
        let Some(file) = &self.report_file else { return Ok(()) };
        let opened = OpenOptions::new().append(true).open(file);
        opened.and_then(|mut open| open.write_all(text.as_bytes())).map_err(|error| {
            Failure::Run(format!("cannot write the report to {}: {error}", file.display()))
        })
    }

    /// Reads the files of suppressions.
    ///
    /// # Errors
    /// [`Failure::Usage`], with file and line.
    pub(crate) fn suppressed(&self) -> Result<Suppressions, Failure> {
        read_suppressions(&self.suppressions, !self.no_shipped_suppressions)
    }
}

/// What is left out of all findings, for the reason that each block gives.
const SHIPPED: &str = include_str!("shipped.toml");
/// The name of that file in places.
pub(crate) const SHIPPED_NAME: &str = "the shipped list";

/// Reads files of suppressions; with the shipped ones behind them, if these are wanted.
///
/// # Errors
/// [`Failure::Usage`], with file and line.
pub(crate) fn read_suppressions(files: &[PathBuf], shipped: bool) -> Result<Suppressions, Failure> {
    let mut all = Suppressions::default();
    for file in files {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::option("--suppressions", file.display(), error))?;
        all.add(&file.display().to_string(), &text).map_err(Failure::Usage)?;
    }
    if shipped {
        all.add_shipped(SHIPPED_NAME, SHIPPED).map_err(Failure::Usage)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_inspect::check::model::{
        CycleKind, Details, HoldMode, LockIdentity, LockOrder, OrderStep, RuleViolation,
        ThreadIdentity,
    };
    use lockstead_inspect::stack::{Frame, Stack, StackEnd};

    #[test]
    fn each_shipped_block_says_what_it_leaves_out_and_why() {
        assert!(read_suppressions(&[], true).is_ok());
        let blocks = SHIPPED.split("\n[[suppress]]\n").skip(1);
        let mut count = 0;
        for block in blocks {
            for key in ["rule = ", "locks = [\"mutex", "within = [", "reason = \""] {
                assert!(block.contains(key), "{key}: {block}");
            }
            assert!(block.contains("at = [") || block.contains("message = "), "{block}");
            count += 1;
        }
        assert_eq!(count, SHIPPED.matches("[[suppress]]").count());
    }

    /// Returns whether the list leaves out an end of a thread, or of the process, with a lock of
    /// this class that was acquired by these functions, each with its file.
    fn is_left_out(rule: &str, thread: &str, class: &str, acquired: &[(&str, &str)]) -> bool {
        let frame = |&(function, module): &(&str, &str)| Frame {
            function: (!function.is_empty()).then(|| function.into()),
            module: Some(format!("/usr/lib/{module}")),
            ..Frame::default()
        };
        let frames = acquired.iter().map(frame).collect();
        let earlier = Some(Stack { frames, end: StackEnd::Bottom });
        let lock = LockIdentity { class: class.into(), ..LockIdentity::default() };
        let violation = Some(RuleViolation { lock, earlier, ..RuleViolation::default() });
        let details = Details { rule: Some(rule.into()), violation, ..Details::default() };
        let text = format!("lockstead: RULE: x\n  in it (pid 1)\n  thread \"{thread}\" (tid 7)\n");
        let mut all = read_suppressions(&[], true).unwrap();
        all.fit(&details, &text).is_some()
    }

    /// Returns whether the list leaves out an inversion of so many locks of this stripped program.
    fn is_cycle_left_out(locks: usize, program: &str) -> bool {
        let frame = Frame { module: Some(format!("/usr/sbin/{program}")), ..Frame::default() };
        let stack = Some(Stack { frames: vec![frame], end: StackEnd::Bottom });
        let lock = |number: usize| LockIdentity {
            name: format!("mutex from {program}+0xc0f5c1, #{number}"),
            class: format!("mutex from {program}+0xc0f5c1, #{number}"),
            ..LockIdentity::default()
        };
        let step = |at: usize| OrderStep {
            thread: ThreadIdentity::default(),
            holds: lock(at),
            holds_how: HoldMode::Write,
            tried: false,
            acquired: stack.clone(),
            asks: lock((at + 1) % locks),
            asks_how: HoldMode::Write,
            timed: false,
            asked: stack.clone(),
            gates: Vec::new(),
            alone: false,
        };
        let order = Some(LockOrder {
            cycle: CycleKind::Locks,
            signal: None,
            handler: None,
            excuse: None,
            gate: None,
            steps: (0..locks).map(step).collect(),
        });
        let rule = Some("lock-order-inversion".into());
        let details = Details { rule, order, ..Details::default() };
        let text =
            format!("lockstead: POTENTIAL: lock order inversion of {locks} locks\n  in it\n");
        read_suppressions(&[], true).unwrap().fit(&details, &text).is_some()
    }

    #[test]
    fn the_shipped_list_hides_no_fault_of_a_program_s_own() {
        const THREAD: &str = "thread-exit-while-holding";
        const PROCESS: &str = "process-exit-while-holding";
        const JVM: &str = "libjvm.so";
        let made = "mutexes from mutex_init()+0xb28 in libjvm.so";
        let stripped = "mutexes from libjvm.so+0xc375d8";
        let begin = ("SafepointSynchronize::begin()", JVM);
        let run = ("VMThread::run()", JVM);
        let nameless = ("", JVM);
        let libc = ("", "libc.so.6");
        for rule in [THREAD, PROCESS] {
            assert!(is_left_out(rule, "VM Thread", made, &[begin, run, libc]));
            assert!(is_left_out(rule, "VM Thread", stripped, &[nameless, libc]));
        }
        let agent = ("on_garbage_collection", "libagent.so");
        for (rule, thread, class, acquired) in [
            ("recursion", "VM Thread", made, &[begin, run][..]),
            (THREAD, "worker", made, &[begin, run]),
            (THREAD, "VM Thread", "mutexes from pool_new() at pool.c:3", &[begin, run]),
            (THREAD, "VM Thread", made, &[("Monitor::wait()", JVM), run]),
            (THREAD, "VM Thread", made, &[begin, agent, run]),
            (THREAD, "worker", stripped, &[nameless]),
            (THREAD, "VM Thread", stripped, &[nameless, agent]),
        ] {
            assert!(!is_left_out(rule, thread, class, acquired), "{thread} {class} {acquired:?}");
        }
        assert!(is_cycle_left_out(8, "mariadbd"));
        assert!(!is_cycle_left_out(2, "mariadbd") && !is_cycle_left_out(8, "bank"));
        const QEMU: &str = "qemu-system-x86_64";
        let big = "mutex from qemu_mutex_init+0xb in qemu-system-x86_64, #11";
        let take = ("qemu_mutex_lock_iothread_impl", QEMU);
        for take in [take, ("bql_lock_impl", QEMU)] {
            assert!(is_left_out(PROCESS, "qemu", big, &[take, ("vm_shutdown", QEMU), libc]));
        }
        for (rule, acquired) in [
            (THREAD, &[take, ("vm_shutdown", QEMU)][..]),
            (PROCESS, &[("bdrv_lock", QEMU), ("vm_shutdown", QEMU)]),
            (PROCESS, &[take, ("plugin_exit", "plugin.so"), ("vm_shutdown", QEMU)]),
        ] {
            assert!(!is_left_out(rule, "qemu", big, acquired), "{acquired:?}");
        }
    }
}
