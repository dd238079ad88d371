//! A terminal with the command on it: what a person sees of it, and types.

use crate::common::lockstead;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::zeroed;
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use vt100::Parser;

/// Nothing on the screen takes longer, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(10);

/// The command on a terminal of its own.
pub(crate) struct Screen {
    child: Child,
    master: File,
    /// The end of the program, kept open so that its settings can be asked for at the end.
    slave: OwnedFd,
    before: Vec<u8>,
    output: Receiver<Vec<u8>>,
    parser: Parser,
}

impl Screen {
    /// Starts the command on a terminal of 80 columns and 24 lines.
    pub(crate) fn start(arguments: &[&str]) -> Screen {
        let (mut master, mut slave) = (-1, -1);
        let size = winsize(80, 24);
        // SAFETY: the places for the descriptors are valid, the name is not
        // wanted, the settings are the default, the size is valid.
        let made = unsafe {
            libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null(), &size)
        };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both were just made and belong to nobody else.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let before = settings(&slave);
        let child = lockstead(arguments)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the command starts");
        let (sender, output) = mpsc::channel();
        let mut reader = master.try_clone().expect("a descriptor");
        // Ends with the terminal, when the last descriptor of it is closed.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Screen { child, master, slave, before, output, parser: Parser::default() }
    }

    /// Returns the lines as they are, once `seen` is true of them.
    pub(crate) fn see(&mut self, what: &str, seen: impl Fn(&[String]) -> bool) -> Vec<String> {
        self.wait(what, |screen| seen(&screen.lines()));
        self.lines()
    }

    fn wait(&mut self, what: &str, reached: impl Fn(&Screen) -> bool) {
        let start = Instant::now();
        while !reached(self) {
            assert!(start.elapsed() < DEADLINE, "no {what}:\n{}", self.lines().join("\n"));
            self.receive(Duration::from_millis(50));
        }
    }

    /// Returns the lines, once a line contains `part`.
    pub(crate) fn expect(&mut self, part: &str) -> Vec<String> {
        self.see(part, |lines| lines.iter().any(|line| line.contains(part)))
    }

    /// Returns the lines, once they have been the same for this time.
    pub(crate) fn at_rest(&mut self, time: Duration) -> Vec<String> {
        let start = Instant::now();
        let (mut lines, mut since) = (self.lines(), start);
        while since.elapsed() < time {
            assert!(start.elapsed() < DEADLINE, "no rest on:\n{}", lines.join("\n"));
            self.receive(Duration::from_millis(50));
            let now = self.lines();
            if now != lines {
                (lines, since) = (now, Instant::now());
            }
        }
        lines
    }

    fn receive(&mut self, most: Duration) {
        if let Ok(bytes) = self.output.recv_timeout(most) {
            self.parser.process(&bytes);
        }
    }

    fn lines(&self) -> Vec<String> {
        let screen = self.parser.screen();
        let rows = screen.rows(0, screen.size().1.get());
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    /// Types these keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until the command has the terminal for itself: keys come one by
    /// one, on the other screen, without a cursor.
    pub(crate) fn is_taken(&mut self) {
        self.wait("other screen", |screen| screen.differs() == [true; 3]);
    }

    /// Waits until the terminal is as it was before.
    pub(crate) fn is_given_back(&mut self) {
        self.wait("given back terminal", |screen| screen.differs() == [false; 3]);
    }

    /// Returns what is other than before: the screen, the cursor, the settings.
    fn differs(&self) -> [bool; 3] {
        let screen = self.parser.screen();
        [screen.alternate_screen(), screen.hide_cursor(), settings(&self.slave) != self.before]
    }

    /// Asserts that the command ends well, and that the terminal is as it was.
    pub(crate) fn end(mut self) {
        self.is_given_back();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            assert!(start.elapsed() < DEADLINE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{status}");
        assert_eq!(self.differs(), [false; 3], "taken again at the end");
    }

    /// Gives the terminal another size, as a window manager does.
    pub(crate) fn resize(&mut self, columns: u16, lines: u16) {
        let size = winsize(columns, lines);
        let fd = self.master.as_raw_fd();
        // SAFETY: the descriptor is that of a terminal, the size valid for
        // reading.
        assert_eq!(unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &raw const size) }, 0);
        let positive = |number| NonZeroU16::new(number).expect("some room");
        self.parser.set_size(positive(lines), positive(columns));
        // It is nobody's controlling terminal: the kernel tells nobody.
        self.signal(libc::SIGWINCH);
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        let pid = libc::pid_t::try_from(self.child.id()).expect("a process id");
        // SAFETY: the child has not been waited for: the number is its own.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Waits until the command is stopped, as by a shell's Ctrl-Z.
    pub(crate) fn is_stopped(&self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        let start = Instant::now();
        while !std::fs::read_to_string(&stat).expect("it runs").contains(") T ") {
            assert!(start.elapsed() < DEADLINE, "it is not stopped");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn winsize(columns: u16, lines: u16) -> libc::winsize {
    libc::winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Returns the settings of a terminal.
fn settings(terminal: &OwnedFd) -> Vec<u8> {
    // SAFETY: all zeroes is a valid value of this structure of numbers.
    let mut found: libc::termios = unsafe { zeroed() };
    // SAFETY: the descriptor is open, and the kernel writes into `found`, which lives.
    assert_eq!(unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut found) }, 0);
    let flags = [found.c_iflag, found.c_oflag, found.c_cflag, found.c_lflag];
    flags.iter().flat_map(|flag| flag.to_ne_bytes()).chain(found.c_cc).collect()
}
