//! The snapshot as text: cycles first, then the other threads that wait, then
//! the holders that do not.

use super::enders::enders;
use crate::cycle_text::{self, ShownFrames};
use crate::finding_text::thread_text;
use anstyle::{AnsiColor, Style};
use lockstead_inspect::proc::asleep::{Asleep, WaitEnds};
use lockstead_inspect::snapshot::model::{
    CycleVerdict, JudgedCycle, LockHeld, LockHolder, Snapshot, SnapshotLock, SnapshotSource,
    SnapshotThread, ThreadActivity, ThreadWait, WaitEnd, WaitTarget,
};
use lockstead_inspect::stack::{Frame, Stack};
use lockstead_inspect::symbols::program_frames;
use lockstead_render::words::{brief, clean};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const ALARM: Style = AnsiColor::Red.on_default().bold();
pub(super) const HEAD: Style = Style::new().bold();

/// The most threads of a group that are listed by name; the rest is counted.
pub(super) const LISTED: usize = 8;

/// Returns the whole text. With `everything` it has threads that neither wait nor hold, every
/// thread of a group and every frame.
pub(super) fn render(found: &Snapshot, everything: bool) -> String {
    whole(DumpText { found, everything, threads: everything, out: String::new() })
}

/// Returns the text that has all threads; with `everything` all frames and all members of groups,
/// too.
pub(crate) fn all_threads(found: &Snapshot, everything: bool) -> String {
    whole(DumpText { found, everything, threads: true, out: String::new() })
}

fn whole(mut text: DumpText<'_>) -> String {
    let found = text.found;
    text.headline();
    let mut shown = BTreeSet::new();
    for cycle in &found.cycles {
        text.cycle(cycle);
        shown.extend(cycle.threads.iter().copied());
    }
    text.waits(&mut shown);
    text.holders(&mut shown);
    text.others(&shown);
    text.out
}

/// Returns one thread that waits, as in the whole text.
pub(crate) fn one_waiter(found: &Snapshot, tid: u32) -> String {
    let mut text = DumpText { found, everything: false, threads: false, out: String::new() };
    if let Some(thread) = found.thread(tid) {
        match thread.kernel_lock() {
            Some(lock) => text.kernel_waiter(thread, lock),
            None => text.waiter(&[tid]),
        }
    }
    text.out
}

/// Returns one thread that waits for no lock, as in the whole text.
pub(crate) fn one_sleeper(found: &Snapshot, tid: u32) -> String {
    let mut text = DumpText { found, everything: false, threads: false, out: String::new() };
    let is_sleeper =
        |thread: &&SnapshotThread| thread.wait().is_none() && thread.kernel_lock().is_none();
    if let Some(thread) = found.thread(tid).filter(is_sleeper) {
        text.sleeper(thread);
    }
    text.out
}

pub(super) struct DumpText<'a> {
    pub(super) found: &'a Snapshot,
    /// All frames are shown, and all members of groups.
    pub(super) everything: bool,
    /// Threads are shown that neither wait nor hold.
    threads: bool,
    pub(super) out: String,
}

impl DumpText<'_> {
    pub(super) fn line(&mut self, indent: usize, line: &str) {
        self.out += &format!("{:indent$}{line}\n", "");
    }

    fn headline(&mut self) {
        let process = &self.found.process;
        let waits =
            |thread: &&SnapshotThread| thread.wait().is_some() || thread.kernel_lock().is_some();
        let waiting = self.found.threads.iter().filter(waits).count();
        let own = process.own_pid.map(|own| format!(", {own} to itself")).unwrap_or_default();
        let from_memory = self.found.source == SnapshotSource::Memory;
        let deadlock = if self.found.is_deadlocked() {
            format!("{waiting} wait, DEADLOCK")
        } else if self.found.has(CycleVerdict::Probable) {
            format!("{waiting} wait, DEADLOCK, probably")
        } else if from_memory && !self.found.complete {
            "what they wait for cannot be read".to_owned()
        } else {
            format!("{waiting} wait, no deadlock found")
        };
        let line = format!(
            "process {} ({}{own}): {}, {deadlock}",
            process.pid,
            clean(&process.name),
            count(self.found.threads.len(), "thread"),
        );
        self.line(0, &line);
    }

    fn cycle(&mut self, cycle: &JudgedCycle) {
        let who = cycle_text::who(cycle.threads.len());
        let line = match cycle.verdict {
            CycleVerdict::Deadlock => format!("{ALARM}lockstead: DEADLOCK{ALARM:#}: {who}"),
            CycleVerdict::Probable => {
                format!("{ALARM}lockstead: DEADLOCK, probably{ALARM:#}: {who}")
            }
            CycleVerdict::Timed => {
                format!("{HEAD}a cycle, but no deadlock{HEAD:#}: {who}, until a wait times out")
            }
            CycleVerdict::Unconfirmed => format!(
                "{HEAD}a cycle, not confirmed{HEAD:#}: {who}, but ran while they were looked at"
            ),
        };
        self.out += "\n";
        self.line(0, &line);
        let shown = match self.everything {
            true => ShownFrames::All,
            false => ShownFrames::of(cycle.threads.len()),
        };
        cycle_text::members(&mut self.out, &self.found.parties(cycle), shown);
    }

    /// Adds threads that wait and are in no cycle, grouped where they wait for the same in the same
    /// place.
    fn waits(&mut self, shown: &mut BTreeSet<u32>) {
        let found = self.found;
        let mut groups: Vec<(&ThreadWait, Vec<u64>, Vec<u32>)> = Vec::new();
        for thread in &found.threads {
            let Some(wait) = thread.wait() else { continue };
            if !shown.insert(thread.tid) {
                continue;
            }
            let place = thread.stack.as_ref().map(addresses).unwrap_or_default();
            let same = groups.iter_mut().find(|(other, at, _)| {
                wait.until.is_none()
                    && other.until.is_none()
                    && other.target == wait.target
                    && other.shared == wait.shared
                    && *at == place
            });
            match same {
                Some((.., tids)) => tids.push(thread.tid),
                None => groups.push((wait, place, vec![thread.tid])),
            }
        }
        groups.sort_by_key(|(wait, ..)| self.rank(wait));
        let in_kernel = found.threads.iter().filter_map(|thread| {
            let lock = thread.kernel_lock()?;
            shown.insert(thread.tid).then_some((thread, lock))
        });
        let in_kernel: Vec<_> = in_kernel.collect();
        if !groups.is_empty() || !in_kernel.is_empty() {
            let title = if self.found.cycles.is_empty() { "waiting" } else { "also waiting" };
            self.out += "\n";
            self.line(0, &format!("{HEAD}{title}{HEAD:#}"));
        }
        for (thread, lock) in in_kernel {
            self.kernel_waiter(thread, lock);
        }
        for (.., tids) in groups {
            self.waiter(&tids);
        }
    }

    /// Adds a thread that waits for a lock of a file, or a semaphore of System V.
    fn kernel_waiter(&mut self, thread: &SnapshotThread, on: &Asleep) {
        let who = self.named(thread.tid);
        let limit = if on.timed { " (with a time limit)" } else { "" };
        let what = on.what.as_deref().map(clean).unwrap_or_default();
        self.line(2, &format!("{who} waits for {what}{limit}"));
        self.enders(on);
        self.stack(thread);
    }

    /// Adds who can end a wait in the kernel.
    fn enders(&mut self, on: &Asleep) {
        for line in enders(on, self.found.process.pid) {
            self.line(4, &line);
        }
    }

    /// Ranks a wait: those for what somebody holds come first, those for what nobody does last.
    fn rank(&self, wait: &ThreadWait) -> u8 {
        match &wait.target {
            WaitTarget::Lock { address } => {
                match self.found.lock(*address).map(|lock| &lock.held) {
                    Some(
                        LockHeld::By { .. } | LockHeld::Elsewhere { .. } | LockHeld::Readers { .. },
                    ) => 0,
                    Some(LockHeld::Unknown { .. }) | None => 2,
                    Some(LockHeld::Never) => 3,
                }
            }
            WaitTarget::Join { .. } => 1,
            WaitTarget::Unknown { .. } => 2,
        }
    }

    fn waiter(&mut self, tids: &[u32]) {
        let found = self.found;
        let Some(thread) = tids.first().and_then(|&tid| found.thread(tid)) else { return };
        let Some(wait) = thread.wait() else { return };
        let who = self.who(tids);
        let verb = if tids.len() == 1 { "waits" } else { "wait" };
        let until = self.since(tids) + &wait.until.as_ref().map(limit).unwrap_or_default();
        match &wait.target {
            WaitTarget::Join { thread } => {
                let joined = self.named(*thread);
                self.line(2, &format!("{who} {verb} for the end of {joined}{until}"));
            }
            WaitTarget::Unknown { why } => {
                self.line(2, &format!("{who} {verb} for what cannot be told: {why}{until}"));
            }
            WaitTarget::Lock { address } => match found.lock(*address) {
                Some(lock) => {
                    let mode = match (lock.kind.as_str(), wait.shared) {
                        ("rwlock", true) => " to read",
                        ("rwlock", false) => " to write",
                        _ => "",
                    };
                    let name = title(lock);
                    self.line(2, &format!("{who} {verb} for {name}{mode}{until}"));
                    self.held(lock);
                }
                None => self.line(2, &format!("{who} {verb} for a lock at {address:#x}{until}")),
            },
        }
        // Beside the stacks of the holders it needs a word.
        if wait.waited_ns.is_some() && thread.stack.is_some() {
            self.line(4, "waits at");
        }
        self.stack(thread);
    }

    fn others(&mut self, shown: &BTreeSet<u32>) {
        let found = self.found;
        let rest: Vec<&SnapshotThread> =
            found.threads.iter().filter(|thread| !shown.contains(&thread.tid)).collect();
        if rest.is_empty() {
            return;
        }
        self.out += "\n";
        // Where nothing is known of any thread, names are all there is.
        let nameless =
            found.source == SnapshotSource::Ledger || !rest.iter().any(|t| is_unknown(t));
        let some = !self.threads && nameless;
        let (shown, left): (Vec<&SnapshotThread>, Vec<&SnapshotThread>) =
            rest.into_iter().partition(|thread| !some || is_for_others(thread));
        if !shown.is_empty() {
            self.line(0, &format!("{HEAD}others{HEAD:#}"));
        }
        for thread in shown {
            self.sleeper(thread);
        }
        if !left.is_empty() {
            // A thread that waits for a spin lock runs, and nobody has written down what for.
            let kind = match found.source {
                SnapshotSource::Memory => {
                    "not known to wait for a lock or to hold one that others want"
                }
                SnapshotSource::Ledger => "neither waiting for a lock nor holding one",
            };
            let threads = count(left.len(), "thread");
            let doing = doing(&left);
            self.line(0, &format!("not shown: {threads}, {kind}: {doing} (--all shows them)"));
        }
    }

    /// Adds a thread that waits for no lock, and what it does.
    fn sleeper(&mut self, thread: &SnapshotThread) {
        let who = self.named(thread.tid);
        self.line(2, &format!("{who} {}", does(thread)));
        if let ThreadActivity::Asleep { on, .. } = &thread.activity {
            self.enders(on);
        }
        self.stack(thread);
    }

    pub(super) fn stack(&mut self, thread: &SnapshotThread) {
        if let Some(stack) = &thread.stack {
            self.native(stack);
        }
        if let Some(python) = &thread.python {
            self.python(6, python);
        }
    }

    /// Adds where a lock was acquired, by the index of the stack.
    pub(super) fn taken(&mut self, acquired: Option<usize>) {
        let found = self.found;
        if let Some(stack) = acquired.and_then(|at| found.stacks.get(at)) {
            self.line(4, "taken at");
            self.native(stack);
        }
    }

    pub(super) fn frames(&mut self, indent: usize, stack: &Stack) {
        let frames: Vec<&Frame> =
            if self.everything { stack.frames.iter().collect() } else { program_frames(stack) };
        let shown = !frames.is_empty();
        for frame in frames {
            let inlined = if frame.inlined { " (inlined)" } else { "" };
            let found = if frame.found { " (probable)" } else { "" };
            let site = brief(&frame.site());
            self.line(indent, &format!("{site}{inlined}{found}"));
        }
        // What lockstead's own functions were called by is none of the program.
        let whole = shown && stack.frames.last().is_some_and(Frame::is_lockstead);
        if !stack.end.is_complete() && (self.everything || !whole) {
            self.line(indent, &format!("({})", clean(&stack.end.to_string())));
        }
    }

    /// Returns how long a thread has waited; of several, the one that has the longest.
    fn since(&self, tids: &[u32]) -> String {
        let waits = tids.iter().filter_map(|&tid| self.found.thread(tid)?.wait()?.waited_ns);
        match waits.max() {
            Some(ns) if tids.len() > 1 => format!(", the first since {}", time(ns)),
            Some(ns) => format!(", since {}", time(ns)),
            None => String::new(),
        }
    }

    /// Names a thread: `thread "worker" (tid 12)`, and what it is there for: `(tid 12, main thread)`.
    pub(super) fn named(&self, tid: u32) -> String {
        let Some(thread) = self.found.thread(tid) else { return format!("thread {tid}") };
        let own = thread.own_tid.map(|own| format!("{own} to itself"));
        let more: Vec<String> = thread.role.clone().into_iter().chain(own).collect();
        let name = thread_text(Some(&thread.name), tid);
        match name.strip_suffix(')') {
            Some(open) if !more.is_empty() => format!("{open}, {})", more.join(", ")),
            _ => name,
        }
    }

    pub(super) fn who(&self, tids: &[u32]) -> String {
        if let [tid] = tids {
            return self.named(*tid);
        }
        let listed = if self.everything { tids.len() } else { LISTED.min(tids.len()) };
        let names: Vec<String> = tids[..listed].iter().map(ToString::to_string).collect();
        let more = match tids.len() - listed {
            0 => String::new(),
            more => format!(" and {more} more (--all lists them)"),
        };
        format!("{} threads ({}{more})", tids.len(), names.join(", "))
    }
}

/// Returns whether the thread sleeps until another thread or process of this machine does
/// something, as far as is known.
fn is_for_others(thread: &SnapshotThread) -> bool {
    match &thread.activity {
        ThreadActivity::Asleep { on, .. } => {
            matches!(on.ends, WaitEnds::Inside | WaitEnds::Processes { .. } | WaitEnds::Child)
        }
        ThreadActivity::Stopped => true,
        _ => false,
    }
}

/// Returns what these threads do, the most frequent first: `3 in poll(), 1 running`.
fn doing(threads: &[&SnapshotThread]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for thread in threads {
        let what = match &thread.activity {
            ThreadActivity::Asleep { call, .. } => format!("in {call}()"),
            _ => does(thread).trim_start_matches("is ").to_owned(),
        };
        *counts.entry(what).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let each = counts.iter().map(|(what, count)| format!("{count} {what}"));
    each.collect::<Vec<_>>().join(", ")
}

fn is_unknown(thread: &SnapshotThread) -> bool {
    matches!(thread.activity, ThreadActivity::Unknown { .. })
}

/// Returns a lock with its attributes: `mutex cache.lock (recursive, robust)`.
pub(super) fn title(lock: &SnapshotLock) -> String {
    match lock.attributes.join(", ") {
        none if none.is_empty() => brief(&lock.name),
        some => format!("{} ({some})", brief(&lock.name)),
    }
}

pub(super) fn does(thread: &SnapshotThread) -> String {
    match &thread.activity {
        ThreadActivity::Waiting { .. } => "waits".into(),
        ThreadActivity::Asleep { call, on } => match &on.what {
            Some(what) => format!("is asleep in {call}(), for {}", clean(what)),
            None => format!("is asleep in {call}()"),
        },
        ThreadActivity::Running => "is running".into(),
        ThreadActivity::Stopped => "is stopped by a signal or a debugger".into(),
        ThreadActivity::Ended => "has ended".into(),
        ThreadActivity::Unknown { kernel_function: Some(function) } => {
            format!("is asleep in the kernel's {function}")
        }
        ThreadActivity::Unknown { kernel_function: None } => match thread.state {
            'R' => "is running".into(),
            'T' | 't' => "is stopped by a signal or a debugger".into(),
            _ => "is asleep".into(),
        },
    }
}

fn limit(until: &WaitEnd) -> String {
    match (until.left_ns, until.seconds) {
        (Some(left), _) if left < 0 => " (its time is over)".into(),
        (Some(left), _) => format!(" (for {} more)", lockstead_render::table::time(left as f64)),
        (None, Some(seconds)) => format!(" (for {seconds} s from a moment that is not known)"),
        (None, None) => " (with a time limit)".into(),
    }
}

pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Says how long a lock has been held, if that is known: `, for 3.1 s`.
pub(super) fn lasting(holder: &LockHolder) -> String {
    match holder.held_ns {
        Some(ns) if holder.exact => format!(", for {}", time(ns)),
        Some(ns) => format!(", for at most {}", time(ns)),
        None => String::new(),
    }
}

fn time(ns: u64) -> String {
    lockstead_render::table::time(ns as f64)
}

fn addresses(stack: &Stack) -> Vec<u64> {
    stack.frames.iter().map(|frame| frame.address).collect()
}
