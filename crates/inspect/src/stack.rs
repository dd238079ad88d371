//! Frames and stacks as data, and their one rendering as text.
//!
//! # Role
//! What the unwinder and the recorded stacks become after their addresses have
//! got names, and what every report prints: as text by [`Frame::site`] and
//! [`Frame::long`], as JSON by their fields.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// The library that `lockstead run` puts under a program: its frames are no
/// part of what the program did.
const LIBRARY: &str = "liblockstead_preload.so";

/// A place in code, as found on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeAddress {
    /// The instruction that runs next.
    pub address: u64,
    /// Whether `address` is where a call returns to. The call is then the
    /// instruction in front of it, and may be the last of its function.
    pub returns: bool,
    /// Whether the frame was found by looking for it on the stack, because the
    /// unwind tables did not lead there. It may then, rarely, be the leftover
    /// of an earlier call.
    pub found: bool,
}

impl CodeAddress {
    /// Returns the address of the instruction that is executing.
    #[must_use]
    pub fn exact(address: u64) -> Self {
        CodeAddress { address, returns: false, found: false }
    }

    /// Returns the address that a call returns to.
    #[must_use]
    pub fn return_to(address: u64) -> Self {
        CodeAddress { address, returns: true, found: false }
    }

    /// Returns an address inside the instruction that is meant: for a return address one less, for
    /// the call may be its function's last instruction and the address that of the next function.
    #[must_use]
    pub fn lookup(self) -> u64 {
        self.address.wrapping_sub(u64::from(self.returns))
    }
}

/// One level of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// The address at which the thread is, or to which it will return.
    pub address: u64,
    /// The name of the function, demangled; null where no symbol covers the address.
    pub function: Option<String>,
    /// Bytes from the function's start.
    pub offset: u64,
    /// The source file, as the debug information names it.
    pub file: Option<String>,
    /// The number of the line in `file`.
    pub line: Option<u32>,
    /// The file that the code was loaded from, or the kernel's name for it.
    pub module: Option<String>,
    /// The address as an offset in that file, for other tools to look up.
    pub module_offset: Option<u64>,
    /// Whether the compiler put this function into that of the next frame.
    pub inlined: bool,
    /// Whether the frame was found by looking for it on the stack, because the unwind tables did
    /// not lead there. It may, rarely, be left over from an earlier call.
    pub found: bool,
}

impl Frame {
    /// Returns the frame in few words: `cache_new() at cache.c:41`, `cache_new+0x1c in libfoo.so`,
    /// `libfoo.so+0x12`.
    #[must_use]
    pub fn site(&self) -> String {
        self.text(base_name)
    }

    /// Returns the frame with full paths.
    #[must_use]
    pub fn long(&self) -> String {
        self.text(|path| path)
    }

    fn text(&self, name: impl Fn(&str) -> &str) -> String {
        let module = self.module.as_deref().map(&name);
        match (&self.function, &self.file, self.line) {
            (Some(function), Some(file), Some(line)) => {
                format!("{} at {}:{line}", called(function), name(file))
            }
            // A line of zero, "no line", is known of code that the compiler
            // made up.
            (Some(function), Some(file), None) => format!("{} in {}", called(function), name(file)),
            (Some(function), None, _) => match module {
                Some(module) => format!("{function}+{:#x} in {module}", self.offset),
                None => format!("{function}+{:#x}", self.offset),
            },
            (None, Some(file), Some(line)) => format!("{}:{line}", name(file)),
            (None, ..) => match (module, self.module_offset) {
                (Some(module), Some(offset)) => format!("{module}+{offset:#x}"),
                (Some(module), None) => format!("{:#x} in {module}", self.address),
                (None, _) => format!("{:#x}", self.address),
            },
        }
    }

    /// Returns the function alone: `cache_new()`.
    #[must_use]
    pub fn called(&self) -> Option<String> {
        self.function.as_deref().map(called)
    }

    /// Tells whether the frame is lockstead's own, put under the program.
    #[must_use]
    pub fn is_lockstead(&self) -> bool {
        self.module.as_deref().is_some_and(is_lockstead)
    }

    /// Tells whether the frame is the C library's.
    #[must_use]
    pub fn is_libc(&self) -> bool {
        self.module.as_deref().is_some_and(is_libc)
    }
}

/// Tells whether a file is the library that `lockstead run` puts under programs.
#[must_use]
pub fn is_lockstead(path: &str) -> bool {
    // Handed over as a memory file it shows as `/memfd:NAME`.
    base_name(path).contains(LIBRARY)
}

/// Tells whether a file is the C library, its loader, or the kernel's part of it.
#[must_use]
pub fn is_libc(path: &str) -> bool {
    let name = base_name(path);
    let musl = ["libc.so", "libc.musl", "ld-musl"];
    is_glibc(path) || musl.iter().any(|start| name.starts_with(start))
}

/// Tells whether a file is glibc, its loader, or the kernel's part of it.
#[must_use]
pub fn is_glibc(path: &str) -> bool {
    let name = base_name(path);
    let parts = ["libc.so.", "libc-", "libpthread", "ld-linux", "[vdso]"];
    parts.iter().any(|start| name.starts_with(start))
}

/// Returns a function's name without its parameters: functions of C++ and Rust come with their
/// parameters, or with brackets of other kinds; those of C without any.
fn called(function: &str) -> String {
    if function.ends_with(')') || function.contains('(') {
        function.to_owned()
    } else {
        format!("{function}()")
    }
}

fn base_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

/// Why a stack has no more frames than it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum StackEnd {
    /// It is complete: the last frame is where the thread began.
    Bottom,
    /// There are more, and no more than this many are looked at.
    Limit {
        /// How many there are.
        frames: usize,
    },
    /// Nothing says how the code at this address uses the stack.
    NoUnwindInformation {
        /// The address at which the search ended.
        address: u64,
        /// The file of that code.
        module: Option<String>,
    },
    /// The caller is found by a register whose value is not known from
    /// outside the thread.
    UnknownRegister {
        /// The name of the register.
        register: String,
        /// The address at which the search ended.
        address: u64,
        /// The file of that code.
        module: Option<String>,
    },
    /// The memory of the stack could not be read.
    Unreadable {
        /// The address at which the search ended.
        address: u64,
    },
    /// What should be a return address points at no code: the stack changed
    /// while it was read, or its memory is damaged.
    NotCode {
        /// The address at which the search ended.
        address: u64,
    },
    /// The next frame would lie below the last: as [`StackEnd::NotCode`].
    Backwards {
        /// The address at which the search ended.
        address: u64,
    },
}

impl StackEnd {
    /// Tells whether every frame is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == StackEnd::Bottom
    }
}

impl fmt::Display for StackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |module: &Option<String>| match module {
            Some(module) => format!(" in {}", base_name(module)),
            None => String::new(),
        };
        match self {
            StackEnd::Bottom => write!(f, "complete"),
            StackEnd::Limit { frames } => write!(f, "cut after {frames} frames"),
            StackEnd::NoUnwindInformation { address, module } => {
                write!(f, "ends here: no unwind information for {address:#x}{}", of(module))
            }
            StackEnd::UnknownRegister { register, address, module } => write!(
                f,
                "ends here: the frame of {address:#x}{} is found by the register {register}, \
                 which cannot be read without stopping the thread",
                of(module)
            ),
            StackEnd::Unreadable { address } => {
                write!(f, "ends here: the stack could not be read at {address:#x}")
            }
            StackEnd::NotCode { address } => {
                write!(f, "ends here: the return address {address:#x} is not in any code")
            }
            StackEnd::Backwards { address } => {
                write!(f, "ends here: the caller of {address:#x} would lie below it on the stack")
            }
        }
    }
}

/// A call stack, innermost frame first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stack {
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// Why there are no more.
    pub end: StackEnd,
}

impl Stack {
    /// Returns the frames of the program: without lockstead's own, and without those of the C
    /// library above them, where the library that waits for a thread sleeps. Lockstead's stand in
    /// the middle and at the bottom too, where they start threads and call the program's functions.
    pub fn visible(&self) -> impl Iterator<Item = &Frame> + Clone {
        let first = self.frames.iter().position(|frame| !frame.is_lockstead() && !frame.is_libc());
        let own = self.frames.iter().position(Frame::is_lockstead);
        let skipped = match (own, first) {
            (Some(own), Some(first)) if own < first => first,
            (Some(_), None) => self.frames.len(),
            _ => 0,
        };
        self.frames[skipped..].iter().filter(|frame| !frame.is_lockstead())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: Option<&str>, file: Option<(&str, u32)>, module: Option<&str>) -> Frame {
        Frame {
            address: 0x7f12,
            function: function.map(Into::into),
            offset: 0x1c,
            file: file.map(|(name, _)| name.into()),
            line: file.map(|(_, line)| line),
            module: module.map(Into::into),
            module_offset: None,
            inlined: false,
            found: false,
        }
    }

    #[test]
    fn a_site_says_the_best_that_is_known() {
        let full = frame(Some("cache_new"), Some(("/src/cache.c", 41)), Some("/usr/lib/libc.so"));
        assert_eq!(full.site(), "cache_new() at cache.c:41");
        assert_eq!(full.long(), "cache_new() at /src/cache.c:41");
        let stripped = frame(Some("cache_new"), None, Some("/opt/lib/libfoo.so"));
        assert_eq!(stripped.site(), "cache_new+0x1c in libfoo.so");
        assert_eq!(stripped.long(), "cache_new+0x1c in /opt/lib/libfoo.so");
        let mut nameless = frame(None, None, Some("/opt/lib/libfoo.so"));
        assert_eq!(nameless.site(), "0x7f12 in libfoo.so");
        nameless.module_offset = Some(0x12);
        assert_eq!(nameless.site(), "libfoo.so+0x12");
        assert_eq!(frame(None, None, None).site(), "0x7f12");
        let cpp = frame(Some("Cache::find(int)"), Some(("x.cpp", 3)), None);
        assert_eq!(cpp.site(), "Cache::find(int) at x.cpp:3");
    }

    #[test]
    fn the_library_hides_itself_and_what_it_called() {
        let own = frame(Some("lock"), None, Some("/memfd:liblockstead_preload.so"));
        let user = frame(Some("worker"), None, Some("/bin/prog"));
        let libc = frame(Some("syscall"), None, Some("/lib/libc.so.6"));
        let visible = |frames: &[&Frame]| {
            let frames = frames.iter().map(|&f| f.clone()).collect();
            let stack = Stack { frames, end: StackEnd::Bottom };
            stack.visible().map(|f| f.function.clone().expect("named")).collect::<Vec<_>>()
        };
        assert_eq!(visible(&[&libc, &own, &own, &user]), ["worker"]);
        assert_eq!(visible(&[&own, &libc, &own, &user]), ["worker"]);
        assert_eq!(visible(&[&libc, &user]), ["syscall", "worker"], "not under lockstead");
        assert_eq!(visible(&[&libc, &user, &own, &libc]), ["syscall", "worker", "syscall"]);
        assert_eq!(visible(&[&user, &own, &user]), ["worker", "worker"]);
        assert_eq!(visible(&[&libc, &own]), [""; 0]);
    }

    #[test]
    fn return_addresses_are_looked_up_inside_the_call() {
        assert_eq!(CodeAddress::return_to(0x1000).lookup(), 0xfff);
        assert_eq!(CodeAddress::exact(0x1000).lookup(), 0x1000);
    }

    #[test]
    fn an_end_says_what_was_missing() {
        assert_eq!(StackEnd::Limit { frames: 256 }.to_string(), "cut after 256 frames");
        let end = StackEnd::NoUnwindInformation { address: 0x10, module: Some("/lib/x.so".into()) };
        assert_eq!(end.to_string(), "ends here: no unwind information for 0x10 in x.so");
        assert!(StackEnd::Bottom.is_complete() && !end.is_complete());
    }
}
