//! What those do that a storm kills.

use super::beside::Others;
use super::field::StormField;
use super::hand::{Crew, Hand, Past};
use super::part::StormPart;
use super::suspicion;
use super::tally::{StormControl, StormLockKind, count};
use super::{condvar, exec, habitat, mutex, rwlock, semaphore};
use crate::Error;
use crate::shared::memory::SharedMemory;
use crate::shared::process::{HandedFiles, WorkerJob};
use lockstead::shared::Segment;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};

/// One of so many sections is followed by giving up the slot, where threads do not come and
/// go all the time.
const LEAVES: u32 = 128;
/// The number of those, where they do, that are followed by one after which the thread ends.
const LEAVES_A_LIFE: u32 = 8;

/// What a worker gets from its parent.
pub(super) struct Handed {
    pub(super) control: OwnedFd,
    pub(super) segment: OwnedFd,
    pub(super) program: OwnedFd,
    pub(super) others: Option<OwnedFd>,
}

impl Handed {
    /// Takes the files of a worker that is a program of its own.
    fn from_parent(part: &StormPart, mut files: HandedFiles) -> Self {
        let [control, segment, program] = [files.next(), files.next(), files.next()];
        Handed { control, segment, program, others: part.beside.then(|| files.next()) }
    }
}

impl WorkerJob for StormPart {
    const NAME: &'static str = "storm";

    fn work(self, files: HandedFiles) -> Result<(), Error> {
        let handed = Handed::from_parent(&self, files);
        work(self, handed)
    }
}

/// Works until it is killed, or the storm is over.
pub(super) fn work(part: StormPart, handed: Handed) -> Result<(), Error> {
    let Handed { control, segment, program, others } = handed;
    habitat::settle(&part)?;
    // As long as the process: signal handlers look at it.
    let control: &'static _ = Box::leak(Box::new(SharedMemory::<StormControl>::open(control)?));
    exec::obey(program, &control.parties[part.index][..part.threads])?;
    let segment = match &part.path {
        Some(path) => Segment::<StormField>::open(path),
        None => Segment::from_fd(segment),
    };
    let segment = segment.map_err(|why| Error::Segment {
        what: "cannot use the segment of the parent",
        why: why.to_string(),
    })?;
    let others = others.map(SharedMemory::<Others>::open).transpose()?;
    end_with_the_first_panic();
    let crew = Crew { part: &part, control, segment: &segment, others: others.as_deref() };
    std::thread::scope(|scope| {
        // The first thread of a process cannot be replaced.
        let here = usize::from(!part.churn);
        (here..part.threads).for_each(|thread| crew.start(scope, Past::new(&part, thread)));
        if here == 1 {
            crew.live(Past::new(&part, 0));
        }
    });
    Ok(())
}

/// Has the first panic end the process: else the others would work on, and nobody learn of it.
fn end_with_the_first_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| {
        usual(about);
        std::process::abort();
    }));
}

/// The longest time that a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(5);

impl<'a> Crew<'a> {
    /// Starts a thread, and when it ends, the one that comes in its place.
    fn start<'scope>(self, scope: &'scope Scope<'scope, 'a>, past: Past)
    where
        'a: 'scope,
    {
        let end = Instant::now() + PATIENCE;
        loop {
            let past = past.clone();
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                if let Some(past) = self.live(past) {
                    self.start(scope, past);
                }
            });
            match started {
                Ok(_) => return,
                // There is no new thread while another one is about to call `exec`: then this
                // one goes with all others.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(source) => {
                    fail(&Error::Process { what: "a worker cannot start a thread", source });
                }
            }
        }
    }

    /// Does one thread's work, and returns what the thread in its place is to know, if there is
    /// to be one.
    fn live(self, past: Past) -> Option<Past> {
        work_on(Hand::new(self, past)).unwrap_or_else(|error| fail(&error))
    }
}

/// Ends the process at once: if it waited for its other threads, it might be killed before.
fn fail(error: &Error) -> ! {
    eprintln!("lockstead: a worker process: {error}");
    // SAFETY: by CALL-NUMBERS the call ends this process and touches no memory.
    unsafe { libc::_exit(1) }
}

/// Works until the storm is over, or this thread's life. What another one in its place is to
/// know, if there is to be one.
fn work_on(mut hand: Hand<'_>) -> Result<Option<Past>, Error> {
    while hand.control.over.load(Ordering::Relaxed) == 0 {
        hand.take_slot()?;
        operate(&mut hand)?;
        if !hand.part.churn {
            if hand.random.u32(..LEAVES) == 0 {
                hand.leave()?;
            }
        } else if hand.random.u32(..=LEAVES_A_LIFE) != 0 {
            hand.leave()?;
        } else {
            // It leaves when it has ended, without another word.
            return Ok(Some(hand.past()));
        }
    }
    Ok(None)
}

/// Does one section, or what comes of trying.
fn operate(hand: &mut Hand<'_>) -> Result<(), Error> {
    let kind = hand.part.kinds[hand.random.usize(..hand.part.kinds.len())];
    let at = hand.random.usize(..hand.part.locks);
    // Who waits for an item keeps nothing from those that make one.
    let beside = kind != StormLockKind::Condvar || hand.makes();
    if beside && let Some(beside) = &mut hand.beside {
        beside.take_some(&mut hand.random)?;
        // In another order than at first: its own entry comes after theirs.
        if hand.random.u32(..LEAVES) == 0 {
            hand.leave()?;
        }
    }
    let done = match kind {
        StormLockKind::Mutex => mutex::section(hand, at)?,
        StormLockKind::RwLock => rwlock::section(hand, at)?,
        StormLockKind::Semaphore => semaphore::section(hand, at)?,
        StormLockKind::Condvar => condvar::section(hand, at)?,
    };
    if let Some(beside) = &mut hand.beside {
        beside.give_back();
    }
    if let Some(suspected) = hand.suspicion.take() {
        suspicion::resolve(hand.control, suspected)?;
    }
    if done {
        count(&hand.tally(kind).operations, 1);
        count(&hand.party.sections, 1);
    }
    Ok(())
}
