//! `--syscalls`: the waits of programs that call the kernel by themselves.
//!
//! # Role
//! A static program takes no library along, and Go's does not ask the C library. But a thread that
//! waits for another one makes a futex call, and a filter between fork and exec has the kernel tell
//! of these: [`filter`] installs it, [`recorder`] writes down what it tells, in a ledger as the
//! library's, and [`heir`] answers when the command cannot any more.
//!
//! # Why not ptrace
//! A filter can stop a call for a tracer, or tell whoever has its listener. Both were tried, on a
//! pair of threads that hand each other a word (a machine of two processors, busy, per futex call,
//! in wall-clock time): 1.8 us without, 7.5 us told to a listener, 28 us by a tracer, which also has
//! to see the signals, stops and children of the program, and takes the place of its debugger. With
//! what is written down it comes to 15 us. The end of a call is seen by a tracer alone;
//! [`recorder`] says what stands in for it.

mod desk;
pub(super) mod filter;
mod heir;
pub(super) mod own_ledger;
mod recorder;
mod words;

pub(super) use recorder::NewProcess;

use crate::clock::now;
use desk::{Desk, Listener};
use filter::{KernelListener, TellingSockets};
use heir::Heir;
use recorder::Recorder;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often waits that last are looked at, in milliseconds.
const LOOK: i32 = 8;
/// How often to look while nobody waits, in milliseconds.
const IDLE: i32 = 1000;

/// The kernel's notices, before anybody reads them.
pub(super) struct Told {
    listener: OwnedFd,
    desk: Desk,
    heir: Heir,
}

impl Told {
    /// Takes the listener that the child hands over, and lets it go on. The caller is the only thread
    /// of its process.
    ///
    /// # Errors
    /// There is none, or no process can be had to answer later.
    pub(super) fn take_over(sockets: TellingSockets) -> io::Result<Told> {
        let none = || io::Error::other("the program did not hand over its futex calls");
        let (listener, child) = sockets.take_over().ok_or_else(none)?;
        let desk = Desk::new()?;
        // Before the program begins: from then on somebody has to answer.
        let heir = heir::start(&listener, &desk)?;
        filter::go_on(&child);
        Ok(Told { listener, desk, heir })
    }
}

/// The thread that reads the kernel's notices, answers and writes down.
pub(super) struct Syscalls {
    new: Arc<Mutex<Vec<NewProcess>>>,
    /// Readable when there are new processes.
    bell: UnixStream,
    /// Ends the thread when it is closed.
    stop: UnixStream,
    thread: JoinHandle<()>,
}

impl Syscalls {
    /// Starts the thread; `program` is recorded from its beginning, if one is given.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn start(told: Told, program: Option<u32>) -> io::Result<Syscalls> {
        let (bell, rings) = UnixStream::pair()?;
        let (stop, stopped) = UnixStream::pair()?;
        let Told { listener, desk, heir } = told;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        let new: Arc<Mutex<Vec<NewProcess>>> = Arc::default();
        let to = Arc::clone(&new);
        let work = move || {
            let mut recorder = Recorder::default();
            program.into_iter().for_each(|pid| recorder.begin(pid, now()));
            work(&listener, &desk, &stopped, &mut recorder, |found| {
                let mut new = to.lock().unwrap_or_else(PoisonError::into_inner);
                new.extend(found);
                // It is full: the bell rings already.
                let _ = (&rings).write(&[1]);
            });
            recorder.finish();
            // Also if this thread should panic.
            drop((listener, heir));
        };
        let thread = std::thread::spawn(work);
        Ok(Syscalls { new, bell, stop, thread })
    }

    /// Becomes readable when there are new processes.
    pub(super) fn descriptor(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Returns the processes that have begun to be recorded.
    pub(super) fn take_new(&self) -> Vec<NewProcess> {
        let mut rung = [0; 64];
        while matches!((&self.bell).read(&mut rung), Ok(1..)) {}
        std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the recording; all is in the ledgers then.
    pub(super) fn finish(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

fn work(
    listener: &OwnedFd,
    desk: &Desk,
    stop: &UnixStream,
    recorder: &mut Recorder,
    tell: impl Fn(Vec<NewProcess>),
) {
    let (listener, stop) = (KernelListener(listener.as_raw_fd()), stop.as_raw_fd());
    let mut looked = now();
    while let Some((told, stopped)) =
        listener.wait(stop, if recorder.has_pending() { LOOK } else { IDLE })
    {
        if stopped {
            break;
        }
        if told {
            desk.serve(&listener, |call| {
                recorder.call(call.thread, call.number(), call.arguments(), now());
            });
        }
        let new = recorder.take_new();
        if !new.is_empty() {
            tell(new);
        }
        let time = now();
        if time.saturating_sub(looked) >= LOOK as u64 * 1_000_000 {
            looked = time;
            recorder.look(time);
        }
    }
}
