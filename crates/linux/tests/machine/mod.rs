//! Runs the calling test program as the only one of a machine that is emulated, with a kernel and a
//! libc that this one may not have.
//!
//! `LOCKSTEAD_MACHINE` names a folder that `make.sh` beside this file has made: `bzImage`, the kernel,
//! and `lib/`, the libc. The program is the machine's first process. Its file system is memory
//! and has, beside the program, the libc and the two devices that a program starts with.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The emulator, of Debian's package qemu-system-x86.
const EMULATOR: &str = "qemu-system-x86_64";

/// Tells whether the calling program is the first process of a machine that [`run`] has started.
pub(crate) fn is_inside() -> bool {
    std::process::id() == 1 && std::env::var_os("LOCKSTEAD_INSIDE").is_some()
}

/// The parts of a machine.
pub(crate) struct Machine {
    folder: PathBuf,
}

impl Machine {
    /// Returns the machine that the environment names.
    ///
    /// # Errors
    /// What is missing, in words.
    pub(crate) fn find() -> Result<Self, String> {
        let Some(folder) = std::env::var_os("LOCKSTEAD_MACHINE").map(PathBuf::from) else {
            return Err("LOCKSTEAD_MACHINE names no folder (crates/linux/tests/machine/make.sh \
                        makes one)"
                .into());
        };
        for part in ["bzImage", "lib/ld-linux-x86-64.so.2", "lib/libc.so.6"] {
            if !folder.join(part).exists() {
                return Err(format!("there is no {}", folder.join(part).display()));
            }
        }
        let answer = Command::new(EMULATOR).arg("--version").output();
        answer.map_err(|error| format!("{EMULATOR}: {error}"))?;
        Ok(Machine { folder })
    }

    /// Starts the machine with the test `name` of the calling program, and more for the kernel.
    /// Returns what it wrote.
    ///
    /// # Panics
    /// If the machine does not end by itself within eight minutes.
    pub(crate) fn run(&self, name: &str, kernel: &str) -> String {
        let files = std::env::temp_dir().join(format!("lockstead-{}.cpio", std::process::id()));
        std::fs::write(&files, self.archive()).expect("room for the machine's files");
        let line = format!(
            "console=ttyS0 quiet panic=-1 {kernel} LOCKSTEAD_INSIDE=1 rdinit=/init -- --exact {name} \
             --nocapture --test-threads=1"
        );
        let mut machine = Command::new(EMULATOR)
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512"])
            .args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"])
            .arg("-kernel")
            .arg(self.folder.join("bzImage"))
            .arg("-initrd")
            .arg(&files)
            .arg("-append")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let mut output = machine.stdout.take().expect("it is a pipe");
        let reader = std::thread::spawn(move || std::io::read_to_string(&mut output));
        let end = Instant::now() + Duration::from_secs(480);
        while machine.try_wait().expect("it is our own child").is_none() {
            if Instant::now() > end {
                machine.kill().expect("it is our own child");
                machine.wait().expect("it is our own child");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::remove_file(&files).expect("it was written above");
        let text = reader.join().expect("it does not panic").expect("the serial line has text");
        assert!(Instant::now() < end, "the machine hangs:\n{text}");
        text.replace('\r', "")
    }

    /// Returns the machine's files, as the kernel unpacks them.
    fn archive(&self) -> Vec<u8> {
        let program = std::env::current_exe().expect("the program has a path");
        let mut archive = Archive::default();
        for folder in ["dev", "proc", "debug", "tmp", "lib64", "lib"] {
            archive.add(folder, Kind::Folder, &[]);
        }
        archive.add("dev/console", Kind::Device(5, 1), &[]);
        archive.add("dev/null", Kind::Device(1, 3), &[]);
        archive.add("init", Kind::Program, &read(&program));
        archive.add(
            "lib64/ld-linux-x86-64.so.2",
            Kind::Program,
            &self.part("ld-linux-x86-64.so.2"),
        );
        for library in ["libc.so.6", "libgcc_s.so.1"] {
            archive.add(&format!("lib/{library}"), Kind::Program, &self.part(library));
        }
        archive.end()
    }

    fn part(&self, library: &str) -> Vec<u8> {
        read(&self.folder.join("lib").join(library))
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The sort of a file in an [`Archive`].
enum Kind {
    Folder,
    Program,
    /// A device of characters, by its two numbers.
    Device(u32, u32),
}

/// An archive in the form that the kernel unpacks first of all: cpio, "newc".
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    fn add(&mut self, name: &str, kind: Kind, content: &[u8]) {
        let (mode, device) = match kind {
            Kind::Folder => (libc::S_IFDIR | 0o755, (0, 0)),
            Kind::Program => (libc::S_IFREG | 0o755, (0, 0)),
            Kind::Device(major, minor) => (libc::S_IFCHR | 0o666, (major, minor)),
        };
        self.entry(name, mode, device, content);
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.files += 1;
        let size = u32::try_from(content.len()).expect("a file of less than 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a short name");
        // Number, mode, owners, links, time, size, its own device, the device it is, name's size,
        // no checksum.
        let (major, minor) = device;
        let fields = [self.files, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name_size, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

/// Mounts the file systems by which the inside of a machine asks its kernel.
pub(crate) fn mount() {
    for (kind, at) in [(c"proc", c"/proc"), (c"debugfs", c"/debug")] {
        // SAFETY: the kernel reads strings that live as long as the program.
        let mounted =
            unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, core::ptr::null()) };
        assert_eq!(mounted, 0, "{kind:?}: {}", std::io::Error::last_os_error());
    }
}
