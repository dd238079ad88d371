//! The words through which the program calls the functions that the library stands before.
//!
//! # Role
//! A file that calls a function of another file does so through a word that the loader has filled.
//! Those that lead to the C library's function are made to lead to the library's, and back. All
//! threads stand still meanwhile: nobody sees half a word.

use super::library::Library;
use super::memory::TargetMemory;
use super::objects::{Object, Objects, Reference};
use super::trace::{Asked, Held};
use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::proc::task;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

/// The version of conditions before today's: their functions are others.
const OLD_CONDITIONS: &str = "GLIBC_2.2.5";

/// The words that were changed, with what they held before.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    changed: BTreeMap<u64, u64>,
    /// Whether the program may have read a word that leads to the library other than by calling.
    pub(super) may_be_copied: bool,
}

impl Slots {
    /// Leads calls to the library that lead to the C library's functions, and returns for how long the
    /// threads stood still; zero if there was nothing to do.
    ///
    /// # Errors
    /// A thread did not stand still until `patience` was over: nothing was changed.
    pub(super) fn lead_in(
        &mut self,
        pid: u32,
        memory: &TargetMemory,
        library: &Library,
        patience: Duration,
    ) -> io::Result<Duration> {
        is_still_in(library, pid)?;
        let objects = Objects::of(pid, memory).ok_or(io::ErrorKind::NotFound)?;
        let mut plan = Vec::new();
        for (object, reference) in led(&objects, library, memory) {
            let now = memory.read_u64(reference.at);
            let (ours, real) = library.functions[&reference.name];
            let leads = |&now: &u64| leads_to(now, real, &reference, object.code_range(memory));
            let Some(now) = now.filter(leads) else { continue };
            self.may_be_copied |= !reference.is_for_calls;
            plan.push((reference.at, now, ours));
        }
        if plan.is_empty() {
            return Ok(Duration::ZERO);
        }
        let start = Instant::now();
        let held = stop_all(pid, start + patience)?;
        for &(at, before, ours) in &plan {
            if memory.read_u64(at) == Some(before) {
                memory.write_u64(at, ours)?;
                self.changed.insert(at, before);
            }
        }
        drop(held);
        Ok(start.elapsed())
    }

    /// Leads all calls past the library again, and has it record nothing any more. Returns for how
    /// long the threads stood still.
    ///
    /// # Errors
    /// As [`Self::lead_in`].
    pub(super) fn lead_past(
        &mut self,
        pid: u32,
        memory: &TargetMemory,
        library: &Library,
        patience: Duration,
    ) -> io::Result<Duration> {
        is_still_in(library, pid)?;
        let objects = Objects::of(pid, memory).ok_or(io::ErrorKind::NotFound)?;
        let mut plan = Vec::new();
        for (_, reference) in led(&objects, library, memory) {
            let (ours, real) = library.functions[&reference.name];
            if memory.read_u64(reference.at) == Some(ours) {
                self.may_be_copied |= !reference.is_for_calls;
                let before = self.changed.get(&reference.at).copied().unwrap_or(real);
                plan.push((reference.at, before, ours));
            }
        }
        let start = Instant::now();
        let held = stop_all(pid, start + patience)?;
        // Another file may have come, or the loader may have copied a word into it.
        let now = Objects::of(pid, memory).map(|objects| objects.mark());
        if now != Some(objects.mark()) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        for (at, before, ours) in plan {
            if memory.read_u64(at) == Some(ours) {
                memory.write_u64(at, before)?;
            }
        }
        self.changed.clear();
        if library.state != 0 {
            memory.write_u64(library.state, 0)?;
        }
        drop(held);
        Ok(start.elapsed())
    }

    /// Returns how many words were changed.
    pub(super) fn count(&self) -> usize {
        self.changed.len()
    }
}

/// Returns the words through which files call functions that the library has, with these files.
fn led<'o>(
    objects: &'o Objects,
    library: &'o Library,
    memory: &'o TargetMemory,
) -> impl Iterator<Item = (&'o Object, Reference)> {
    let is_led = |object: &&Object| {
        object.map != library.handle && !object.is_loader() && object.base_name() != "libc.so.6"
    };
    objects.iter().filter(is_led).flat_map(|object| {
        let references = object.references(memory, |name| {
            library.functions.contains_key(name) && object.function(memory, name).is_none()
        });
        references.into_iter().map(move |reference| (object, reference))
    })
}

/// Tells whether a word leads to the function `real`, or to where the loader would find that on the
/// first call: the file's own `code`.
fn leads_to(now: u64, real: u64, reference: &Reference, code: Option<(u64, u64)>) -> bool {
    let is_old = reference.name.starts_with("pthread_cond_")
        && reference.version.as_deref() == Some(OLD_CONDITIONS);
    let is_unbound =
        reference.is_for_calls && code.is_some_and(|(start, end)| (start..end).contains(&now));
    now == real || is_unbound && !is_old
}

/// Makes sure that the process has the library still. The caller has opened its memory before: through that file
/// nobody changes what belongs to a program that comes afterwards.
///
/// # Errors
/// It is another program by now.
fn is_still_in(library: &Library, pid: u32) -> io::Result<()> {
    let gone = || io::Error::other("it has become another program (execve)");
    if library.has_gone_from(pid) { Err(gone()) } else { Ok(()) }
}

/// Has all threads of a process stand still.
///
/// # Errors
/// One does not, or may not be traced: all go on when the calling thread ends.
pub(super) fn stop_all(pid: u32, deadline: Instant) -> io::Result<Vec<Held>> {
    let mut known = HashSet::new();
    let mut held = Vec::new();
    loop {
        let new: Vec<u32> =
            task::numbers(pid)?.into_iter().filter(|tid| known.insert(*tid)).collect();
        if new.is_empty() {
            return Ok(held);
        }
        let mut asked = Vec::new();
        for tid in new {
            match Asked::new(tid) {
                Ok(one) => asked.push(one),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
        for one in asked {
            held.extend(one.stands(deadline)?.map(|(held, _)| held));
        }
    }
}
