//! The snapshot as text: cycles first, then the other threads that wait, then
//! the holders that do not.

use anstyle::{AnsiColor, Style};
use lockstead_inspect::snapshot::model::{
    Activity, Held, Lock, Ring, Snapshot, Source, Target, Thread, Until, Verdict, Wait,
};
use lockstead_inspect::stack::{Frame, Stack};
use lockstead_inspect::symbols::is_lock_wrapper;
use std::collections::BTreeSet;

const ALARM: Style = AnsiColor::Red.on_default().bold();
const HEAD: Style = Style::new().bold();

/// Threads of a group that are listed by name; the rest is counted.
const LISTED: usize = 8;

/// Functions that start programs and threads: of the last frames of a stack.
const STARTERS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
];
/// No stack starts with more frames than this.
const STARTING: usize = 4;

/// The whole text. `everything`: threads that neither wait nor hold too, every
/// thread of a group, every frame.
pub(super) fn render(found: &Snapshot, everything: bool) -> String {
    let mut text = Text { found, everything, out: String::new() };
    text.headline();
    let mut shown = BTreeSet::new();
    for ring in &found.cycles {
        text.ring(ring);
        shown.extend(ring.threads.iter().copied());
    }
    text.waits(&mut shown);
    text.holders(&mut shown);
    text.others(&shown);
    text.out
}

struct Text<'a> {
    found: &'a Snapshot,
    everything: bool,
    out: String,
}

impl Text<'_> {
    fn line(&mut self, indent: usize, line: &str) {
        self.out += &format!("{:indent$}{line}\n", "");
    }

    fn headline(&mut self) {
        let process = &self.found.process;
        let waiting = self.found.threads.iter().filter(|thread| thread.wait().is_some()).count();
        let own = process.own_pid.map(|own| format!(", {own} to itself")).unwrap_or_default();
        let deadlock = if self.found.threads.iter().any(is_unknown) {
            "what they wait for cannot be read".to_owned()
        } else if self.found.is_deadlocked() {
            format!("{waiting} wait, DEADLOCK")
        } else {
            format!("{waiting} wait, no deadlock found")
        };
        let line = format!(
            "process {} ({}{own}): {}, {deadlock}",
            process.pid,
            process.name,
            count(self.found.threads.len(), "thread"),
        );
        self.line(0, &line);
    }

    fn ring(&mut self, ring: &Ring) {
        let members = count(ring.threads.len(), "thread");
        let who = match ring.threads[..] {
            [_] => "1 thread waits for itself".to_owned(),
            _ => format!("{members} wait for each other"),
        };
        let line = match ring.verdict {
            Verdict::Deadlock => format!("{ALARM}lockstead: DEADLOCK{ALARM:#}: {who}"),
            Verdict::Timed => {
                format!("{HEAD}a cycle, but no deadlock{HEAD:#}: {who}, until a wait times out")
            }
            Verdict::Unconfirmed => format!(
                "{HEAD}a cycle, not confirmed{HEAD:#}: {who}, but ran while they were looked at"
            ),
        };
        self.out += "\n";
        self.line(0, &line);
        for &tid in &ring.threads {
            self.waiter(&[tid]);
        }
    }

    /// Threads that wait and are in no cycle, grouped where they wait for the
    /// same in the same place.
    fn waits(&mut self, shown: &mut BTreeSet<u32>) {
        let found = self.found;
        let mut groups: Vec<(&Wait, Vec<u64>, Vec<u32>)> = Vec::new();
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
        if !groups.is_empty() {
            let title = if self.found.cycles.is_empty() { "waiting" } else { "also waiting" };
            self.out += "\n";
            self.line(0, &format!("{HEAD}{title}{HEAD:#}"));
        }
        for (.., tids) in groups {
            self.waiter(&tids);
        }
    }

    /// Waits for what somebody holds come first, for what nobody does last.
    fn rank(&self, wait: &Wait) -> u8 {
        match &wait.target {
            Target::Lock { address } => match self.found.lock(*address).map(|lock| &lock.held) {
                Some(Held::By { .. } | Held::Elsewhere { .. } | Held::Readers { .. }) => 0,
                Some(Held::Unknown { .. }) | None => 2,
                Some(Held::Never) => 3,
            },
            Target::Join { .. } => 1,
            Target::Unknown { .. } => 2,
        }
    }

    fn waiter(&mut self, tids: &[u32]) {
        let found = self.found;
        let Some(thread) = tids.first().and_then(|&tid| found.thread(tid)) else { return };
        let Some(wait) = thread.wait() else { return };
        let who = self.who(tids);
        let verb = if tids.len() == 1 { "waits" } else { "wait" };
        let until = wait.until.as_ref().map(limit).unwrap_or_default();
        match &wait.target {
            Target::Join { thread } => {
                let joined = self.named(*thread);
                self.line(2, &format!("{who} {verb} for the end of {joined}{until}"));
            }
            Target::Unknown { why } => {
                self.line(2, &format!("{who} {verb} for what cannot be told: {why}{until}"));
            }
            Target::Lock { address } => match found.lock(*address) {
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
        self.stack(thread);
    }

    /// Who holds a lock, and what that thread does now.
    fn held(&mut self, lock: &Lock) {
        match &lock.held {
            Held::By { holders } => {
                for holder in holders {
                    let name = self.named(holder.thread);
                    let how = if holder.shared { " to read" } else { "" };
                    let now = match self.found.thread(holder.thread) {
                        Some(thread) if thread.wait().is_none() => {
                            format!(", which {}", does(thread))
                        }
                        _ => String::new(),
                    };
                    self.line(4, &format!("held{how} by {name}{now}"));
                    for frame in holder.acquired.iter().flat_map(|stack| &stack.frames) {
                        self.line(6, &format!("taken in {}", frame.site()));
                    }
                }
            }
            Held::Readers { count: readers } => {
                let text = count(*readers as usize, "reader");
                self.line(4, &format!("held by {text}; who they are is not in the lock"));
            }
            Held::Elsewhere { owner, why } => self.line(4, &format!("held by {owner}: {why}")),
            Held::Unknown { why } => self.line(4, why),
            Held::Never => {}
        }
    }

    /// Holders that do not wait themselves.
    fn holders(&mut self, shown: &mut BTreeSet<u32>) {
        let found = self.found;
        let mut titled = false;
        for thread in &found.threads {
            let held: Vec<&Lock> =
                found.locks.iter().filter(|lock| holds(lock, thread.tid)).collect();
            if held.is_empty() || !shown.insert(thread.tid) {
                continue;
            }
            if !titled {
                self.out += "\n";
                self.line(0, &format!("{HEAD}holding{HEAD:#}"));
                titled = true;
            }
            let names: Vec<String> = held.iter().map(|lock| title(lock)).collect();
            let (who, names) = (self.named(thread.tid), names.join(", "));
            self.line(2, &format!("{who} holds {names} and {}", does(thread)));
            self.stack(thread);
        }
    }

    fn others(&mut self, shown: &BTreeSet<u32>) {
        let found = self.found;
        let rest: Vec<&Thread> =
            found.threads.iter().filter(|thread| !shown.contains(&thread.tid)).collect();
        if rest.is_empty() {
            return;
        }
        self.out += "\n";
        // Where nothing is known of any thread, names are all there is.
        if !self.everything && !rest.iter().any(|thread| is_unknown(thread)) {
            let kind = match found.source {
                Source::Memory => "neither waiting for a lock nor holding one that others want",
                Source::Ledger => "neither waiting for a lock nor holding one",
            };
            let threads = count(rest.len(), "thread");
            self.line(0, &format!("not shown: {threads}, {kind} (--all shows them)"));
            return;
        }
        self.line(0, &format!("{HEAD}others{HEAD:#}"));
        for thread in rest {
            let who = self.named(thread.tid);
            self.line(2, &format!("{who} {}", does(thread)));
            self.stack(thread);
        }
    }

    fn stack(&mut self, thread: &Thread) {
        let Some(stack) = &thread.stack else { return };
        let frames: &[Frame] =
            if self.everything { &stack.frames } else { own_frames(&stack.frames) };
        for frame in frames {
            let inlined = if frame.inlined { " (inlined)" } else { "" };
            let found = if frame.found { " (probable)" } else { "" };
            let site = frame.site();
            self.line(6, &format!("{site}{inlined}{found}"));
        }
        if !stack.end.is_complete() {
            self.line(6, &format!("({})", stack.end));
        }
    }

    /// `thread 12 "worker"`.
    fn named(&self, tid: u32) -> String {
        match self.found.thread(tid) {
            Some(thread) => match thread.own_tid {
                Some(own) => format!("thread {tid} \"{}\" ({own} to itself)", thread.name),
                None => format!("thread {tid} \"{}\"", thread.name),
            },
            None => format!("thread {tid}"),
        }
    }

    fn who(&self, tids: &[u32]) -> String {
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

fn is_unknown(thread: &Thread) -> bool {
    matches!(thread.activity, Activity::Unknown { .. })
}

fn holds(lock: &Lock, tid: u32) -> bool {
    matches!(&lock.held, Held::By { holders } if holders.iter().any(|h| h.thread == tid))
}

/// A lock with its attributes: `mutex cache.lock (recursive, robust)`.
fn title(lock: &Lock) -> String {
    match lock.attributes.join(", ") {
        none if none.is_empty() => lock.name.clone(),
        some => format!("{} ({some})", lock.name),
    }
}

fn does(thread: &Thread) -> String {
    match &thread.activity {
        Activity::Waiting { .. } => "waits".into(),
        Activity::Asleep { call } => format!("is asleep in {call}()"),
        Activity::Running => "is running".into(),
        Activity::Stopped => "is stopped by a signal or a debugger".into(),
        Activity::Ended => "has ended".into(),
        Activity::Unknown { kernel_function: Some(function) } => {
            format!("is asleep in the kernel's {function}")
        }
        Activity::Unknown { kernel_function: None } => match thread.state {
            'R' => "is running".into(),
            'T' | 't' => "is stopped by a signal or a debugger".into(),
            _ => "is asleep".into(),
        },
    }
}

fn limit(until: &Until) -> String {
    match (until.left_ns, until.seconds) {
        (Some(left), _) if left < 0 => " (its time is over)".into(),
        (Some(left), _) => format!(" (for {} more)", crate::table::time(left as f64)),
        (None, Some(seconds)) => format!(" (for {seconds} s from a moment that is not known)"),
        (None, None) => " (with a time limit)".into(),
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn addresses(stack: &Stack) -> Vec<u64> {
    stack.frames.iter().map(|frame| frame.address).collect()
}

/// The frames of the program: without those that only lead into the wait, and
/// without those that start threads and programs.
fn own_frames(frames: &[Frame]) -> &[Frame] {
    let starts = |(at, frame): (usize, &Frame)| {
        let function = frame.function.as_deref().unwrap_or_default();
        function.contains("__rust_begin_short_backtrace")
            || frames.len() - at <= STARTING && STARTERS.contains(&function)
    };
    let started = &frames[..frames.iter().enumerate().position(starts).unwrap_or(frames.len())];
    let first = started.iter().position(|frame| !frame.is_libc() && !is_lock_wrapper(frame));
    let last = started.iter().rposition(|frame| !frame.is_libc());
    match (first, last) {
        (Some(first), Some(last)) => &started[first..=last],
        _ => frames,
    }
}
