//! How a process and the command find each other: the environment variable in
//! which the command says where it listens, and the message with which the
//! library hands it the ledger.
//!
//! # Protocol
//! The command listens on a `SOCK_SEQPACKET` socket with the abstract name
//! [`socket_name`], and starts the program with [`VARIABLE`] in its
//! environment. Abstract names belong to a network namespace: for processes in
//! another there is a second socket, a file beside the library, which they have
//! loaded and so can reach. The library connects, sends one [`Hello`] with the
//! descriptor of the ledger's file as `SCM_RIGHTS`, and closes. It waits for no
//! answer; it waits at most [`PATIENCE_MS`] for room in the command's queue.
//! Nobody listens: the library records nothing and the program runs as ever.
//!
//! The process id in the message is the one the process has in its own PID
//! namespace; the command asks the socket (`SO_PEERCRED`) for the one in its own.

use core::fmt;

/// The environment variable that says where the command listens.
pub const VARIABLE: &str = "LOCKSTEAD_RUN";

/// The file name of the library.
pub const LIBRARY: &str = "liblockstead_preload.so";

/// The beginning of the file name of the command's second socket, which lies beside the
/// library; the token follows.
pub const SOCKET: &str = "socket-";

/// The longest wait for room in the command's queue, in milliseconds.
pub const PATIENCE_MS: u64 = 2000;

/// The bytes of the longest token.
pub const TOKEN: usize = 64;

/// First word of every message: "lsHello" and a zero byte.
pub const MAGIC: u64 = u64::from_le_bytes(*b"lsHello\0");

/// What the command tells the library: the value of [`VARIABLE`] is `token;option,option...`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings<'a> {
    /// Tells this command from all others: letters, digits and `-`.
    pub token: &'a [u8],
    /// Whether the library records the children of the process too.
    pub follow: bool,
    /// Whether the library that checks notes blocking calls under a lock.
    pub sleepy: bool,
    /// Whether the library that checks notes what semaphores are used for.
    pub semaphores: bool,
    /// Whether the kernel tells the command of each futex call of the process.
    pub told: bool,
    /// Whether the threads of the process leave their events for the command.
    pub record: bool,
}

impl<'a> Settings<'a> {
    /// Reads the value of [`VARIABLE`]. Returns `None` if this version does not write such a
    /// value.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let semicolon = value.iter().position(|&byte| byte == b';')?;
        let (token, options) = (&value[..semicolon], &value[semicolon + 1..]);
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if token.is_empty() || token.len() > TOKEN || !token.iter().all(plain) {
            return None;
        }
        let mut settings = Settings { token, follow: true, ..Settings::default() };
        for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
            match option {
                b"no-follow" => settings.follow = false,
                b"sleepy" => settings.sleepy = true,
                b"semaphores" => settings.semaphores = true,
                b"told" => settings.told = true,
                b"record" => settings.record = true,
                _ => return None,
            }
        }
        Some(settings)
    }
}

/// Writes the value of [`VARIABLE`].
impl fmt::Display for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.token.iter().try_for_each(|&byte| write!(f, "{}", byte as char))?;
        f.write_str(";")?;
        let options = [
            (!self.follow, "no-follow,"),
            (self.sleepy, "sleepy,"),
            (self.semaphores, "semaphores,"),
            (self.told, "told,"),
            (self.record, "record,"),
        ];
        options.iter().filter(|(set, _)| *set).try_for_each(|(_, name)| f.write_str(name))
    }
}

/// Returns the abstract name of the command's socket, without the zero byte in front, as a
/// buffer and the length used.
#[must_use]
pub fn socket_name(token: &[u8]) -> ([u8; 10 + TOKEN], usize) {
    let mut name = [0; 10 + TOKEN];
    let token = &token[..token.len().min(TOKEN)];
    name[..10].copy_from_slice(b"lockstead-");
    name[10..10 + token.len()].copy_from_slice(token);
    (name, 10 + token.len())
}

/// The message with which a process hands over its ledger.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Hello {
    /// Holds [`MAGIC`], by which a message is known.
    pub magic: u64,
    /// The [`VERSION`](crate::header::VERSION) of the ledger.
    pub version: u32,
    /// The process id, in the process's own namespace.
    pub pid: u32,
    /// The process id of its parent, in the same namespace.
    pub parent: u32,
    /// 1: a child made by `fork` that has not called `exec` since; 0: a new
    /// program.
    pub forked: u32,
    /// The bytes of the ledger; 0: there is none.
    pub size: u64,
    /// The time at which the library began in this process, in nanoseconds of `CLOCK_MONOTONIC`.
    pub began: u64,
    /// Why there is no ledger, as the kernel's number; 0: there is one.
    pub error: u32,
    /// Zero; makes the size of the fields that of the whole.
    pub spare: u32,
    /// The bytes of `program` in use.
    pub program_length: u32,
    /// The bytes of `arguments` in use.
    pub arguments_length: u32,
    /// The path of the program's file.
    pub program: [u8; 512],
    /// Its arguments, each followed by a zero byte; cut at the end.
    pub arguments: [u8; 440],
}

const _: () = assert!(size_of::<Hello>() == 1008);

impl Hello {
    /// A message without content, to fill in.
    pub const EMPTY: Hello = Hello {
        magic: MAGIC,
        version: crate::header::VERSION,
        pid: 0,
        parent: 0,
        forked: 0,
        size: 0,
        began: 0,
        error: 0,
        spare: 0,
        program_length: 0,
        arguments_length: 0,
        program: [0; 512],
        arguments: [0; 440],
    };

    /// Returns the bytes to send.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the message consists of numbers and bytes in C layout without padding, as
        // the assertion above keeps: the sizes of the fields add up to that of the whole.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self).cast(), size_of::<Hello>()) }
    }

    /// Reads a message that was received. Returns `None` if it has another length or does not
    /// begin like one. The caller looks at the version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Hello> {
        if bytes.len() != size_of::<Hello>() {
            return None;
        }
        // SAFETY: the check above has found the bytes to be as many as a message has, and
        // every bit pattern is valid for its fields.
        let hello: Hello = unsafe { bytes.as_ptr().cast::<Hello>().read_unaligned() };
        (hello.magic == MAGIC).then_some(hello)
    }

    /// Returns the path of the program's file.
    #[must_use]
    pub fn program(&self) -> &[u8] {
        &self.program[..(self.program_length as usize).min(self.program.len())]
    }

    /// Returns the arguments, the program's own name first.
    pub fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        let all = &self.arguments[..(self.arguments_length as usize).min(self.arguments.len())];
        let all = all.strip_suffix(b"\0").unwrap_or(all);
        all.split(|&byte| byte == 0).filter(move |_| self.arguments_length != 0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn settings_survive_the_environment() {
        for bits in 0..32 {
            let bits = [1, 2, 4, 8, 16].map(|bit| bits & bit != 0);
            let [follow, sleepy, semaphores, told, record] = bits;
            let settings = Settings { token: b"12-ab", follow, sleepy, semaphores, told, record };
            assert_eq!(Settings::parse(settings.to_string().as_bytes()), Some(settings));
        }
        let long = [b'a'; TOKEN + 1];
        let long: Vec<u8> = long.iter().copied().chain(*b";").collect();
        for bad in [&b""[..], b"x", b";", b"a/b;", b"a;unheard-of", &long] {
            assert_eq!(Settings::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_socket_is_named_by_the_token() {
        let (name, length) = socket_name(b"7f");
        assert_eq!(&name[..length], b"lockstead-7f");
    }

    #[test]
    fn a_message_comes_as_it_was_sent() {
        let mut hello = Hello { pid: 7, forked: 1, ..Hello::EMPTY };
        assert_eq!(hello.arguments().count(), 0);
        hello.program[..4].copy_from_slice(b"/a b");
        hello.program_length = 4;
        hello.arguments[..6].copy_from_slice(b"a\0\0b c");
        hello.arguments_length = 6;
        let back = Hello::from_bytes(hello.as_bytes()).expect("a message");
        assert_eq!((back.pid, back.forked, back.program()), (7, 1, &b"/a b"[..]));
        assert!(back.arguments().eq([&b"a"[..], b"", b"b c"]));
        assert!(Hello::from_bytes(&hello.as_bytes()[1..]).is_none());
        assert!(Hello::from_bytes(&[0; size_of::<Hello>()]).is_none());
    }

    #[test]
    fn a_length_that_lies_reads_no_further() {
        let hello = Hello { program_length: u32::MAX, arguments_length: u32::MAX, ..Hello::EMPTY };
        assert_eq!(hello.program().len(), 512);
        assert!(hello.arguments().map(<[u8]>::len).sum::<usize>() <= 448);
    }
}
