//! The library comes into a process that runs already, and leaves it again.
//!
//! # Protocol
//! 1. A thread of the process is [borrowed](call) at a [moment] at which it holds no lock of the loader's
//!    or the allocator's. It loads the [library] from a file in memory, and begins to record. All other
//!    threads run on.
//! 2. All threads stand still for some milliseconds: the [words](slots) through which calls go are made to
//!    lead to the library. So it is again when another file has been loaded.
//! 3. At the end the words get back what they held, and nothing more is recorded. When no thread is
//!    [inside](leave) any more, a borrowed thread has the C library forget the library, gives the ledger's
//!    memory back and unloads the library.
//!
//! Nothing is held in between. If the command is killed at any time, the program goes on; what is left
//! in it records into memory that nobody reads, and [`clean`] takes it out.

mod arch;
mod call;
mod filters;
mod leave;
mod left_open;
mod library;
mod memory;
mod moment;
mod objects;
mod refuse;
mod slots;
mod trace;
mod watched;

pub(crate) use refuse::AttachRefusal;

use call::{Borrowed, CallPlaces};
use leave::Leaving;
use library::{Library, LibraryFile, library_file, with_file};
use lockstead_inspect::maps::Maps;
use lockstead_inspect::proc::process::LiveProcess;
use lockstead_inspect::proc::shown::shown_as;
use lockstead_ledger::attach::{FORGET, LEAVE};
use lockstead_ledger::hello::Hello;
use memory::TargetMemory;
use moment::Moments;
use objects::Objects;
use slots::Slots;
use std::fs::{self, File};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

/// How long a thread is looked for that can make calls.
const MOMENT: Duration = Duration::from_secs(5);
/// How often that is tried where a thread does not come to a stop.
const TRIES: usize = 5;
/// How long a call of a thread may last.
const CALL: Duration = Duration::from_secs(20);
/// How long the threads may take to stand still, the first times and then.
const STAND: [Duration; 9] = {
    let ms = Duration::from_millis;
    [ms(10), ms(10), ms(10), ms(20), ms(20), ms(50), ms(100), ms(200), ms(500)]
};
/// How many looks are taken at files that were loaded.
const LOOKS: u8 = 10;
/// How long a call lasts at most that goes on when its command has gone.
const SETTLES: Duration = Duration::from_millis(300);
/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// A process that the library has come into.
#[derive(Debug)]
pub(crate) struct Attached {
    pid: u32,
    library: Library,
    /// The file in memory that it has the library from, which its children have too.
    file: Option<LibraryFile>,
    slots: Slots,
    mark: (usize, u64, u64),
    /// How many more looks are taken at files that were loaded: the loader fills in their words only
    /// when it has put them into its list.
    looks: u8,
    /// The longest that all threads stood still at once.
    pub(crate) stood: Duration,
    /// How long the borrowed thread was away from its work.
    pub(crate) borrowed: Duration,
    _alone: Alone,
}

/// What only one command has at a time, for each process: two that change one process would take out of
/// it what the other relies on.
#[derive(Debug)]
struct Alone(#[expect(dead_code, reason = "it is held, and closed at the end")] UnixListener);

impl Alone {
    fn with(pid: u32) -> Result<Alone, AttachRefusal> {
        let name = SocketAddr::from_abstract_name(format!("lockstead.attach.{pid}"));
        let socket = name.and_then(|name| UnixListener::bind_addr(&name));
        socket.map(Alone).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => AttachRefusal::new(
                "it is under lockstead already: another command has attached to it, or is about to",
                "`lockstead top PID` and `lockstead dump PID` show what that records",
            ),
            _ => failed(&error),
        })
    }
}

/// What is left in a process that could not be left altogether.
#[derive(Debug)]
pub(crate) struct Remains {
    /// The reason why it could not be left altogether, in words.
    pub(crate) why: String,
}

/// Attaches to a process; the ledger is named by `token`. Returns its file and what the process says
/// of itself.
///
/// # Errors
/// Why not: then nothing is left in the process.
pub(crate) fn attach(
    process: &LiveProcess,
    token: &str,
) -> Result<(Attached, File, Box<Hello>), AttachRefusal> {
    let pid = process.pid;
    let alone = Alone::with(pid)?;
    refuse::check(process)?;
    let mut tries = 1..TRIES;
    let (library, file, borrowed) = loop {
        let token = token.to_owned();
        match trace::apart(move || load(pid, &token)).map_err(|error| failed(&error))? {
            // Nothing has been done yet.
            Err(refusal) if refusal.again && tries.next().is_some() => {}
            loaded => break loaded?,
        }
    };
    let mut attached = Attached {
        pid,
        library,
        file: library_file(pid),
        slots: Slots::default(),
        mark: (0, 0, 0),
        looks: LOOKS,
        stood: Duration::ZERO,
        borrowed,
        _alone: alone,
    };
    if let Err(error) = attached.lead_in() {
        let remains = attached.detach(CALL).err();
        let left = remains.map_or(String::new(), |remains| format!("; {}", remains.why));
        return Err(AttachRefusal::new(
            format!("a thread of it does not stand still ({error}){left}"),
            "try again when none is in an uninterruptible call",
        ));
    }
    let hello = hello(process);
    Ok((attached, file, hello))
}

fn failed(error: &io::Error) -> AttachRefusal {
    let again = error.kind() == io::ErrorKind::TimedOut;
    let refusal = AttachRefusal::new(format!("it cannot be traced: {error}"), refuse::OUTSIDE);
    AttachRefusal { again, ..refusal }
}

/// Returns what the process would say of itself.
fn hello(process: &LiveProcess) -> Box<Hello> {
    let pid = process.pid;
    let mut hello = Box::new(Hello::EMPTY);
    hello.pid = library::own_number(pid);
    hello.parent = process.status.number("PPid").and_then(|pid| pid.try_into().ok()).unwrap_or(0);
    let shown = shown_as(pid);
    let program = fs::read_link(format!("/proc/{shown}/exe")).unwrap_or_default();
    let program = program.to_string_lossy();
    let length = program.len().min(hello.program.len());
    hello.program[..length].copy_from_slice(&program.as_bytes()[..length]);
    hello.program_length = length as u32;
    let arguments = fs::read(format!("/proc/{shown}/cmdline")).unwrap_or_default();
    let length = arguments.len().min(hello.arguments.len());
    hello.arguments[..length].copy_from_slice(&arguments[..length]);
    hello.arguments_length = length as u32;
    hello
}

/// Has a thread load the library, and begin.
fn load(pid: u32, token: &str) -> Result<(Library, File, Duration), AttachRefusal> {
    let memory = TargetMemory::open(pid).map_err(|error| failed(&error))?;
    let objects = Objects::of(pid, &memory);
    refuse::check_files(objects.as_ref(), &memory)?;
    let objects = objects.expect("checked above");
    let start = Instant::now();
    let loaded = with_thread(pid, &memory, &objects, |borrowed| {
        let mut library = Library::load(borrowed, pid, &memory)?;
        match library.begin(borrowed, pid, token, &memory) {
            Ok(Some(file)) => Ok((library, file)),
            Ok(None) => Err("the library has begun before".into()),
            Err(why) => {
                // Nobody else knows it yet, and it has registered nothing.
                unload(borrowed, &objects, &memory, &library).map_err(|error| error.to_string())?;
                Err(why)
            }
        }
    });
    let (library, file) = loaded?;
    Ok((library, file, start.elapsed()))
}

fn unload(
    borrowed: &mut Borrowed<'_>,
    objects: &Objects,
    memory: &TargetMemory,
    library: &Library,
) -> io::Result<()> {
    let dlclose = objects.libc().and_then(|libc| libc.function(memory, "dlclose"));
    borrowed.call(dlclose.ok_or(io::ErrorKind::NotFound)?, &[library.handle])
}

/// Does `work` with a thread of the process that can make calls.
fn with_thread<R>(
    pid: u32,
    memory: &TargetMemory,
    objects: &Objects,
    work: impl FnOnce(&mut Borrowed<'_>) -> Result<R, String>,
) -> Result<R, AttachRefusal> {
    let places = CallPlaces::of(objects, memory).ok_or_else(|| {
        AttachRefusal::new("its glibc is unlike those that are known", refuse::OUTSIDE)
    })?;
    let mut moments = Moments::new(pid, memory, objects).map_err(|error| failed(&error))?;
    let found = moments.find(Instant::now() + MOMENT).map_err(|error| failed(&error))?;
    let held = found.ok_or_else(|| {
        AttachRefusal::new(
            "no thread was found at a place at which it can load a library: none sleeps in a call that \
             holds no lock of the loader or the allocator, with a stack that is known to its end",
            format!("try again; {}", refuse::OUTSIDE),
        )
    })?;
    let said = |error: io::Error| AttachRefusal::new(format!("{error}"), refuse::OUTSIDE);
    let mut borrowed = Borrowed::new(held, memory, places, Instant::now() + CALL).map_err(said)?;
    let done = work(&mut borrowed);
    borrowed.give_back().map_err(said)?;
    done.map_err(|why| AttachRefusal::new(why, refuse::OUTSIDE))
}

impl Attached {
    /// Returns how many words lead to the library.
    pub(crate) fn words(&self) -> usize {
        self.slots.count()
    }

    /// Leads the calls of all files to the library: at the beginning, and when others were loaded.
    fn lead_in(&mut self) -> io::Result<()> {
        let pid = self.pid;
        let memory = TargetMemory::open(pid)?;
        let mark = Objects::of(pid, &memory).map_or((0, 0, 0), |objects| objects.mark());
        let library = self.library.clone();
        let slots = self.slots.clone();
        let (slots, stood) = tried(move |patience| {
            let mut slots = slots.clone();
            let library = library.clone();
            move || {
                let memory = TargetMemory::open(pid)?;
                let stood = slots.lead_in(pid, &memory, &library, patience)?;
                Ok((slots, stood))
            }
        })?;
        self.slots = slots;
        self.mark = mark;
        self.stood = self.stood.max(stood);
        Ok(())
    }

    /// Looks whether other files have been loaded since, and leads their calls to the library too. Returns
    /// false if the process has become another program, which has no library.
    pub(crate) fn look(&mut self) -> bool {
        let Ok(memory) = TargetMemory::open(self.pid) else { return true };
        let mark = Objects::of(self.pid, &memory).map(|objects| objects.mark());
        if mark != Some(self.mark) {
            if self.library.has_gone_from(self.pid) {
                return false;
            }
            self.looks = LOOKS;
        }
        if self.looks != 0 {
            self.looks -= 1;
            // If it fails, the next look tries it again.
            if self.lead_in().is_err() {
                self.looks = LOOKS;
            }
        }
        true
    }

    /// Takes everything back out of the process, and out of the children that it has forked meanwhile;
    /// threads that are inside have `patience` to come out. Returns the longest that all threads stood
    /// still at once.
    ///
    /// # Errors
    /// What is left. It records nothing, and no call leads to it.
    pub(crate) fn detach(mut self, patience: Duration) -> Result<Duration, Remains> {
        /// Children may fork meanwhile.
        const GENERATIONS: usize = 8;
        let mut why = self.leave(self.pid, patience).err().map(|remains| remains.why);
        let mut seen = vec![self.pid];
        for generation in 0.. {
            let mut children = self.file.map(with_file).unwrap_or_default();
            children.retain(|child| !seen.contains(child));
            if children.is_empty() {
                break;
            }
            if generation == GENERATIONS {
                let number = children.len();
                why.get_or_insert(format!("{number} of its children go on forking: try --detach"));
                break;
            }
            for child in children {
                seen.push(child);
                if let Err(remains) = self.leave(child, patience) {
                    why.get_or_insert(format!("child {child}: {}", remains.why));
                }
            }
        }
        why.map_or(Ok(self.stood), |why| Err(Remains { why }))
    }

    /// Takes everything back out of the process, or out of a copy of it.
    fn leave(&mut self, pid: u32, patience: Duration) -> Result<(), Remains> {
        // Another program has none of it.
        if self.library.has_gone_from(pid) {
            return Ok(());
        }
        let has_ended = || fs::read_link(format!("/proc/{}/exe", shown_as(pid))).is_err();
        let (library, slots) = (self.library.clone(), self.slots.clone());
        let end = Instant::now() + patience;
        let past = loop {
            let (library, slots) = (library.clone(), slots.clone());
            let past = tried(move |time| {
                let (library, mut slots) = (library.clone(), slots.clone());
                move || {
                    let memory = TargetMemory::open(pid)?;
                    let stood = slots.lead_past(pid, &memory, &library, time)?;
                    Ok((slots.may_be_copied, stood))
                }
            });
            // A thread that gets no processor stands still when it has got one.
            match past {
                Err(error) if error.kind() == io::ErrorKind::TimedOut && Instant::now() < end => {}
                past => break past,
            }
        };
        let (copied, stood) = match past {
            Ok(past) => past,
            // It may be another program by now.
            Err(_) if has_ended() || self.library.has_gone_from(pid) => return Ok(()),
            Err(error) => {
                let why = format!("its calls still go through lockstead's library: {error}");
                return Err(Remains { why });
            }
        };
        self.stood = self.stood.max(stood);
        let end = Instant::now() + patience;
        loop {
            let library = self.library.clone();
            let gone = trace::apart(move || take_out(pid, &library, copied, end));
            let why = match gone.map_err(|error| error.to_string()).flatten() {
                Err(why) if !has_ended() && library_file(pid).is_some() => why,
                _ => return Ok(()),
            };
            // Each step can be done again.
            if Instant::now() >= end {
                return Err(Remains {
                    why: format!(
                        "lockstead's library stays in it, and does nothing any more: {why}"
                    ),
                });
            }
        }
    }
}

/// Takes the library out of a process whose calls lead past it.
fn take_out(pid: u32, library: &Library, copied: bool, end: Instant) -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let memory = TargetMemory::open(pid).map_err(said)?;
    let objects = Objects::of(pid, &memory).ok_or("its list of files is gone")?;
    let mut leaving = Leaving::new(pid, &memory, library).map_err(said)?;
    let empty = |leaving: &mut Leaving<'_>| {
        let inside = leaving.wait(end).map_err(said)?;
        match inside.as_slice() {
            [] => Ok(()),
            [first, more @ ..] => Err(format!(
                "thread {first}{} is still in a call that began in it",
                if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) }
            )),
        }
    };
    empty(&mut leaving)?;
    if copied && !leaving.replace_pointers().map_err(said)? {
        return Err("the program keeps the address of a function of it".into());
    }
    let call = |work: &dyn Fn(&mut Borrowed<'_>) -> io::Result<()>| {
        with_thread(pid, &memory, &objects, |borrowed| work(borrowed).map_err(said))
            .map_err(|refusal| refusal.why)
    };
    call(&|borrowed| borrowed.call(library.function(LEAVE), &[]))?;
    empty(&mut leaving)?;
    call(&|borrowed| {
        borrowed.call(library.function(FORGET), &[])?;
        unload(borrowed, &objects, &memory, library)
    })?;
    let maps = Maps::of(pid).map_err(said)?;
    if maps.iter().any(refuse::is_library) {
        return Err("its loader does not unload it".into());
    }
    Ok(())
}

/// Takes out of a process what an attach has left whose command has gone.
///
/// # Errors
/// Why not, or what is left.
pub(crate) fn clean(process: &LiveProcess, patience: Duration) -> Result<bool, AttachRefusal> {
    let pid = process.pid;
    let alone = Alone::with(pid)?;
    // A thread that was borrowed by a command which was killed just now finishes its call first.
    std::thread::sleep(SETTLES);
    let memory = TargetMemory::open(pid).map_err(|error| failed(&error))?;
    let is_there = Maps::of(pid).is_ok_and(|maps| maps.iter().any(refuse::is_library));
    if !is_there && !left_open::is_any(pid) {
        return Ok(false);
    }
    if refuse::is_watched(pid) {
        return Err(AttachRefusal::new(
            "a command of lockstead watches it",
            "end that with Ctrl-C or SIGTERM: it takes everything out",
        ));
    }
    let objects = Objects::of(pid, &memory)
        .ok_or_else(|| AttachRefusal::new("its list of files cannot be read", refuse::OUTSIDE))?;
    if !is_there {
        let closed = trace::apart(move || {
            let memory = TargetMemory::open(pid).map_err(|error| failed(&error))?;
            with_thread(pid, &memory, &objects, left_open::close)
        });
        return closed.map_err(|error| failed(&error))?.map(|()| true);
    }
    let library = Library::find(&objects, &memory).filter(|library| {
        objects.iter().any(|one| one.map == library.handle && one.name.starts_with("/proc/"))
    });
    let Some(library) = library else {
        return Err(AttachRefusal::new(
            "it was started under `lockstead run`, whose library stays to the end",
            "nothing need be done: without the command it records nothing that anybody reads",
        ));
    };
    let found = trace::apart(move || {
        let memory = TargetMemory::open(pid).map_err(|error| failed(&error))?;
        let mut library = library;
        with_thread(pid, &memory, &objects, |borrowed| {
            library.begin(borrowed, pid, "0", &memory)?;
            left_open::close(borrowed)
        })?;
        Ok::<_, AttachRefusal>(library)
    });
    let library = found.map_err(|error| failed(&error))??;
    let attached = Attached {
        pid,
        library,
        file: library_file(pid),
        slots: Slots::default(),
        mark: (0, 0, 0),
        looks: LOOKS,
        stood: Duration::ZERO,
        borrowed: Duration::ZERO,
        _alone: alone,
    };
    let left = attached.detach(patience).map(|_| true);
    left.map_err(|remains| AttachRefusal::new(remains.why, "try again later"))
}

/// Does what [`STAND`] gives more and more time for, each time in a thread of its own: with the end of
/// that, threads go on that were held.
fn tried<R, W>(work: impl Fn(Duration) -> W) -> io::Result<R>
where
    R: Send + 'static,
    W: FnOnce() -> io::Result<R> + Send + 'static,
{
    let mut last = io::ErrorKind::TimedOut.into();
    for patience in STAND {
        match trace::apart(work(patience))? {
            Ok(done) => return Ok(done),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            Err(error) => last = error,
        }
        std::thread::sleep(PAUSE);
    }
    Err(last)
}
