//! The library in the process: how it comes in, and where its functions lie.

use super::call::Borrowed;
use super::memory::{TargetMemory, is_of_parent};
use super::objects::{Object, Objects};
use super::refuse;
use super::watched::Watched;
use crate::preload_image;
use lockstead_inspect::maps::Maps;
use lockstead_inspect::proc::shown::shown_as;
use lockstead_inspect::proc::status::StatusFile;
use lockstead_ledger::attach::{self, AttachRequest, CALLED_BACK, refusal};
use lockstead_ledger::hello;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Functions of the library that no call is led to here: a thread that was created through them
/// would keep a frame of the library's, and a key of the library's is none that the program has.
const LEFT_OUT: &[&str] = &[
    "pthread_create",
    "thrd_create",
    "pthread_key_create",
    "__pthread_key_create",
    "pthread_key_delete",
    "pthread_getspecific",
    "__pthread_getspecific",
    "pthread_setspecific",
    "__pthread_setspecific",
    "tss_create",
    "tss_delete",
    "tss_get",
    "tss_set",
];

/// The library as it lies in the process.
#[derive(Clone, Debug)]
pub(super) struct Library {
    /// The loader's record, which is the handle of `dlopen`.
    pub(super) handle: u64,
    /// Where its code lies.
    pub(super) code: (u64, u64),
    /// The functions that calls are led to, with those of the C library for which they stand.
    pub(super) functions: BTreeMap<String, (u64, u64)>,
    own: BTreeMap<&'static str, u64>,
    /// The word that says whether calls are recorded.
    pub(super) state: u64,
    /// Functions that the C library calls.
    pub(super) called_back: [u64; CALLED_BACK],
    /// What says to other commands that this one watches.
    watched: Option<Arc<Watched>>,
}

impl Library {
    /// Finds it among the files of a process; `None` if it is not there.
    pub(super) fn find(objects: &Objects, memory: &TargetMemory) -> Option<Library> {
        let own = |object: &Object| {
            let names = [attach::ATTACH, attach::LEAVE, attach::FORGET];
            let found = names.map(|name| Some((name, object.function(memory, name)?)));
            found.into_iter().collect::<Option<BTreeMap<_, _>>>()
        };
        let (object, mut own) = objects.iter().find_map(|object| Some((object, own(object)?)))?;
        // Where nothing is signed there is none.
        own.extend(object.function(memory, attach::SIGN).map(|sign| (attach::SIGN, sign)));
        let libc = objects.libc()?;
        // Another file may have a function of this name, for a structure of its own, and mean that one.
        let is_others = |name: &str| {
            let mut others = objects.iter().filter(|other| {
                other.map != object.map && other.map != libc.map && !other.is_loader()
            });
            others.any(|other| other.function(memory, name).is_some())
        };
        let functions = object.all_defined(memory).into_iter().filter_map(|function| {
            let name = function.name;
            let is_led =
                !name.starts_with("lockstead") && !LEFT_OUT.contains(&&*name) && !is_others(&name);
            let real = libc.function(memory, &name).filter(|_| is_led)?;
            Some((name, (function.address, real)))
        });
        Some(Library {
            handle: object.map,
            code: object.code_range(memory)?,
            functions: functions.collect(),
            own,
            state: 0,
            called_back: [0; CALLED_BACK],
            watched: None,
        })
    }

    /// Returns one of the functions that the command calls.
    pub(super) fn function(&self, name: &str) -> u64 {
        self.own.get(name).copied().unwrap_or(0)
    }

    /// Returns the C library's function, if this is the address of the one of the library's that
    /// stands before it.
    pub(super) fn behind(&self, address: u64) -> Option<u64> {
        if !self.contains(address) {
            return None;
        }
        self.functions.values().find(|&&(ours, _)| ours == address).map(|&(_, real)| real)
    }

    /// Tells whether this is an address of the library's code.
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.code.0..self.code.1).contains(&address)
    }

    /// Tells whether the library is no longer where it was loaded, as far as that can be read: another program has
    /// replaced the process's (`execve`), whose memory is not to be touched.
    pub(super) fn has_gone_from(&self, pid: u32) -> bool {
        let is_in = |maps: Maps| maps.find(self.code.0).is_some_and(refuse::is_library);
        Maps::of(pid).is_ok_and(|maps| !is_in(maps))
    }

    /// Has the thread load the library.
    ///
    /// # Errors
    /// It could not be loaded, in words.
    pub(super) fn load(
        borrowed: &mut Borrowed<'_>,
        pid: u32,
        memory: &TargetMemory,
    ) -> Result<Library, String> {
        const NOW: u64 = 2;
        const EXECUTABLE: u64 = 0x10;
        let image = preload_image::to_be_loaded_late()?;
        let said = |error: io::Error| error.to_string();
        let name = borrowed.put(&[hello::LIBRARY.as_bytes(), b"\0"].concat()).map_err(said)?;
        let close_on_exec = u64::from(libc::MFD_CLOEXEC);
        let mut make = |flags| borrowed.system(libc::SYS_memfd_create, &[name, flags]);
        let mut file = make(close_on_exec | EXECUTABLE).map_err(said)?;
        // Kernels before 6.3 do not know the word.
        if file == -i64::from(libc::EINVAL) {
            file = make(close_on_exec).map_err(said)?;
        }
        let file = u64::try_from(file).map_err(|_| {
            let error = io::Error::from_raw_os_error(i32::try_from(-file).unwrap_or(0));
            format!("it may make no file in memory: {error}")
        })?;
        let path = format!("/proc/thread-self/fd/{file}");
        let written = open_new(borrowed.tid(), file, hello::LIBRARY)
            .and_then(|mut copy| copy.write_all(&image));
        let opened = written.and_then(|()| {
            let path = borrowed.put(&[path.as_bytes(), b"\0"].concat())?;
            let dlopen = Objects::of(pid, memory)
                .and_then(|objects| objects.libc()?.function(memory, "dlopen"))
                .ok_or(io::ErrorKind::NotFound)?;
            borrowed.call(dlopen, &[path, NOW])
        });
        let refused = borrowed.refused;
        let _ = borrowed.system(libc::SYS_close, &[file]);
        opened.map_err(said)?;
        let objects = Objects::of(pid, memory).ok_or("its list of files is gone")?;
        Library::find(&objects, memory).ok_or_else(|| {
            let why = refused.map_or(String::new(), |(number, error)| {
                let call = lockstead_inspect::proc::calls::name(number.cast_signed());
                let error = io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or(0));
                format!(" ({}: {error})", call.unwrap_or("a system call"))
            });
            format!("its loader does not load the library from memory{why}")
        })
    }

    /// Has the library begin to record, and returns the file of its ledger. A library that has begun
    /// before says where its parts are, and has no file.
    ///
    /// # Errors
    /// Why it does not begin, in words.
    pub(super) fn begin(
        &mut self,
        borrowed: &mut Borrowed<'_>,
        pid: u32,
        token: &str,
        memory: &TargetMemory,
    ) -> Result<Option<File>, String> {
        let said = |error: io::Error| error.to_string();
        let mut name = [0; 16];
        let called = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let called = called.strip_suffix(b"\n").unwrap_or(&called);
        name.iter_mut().take(15).zip(called).for_each(|(place, byte)| *place = *byte);
        let half = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| name[at * 8 + byte]));
        let request = AttachRequest {
            token: borrowed.put(token.as_bytes()).map_err(said)?,
            token_length: token.len() as u64,
            first_stack: start_of_stack(pid).unwrap_or(0),
            name: [half(0), half(1)],
            file: u64::MAX,
            ..AttachRequest::default()
        };
        let place = borrowed.put(&request.to_bytes()).map_err(said)?;
        borrowed.call(self.function(attach::ATTACH), &[place]).map_err(said)?;
        let answer = memory.bytes(place, AttachRequest::BYTES).map_err(said)?;
        let answer: [u8; AttachRequest::BYTES] =
            answer.try_into().map_err(|_| "its answer is cut off")?;
        let answer = AttachRequest::from_bytes(&answer);
        if answer.refused != 0 {
            return Err(words(answer.refused));
        }
        (self.state, self.called_back) = (answer.state, answer.called_back);
        if answer.file == u64::MAX {
            return Ok(None);
        }
        let path = format!("/proc/{}/fd/{}", borrowed.tid(), answer.file);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        self.watched = Watched::mark(&path).map(Arc::new);
        let _ = borrowed.system(libc::SYS_close, &[answer.file]);
        file.map(Some).map_err(|error| format!("its ledger cannot be opened: {error}"))
    }
}

/// The device and the number of a file.
pub(super) type LibraryFile = ((u32, u32), u64);

/// Returns the file in memory from which a process has the library.
pub(super) fn library_file(pid: u32) -> Option<LibraryFile> {
    let maps = Maps::of(pid).ok()?;
    let library = maps.iter().find(|mapping| refuse::is_library(mapping))?;
    Some((library.device, library.inode))
}

/// Returns the processes that have the library from this file, each in memory of its own.
pub(super) fn with_file(file: LibraryFile) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&pid| library_file(pid) == Some(file) && !is_of_parent(pid)).collect()
}

/// Opens the empty file in memory of this name that the thread has just made: other threads may have other
/// descriptors, and then the same number is another file of the program's.
fn open_new(tid: u32, descriptor: u64, name: &str) -> io::Result<File> {
    let path = format!("/proc/{tid}/fd/{descriptor}");
    let is_it = fs::read_link(&path)? == Path::new(&format!("/memfd:{name} (deleted)"));
    let file = OpenOptions::new().write(true).open(&path)?;
    if !is_it || file.metadata()?.len() != 0 {
        return Err(io::Error::other("the file that it has made in memory is not found"));
    }
    Ok(file)
}

fn words(refused: u64) -> String {
    let text = match u32::try_from(refused).unwrap_or(0) {
        refusal::LIBC => "its C library is none that the library knows",
        refusal::DESCRIPTORS => "the descriptors of its threads are unlike glibc's",
        refusal::WIPE => "its kernel does not empty memory in forked children (Linux 4.14)",
        refusal::KEY => {
            "it has made more than 31 keys of thread-specific values, and none is left that needs no \
             memory of its allocator"
        }
        refusal::LEDGER => "the ledger finds no room in it, or it may make no file in memory",
        _ => "the library does not begin",
    };
    text.to_owned()
}

/// Returns where the kernel has put the first thread's stack.
fn start_of_stack(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", shown_as(pid))).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(25)?.parse().ok()
}

/// Returns the number of the process in its own namespace.
pub(super) fn own_number(pid: u32) -> u32 {
    let status = StatusFile::read(&format!("/proc/{pid}/status"));
    status.ok().and_then(|status| status.own_number()).unwrap_or(pid)
}
