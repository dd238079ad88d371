//! The processes of a run: their ledgers, their code, their ends.

use super::delays::QueueDelays;
use super::earlier::EarlierWaits;
use super::futexes::FutexLooks;
use crate::recording::HolderSample;
use lockstead_inspect::check::Lives;
use lockstead_inspect::check::facts::ThreadFacts;
use lockstead_inspect::ledger::passing::SocketPeer;
use lockstead_inspect::ledger::{MappedLedger, code};
use lockstead_inspect::maps::Maps;
use lockstead_inspect::report::ThreadTimes;
use lockstead_inspect::report::holders::HolderLooks;
use lockstead_inspect::report::python::PythonWaits;
use lockstead_ledger::hello::Hello;
use lockstead_ledger::thread::ThreadRecord;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::iter;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// A process as the report and the reporter see it.
pub(super) struct Observed {
    /// The ledger of the process.
    pub(super) ledger: MappedLedger,
    /// Its number for the command.
    pub(super) pid: u32,
    /// Whether thread numbers in its ledger are those of the command's `/proc`.
    pub(super) visible: bool,
    /// Its parent's number, where it is visible.
    pub(super) parent: Option<u32>,
    /// Its parent, as long as that is known here.
    pub(super) forked_from: Weak<Observed>,
    /// The parent kept alive: a child's semaphores may have been initialised there.
    pub(super) elder: Option<Arc<Observed>>,
    /// The file it runs.
    pub(super) program: PathBuf,
    /// The arguments that it was called with.
    pub(super) arguments: Vec<String>,
    /// What the kernel called its first thread when it called: so it calls all threads that
    /// nobody has named.
    pub(super) first_name: Option<String>,
    /// The text of its maps when they were last read.
    maps: Mutex<Vec<u8>>,
    /// The descriptor of the process itself, also when its number is given to another.
    handle: Option<OwnedFd>,
    /// The processor time that the process had used when it became this program, and when that
    /// was last looked at.
    used_before: AtomicU64,
    used: AtomicU64,
    /// How long its threads stood ready without a processor.
    delays: Mutex<QueueDelays>,
    /// The locks that its checker met.
    pub(super) lives: OnceLock<Lives>,
    /// What looks for owners of futex words have shown.
    pub(super) futexes: FutexLooks,
    /// The waits that had begun before the command attached to it.
    pub(super) earlier: EarlierWaits,
    /// What looks at its threads in Python have met.
    pub(super) python: Mutex<PythonWaits>,
    /// What looks at the holders of its locks have met.
    pub(super) holders: Mutex<HolderLooks>,
    /// What looks at the holders of its locks have met and was not written yet; only where its
    /// events are recorded.
    pub(super) samples: Mutex<Vec<HolderSample>>,
    /// Its events are recorded.
    pub(super) is_recorded: AtomicBool,
    /// The time at which it ended.
    pub(super) ended: Mutex<Option<u64>>,
    /// How it ended, where that is known.
    pub(super) exit: Mutex<Option<String>>,
}

/// Returns a value behind a lock that nobody leaves half-changed.
pub(super) fn inside<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    /// Takes in a process that has called.
    ///
    /// # Errors
    /// Its ledger cannot be used.
    pub(super) fn new(hello: &Hello, file: OwnedFd, peer: SocketPeer) -> io::Result<Self> {
        let ledger = MappedLedger::new(file, true)?;
        // From another PID namespace the kernel tells the number here, or none.
        let pid = if peer.pid == 0 { hello.pid } else { peer.pid };
        let visible = pid == hello.pid && peer.pid != 0;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, peer.pid, 0) };
        let handle = i32::try_from(handle).ok().filter(|&fd| fd >= 0);
        let observed = Observed {
            ledger,
            pid,
            visible,
            parent: visible.then_some(hello.parent),
            forked_from: Weak::new(),
            elder: None,
            program: PathBuf::from(OsStr::from_bytes(hello.program())),
            arguments: hello.arguments().map(text).collect(),
            first_name: fs::read_to_string(format!("/proc/{pid}/comm"))
                .ok()
                .map(|name| name.trim_end_matches('\n').to_owned()),
            maps: Mutex::default(),
            // SAFETY: this function has just opened the descriptor, so nobody else owns it.
            handle: handle.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            used_before: AtomicU64::new(0),
            used: AtomicU64::new(0),
            delays: Mutex::default(),
            lives: OnceLock::new(),
            futexes: FutexLooks::default(),
            earlier: EarlierWaits::default(),
            python: Mutex::default(),
            holders: Mutex::default(),
            samples: Mutex::default(),
            is_recorded: AtomicBool::new(false),
            ended: Mutex::default(),
            exit: Mutex::default(),
        };
        observed.read_maps();
        Ok(observed)
    }

    /// Keeps the process that it was forked from, unless so many of its forebears are
    /// kept already: each takes descriptors and address space.
    pub(super) fn keep_elder(&mut self) {
        const MOST: usize = 8;
        let elder = self.forked_from.upgrade();
        self.elder = elder.filter(|elder| elder.elders().count() < MOST);
    }

    /// Returns the processes that it descends from by forks, the nearest first, as far as they are
    /// kept.
    pub(super) fn elders(&self) -> impl Iterator<Item = &Observed> {
        iter::successors(self.elder.as_deref(), |of| of.elder.as_deref())
    }

    /// Returns the program's name, without its folder.
    pub(super) fn name(&self) -> String {
        let name = self.program.file_name().map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| "a program".into())
    }

    /// Returns when the library began in this image of the process.
    pub(super) fn began(&self) -> u64 {
        self.ledger.view().header().began.load(Relaxed)
    }

    /// Reads its maps while they are there.
    pub(super) fn read_maps(&self) {
        // Of a process that ends meanwhile the kernel gives the first part. It has gone
        // to its end if there is a program still.
        if let Ok(text) = fs::read(format!("/proc/{}/maps", self.pid))
            && !text.is_empty()
            && fs::read_link(format!("/proc/{}/exe", self.pid)).is_ok()
        {
            *inside(&self.maps) = text;
        }
    }

    /// Returns its maps, as far as they were ever known.
    pub(super) fn maps(&self) -> Maps {
        code::maps(&inside(&self.maps), &code::modules(&self.ledger.view()), &self.program)
    }

    /// Returns whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        match &self.handle {
            Some(handle) => {
                let mut wanted =
                    libc::pollfd { fd: handle.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: the kernel reads and writes one entry, which this frame borrows
                // exclusively.
                unsafe { libc::poll(&mut wanted, 1, 0) > 0 }
            }
            None => !fs::exists(format!("/proc/{}", self.pid)).unwrap_or(true),
        }
    }

    /// Returns the processor time it has used, in nanoseconds; 0 when it has ended.
    pub(super) fn processor_time(&self) -> u64 {
        let used = processor_time(self.pid);
        self.used.fetch_max(used, Relaxed);
        used
    }

    /// Returns the processor time that it has used as this program, up to the last time that
    /// anybody asked; `None` if nobody did.
    pub(super) fn ran(&self) -> Option<u64> {
        let used = self.used.load(Relaxed);
        (used != 0).then(|| used.saturating_sub(self.used_before.load(Relaxed)))
    }

    /// Notes how long its threads have stood ready without a processor so far.
    pub(super) fn note_delays(&self, now: Instant) {
        inside(&self.delays).look(self.pid, now);
    }

    /// Returns how long they did, as far as anybody looked; `None` if the kernel does not tell.
    pub(super) fn queued(&self) -> Option<u64> {
        inside(&self.delays).sum()
    }

    /// Returns how long each thread ran and stood ready, by its number in the ledger, as far as
    /// anybody looked and that number is known here.
    pub(super) fn thread_times(&self) -> HashMap<u32, ThreadTimes> {
        if self.visible { inside(&self.delays).each() } else { HashMap::new() }
    }

    /// Returns the index of a thread's record, if that is still its own.
    pub(super) fn record_of(&self, thread: ThreadFacts) -> Option<u32> {
        if thread.tid == 0 {
            return None;
        }
        let ledger = self.ledger.view();
        let is_it = |record: &ThreadRecord| {
            record.tid.load(Relaxed) == thread.tid
                && (thread.serial == 0 || record.serial.load(Relaxed) == thread.serial)
        };
        // The newest of several with one number is the one that is meant.
        let found = ledger.threads().enumerate().filter(|(_, one)| is_it(one.record));
        let newest = found.max_by_key(|(_, one)| one.record.began.load(Relaxed));
        newest.and_then(|(index, _)| u32::try_from(index).ok())
    }

    /// Notes that the process has become this program by `exec`, and was `old` before.
    pub(super) fn follows(&self, old: &Observed) {
        self.used_before.store(old.processor_time(), Relaxed);
    }

    /// Sends it a signal, and nobody else who may have its number by now.
    pub(super) fn signal(&self, signal: libc::c_int) {
        if let Some(handle) = &self.handle {
            // SAFETY: the call takes numbers; null asks for the usual information.
            unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    handle.as_raw_fd(),
                    signal,
                    std::ptr::null::<libc::siginfo_t>(),
                    0,
                );
            }
        }
    }
}

/// Returns the processor time of a process, in nanoseconds; 0 when there is none of this number.
fn processor_time(pid: u32) -> u64 {
    // The kernel's numbering of the clocks of processes.
    const SCHEDULER: libc::clockid_t = 2;
    let Ok(pid) = libc::clockid_t::try_from(pid) else { return 0 };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a structure borrowed exclusively; a clock that does not exist is an
    // error value.
    match unsafe { libc::clock_gettime(!pid << 3 | SCHEDULER, &mut time) } {
        0 => time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs(),
        _ => 0,
    }
}
