//! Language runtimes whose own tools see more of their programs than the kernel does.
//!
//! # Role
//! What a thread of Java, of Node or of Go waits for is often a lock of the language, which is no
//! object in memory that could be read from here. The tool of the runtime knows it; so the reports
//! say which command to run. Here is the one table of them. Each command was tried on a program
//! that hangs in such a lock, but that of .NET, which is as its documentation has it.

use crate::maps::{Backing, Maps};
use crate::module::Module;
use crate::proc::shown::shown_as;
use crate::stack::{Frame, Stack};
use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::FileHeader;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What a runtime is known by.
enum Mark {
    /// A library or a program of this name is mapped.
    File(&'static str),
    /// The program has this section.
    Section(&'static str),
}

/// A language runtime, with what to say of it.
pub struct Runtime {
    marks: &'static [Mark],
    /// What is not seen from here, and the command that shows it; `PID` stands for the process.
    text: &'static str,
    /// What threads do that run these functions, each by a part of its name.
    roles: &'static [(&'static str, &'static str)],
}

static RUNTIMES: [Runtime; 4] = [
    Runtime {
        marks: &[Mark::File("libjvm.so")],
        text: "a Java machine: the monitors and locks of Java are not among these; `jstack PID` or \
               `jcmd PID Thread.print` shows them with their owners, and `kill -3 PID` has the \
               program print them itself",
        roles: &[],
    },
    Runtime {
        marks: &[Mark::File("node"), Mark::File("nodejs"), Mark::File("libnode.so")],
        text: "Node.js: where its JavaScript stands is not seen from here; `kill -USR1 PID`, then \
               `node inspect -p PID` with `pause` and `bt` shows it, in a loop or in Atomics.wait \
               too (a report by --report-on-signal waits for the event loop)",
        roles: &[
            ("node::Start(", "main thread"),
            ("node::worker::Worker::StartThread", "JavaScript worker"),
            ("PlatformWorkerThread", "V8 platform worker"),
            ("DelayedTaskScheduler", "V8 platform timer"),
            ("StartIoThreadMain", "inspector signals"),
            ("uv__thread_pool_worker", "libuv pool worker"),
        ],
    },
    Runtime {
        marks: &[Mark::File("libcoreclr.so")],
        text: "a .NET runtime: the monitors of .NET are not among these; `dotnet-stack report -p \
               PID` shows the stacks of its code",
        roles: &[],
    },
    // The last, for its mark takes a look into the file.
    Runtime {
        marks: &[Mark::Section(".go.buildinfo")],
        text: "a Go program: goroutines, their sync.Mutex, channels and wait groups cannot be seen \
               from threads; `dlv attach PID` with `goroutines -t` shows them, and `kill -QUIT PID` \
               has the program print them all and end",
        roles: &[],
    },
];

/// Returns the runtime of a process, if it is one whose own tool shows more.
#[must_use]
pub fn of(pid: u32, maps: &Maps) -> Option<&'static Runtime> {
    let mapped = |name: &str| maps.iter().any(|mapping| is_file(&mapping.backing, name));
    let sections = || sections(&PathBuf::from(format!("/proc/{}/exe", shown_as(pid))));
    RUNTIMES.iter().find(|runtime| {
        runtime.marks.iter().any(|mark| match *mark {
            Mark::File(name) => mapped(name),
            Mark::Section(name) => sections().is_some_and(|all| all.iter().any(|one| one == name)),
        })
    })
}

/// Returns whether it is a file of this name, whatever version of a library.
fn is_file(backing: &Backing, name: &str) -> bool {
    let Backing::File { path, .. } = backing else { return false };
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    file == name
        || name.ends_with(".so")
            && file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

/// Returns the names of the sections of an ELF file.
fn sections(path: &Path) -> Option<Vec<String>> {
    let module = Module::open(File::open(path).ok()?, path.to_owned(), false)?;
    let bytes = module.bytes();
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let names = sections.iter().filter_map(|section| {
        let name = sections.section_name(endian, section).ok()?;
        Some(String::from_utf8_lossy(name).into_owned())
    });
    Some(names.collect())
}

impl Runtime {
    /// Returns what is not seen of this process, and the command that shows it.
    #[must_use]
    pub fn advice(&self, pid: u32) -> String {
        self.text.replace("PID", &pid.to_string())
    }

    /// Returns what a thread is there for, as its stack shows; the runtime gives all its threads
    /// one name.
    #[must_use]
    pub fn role(&self, stack: &Stack) -> Option<&'static str> {
        let in_pool = |frame: &Frame| {
            let file = frame.file.as_deref().unwrap_or_default();
            frame.function.as_deref() == Some("worker") && file.ends_with("threadpool.c")
        };
        // The outermost function says it.
        stack.frames.iter().rev().find_map(|frame| {
            let function = frame.function.as_deref()?;
            let known = if in_pool(frame) { "uv__thread_pool_worker" } else { function };
            self.roles.iter().find(|(part, _)| known.contains(part)).map(|(_, role)| *role)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackEnd;

    fn maps(file: &str) -> Maps {
        Maps::parse(format!("1000-2000 r-xp 00000000 08:01 7 {file}\n").as_bytes())
    }

    fn frame(function: &str, file: Option<&str>) -> Frame {
        let (function, file) = (Some(function.to_owned()), file.map(Into::into));
        Frame { function, file, ..Frame::default() }
    }

    #[test]
    fn runtimes_are_known_by_their_files() {
        for (file, tool) in [
            ("/usr/lib/jvm/lib/server/libjvm.so", "jstack 7`"),
            ("/usr/bin/node", "node inspect -p 7`"),
            ("/usr/lib/libnode.so.115", "node inspect -p 7`"),
            ("/opt/libcoreclr.so", "dotnet-stack report -p 7`"),
        ] {
            let found = of(u32::MAX, &maps(file)).expect(file);
            assert!(found.advice(7).contains(tool), "{}", found.advice(7));
        }
        // Neither a part of a name nor this test.
        for file in ["/usr/lib/libjvm.solid", "/usr/bin/nodes", "/usr/bin/bash", "[heap]"] {
            assert!(of(std::process::id(), &maps(file)).is_none(), "{file}");
        }
    }

    #[test]
    fn the_threads_of_node_have_roles_by_their_outermost_function() {
        let node = of(u32::MAX, &maps("/usr/bin/node")).expect("known");
        let role = |frames: Vec<Frame>| node.role(&Stack { frames, end: StackEnd::Bottom });
        let wait = || frame("uv_cond_wait", None);
        let pool = frame("worker", Some("../deps/uv/src/threadpool.c"));
        assert_eq!(role(vec![wait(), pool]), Some("libuv pool worker"));
        assert_eq!(role(vec![wait(), frame("worker", Some("main.c"))]), None);
        let platform = frame("node::(anonymous namespace)::PlatformWorkerThread(void*)", None);
        assert_eq!(role(vec![wait(), platform]), Some("V8 platform worker"));
        let start = frame("node::Start(int, char**)", None);
        assert_eq!(role(vec![wait(), start, frame("main", None)]), Some("main thread"));
    }
}
