//! A machine of the other processor, emulated: a kernel of Debian's and test programs, with its libc and a
//! shell; or with a disk that has the compilers and programs that the tests start.

use super::system::{ends_well, is_installed};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The emulator, of Debian's package qemu-system-arm.
const EMULATOR: &str = "qemu-system-aarch64";

/// The seconds after which a machine is ended, and a single program in it.
const PATIENCE: &str = "7200";
const PATIENCE_OF_ONE: u32 = 1800;
const PATIENCE_WITH_DISK: u32 = 6600;

/// What the machine writes before and behind the output of a program.
pub(super) const BEGINS: &str = "=== begins ";
pub(super) const ENDS: &str = "=== ends ";

/// The parts of a machine.
pub(super) struct Machine {
    root: PathBuf,
    kernel: String,
}

/// What a machine is started with.
pub(super) struct Load<'a> {
    /// The model of its processor, as the emulator names it.
    pub(super) processor: &'a str,
    /// The file of its disk, of which it writes to copies of blocks alone.
    pub(super) disk: Option<&'a Path>,
    /// Files and folders, and where each lies in the machine.
    pub(super) files: Vec<(PathBuf, String)>,
    /// What runs there, one after the other.
    pub(super) programs: Vec<Started>,
    /// More words for each of them.
    pub(super) words: &'a [String],
}

/// A program that runs in a machine.
pub(super) struct Started {
    /// Under which name its result is told.
    pub(super) name: String,
    /// Where it lies in the machine, and the folder in which it is started.
    pub(super) path: String,
    pub(super) folder: String,
}

impl Machine {
    /// Returns the machine whose parts lie in a root.
    ///
    /// # Errors
    /// What is missing, and which package has it.
    pub(super) fn find(root: &Path, kernel: &str) -> Result<Self, String> {
        is_installed(EMULATOR, "qemu-system-arm")?;
        is_installed("cpio", "cpio")?;
        let machine = Machine { root: root.into(), kernel: kernel.into() };
        let kernel = machine.part("vmlinuz-");
        if !kernel.exists() {
            return Err(format!(
                "there is no {}: --kernel is cloud-arm64, arm64-16k or arm64-64k",
                kernel.display()
            ));
        }
        Ok(machine)
    }

    /// Returns the file of the kernel whose name begins so.
    fn part(&self, begins: &str) -> PathBuf {
        self.root.join("machine").join(format!("{begins}{}", self.kernel))
    }

    /// Tells whether the kernel runs on each processor: not all have pages of 16 KiB.
    pub(super) fn runs_everywhere(&self) -> bool {
        self.kernel != "arm64-16k"
    }

    /// Starts the machine and hands each line that it writes to `line`.
    ///
    /// # Errors
    /// What cannot be read or written, or started.
    pub(super) fn run(&self, load: &Load<'_>, mut line: impl FnMut(&str)) -> Result<(), String> {
        let folder = self.root.join("machine").join(format!("files-{}", std::process::id()));
        let archive = folder.with_extension("cpio");
        let made = self.files(&folder, load).map_err(|error| format!("a machine's files: {error}"));
        let packed = made.and_then(|()| pack(&folder, &archive));
        // Twice the room, otherwise: the archive has all of it.
        fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        packed?;
        let mut machine = Command::new("timeout");
        machine.args([PATIENCE, EMULATOR, "-M", "virt", "-cpu", load.processor]);
        machine.args(["-accel", "tcg,thread=multi", "-smp", "2", "-m", "3072", "-no-reboot"]);
        machine.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-append"]);
        machine.arg("console=ttyAMA0 quiet panic=-1 rdinit=/init");
        machine.arg("-kernel").arg(self.part("vmlinuz-")).arg("-initrd").arg(&archive);
        if let Some(disk) = load.disk {
            let file = format!("file={},format=raw,if=virtio,snapshot=on", disk.display());
            machine.arg("-drive").arg(file);
        }
        machine.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut machine = machine.spawn().map_err(|error| format!("timeout: {error}"))?;
        let output = machine.stdout.take().ok_or("a machine without an output")?;
        // What the emulator itself says, which is why it has not started: a few lines at most.
        let said = machine.stderr.take().map(|said| std::thread::spawn(|| last_line(said)));
        for bytes in BufReader::new(output).split(b'\n') {
            let bytes = bytes.map_err(|error| error.to_string())?;
            line(String::from_utf8_lossy(&bytes).trim_end());
        }
        let status = machine.wait().map_err(|error| error.to_string())?;
        fs::remove_file(&archive).map_err(|error| error.to_string())?;
        if status.success() {
            return Ok(());
        }
        let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
        let colon = if said.is_empty() { "" } else { ": " };
        Err(format!("{EMULATOR}: {status}{colon}{said}"))
    }

    /// Makes the machine's first file system.
    fn files(&self, folder: &Path, load: &Load<'_>) -> io::Result<()> {
        for inside in ["bin", "dev", "disk", "etc", "lib", "proc", "root", "sys", "tmp"] {
            fs::create_dir_all(folder.join(inside))?;
        }
        fs::copy(self.root.join("machine/busybox"), folder.join("bin/busybox"))?;
        fs::set_permissions(folder.join("bin/busybox"), fs::Permissions::from_mode(0o755))?;
        if load.disk.is_some() {
            fs::create_dir_all(folder.join("modules"))?;
            for module in fs::read_dir(self.part("modules-"))? {
                let module = module?;
                fs::copy(module.path(), folder.join("modules").join(module.file_name()))?;
            }
        } else {
            let libraries = self.root.join("usr/lib/aarch64-linux-gnu");
            for library in ["ld-linux-aarch64.so.1", "libc.so.6", "libgcc_s.so.1", "libm.so.6"] {
                fs::copy(libraries.join(library), folder.join("lib").join(library))?;
            }
        }
        for (from, to) in &load.files {
            let to = folder.join(to.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap_or(folder))?;
            // Links are followed: the command's package has some that lead out of it.
            let copied = Command::new("cp").arg("-rL").arg(from).arg(&to).status()?;
            if !copied.success() {
                return Err(io::Error::other(format!("cp {}: {copied}", from.display())));
            }
        }
        fs::write(folder.join("run.sh"), script(load))?;
        let init = folder.join("init");
        fs::write(&init, if load.disk.is_some() { WITH_DISK } else { WITHOUT_DISK })?;
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755))
    }
}

/// Hands on the lines that the emulator writes to standard error, and returns the last one.
fn last_line(said: impl io::Read) -> String {
    let mut last = String::new();
    for bytes in BufReader::new(said).split(b'\n').map_while(Result::ok) {
        last = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        eprintln!("{last}");
    }
    last
}

/// The machine's first program, where it has no disk.
const WITHOUT_DISK: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t cgroup2 cgroups /sys/fs/cgroup; mount -t devtmpfs dev /dev
mkdir /dev/shm; mount -t tmpfs shm /dev/shm; mount -t tmpfs tmp /tmp
ip link set lo up; echo root:x:0:0::/root:/bin/sh > /etc/passwd
uname -srm; getconf PAGESIZE 2>/dev/null
. /run.sh
poweroff -f
"#;

/// The same, which goes on in the root that the disk has.
const WITH_DISK: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc; mount -t devtmpfs dev /dev
for module in /modules/*; do [ -e $module ] && insmod $module; done
tries=0; while [ ! -e /dev/vda ] && [ $tries -lt 100 ]; do sleep 0.2; tries=$((tries+1)); done
mount -t ext4 /dev/vda /disk || { echo "no disk"; poweroff -f; }
mount -t proc proc /disk/proc; mount -t sysfs sys /disk/sys; mount -t cgroup2 cgroups /disk/sys/fs/cgroup
mount -t devtmpfs dev /disk/dev; mkdir -p /disk/dev/shm /disk/dev/pts
mount -t tmpfs shm /disk/dev/shm; mount -t devpts pts /disk/dev/pts; mount -t tmpfs tmp /disk/tmp
for folder in lockstead output; do mkdir -p /disk/$folder; mount --bind /$folder /disk/$folder; done
ip link set lo up; cp /run.sh /disk/run.sh
uname -srm
chroot /disk /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/tmp LC_ALL=C.UTF-8 bash /run.sh
poweroff -f
"#;

/// Returns what a shell of the machine does.
fn script(load: &Load<'_>) -> String {
    let patience = if load.disk.is_some() { PATIENCE_WITH_DISK } else { PATIENCE_OF_ONE };
    let mut script = String::new();
    let words = load.words.join(" ");
    for Started { name, path, folder } in &load.programs {
        if load.disk.is_some() {
            // Cargo's folder for the files of tests, which they know from when they were built.
            script += &format!("mkdir -p $(dirname {path})/../../tmp\n");
        }
        script += &format!(
            "echo '{BEGINS}{name}'; cd {folder}; timeout {patience} {path} --nocapture {words} 2>&1; echo \"{ENDS}$?\"\n"
        );
    }
    script
}

/// Packs a folder as the kernel unpacks its first files.
fn pack(folder: &Path, archive: &Path) -> Result<(), String> {
    const PACK: &str = "cd \"$1\" && find . | cpio --quiet --create --format=newc > \"$2\"";
    let mut pack = Command::new("sh");
    ends_well(pack.args(["-c", PACK, "pack"]).arg(folder).arg(archive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_emulator_is_why_it_has_not_started() {
        assert_eq!(last_line(&b"a warning\nno such machine\n"[..]), "no such machine");
        assert_eq!(last_line(&b""[..]), "");
    }
}
