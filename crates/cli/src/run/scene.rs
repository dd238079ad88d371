//! What the texts of findings are made with: one process, its threads' names,
//! its locks' names, its stacks.

use super::processes::Observed;
use lockstead_inspect::memory::ProcessMemory;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::proc::calls;
use lockstead_inspect::proc::task::{self, Doing};
use lockstead_inspect::report::names::{noun, type_name};
use lockstead_inspect::report::{LockFacts, Names};
use lockstead_inspect::stack::{End, Frame, Stack};
use lockstead_inspect::symbols::{Symbolizer, site};
use lockstead_inspect::unwind::{Registers, Unwinder};
use lockstead_ledger::Ledger;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::report::clean;

/// Functions below which a thread's stack is glibc's and not the program's.
const BOTTOM: [&str; 4] = ["start_thread", "__libc_start_call_main", "__libc_start_main", "_start"];

/// One process, to be described.
pub(super) struct Scene {
    pub(super) process: Arc<Observed>,
    symbolizer: Symbolizer,
    unwinder: Option<Unwinder>,
}

impl Scene {
    pub(super) fn new(process: Arc<Observed>) -> Self {
        let modules = |process: &Observed| {
            Modules::of(process.pid).unwrap_or_else(|_| Modules::saved(process.maps()))
        };
        let symbolizer = Symbolizer::new(modules(&process));
        Scene { symbolizer, process, unwinder: None }
    }

    /// Takes in code that has been loaded since.
    pub(super) fn update(&mut self) {
        self.process.read_maps();
        self.symbolizer.update(self.process.maps());
    }

    /// `prog (pid 12)`.
    pub(super) fn program(&self) -> String {
        format!("{} (pid {})", clean(&self.process.name()), self.process.pid)
    }

    /// `thread "worker" (tid 13)`, by the index of its record.
    pub(super) fn thread(&self, index: u32) -> String {
        let ledger = self.process.ledger.view();
        let Some(thread) = ledger.thread(index as usize) else { return "a thread".into() };
        let tid = thread.record.tid.load(Relaxed);
        match self.thread_name(&ledger, index, tid) {
            Some(name) => format!("thread \"{}\" (tid {tid})", clean(&name)),
            None => format!("thread {tid}"),
        }
    }

    fn thread_name(&self, ledger: &Ledger<'_>, index: u32, tid: u32) -> Option<String> {
        let live = format!("/proc/{}/task/{tid}/comm", self.process.pid);
        if self.process.visible
            && let Ok(name) = fs::read_to_string(live)
        {
            return Some(name.trim_end_matches('\n').to_owned());
        }
        let record = ledger.thread(index as usize)?.record;
        let bytes: Vec<u8> =
            record.name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let name = bytes.split(|&byte| byte == 0).next()?;
        (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
    }

    /// What a lock is called; with its type, where the name does not say it.
    pub(super) fn lock(&mut self, address: u64) -> String {
        let ledger = self.process.ledger.view();
        let record = ledger.find_lock(address).and_then(|index| ledger.lock(index));
        let Some(record) = record else { return format!("lock at {address:#x}") };
        let facts = LockFacts::of(&ledger, record);
        let name = clean(&Names::lock(&mut self.symbolizer, &facts));
        let type_name = type_name(facts.kind, facts.attributes);
        if name.starts_with(noun(facts.kind)) && type_name == noun(facts.kind) {
            name
        } else {
            format!("{name} ({type_name})")
        }
    }

    /// The place of a recorded stack: `push() at queue.c:12`.
    pub(super) fn site(&mut self, id: u32) -> String {
        let stack = self.recorded(id);
        let place = stack.as_ref().and_then(site).map(|frame| clean(&frame.site()));
        place.unwrap_or_else(|| "an unknown place".into())
    }

    fn recorded(&mut self, id: u32) -> Option<Stack> {
        let ledger = self.process.ledger.view();
        let stored = ledger.stack(id)?;
        let returns: Vec<u64> = stored.returns().collect();
        Some(Names::stack(&mut self.symbolizer, &returns, stored.end))
    }

    /// Adds a recorded stack, a line a frame.
    pub(super) fn stack(&mut self, text: &mut String, id: u32, most: usize) {
        match self.recorded(id) {
            Some(stack) => frames(text, &stack, most),
            None => text.push_str("      (its stack was not recorded)\n"),
        }
    }

    /// What a thread is doing at this moment, and its stack, where it sleeps.
    pub(super) fn doing(&mut self, text: &mut String, tid: u32, most: usize) {
        if !self.process.visible {
            text.push_str("    what it does now cannot be seen from this PID namespace\n");
            return;
        }
        let doing = task::doing(self.process.pid, tid);
        let now = match &doing {
            Ok(Doing::Running) => "is now running on a processor, or ready to".into(),
            Ok(Doing::Call(call)) => match calls::name(call.number) {
                Some(name) => format!("is now in the system call {name}"),
                None => format!("is now in system call {}", call.number),
            },
            Ok(Doing::Stopped { .. }) => "is now stopped, or waits for memory".into(),
            Ok(Doing::Refused) => "is alive; what it does may not be seen".into(),
            Err(_) => "has ended".into(),
        };
        let registers = doing.ok().and_then(|doing| doing.registers());
        let colon = if registers.is_some() { ":" } else { "" };
        let _ = writeln!(text, "    {now}{colon}");
        let Some((sp, pc)) = registers else { return };
        let Ok(modules) = Modules::of(self.process.pid) else { return };
        let unwinder = self.unwinder.get_or_insert_with(|| Unwinder::new(modules));
        unwinder.update(self.process.maps());
        let memory = ProcessMemory::new(self.process.pid);
        let walked = unwinder.unwind(&memory, Registers::new(pc, sp));
        frames(text, &self.symbolizer.stack(&walked.frames, walked.end), most);
    }
}

/// Adds the frames of the program, no more than `most`.
fn frames(text: &mut String, stack: &Stack, most: usize) {
    let mut shown: Vec<&Frame> = stack.visible().collect();
    let is_bottom = |frame: &Frame| {
        frame.is_libc()
            && frame.function.as_deref().is_none_or(|name| {
                BOTTOM.iter().any(|bottom| name.starts_with(bottom)) || name.starts_with("clone")
            })
            || frame.function.as_deref() == Some("_start")
            || frame.is_lockstead()
    };
    while shown.len() > 1 && shown.last().is_some_and(|frame| is_bottom(frame)) {
        shown.pop();
    }
    // One line for what is left out takes no less room than one frame.
    let most = if shown.len() > most { most - 1 } else { most };
    for frame in shown.iter().take(most) {
        let _ = writeln!(text, "      {}", clean(&frame.site()));
    }
    if shown.len() > most {
        let _ = writeln!(text, "      ... {} more", shown.len() - most);
    } else if shown.is_empty() {
        text.push_str("      (no frame of the program)\n");
    } else if !matches!(stack.end, End::Bottom) {
        let _ = writeln!(text, "      ({})", stack.end);
    }
}

/// A time in the unit that suits it.
pub(super) fn duration(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        1_000_000_000..120_000_000_000 => format!("{:.1} s", ns as f64 / 1e9),
        _ => format!("{} min", ns / 60_000_000_000),
    }
}
