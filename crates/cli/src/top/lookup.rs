//! Names of a process that runs. Asked once, remembered, and forgotten when
//! the process loads or unloads a library.

use super::page::frames;
use super::screen::{ChosenLock, Lookup};
use lockstead_inspect::maps::Maps;
use lockstead_inspect::report::{LockFacts, Names, OneLock, futex_name};
use lockstead_inspect::stack::{Frame, Stack};
use lockstead_inspect::symbols::{Symbolizer, site};
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::ObjectKind;
use lockstead_render::words::clean;
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::Ordering::Relaxed;

/// Finds names in the files of the process.
pub(super) struct FileNames<'l> {
    pid: u32,
    ledger: Ledger<'l>,
    symbolizer: Symbolizer,
    locks: HashMap<(u32, u32), String>,
    sites: HashMap<u32, String>,
    threads: HashMap<u32, String>,
    /// How many modules were recorded and libraries unloaded when the names were learnt.
    modules: (u64, u64),
}

impl<'l> FileNames<'l> {
    pub(super) fn new(pid: u32, ledger: Ledger<'l>, symbolizer: Symbolizer) -> Self {
        FileNames {
            pid,
            ledger,
            symbolizer,
            locks: HashMap::new(),
            sites: HashMap::new(),
            threads: HashMap::new(),
            modules: modules(&ledger),
        }
    }

    /// Prepares a look: asks again for what changes under a running process.
    pub(super) fn refresh(&mut self) {
        // Threads rename themselves, and their numbers are given anew.
        self.threads.clear();
        let modules = modules(&self.ledger);
        if modules != self.modules {
            self.modules = modules;
            if let Ok(maps) = Maps::of(self.pid) {
                self.symbolizer.update(maps);
                self.locks.clear();
                self.sites.clear();
            }
        }
    }

    /// Returns the stack with this id, if there is one.
    fn named(&mut self, stack: u32) -> Option<Stack> {
        let stored = self.ledger.stack(stack)?;
        let returns: Vec<u64> = stored.returns().collect();
        Some(Names::stack(&mut self.symbolizer, &returns, stored.end))
    }
}

fn modules(ledger: &Ledger<'_>) -> (u64, u64) {
    let header = ledger.header();
    (header.modules_noted.load(Relaxed), header.unloads.load(Relaxed))
}

impl Lookup for FileNames<'_> {
    fn lock(&mut self, index: u32, generation: Option<u32>) -> String {
        let Some(record) = self.ledger.lock(index) else { return format!("lock {index}") };
        let generation = generation.unwrap_or_else(|| record.generation.load(Relaxed));
        let symbolizer = &mut self.symbolizer;
        let ledger = &self.ledger;
        let name = self.locks.entry((index, generation));
        let find = || match record.shape().0 {
            ObjectKind::Futex => futex_name(ledger, symbolizer, record),
            _ => Names::lock(symbolizer, &LockFacts::of(ledger, record)),
        };
        name.or_insert_with(find).clone()
    }

    fn site(&mut self, stack: u32) -> String {
        if let Some(known) = self.sites.get(&stack) {
            return known.clone();
        }
        let named = self.named(stack);
        let name = named.as_ref().and_then(site).map(Frame::site).unwrap_or_default();
        self.sites.insert(stack, name.clone());
        name
    }

    fn thread(&mut self, tid: u32, name: Option<&str>) -> String {
        let pid = self.pid;
        let named = self.threads.entry(tid).or_insert_with(|| {
            // The ledger has a name once its thread has ended or changed it.
            let known = name.map(str::to_owned).or_else(|| {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
                Some(text.trim_end_matches('\n').to_owned())
            });
            match known {
                Some(name) => format!("{} ({tid})", clean(&name)),
                None => format!("thread {tid}"),
            }
        });
        named.clone()
    }

    fn stack(&mut self, stack: u32) -> Vec<String> {
        self.named(stack).as_ref().map(frames).unwrap_or_default()
    }

    fn one(&mut self, lock: ChosenLock) -> Option<OneLock> {
        let ChosenLock { lock, generation } = lock;
        OneLock::read(&self.ledger, &mut self.symbolizer, lock, generation)
    }
}
