//! Messages with a descriptor, over a `SOCK_SEQPACKET` socket with an abstract
//! name.
//!
//! # Role
//! The one place with the system calls for it; both ends of every message
//! outside the program are here.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// The process at the other end of a connection, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketPeer {
    /// Process id in this process's own PID namespace; 0 for a process that is
    /// not in it.
    pub pid: u32,
    /// Effective user when it connected.
    pub user: u32,
}

/// Longest message that is received.
pub const LONGEST: usize = 4096;

/// Room for the one descriptor that a message may carry. More than that is
/// closed by the kernel.
const CONTROL: usize = 64;

/// Opens a socket whose reads and connections do not block.
fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if socket == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this function has just opened the descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Returns the abstract address of a name, and its length.
fn address(name: &[u8]) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: the structure has numbers and null pointers only, of which all zeroes are valid
    // values.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The first byte is zero: abstract.
    let room = address.sun_path.get_mut(1..=name.len());
    let room = room.ok_or(io::ErrorKind::InvalidInput)?;
    for (place, &byte) in room.iter_mut().zip(name) {
        *place = byte as libc::c_char;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    Ok((address, length as libc::socklen_t))
}

/// Listens at an abstract name.
///
/// # Errors
/// The name is taken, or no socket can be had.
pub fn listen(name: &[u8]) -> io::Result<OwnedFd> {
    listen_to(&address(name)?)
}

/// Listens at a path that does not exist.
///
/// # Errors
/// It does, it is too long, or no socket can be had.
pub fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let path = path.as_os_str().as_bytes();
    // As if it were abstract, then moved to the front; the zero goes behind.
    let (mut address, length) = address(path)?;
    address.sun_path.rotate_left(1);
    listen_to(&(address, length))
}

/// Tells whether the socket at a path is one at which nobody listens any more.
pub fn is_deserted(path: &Path) -> bool {
    let refused = || {
        let socket = socket()?;
        let (mut address, length) = address(path.as_os_str().as_bytes())?;
        address.sun_path.rotate_left(1);
        // SAFETY: the address is valid and as long as said, and the socket is open, as in
        // `listen_to`.
        let done =
            unsafe { libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    refused().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

fn listen_to((address, length): &(libc::sockaddr_un, libc::socklen_t)) -> io::Result<OwnedFd> {
    let socket = socket()?;
    // SAFETY: the address is valid and as long as said; the socket is open.
    let made = unsafe {
        libc::bind(socket.as_raw_fd(), ptr::from_ref(address).cast(), *length) == 0
            && libc::listen(socket.as_raw_fd(), libc::c_int::from(i16::MAX)) == 0
    };
    if made { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Connects to an abstract name.
///
/// # Errors
/// Nobody listens there.
pub fn connect(name: &[u8]) -> io::Result<OwnedFd> {
    let socket = socket()?;
    let (address, length) = address(name)?;
    // SAFETY: the address is valid and as long as said, and the socket is open, as in `listen`.
    let done = unsafe { libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
    if done == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Returns the next connection, if one is there; its reads do not block either.
///
/// # Errors
/// `WouldBlock` if none is there.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the listener is open; nobody wants the address.
    let connection =
        unsafe { libc::accept4(listener.as_raw_fd(), ptr::null_mut(), ptr::null_mut(), flags) };
    if connection == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this function has just opened the descriptor, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(connection) })
}

/// Returns who is at the other end.
///
/// # Errors
/// The socket is not connected.
pub fn peer(connection: BorrowedFd<'_>) -> io::Result<SocketPeer> {
    // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
    let mut found: libc::ucred = unsafe { zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the structure is as long as said and borrowed exclusively.
    let done = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            ptr::from_mut(&mut found).cast(),
            &mut length,
        )
    };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(SocketPeer { pid: u32::try_from(found.pid).unwrap_or(0), user: found.uid })
}

/// Waits until the connection can be read, at most so long. Says whether it can.
///
/// # Errors
/// What `poll` says.
pub fn wait_readable(connection: BorrowedFd<'_>, milliseconds: i32) -> io::Result<bool> {
    let mut wanted = libc::pollfd { fd: connection.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the kernel reads and writes one entry, which this frame borrows exclusively.
    match unsafe { libc::poll(&mut wanted, 1, milliseconds) } {
        -1 => Err(io::Error::last_os_error()),
        ready => Ok(ready > 0),
    }
}

/// Sends a message, with a descriptor if one is given.
///
/// # Errors
/// What the system says; no signal is raised.
pub fn send(
    connection: BorrowedFd<'_>,
    message: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
    let mut control = [0_u64; CONTROL / 8];
    // SAFETY: the structure has numbers and null pointers only, of which all zeroes are valid
    // values.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: the macro computes a size from a small number and touches no memory.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as usize;
        // SAFETY: the control buffer is aligned and has room for a header and
        // a descriptor (asserted by CMSG_SPACE(4) = 24 <= CONTROL).
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(first).cast::<i32>().write_unaligned(descriptor.as_raw_fd());
        }
    }
    // SAFETY: the header points at buffers that live during the call; the
    // kernel only reads them.
    let sent = unsafe { libc::sendmsg(connection.as_raw_fd(), &header, libc::MSG_NOSIGNAL) };
    if sent == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives a message, and the descriptor that came with it. An empty one is the end of the
/// connection, for nobody here sends one.
///
/// # Errors
/// `WouldBlock` if none is there; `InvalidData` for one that is too long; `EMFILE`
/// if a descriptor came that this process has no room for.
pub fn receive(connection: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    unless_ended(|| receive_next(connection))
}

/// Returns what `next` does, and believes in an end only when it has been told of it twice. Linux looks
/// for a message first and whether the connection has ended then: a peer that sends and closes
/// between these two has its end told before its message (some 1 in 60,000, with a reader that
/// asks all the time). A second look finds it, since who has ended sends nothing more.
fn unless_ended<D>(
    mut next: impl FnMut() -> io::Result<(Vec<u8>, Option<D>)>,
) -> io::Result<(Vec<u8>, Option<D>)> {
    match next()? {
        (message, None) if message.is_empty() => next(),
        received => Ok(received),
    }
}

/// Receives what the kernel gives out next: [`receive`] without a second look.
fn receive_next(connection: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut message = vec![0; LONGEST];
    let mut part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: message.len() };
    let mut control = [0_u64; CONTROL / 8];
    // SAFETY: the structure has numbers and null pointers only, of which all zeroes are valid
    // values.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = CONTROL;
    // SAFETY: the header points at buffers of the lengths it says.
    let length =
        unsafe { libc::recvmsg(connection.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let mut received: Vec<OwnedFd> = Vec::new();
    // SAFETY: the kernel wrote whole control messages into the buffer, and each
    // descriptor in them is open and ours.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(&header);
        while !next.is_null() {
            if (*next).cmsg_level == libc::SOL_SOCKET && (*next).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*next).cmsg_len - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(next).cast::<i32>();
                for index in 0..bytes / 4 {
                    received.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            next = libc::CMSG_NXTHDR(&header, next);
        }
    }
    if header.msg_flags & libc::MSG_TRUNC != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    if header.msg_flags & libc::MSG_CTRUNC != 0 && received.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    message.truncate(length);
    // Nobody here sends two.
    Ok((message, received.into_iter().next()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    /// Returns a name that no other test uses.
    fn name(what: &str) -> Vec<u8> {
        format!("lockstead-test-{}-{what}", std::process::id()).into_bytes()
    }

    #[test]
    fn a_descriptor_comes_over_with_its_message() {
        let name = name("passing");
        let listener = listen(&name).expect("listens");
        assert_eq!(accept(listener.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let client = connect(&name).expect("connects");
        let server = accept(listener.as_fd()).expect("a connection");
        let path = std::env::temp_dir().join(String::from_utf8(name).unwrap());
        let mut file = File::create_new(&path).expect("a file");
        std::fs::remove_file(&path).expect("removed");
        file.write_all(b"inside").expect("written");
        let readable = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("again");
        send(client.as_fd(), b"hello", Some(readable.as_fd())).expect("sent");
        drop((client, readable));
        assert!(wait_readable(server.as_fd(), 1000).expect("polls"));
        let (message, descriptor) = receive(server.as_fd()).expect("received");
        assert_eq!(message, b"hello");
        let mut came = File::from(descriptor.expect("a descriptor"));
        let mut text = String::new();
        came.rewind().expect("a file");
        came.read_to_string(&mut text).expect("text");
        assert_eq!(text, "inside");
        // A child that another test is about to start has a copy of the client until it runs.
        assert!(wait_readable(server.as_fd(), 10_000).expect("polls"), "no end came");
        let (message, descriptor) = receive(server.as_fd()).expect("the end");
        assert!(message.is_empty() && descriptor.is_none());
    }

    #[test]
    fn the_kernel_says_who_is_there() {
        let name = name("peer");
        let listener = listen(&name).expect("listens");
        let _client = connect(&name).expect("connects");
        let server = accept(listener.as_fd()).expect("a connection");
        let found = peer(server.as_fd()).expect("known");
        // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
        assert_eq!(found, SocketPeer { pid: std::process::id(), user: unsafe { libc::geteuid() } });
        assert!(listen(&name).is_err(), "the name is taken");
    }

    #[test]
    fn an_end_is_believed_when_it_is_told_twice() {
        let told = |answers: [&[u8]; 2]| {
            let mut answers = answers.into_iter();
            let next = || Ok((answers.next().expect("twice at most").to_vec(), None::<()>));
            unless_ended(next).expect("no error").0
        };
        assert_eq!(told([b"", b"hello"]), b"hello", "an end before its message");
        assert_eq!(told([b"hello", b""]), b"hello");
        assert_eq!(told([b"", b""]), b"");
        let broken = || Err::<(_, Option<()>), _>(io::Error::from(io::ErrorKind::WouldBlock));
        assert_eq!(unless_ended(broken).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_message_that_is_too_long_is_refused() {
        let name = name("long");
        let listener = listen(&name).expect("listens");
        let client = connect(&name).expect("connects");
        let server = accept(listener.as_fd()).expect("a connection");
        send(client.as_fd(), &vec![1; LONGEST + 1], None).expect("sent");
        assert_eq!(receive(server.as_fd()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(connect(&[b'x'; 200]).is_err());
    }
}
